// Package clitest calls a program of commands as its user does, for tests, and finds what
// such calls need: files, bundles and ONNX Runtime.
package clitest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// A Program is the commands of the program under test.
type Program func(*cli.Program) []*cobra.Command

// Run does what args say and returns the exit code.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return (&cli.Program{Version: "unknown", Args: args, Stdout: stdout, Stderr: stderr}).Run(ctx, p)
}

// Call runs the program and returns its exit code and what it wrote.
func (p Program) Call(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = p.Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// WrongCallIs checks that a call ends with 2, says what is wrong on the first line, says
// on a further one what to do next, and prints no result.
func (p Program) WrongCallIs(t testing.TB, want string, args ...string) {
	t.Helper()
	code, stdout, stderr := p.Call(t, args...)
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[0], "warning: ") { // of the input, before the fault was met
		lines = lines[1:]
	}
	switch {
	case code != cli.ExitInvalid:
		t.Errorf("spotter %s: exit code %d, want %d\n%s", cli.Shell(args), code, cli.ExitInvalid, stderr)
	case !strings.HasPrefix(lines[0], "spotter: "):
		t.Errorf("spotter %s: the first line is %q", cli.Shell(args), lines[0])
	case !strings.Contains(stderr, want):
		t.Errorf("spotter %s: %q is missing in\n%s", cli.Shell(args), want, stderr)
	case len(lines) < 2:
		t.Errorf("spotter %s: nothing is said about what to do next:\n%s", cli.Shell(args), stderr)
	case stdout != "":
		t.Errorf("spotter %s: it failed and printed\n%s", cli.Shell(args), stdout)
	case strings.Contains(stderr, "panic"), strings.Contains(stderr, "goroutine"):
		t.Errorf("spotter %s: it panicked\n%s", cli.Shell(args), stderr)
	}
}

// File writes text to a new file and returns its path.
func File(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Bundle returns a bundle of the SpotVortex agent, or skips the test.
func Bundle(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SPOTTER_COMPAT")
	if dir == "" {
		dir = filepath.Join(policytest.Root(t), "..", "shared", "compat")
	}
	dir = filepath.Join(dir, "spotvortex", "models")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%v: the bundles of the SpotVortex agent are not here; name their folder by SPOTTER_COMPAT", err)
	}
	return dir
}

// WithONNX lets ONNX Runtime be found, or skips the test.
func WithONNX(t testing.TB) {
	t.Helper()
	if os.Getenv("SPOTTER_ONNXRUNTIME") == "" {
		t.Setenv("SPOTTER_ONNXRUNTIME", filepath.Join(policytest.Root(t), "bin", "libonnxruntime.so.1"))
	}
	if _, _, err := bundles.StartONNX(); err != nil {
		if os.Getenv("SPOTTER_MODELS") == "required" {
			t.Fatal(err)
		}
		t.Skipf("%v: run `make onnxruntime`", err)
	}
}

// WithoutONNX lets no ONNX Runtime be found.
func WithoutONNX(t testing.TB) {
	t.Setenv("SPOTTER_ONNXRUNTIME", filepath.Join(t.TempDir(), "none.so"))
}
