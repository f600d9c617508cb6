package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// Every command has a man page, with its flags and nothing of the day.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, stderr := call(t, "man", dir); code != cli.ExitOK || stderr != "" {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	for name, wants := range map[string][]string{
		"spotter.1":            {".TH", `"Nov 2023"`, "spotter-eval(1)"},
		"spotter-eval.1":       {`--policies`, `-q`},
		"spotter-trace-info.1": {`-o`, "spotter-trace(1)"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		for _, want := range wants {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s, %v", name, want, err)
			}
		}
		if strings.Contains(string(text), "cpuprofile") {
			t.Errorf("%s has a flag that is hidden", name)
		}
	}
	wrongCallIs(t, "is a file, and not a folder", "man", filepath.Join(dir, "spotter.1", "below"))
}
