package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// expected says by the type of a flag what its values are.
var expected = map[string]string{
	"uint64": "a whole number, 0 or more", "uint": "a whole number, 0 or more", "int": "a whole number", "int32": "a whole number", "int64": "a whole number",
	"float64": "a number", "bool": "true or false",
}

// flagError says in the user's words what is wrong with a flag of c: the libraries
// speak of the functions in which they failed.
func flagError(c *cobra.Command, err error) error {
	next := "run `" + c.CommandPath() + " --help`"
	var none *pflag.NotExistError
	if errors.As(err, &none) && none.GetSpecifiedShortnames() == "" {
		err = fmt.Errorf("%w%s", err, meant("--", none.GetSpecifiedName(), flagNames(c)))
	}
	return Invalid(plainError(err), next)
}

// Meant suggests which of names word may have been meant to be. It is empty without a similar one.
func Meant(word string, names []string) string { return meant("", word, names) }

func meant(prefix, word string, names []string) string {
	if best, ok := nearest.Of(word, names); ok {
		return "; did you mean " + prefix + best + "?"
	}
	return ""
}

// plainError says of a value that cannot be parsed what the flag takes.
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

// usageOf returns the line of help of a flag.
func usageOf(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	return text
}

// flagNames returns the flags of c that are shown.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// unknownCommand is the error about a word that names no command below c.
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
	if near := c.SuggestionsFor(word); len(near) > 0 { // commands that start with word, or have it as another name
		meant = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Invalid(fmt.Errorf("unknown command %q for %q%s", word, c.CommandPath(), meant),
		"run `"+c.CommandPath()+" --help`")
}
