package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/test/golden"
)

// held holds a page of docs that is made against what it is made of.
func held(t *testing.T, name, want string) {
	t.Helper()
	golden.Hold(t, filepath.Join("..", "..", "docs", name), want)
}

const cliHead = `# Commands

Every command of ` + "`spotter`" + ` and every flag, as ` + "`spotter COMMAND --help`" + ` has them. The page is made of the program.
Exit codes: 0 when all went well, 1 when a gate or a check failed, 2 when the call or an input was wrong, 3 when it broke
while running.

Those of ` + "`spotter-lab`" + `, which ` + "`spotter`" + ` runs, have [a page of their own](reference-lab.md).
`

// TestReferenceCLI: the page on commands is what the commands say.
func TestReferenceCLI(t *testing.T) {
	t.Setenv("HOME", "/home/you") // no default may be of this machine
	page, commands, flags := clitest.Page(cliHead, root())
	if commands < 25 || flags < 100 {
		t.Errorf("%d commands with %d flags are found", commands, flags)
	}
	held(t, "reference-cli.md", page)
}

// TestReferencePolicies: the page on parameters is what `spotter policies` prints of each.
func TestReferencePolicies(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Parameters of policies\n\nAs `spotter policies NAME` prints them. The page is made of the program. [What each policy does](policies.md).\n")
	rows := 0
	for _, d := range registry.Describe() {
		if len(d.Parameters) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| parameter | default | others | what it is |\n|:--|:--|:--|:--|\n", d.Name)
		for _, s := range d.Parameters {
			if rows++; s.About == "" {
				t.Errorf("nothing is said about %s of %s", s.Key, d.Name)
			}
			about := s.About
			if s.Expert {
				about = "(expert) " + about
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, s.Default, strings.Join(s.Others(), ", "), about)
		}
	}
	if rows < 50 {
		t.Errorf("%d parameters are found", rows)
	}
	held(t, "reference-policies.md", b.String())
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
