package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
		if code != cli.ExitOK || !strings.HasPrefix(out.String(), "spotter v1.2.3 (go") ||
			strings.TrimLeft(after, "abcdefghijklmnopqrstuvwxyz0123456789") != want+")\n" {
			t.Errorf("lacks %q: exit %d, %q", lacks, code, &out)
		}
	}
}

func none(*cli.Program) []*cobra.Command { return nil }

// TestHelpFits: no line of help but those of examples and usage is wider than it may be, and
// columns count letters and not bytes.
func TestHelpFits(t *testing.T) {
	var out bytes.Buffer
	p := cli.Program{Args: []string{"go", "--help"}, Stdout: &out, Stderr: &out}
	p.Run(t.Context(), func(*cli.Program) []*cobra.Command {
		c := &cobra.Command{Use: "go", Short: "Go", Long: strings.Repeat("many words ", 40), Run: func(*cobra.Command, []string) {}}
		c.Flags().String("names", "", "take `NAME…,…` "+strings.Repeat("and more ", 30))
		c.Flags().Duration("wait", 90*time.Second, "wait for `TIME`")
		c.Flags().String("rare", "", "take `X`")
		cli.Section(c.Flags(), "Rare", "rare")
		return []*cobra.Command{c}
	})
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 101 {
			t.Errorf("%d letters: %s", n, line)
		}
	}
	for _, want := range []string{"      --names NAME…,…  take NAME…,… and more",
		"\n      --wait TIME      wait for TIME (default 1m30s)\n", "\nRare:\n      --rare X  take X\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
