package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// expected maps the type of a flag to a description of its values.
var expected = map[string]string{
	"uint64": "a whole number, 0 or more", "uint": "a whole number, 0 or more", "int": "a whole number", "int32": "a whole number", "int64": "a whole number",
	"float64": "a number", "bool": "true or false",
}

// flagError converts an error about a flag of c to the user's terms. The messages of the libraries
// name internal functions.
func flagError(c *cobra.Command, err error) error {
	next := "run `" + c.CommandPath() + " --help`"
	var none *pflag.NotExistError
	if errors.As(err, &none) && none.GetSpecifiedShortnames() == "" {
		err = fmt.Errorf("%w%s", err, meant("--", none.GetSpecifiedName(), flagNames(c)))
	}
	return Invalid(plainError(err), next)
}

// Meant suggests the element of names that is similar to word. It is empty if no element is
// similar.
func Meant(word string, names []string) string { return meant("", word, names) }

func meant(prefix, word string, names []string) string {
	if best, ok := nearest.Of(word, names); ok {
		return "; did you mean " + prefix + best + "?"
	}
	return ""
}

// plainError describes the expected values of a flag whose value cannot be parsed.
func plainError(err error) error {
	var value *pflag.InvalidValueError
	var required *pflag.ValueRequiredError
	var none *pflag.NotExistError
	switch {
	case errors.As(err, &required):
		return fmt.Errorf("--%s: the value is missing: %s", required.GetFlag().Name, usageOf(required.GetFlag()))
	case errors.As(err, &none) && none.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag: -%s%s", none.GetSpecifiedName(),
			map[bool]string{true: "; a file is named by --out"}[none.GetSpecifiedName() == "o"])
	case !errors.As(err, &value):
		return err
	}
	f := value.GetFlag()
	cause := errors.Unwrap(value)
	switch want := expected[f.Value.Type()]; {
	case f.Value.Type() == "duration":
		cause = NotDuration(value.GetValue())
	case want != "":
		cause = NotNumber(value.GetValue(), want, cause)
	default:
		cause = fmt.Errorf("%q: %w", value.GetValue(), cause)
	}
	return fmt.Errorf("--%s: %w", f.Name, cause)
}

// usageOf returns the help text of a flag.
func usageOf(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	return text
}

// flagNames returns the names of the visible flags of c.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// unknownCommand returns the error for a word that is not a subcommand of c.
func unknownCommand(c *cobra.Command, word string) error {
	if c.SuggestionsMinimumDistance <= 0 {
		c.SuggestionsMinimumDistance = 2
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	meant := Meant(word, names)
	if near := c.SuggestionsFor(word); len(near) > 0 { // commands that start with word, or have it as an alias
		meant = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Invalid(fmt.Errorf("unknown command %q for %q%s", word, c.CommandPath(), meant),
		"run `"+c.CommandPath()+" --help`")
}
