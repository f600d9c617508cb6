package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Arguments makes what check finds wrong a wrong call.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return Invalid(err, "run `"+c.CommandPath()+" --help`")
		}
		return nil
	}
}

// Group returns a command that only has others below it.
func Group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return Invalid(fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath()), "run `"+c.CommandPath()+" --help`")
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}

// Complete lets a shell complete the values of a flag.
func Complete(c *cobra.Command, flag string, values []string) {
	err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // a flag of this name is not defined
	}
}
