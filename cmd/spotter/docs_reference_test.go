package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/cli"
)

// The flag -rewrite writes the pages that are made anew. A package of tests below this
// one may have one of that name, which then counts for both.
func init() {
	if flag.Lookup("rewrite") == nil {
		flag.Bool("rewrite", false, "write docs/reference-cli.md and docs/reference-metrics.md anew")
	}
}

// held holds a page of docs that is made against what it is made of.
func held(t *testing.T, name, want string) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := document(t, name); got != want {
		t.Errorf("docs/%s is not what the program says; run go test ./cmd/spotter -run TestReference -rewrite", name)
	}
}

const cliHead = `# Commands

Every command of ` + "`spotter`" + ` and every flag, as ` + "`spotter COMMAND --help`" + ` has them. The page is made of the program.
Exit codes: 0 when all went well, 1 when a gate or a check failed, 2 when the call or an input was wrong, 3 when it broke
while running.
`

// TestReferenceCLI: the page on commands is what the commands say.
func TestReferenceCLI(t *testing.T) {
	t.Setenv("HOME", "/home/you") // no default may be of this machine
	var b strings.Builder
	b.WriteString(cliHead)
	commands, flags := 0, 0
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
	root := root()
	walk(root)
	if commands < 25 || flags < 100 {
		t.Errorf("%d commands with %d flags are found", commands, flags)
	}
	held(t, "reference-cli.md", b.String())
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
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n```\n\n%s\n", c.CommandPath(), use, escaped(about))
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
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", barred(name), defaultOf(f), escaped(barred(text)))
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
	return "`" + barred(f.DefValue) + "`"
}

// barred keeps a bar from ending a cell of a table.
func barred(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// escaped keeps what is not between back quotes from being taken for HTML.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "<", `\<`)
	}
	return strings.Join(parts, "`")
}

// TestReferenceLinks: every link between pages, and from the README, leads to a file,
// and to a heading where it names one.
func TestReferenceLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "charts", "spotter", "README.md"))
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(withoutCode(string(text)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			path, heading, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			there, err := os.ReadFile(target)
			if err != nil {
				if info, statErr := os.Stat(target); statErr != nil || !info.IsDir() {
					t.Errorf("%s leads to %s: %v", page, m[1], err)
				}
				continue
			}
			if heading != "" && strings.HasSuffix(target, ".md") && !anchors(string(there))[heading] {
				t.Errorf("%s leads to %s, which has no such heading", page, m[1])
			}
		}
	}
	if links < 60 {
		t.Errorf("%d links are found", links)
	}
}

// withoutCode returns a page without its blocks and spans of code.
func withoutCode(text string) string {
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "`code`")
}

// anchors returns the names by which the headings of a page are linked to.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, line := range strings.Split(regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, ""), "\n") {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		name := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		name = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(name, "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// root returns the command that has all others below it.
func root() *cobra.Command {
	p := &cli.Program{}
	return p.Root(commands(p)...)
}
