package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/reference"
)

var rewrite = flag.Lookup("rewrite")

func init() {
	if rewrite == nil {
		flag.Bool("rewrite", false, "write docs/reference-lab.md anew")
		rewrite = flag.Lookup("rewrite")
	}
}

const head = "# Commands of spotter-lab\n\nWhat research needs and users do not. `spotter` runs these where `spotter-lab` is beside it or in `PATH`; `make build` makes\nboth, and the container image has `spotter` alone. The page is made of the program.\n"

// TestReference: the page on commands is what the commands say.
func TestReference(t *testing.T) {
	p := &cli.Program{}
	want, commands, _ := reference.Page(head, p.Root(commands(p)[:3]...))
	if commands < 10 {
		t.Errorf("%d commands are found", commands)
	}
	path := filepath.Join("..", "..", "..", "docs", "reference-lab.md")
	if rewrite.Value.String() == "true" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a page to read
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("docs/reference-lab.md is not what the program says, %v; run go test . -run TestReference -rewrite", err)
	}
}
