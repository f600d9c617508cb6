package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMap holds the tables of packages in docs/architecture.md: every package is in one,
// and every row names a folder that is there.
func TestMap(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	inside := false // in a table of packages
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if inside = len(cells) == 5 && (inside || strings.TrimSpace(cells[1]) == "package"); !inside {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			patterns = append(patterns, regexp.MustCompile(`<\w+>`).ReplaceAllString(m[1], "*"))
		}
	}
	for _, p := range patterns {
		if there, err := filepath.Glob(filepath.Join("..", strings.TrimSuffix(p, "/..."))); err != nil || len(there) == 0 {
			t.Errorf("docs/architecture.md: there is no %s", p)
		}
	}
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if !anyMatches(patterns, name) {
			t.Errorf("docs/architecture.md: no row has the package %s", name)
		}
	}
}
