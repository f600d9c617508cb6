//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/lab"
)

// TestLab: spotter-lab runs in the place of spotter where it is in its folder or in PATH,
// with the same arguments, input and exit code. Without it the call is wrong.
func TestLab(t *testing.T) {
	adjacent, elsewhere := t.TempDir(), t.TempDir()
	spotter := filepath.Join(adjacent, "spotter")
	if err := os.Link(built(t), spotter); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) (code int, out string) {
		c := exec.CommandContext(t.Context(), spotter, args...)
		c.Env, c.Stdin = append(os.Environ(), "PATH="+elsewhere+":/bin:/usr/bin"), strings.NewReader("words")
		text, err := c.CombinedOutput()
		exit := (*exec.ExitError)(nil)
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(text)
	}
	program := func(dir, name string) {
		script := "#!/bin/sh\necho \"" + name + ": $*, $(cat)\"\nexit 7\n"
		if err := os.WriteFile(filepath.Join(dir, lab.Program), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	if code, out := call("trace", "check", "embedded"); code != cli.ExitInvalid ||
		!strings.Contains(out, "spotter trace check is part of spotter-lab") || !strings.Contains(out, "make build") {
		t.Errorf("without it: exit code %d\n%s", code, out)
	}
	program(elsewhere, "in PATH")
	if code, out := call("models", "train", "--rounds", "3"); code != 7 || out != "in PATH: models train --rounds 3, words\n" {
		t.Errorf("in PATH: exit code %d\n%s", code, out)
	}
	program(adjacent, "beside")
	for _, args := range []string{"trace generate --help", "help scenario from-trace", "__complete trace forecast --b"} {
		if code, out := call(strings.Fields(args)...); code != 7 || out != "beside: "+args+", words\n" {
			t.Errorf("beside: exit code %d\n%s", code, out)
		}
	}
	if code, out := call("trace", "--help"); code != cli.ExitOK || !strings.Contains(out, lab.TraceForecast.Short) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
