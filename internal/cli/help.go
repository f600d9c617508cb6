package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Groups are the headings of commands in the help, in order. [In] assigns commands to them.
var Groups = []cobra.Group{
	{ID: "decide", Title: "Decide how much to run on Spot:"},
	{ID: "look", Title: "Look at runs and clusters:"},
	{ID: "record", Title: "Record prices and clusters:"},
	{ID: "run", Title: "Run in a cluster:"},
	{ID: "ci", Title: "In CI and in AI agents:"},
}

// In assigns commands to a group, which lists them in this order.
func In(group string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = group
	}
	return commands
}

// Alpha marks a command that may change or disappear in any version; see the levels of stability in
// CONTRIBUTING.md.
func Alpha(c *cobra.Command) *cobra.Command {
	c.Long = cmp.Or(c.Long, c.Short+".") + "\n\nThis command is alpha: it may change or disappear in any version."
	return c
}

// Section moves flags to a section of the help, after the common flags.
func Section(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		if err := flags.SetAnnotation(name, sectionKey, []string{title}); err != nil {
			panic(err) // a flag of this name is not defined
		}
	}
}

const sectionKey = "spotter-section"

// helpWidth is the maximum width of the help, and its width if the output is not a terminal.
const helpWidth = 100

// A helpPage writes the help of a command.
type helpPage struct {
	strings.Builder
	width int
}

// help returns a function that writes the help of a command. order is the order of the root's
// commands.
func (p *Program) help(order []*cobra.Command) func(*cobra.Command, []string) {
	return func(c *cobra.Command, _ []string) {
		h := helpPage{width: helpWidth}
		if w := p.Width(""); w > 0 {
			h.width = min(w, helpWidth)
		}
		h.paragraphs(cmp.Or(c.Long, c.Short))
		h.usage(c)
		if c.Example != "" {
			h.WriteString("\nExamples:\n" + c.Example + "\n")
		}
		h.commands(c, order)
		h.flags(c)
		if c.HasAvailableSubCommands() {
			fmt.Fprintf(&h, "\n`%s COMMAND --help` has more about a command.\n", c.CommandPath())
		}
		_, _ = io.WriteString(c.OutOrStdout(), h.String()) // it only fails if the terminal is gone
	}
}

func (h *helpPage) usage(c *cobra.Command) {
	h.WriteString("\nUsage:\n")
	if !isGroup(c) {
		h.WriteString("  " + c.UseLine() + "\n")
	}
	if c.HasAvailableSubCommands() {
		h.WriteString("  " + c.CommandPath() + " [command]\n")
	}
	if len(c.Aliases) > 0 {
		h.WriteString("\nAliases:\n  " + c.NameAndAliases() + "\n")
	}
}

// commands lists the subcommands of c, by group if there are groups.
func (h *helpPage) commands(c *cobra.Command, order []*cobra.Command) {
	all := slices.DeleteFunc(slices.Clone(c.Commands()),
		func(sub *cobra.Command) bool { return !sub.IsAvailableCommand() && sub.Name() != "help" })
	place := func(sub *cobra.Command) int {
		if i := slices.Index(order, sub); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b *cobra.Command) int { return place(a) - place(b) })
	column := 0
	for _, sub := range all {
		column = max(column, utf8.RuneCountInString(sub.Name()))
	}
	rest := "Commands:"
	if len(c.Groups()) > 0 {
		rest = "Others:"
	}
	for _, g := range append(slices.Clone(c.Groups()), &cobra.Group{Title: rest}) {
		title := "\n" + g.Title + "\n"
		for _, sub := range all {
			if sub.GroupID == g.ID {
				h.WriteString(title)
				h.row("  "+sub.Name(), column+4, sub.Short)
				title = ""
			}
		}
	}
}

