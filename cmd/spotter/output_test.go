package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

func TestTargetsThatCannotBeWritten(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	folder := t.TempDir()
	inFile := filepath.Join(file(t, "letter", "dear"), "report")
	missing := filepath.Join(folder, "none", "report")
	long := filepath.Join(folder, strings.Repeat("a", 300))
	for want, path := range map[string]string{
		folder + " is a folder": folder,
		inFile:                  inFile,
		missing:                 missing,
		long:                    long,
	} {
		wrongCallIs(t, want, "eval", scenario, "--seeds", "1", "--out", path)
		wrongCallIs(t, want, "sim", scenario, "--log", path)
	}
	empty(t, folder)
	// A name of the greatest length that a file may have is a good name.
	if err := cli.ReplaceFile(filepath.Join(folder, strings.Repeat("a", 255)), func(io.Writer) error { return nil }); err != nil {
		t.Error(err)
	}
}
