package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docPages returns the text of every page of docs by its name.
func docPages(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	texts := map[string]string{}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(path)] = string(text)
	}
	return texts
}

// TestDocsIndex: docs/README.md, of which the site takes its navigation, names every page
// once, under one of four parts, with a sentence.
func TestDocsIndex(t *testing.T) {
	pages := docPages(t)
	entry := regexp.MustCompile(`^- \[[^\]]+\]\(([a-z0-9-]+\.md)\): \S.*\.$`)
	var parts []string
	named := map[string]int{}
	for n, line := range strings.Split(pages["README.md"], "\n") {
		if part, ok := strings.CutPrefix(line, "## "); ok {
			parts = append(parts, part)
			continue
		}
		if len(parts) == 0 || line == "" {
			continue
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("docs/README.md:%d: %q is not `- [Title](page.md): one sentence.`", n+1, line)
			continue
		}
		named[m[1]]++
		if pages[m[1]] == "" {
			t.Errorf("docs/README.md:%d: %s is not there", n+1, m[1])
		}
	}
	if want := []string{"Start", "Do", "Understand", "Look up"}; !slices.Equal(parts, want) {
		t.Errorf("docs/README.md has the parts %q, want %q", parts, want)
	}
	for name := range pages {
		if name != "README.md" && named[name] != 1 {
			t.Errorf("docs/README.md names %s %d times, want once", name, named[name])
		}
	}
}

// TestDocsLeave: links that leave docs, which the site does not follow, lead to a file.
func TestDocsLeave(t *testing.T) {
	link := regexp.MustCompile(`\]\((\.\./[^)# ]+)`)
	seen := 0
	for name, text := range docPages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			seen++
			if _, err := os.Stat(filepath.Join("..", "..", "docs", m[1])); err != nil {
				t.Errorf("docs/%s leads to %s: %v", name, m[1], err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d links leave docs", seen)
	}
}