// flags lists the flags of c: first the common ones in the order of definition, then the sections.
func (h *helpPage) flags(c *cobra.Command) {
	c.Flags().SortFlags = false
	defer func() { c.Flags().SortFlags = true }()
	titles, sections := []string{"Flags:"}, map[string][]*pflag.Flag{}
	add := func(title string, f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
		sections[title] = append(sections[title], f)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch title := f.Annotations[sectionKey]; {
		case title != nil:
			add(title[0]+":", f)
		case f.Name != "help" && c.Parent() != nil:
			add(titles[0], f)
		}
	})
	const everywhere = "Everywhere:"
	c.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) { add(everywhere, f) })
	if f := c.Flags().Lookup("help"); f != nil {
		add(everywhere, &pflag.Flag{Name: f.Name, Shorthand: f.Shorthand, Usage: "print this", Value: f.Value})
	}
	const columnMax = 32
	for _, title := range titles {
		column := 0
		for _, f := range sections[title] {
			if n := utf8.RuneCountInString(flagName(f)) + 2; n <= columnMax {
				column = max(column, n)
			}
		}
		for i, f := range sections[title] {
			if i == 0 {
				h.WriteString("\n" + title + "\n")
			}
			_, text := pflag.UnquoteUsage(f)
			h.row(flagName(f), max(column, 12), text+defaultText(f))
		}
	}
}

// flagName returns the name of a flag with the placeholder of its value.
func flagName(f *pflag.Flag) string {
	value, _ := pflag.UnquoteUsage(f)
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	return strings.TrimRight(name+" "+value, " ")
}

// defaultText describes the default of a flag. It is empty for a zero value, or if the usage
// contains the default.
func defaultText(f *pflag.Flag) string {
	value := f.DefValue
	if f.Value.Type() == "duration" {
		for _, zero := range [][2]string{{"m0s", "m"}, {"h0m", "h"}} {
			if rest, ends := strings.CutSuffix(value, zero[0]); ends {
				value = rest + zero[1]
			}
		}
	}
	switch {
	case slices.Contains([]string{"", "0", "0s", "false", "[]", "<nil>"}, value), strings.Contains(f.Usage, "(default"):
		return ""
	}
	return " (default " + strings.Trim(value, "[]") + ")"
}

// row writes a name, and text from a column on. If the name is too long, the text starts on the
// next line.
func (h *helpPage) row(name string, column int, text string) {
	h.WriteString(name)
	at := utf8.RuneCountInString(name)
	if at+2 > column {
		h.WriteString("\n")
		at = 0
	}
	for _, line := range wrap(text, max(h.width-column, 30)) {
		h.WriteString(strings.Repeat(" ", column-at) + line + "\n")
		at = 0
	}
}

// paragraphs writes text and wraps its paragraphs. Indented lines remain unchanged.
func (h *helpPage) paragraphs(text string) {
	var words []string
	flush := func() {
		if words == nil {
			return
		}
		for _, line := range wrap(strings.Join(words, " "), h.width) {
			h.WriteString(line + "\n")
		}
		words = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, " ") {
			flush()
			h.WriteString(line + "\n")
			continue
		}
		words = append(words, line)
	}
	flush()
}

// wrap breaks text between words into lines of at most width characters. A longer word is on a line
// of its own.
func wrap(text string, width int) (lines []string) {
	line, n := "", 0
	for _, word := range strings.Fields(text) {
		k := utf8.RuneCountInString(word)
		if n > 0 && n+1+k > width {
			lines = append(lines, line)
			line, n = "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+k
	}
	if n > 0 || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// helpCommand returns the command that prints the help of another command by name. It fails if that
// command does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if of, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name()+"\t"+sub.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of := c.Root()
			for _, word := range args {
				next := slices.IndexFunc(of.Commands(), func(sub *cobra.Command) bool {
					return sub.Name() == word ||
						sub.HasAlias(word)
				})
				if next < 0 {
					return unknownCommand(of, word)
				}
				of = of.Commands()[next]
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
