// Package trace has commands that import, record and describe traces.
package trace

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
)

// InfoCommand returns the command trace info.
func InfoCommand(p *cli.Program) *cobra.Command {
	var form cli.Form
	c := &cobra.Command{
		Use:   "info [DIR|FILE]",
		Short: "Say what a trace holds; without an argument, the embedded one",
		Args:  cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			t, err := input.OpenTrace(path)
			if err != nil {
				return err
			}
			p.Warn(map[string]bool{}, t.Warnings)
			v := inventoryOf(t)
			return p.Print(&form, v.object(), func(w io.Writer, wide bool) error {
				_, err := io.WriteString(w, v.text(wide))
				return err
			})
		},
	}
	form.Register(c)
	return c
}
