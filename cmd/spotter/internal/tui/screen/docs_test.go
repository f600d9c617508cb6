package screen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageHasEveryKey holds docs/tui.md to the keys that there are.
func TestPageHasEveryKey(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", "tui.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range groups() {
		for _, b := range g.keys {
			n++
			if line := fmt.Sprintf("* `%s` %s\n", strings.TrimSpace(b.Help().Key), b.Help().Desc); !strings.Contains(string(page), line) {
				t.Errorf("docs/tui.md lacks the line %s", line)
			}
		}
	}
	if lines := strings.Count(string(page), "\n* `"); lines != n {
		t.Errorf("docs/tui.md has %d lines of keys for %d keys", lines, n)
	}
}
