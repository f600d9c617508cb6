package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/spotter-dev/spotter/internal/cli"
)

func (p *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a man page of each command into a folder",
		Long: "man writes a page of each command into the folder DIR, as packages install them\n" +
			"below share/man/man1. They are of the month of SOURCE_DATE_EPOCH where that is set.",
		Example: "  spotter man ~/.local/share/man/man1\n  man spotter-eval",
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return cli.Invalid(fmt.Errorf("man: %w", err), "give a folder that can be written")
			}
			c.Root().DisableAutoGenTag = true // otherwise every page ends with the date
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "Spotter " + p.Version, Manual: "Spotter"},
				args[0])
		},
	}
}
