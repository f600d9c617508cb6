package clitest

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Page returns a page of docs that lists commands: head and a section for each command below root, and how many commands and
// flags these are.
func Page(head string, root *cobra.Command) (page string, commands, flags int) {
	var b strings.Builder
	b.WriteString(head)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() { // ascending
			if !sub.IsAvailableCommand() || sub.Name() == "help" {
				continue
			}
			commands++
			flags += writeCommand(&b, sub)
			walk(sub)
		}
	}
	walk(root)
	return b.String(), commands, flags
}

// writeCommand writes the section of a command, and returns how many flags it has.
func writeCommand(b *strings.Builder, c *cobra.Command) int {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	use := c.UseLine()
	if c.HasAvailableSubCommands() {
		below := c.CommandPath() + " COMMAND"
		if strings.Contains(c.Use, " ") { // it does something by itself too
			below = use + "\n" + below
		}
		use = below
	}
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n```\n\n%s\n", c.CommandPath(), use, Escaped(about))
	if c.Example != "" {
		var lines []string
		for _, line := range strings.Split(c.Example, "\n") {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.Join(lines, "\n"))
	}
	n := 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { // ascending
		if f.Hidden || f.Name == "help" {
			return
		}
		if n++; n == 1 {
			b.WriteString("\n| flag | default | what it is |\n|:--|:--|:--|\n")
		}
		value, text := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", Barred(name), defaultOf(f), Escaped(Barred(text)))
	})
	return n
}

// defaultOf returns the default of a flag as help has it; nothing where that is
// nothing.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "false", "<nil>":
		return ""
	case "0", "0s":
		if f.Value.Type() == "duration" || f.Value.Type() == "int" {
			return "`" + f.DefValue + "`"
		}
	}
	return "`" + Barred(f.DefValue) + "`"
}

// Barred keeps a bar from ending a cell of a table.
func Barred(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// Escaped keeps what is not between back quotes from being taken for HTML.
func Escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "<", `\<`)
	}
	return strings.Join(parts, "`")
}
