package policytest_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFaultsHaveCases holds docs/faults.md against the tree: every case and test
// that it links to is there, every fault has one, and every case that is named after a
// fault is in it. A link to Go has the name of the test as its title.
func TestFaultsHaveCases(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(\.\./([^) ]+)(?: "([A-Za-z_0-9]+)")?\)`)
	var listed []string
	for row := range strings.Lines(string(text)) {
		if !strings.HasPrefix(row, "* ") {
			continue
		}
		links := link.FindAllStringSubmatch(row, -1)
		if len(links) == 0 {
			t.Errorf("no case: %s", row)
		}
		for _, x := range links {
			listed = append(listed, x[1])
			file, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(x[1])))
			switch {
			case err != nil:
				t.Error(err)
			case strings.HasSuffix(x[1], ".go"):
				if x[2] == "" || !bytes.Contains(file, []byte("func "+x[2]+"(t *testing.T)")) {
					t.Errorf("%s has no test %q", x[1], x[2])
				}
			case !bytes.HasPrefix(file, []byte("# ")):
				t.Errorf("%s does not begin with why", x[1])
			}
		}
	}
	if len(listed) < 60 {
		t.Errorf("%d cases are listed, want 60 at least", len(listed))
	}
	err = filepath.WalkDir(filepath.Join(root, "policy"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "fault_") {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err == nil && !slices.Contains(listed, filepath.ToSlash(rel)) {
			t.Errorf("docs/faults.md lacks %s", filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
