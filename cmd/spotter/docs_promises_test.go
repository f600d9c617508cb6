package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// heldHeading is that of the list of tests at the end of a page.
const heldHeading = "\n## Held by tests\n"

// notPromised are the sections of pages that say what others may do, or what something is for, and promise nothing.
var notPromised = []string{"Who can steer it"}

// TestPromisesHaveTests: each statement of the pages on security and drains, which is a row of a table, an item of a
// list or a paragraph that starts in bold, has a test that holds it, the test is there, and no other statement is listed.
func TestPromisesHaveTests(t *testing.T) {
	exists := namedTests(t)
	for _, page := range []string{"security.md", "drains.md"} {
		text, list, found := strings.Cut(document(t, page), heldHeading)
		if !found {
			t.Errorf("docs/%s lacks the section %q", page, strings.TrimSpace(heldHeading))
			continue
		}
		promises, all := promisesOf(text), statementsOf(text)
		held := map[string]bool{}
		for _, item := range regexp.MustCompile("(?m)^\\* (.+?): (`.*)$").FindAllStringSubmatch(list, -1) {
			for _, of := range strings.Split(item[1], "; ") {
				if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, of) }) {
					t.Errorf("docs/%s lists tests of %q, which no statement of it starts with", page, of)
				}
				held[of] = true
			}
			tests := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(item[2], -1)
			for _, name := range tests {
				if !exists[name[1]] {
					t.Errorf("docs/%s names the test %s, which is not there", page, name[1])
				}
			}
		}
		for _, promise := range promises {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(held)), func(of string) bool { return strings.HasPrefix(promise, of) }) {
				t.Errorf("docs/%s lists no test of the statement %q", page, promise)
			}
		}
		if len(promises) < 15 {
			t.Errorf("docs/%s has %d statements: they are not recognised", page, len(promises))
		}
	}
}

// rowsOf returns the cells of the rows of the tables of a text, without headings and rules.
func rowsOf(text string) (rows [][]string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		heading := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|-")
		if strings.HasPrefix(line, "| ") && !heading {
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return rows
}

// promisesOf returns what a page promises: rows, items and paragraphs that start in bold.
func promisesOf(text string) (out []string) {
	for section := range strings.SplitSeq(text, "\n## ") {
		name, _, _ := strings.Cut(section, "\n")
		if slices.Contains(notPromised, name) {
			continue
		}
		for _, row := range rowsOf(section) {
			out = append(out, row[0])
		}
		for _, line := range regexp.MustCompile(`(?m)^(?:\* )?\*\*.*`).FindAllString(section, -1) {
			out = append(out, strings.NewReplacer("* ", "", "**", "").Replace(line))
		}
	}
	return out
}

// statementsOf returns what may be listed: promises, and the starts of other paragraphs.
func statementsOf(text string) []string {
	out := promisesOf(text)
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		out = append(out, paragraph)
	}
	return out
}

// namedTests returns the tests of the repository as "folder.TestName".
func namedTests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, root := range []string{"charts", "cmd", "eval", "internal", "live", "policy", "test"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					all[filepath.Base(filepath.Dir(path))+"."+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
