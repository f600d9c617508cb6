package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
