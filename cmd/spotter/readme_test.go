package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that the documents and the help texts show is one that the
// program takes: the command is there, its flags are, and its arguments count.
func TestReadmeCommands(t *testing.T) {
	seen := 0
	docs, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(docs, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CONTRIBUTING.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		inside := false
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				inside = line == "```sh"
				continue
			}
			if inside {
				seen += understood(t, name, line)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d commands found in the documents, want 10 and more", seen)
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, line := range strings.Split(c.Example, "\n") {
			understood(t, "help of "+c.CommandPath(), line)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root())
}

// understood checks a line that calls the program, and returns 1 if it does.
func understood(t *testing.T, where, line string) int {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " | ")
	words := split(line)
	if len(words) == 0 || words[0] != "spotter" && words[0] != "bin/spotter" {
		return 0
	}
	c, rest, err := root().Find(words[1:])
	if err != nil {
		t.Errorf("%s: %s: %v", where, line, err)
		return 1
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("%s: %s: %v", where, line, err)
		return 1
	}
	if c.Args != nil {
		if err := c.Args(c, c.Flags().Args()); err != nil {
			t.Errorf("%s: %s: %v", where, line, err)
		}
	}
	return 1
}

// split cuts a line into words as a shell does, but of quoting knows only single quotes.
func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
