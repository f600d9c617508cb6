package main

import (
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/test/golden"
)

const head = "# Commands of spotter-lab\n\nWhat research needs and users do not. `spotter` runs these where `spotter-lab` is beside it or in `PATH`; `make build` makes\nboth, and the container image has `spotter` alone. The page is made of the program.\n"

// TestReference: the page on commands is what the commands say.
func TestReference(t *testing.T) {
	p := &cli.Program{Name: lab.Program}
	want, commands, _ := clitest.Page(head, p.Root(commands(p)[:3]...))
	if commands < 10 {
		t.Errorf("%d commands are found", commands)
	}
	golden.Hold(t, "../../../docs/reference-lab.md", want)
}
