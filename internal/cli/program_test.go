package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
)

// TestName: what kubectl runs as a plugin calls itself as it was called, and nothing else does.
func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"/home/a/.krew/bin/kubectl-spotter": "kubectl spotter",
		"/usr/bin/spotter":                  "spotter",
		"":                                  "spotter",
	} {
		var out bytes.Buffer
		p := cli.Program{Name: name, Args: []string{"--help"}, Stdout: &out, Stderr: &out}
		if code := p.Run(t.Context(), none); code != cli.ExitOK || !strings.Contains(out.String(), "\n  "+want+" [command]\n") {
			t.Errorf("%q: exit %d, want %q in\n%s", name, code, want, &out)
		}
	}
}

// TestLacks: the version says what a build cannot do.
func TestLacks(t *testing.T) {
	for lacks, want := range map[string]string{"": "", "ONNX Runtime": ", without ONNX Runtime"} {
		var out bytes.Buffer
		p := cli.Program{Version: "v1.2.3", Lacks: lacks, Args: []string{"version"}, Stdout: &out, Stderr: &out}
		code := p.Run(t.Context(), none)
		_, after, _ := strings.Cut(out.String(), "/")
		if code != cli.ExitOK || !strings.HasPrefix(out.String(), "spotter v1.2.3 (go") || strings.TrimLeft(after, "abcdefghijklmnopqrstuvwxyz0123456789") != want+")\n" {
			t.Errorf("lacks %q: exit %d, %q", lacks, code, &out)
		}
	}
}

func none(*cli.Program) []*cobra.Command { return nil }
