// Package golden holds what a test makes against a file of the repository: a page of the
// documents, or an output that a person has looked at. With -rewrite a test writes its files
// instead; read the difference.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // its flag -rewrite is ours, too
)

// Rewrite reports whether the tests must write the files.
func Rewrite() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// Hold fails the test where the file at path, relative to the folder of the package, is not got.
func Hold(t *testing.T, path, got string) {
	t.Helper()
	if Rewrite() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -rewrite writes it", err)
	}
	if got == string(text) {
		return
	}
	a, b := strings.SplitAfter(got, "\n"), strings.SplitAfter(string(text), "\n")
	line := 0
	for line < min(len(a), len(b))-1 && a[line] == b[line] {
		line++
	}
	t.Errorf("%s differs from line %d on; -run '^%s$' -rewrite writes it.\ngot  %q\nwant %q", path, line+1, t.Name(),
		a[line], b[line])
}
