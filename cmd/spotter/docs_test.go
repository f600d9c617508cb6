package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// document returns a file of docs.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pagesMade are the pages of docs that programs write.
var pagesMade = []string{"random-days.md", "reference-cli.md", "reference-configuration.md", "reference-crds.md",
	"reference-eval.md", "reference-lab.md",
	"reference-metrics.md", "reference-policies.md", "reference-values.md", "results.md", "rights.md"}

// partMade is a part of a page that a program writes.
var partMade = regexp.MustCompile(`(?s)<!-- [^>]*, by go test [^>]*-->.*?<!-- end of [^>]*-->`)

// wordsMax is how many words the pages have that people write, together. Who adds a page
// shortens another.
const wordsMax = 37_100

// TestDocsWords: the pages that people write stay short enough to be read.
func TestDocsWords(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	total, made := 0, 0
	var lines []string
	for _, path := range pages {
		name := filepath.Base(path)
		if slices.Contains(pagesMade, name) {
			made++
			continue
		}
		n := len(strings.Fields(partMade.ReplaceAllString(document(t, name), "")))
		total += n
		lines = append(lines, fmt.Sprintf("%6d %s", n, name))
	}
	if made != len(pagesMade) {
		t.Errorf("%d of the %d pages that programs write are there", made, len(pagesMade))
	}
	if total > wordsMax {
		slices.Sort(lines)
		t.Errorf("the pages of docs have %d words, %d are the most:\n%s", total, wordsMax, strings.Join(lines, "\n"))
	}
}

// The page on the market model lists every constant that runs use, as it is
// now, with its basis and its source, and its pictures are there.
func TestMarketPageHasEveryConstant(t *testing.T) {
	page := document(t, "market.md")
	p := weather.DefaultParams()
	for _, a := range p.Assumptions() {
		if row := fmt.Sprintf("| %s | %s | %s | %s |\n", a.Name, a.Value, a.Basis, a.Source); !strings.Contains(page, row) {
			t.Errorf("docs/market.md lacks the row\n%s", row)
		}
	}
	pictures := regexp.MustCompile(`\]\((plots/[a-z]+\.svg)\)`).FindAllStringSubmatch(page, -1)
	if len(pictures) < 2 {
		t.Errorf("%d pictures, want two", len(pictures))
	}
	for _, m := range pictures {
		if svg := document(t, m[1]); !strings.HasPrefix(svg, "<svg ") || !strings.Contains(svg, "synthetic") {
			t.Errorf("docs/%s is no picture of what was generated", m[1])
		}
	}
}

// The page on the library says what every embedded scenario teaches.
func TestScenariosPageHasEveryScenario(t *testing.T) {
	page := document(t, "scenarios.md")
	for _, name := range scenarios.Names() {
		if !strings.HasPrefix(name, "bench-") && !strings.Contains(page, "\n| "+name+" |") {
			t.Errorf("%s has no row that says what it teaches", name)
		}
	}
}
