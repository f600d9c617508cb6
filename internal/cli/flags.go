package cli

import (
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
			return unknownCommand(c, args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}

// Complete lets a shell complete the values of a flag.
func Complete(c *cobra.Command, flag string, values []string) {
	CompleteBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteBy lets a shell complete the values of a flag by a function.
func CompleteBy(c *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // a flag of this name is not defined
	}
}
