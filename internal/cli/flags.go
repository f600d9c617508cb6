package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Arguments converts an error of check to an InvalidError that names the missing argument, as in
// the usage line, or the superfluous one.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) == nil {
			return nil
		}
		next := "run `" + c.CommandPath() + " --help`"
		required, most := argumentNames(c)
		switch {
		case len(args) < len(required):
			return Invalid(fmt.Errorf("%s is missing: %s", required[len(args)], c.UseLine()), next)
		}
		return Invalid(fmt.Errorf("unexpected argument %q: %s", args[min(most, len(args)-1)], c.UseLine()), next)
	}
}

// argumentNames returns the arguments that the usage of c requires, and the maximum number of
// arguments. Words in brackets, and flags with their values, are not required.
func argumentNames(c *cobra.Command) (required []string, most int) {
	use, depth, flags := strings.Fields(c.Use)[1:], 0, false
	for i, word := range use {
		if depth == 0 {
			flags = strings.HasPrefix(word, "[-") || strings.HasPrefix(word, "-") || i > 0 && strings.HasPrefix(use[i-1], "-")
		}
		if !flags && depth == 0 {
			most++
			if !strings.HasPrefix(word, "[") {
				required = append(required, word)
			}
		}
		depth += strings.Count(word, "[") - strings.Count(word, "]")
	}
	return required, most
}

// Group returns a command that only has subcommands.
func Group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use:         use,
		Short:       short,
		Annotations: map[string]string{groupKey: ""},
		RunE:        func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}

const groupKey = "spotter-group"

// isGroup reports whether c only has subcommands.
func isGroup(c *cobra.Command) bool {
	_, group := c.Annotations[groupKey]
	return group || !c.HasParent()
}

// checkCommand returns an error for an unknown command, before its flags are parsed as those of
// another one.
func checkCommand(root *cobra.Command, args []string) error {
	c, rest, _ := root.Find(args)
	word := slices.IndexFunc(rest, func(s string) bool { return !strings.HasPrefix(s, "-") })
	if !isGroup(c) || word < 0 || strings.HasPrefix(rest[word], cobra.ShellCompRequestCmd) {
		return nil
	}
	return unknownCommand(c, rest[word])
}

// aliases are other names for flags that users may know. The first name of a pair is an alias of
// the second in commands that only have the second.
var aliases = [][2]string{{"output", "format"}, {"policy", "policies"}, {"policies", "policy"}}

// takeAliases enables the aliases of flags for c and its subcommands.
func takeAliases(c *cobra.Command) {
	flags, own := c.Flags(), map[string]string{}
	for _, a := range aliases {
		if flags.Lookup(a[0]) == nil && flags.Lookup(a[1]) != nil {
			own[a[0]] = a[1]
		}
	}
	if len(own) > 0 {
		flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			return pflag.NormalizedName(cmp.Or(own[name], name))
		})
	}
	for _, sub := range c.Commands() {
		takeAliases(sub)
	}
}

// Complete sets the values that shells suggest for a flag.
func Complete(c *cobra.Command, flag string, values []string) {
	CompleteBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteBy sets the function that returns the values that shells suggest for a flag.
func CompleteBy(c *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag does not exist
	}
}
