package policy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A phrase is one that users and readers of the code must not read, with a replacement.
type phrase struct {
	pattern *regexp.Regexp
	say     string
}

// phrases are what a native technical writer would not use. Each is looked for in every
// message, help text, comment and page of the documentation; code in backquotes is left out.
var phrases = func() []phrase {
	list := []struct{ pattern, say string }{
		{`\btold\b`, "reported, learned or distinguished"},
		{`\banew\b`, "again, or a verb with re-"},
		{`\bdear(er|est)?\b`, "expensive"},
		{`\bmend(s|ed|able|ing)?\b`, "fix or correct"},
		{`\bsqueezes\b|\b(a|the) squeeze\b`, "capacity shortage"},
		{`\bforetell(s|ing)?\b`, "forecast or predict"},
		{`\b(not )?to be had\b`, "available or unavailable"},
		{`\bon paper\b`, "tentatively or simulated"},
		{`\bso many\b`, "the number itself"},
		{`\b(gives?|given|giving|gave) back\b`, "release"},
		{`\b(no|some)body\b`, "no controller, another controller, a user"},
		{`\bbegins\b|\bthe begin\b`, "starts, the start"},
		{`\bof ours\b|\bof our own\b`, "managed by Spotter"},
		{`\bgo(es)? on\b`, "continue, keep running or resume"},
		{`\bcomes? to\b`, "total or result in"},
		{`\bask(s|ed)? (for|of)\b`, "request or require"},
		{`\bas far as\b`, "where, or how much"},
		{`\bthere already\b`, "already exists"},
		{`\bbesides?\b`, "next to, alongside or in addition to"},
		{`\bstands? (for|in|twice|there|at|after|before|behind)\b`, "means, is used instead, is listed twice"},
		{`\bl(ies|ie)\b`, "is in, is stored"},
		{`\b(is|are|was) to (be|have|go|end|buy)\b`, "must, should or will"},
		{`\b(is|are) none\b`, "is not, with the noun"},
		{`\bworld\b`, "scenario"},
		{`(%[qsv]|\bit|\bwhich|\bthat) (is|are) no [a-z]`, "is not a"},
		{`\bspot (price|market|node|share|capacity|instance)s?\b`, "Spot with a capital letter"},
		{`\d %([ ,;:)|]|\. |\.?$)`, "the sign after the number without a space"},
	}
	var all []phrase
	for _, x := range list {
		all = append(all, phrase{regexp.MustCompile(x.pattern), x.say})
	}
	return all
}()

// labels are texts that name a value and are not prose.
var labels = []string{"spot share", "spot price", "spot nodes"}

// unread are files whose texts users do not read, or not in this program's name: tests,
// generators, imitations of other services. Their comments are read all the same.
var unread = []string{
	"policy/policytest/", "/fake/", "/testdata/", "test/", ".ci/", "/evaltest/", "/clitest/", "_test.go",
}

// written are pages that a program writes from texts that are checked at their source.
var written = []string{"docs/reference-", "docs/results.md"}

// TestEnglish: no text for users and no comment has one of the phrases.
func TestEnglish(t *testing.T) {
	root := ".."
	list := exec.Command("git", "ls-files", "*.go", "docs/*.md", "README.md", "CHANGELOG.md", "scenarios/library/*.yaml")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("git does not list the files: %v", err)
	}
	texts := 0
	for _, path := range strings.Fields(string(out)) {
		if hasPart(path, written) {
			continue
		}
		check := func(line int, text string) {
			texts++
			if found := unusual(text); found != "" {
				t.Errorf("%s:%d: %s", path, line, found)
			}
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue // deleted and not yet committed
		}
		switch filepath.Ext(path) {
		case ".go":
			var file *goFile
			if file, err = parse(path, data); err == nil {
				if !hasPart(path, unread) {
					file.messages(check)
				}
				file.comments(check)
			}
		case ".yaml":
			description(string(data), check)
		default:
			page(path, string(data), check)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if texts < 15_000 {
		t.Errorf("only %d texts were found", texts)
	}
}

// TestEnglishFinds: each phrase is found in a text of each kind, and code is left out.
func TestEnglishFinds(t *testing.T) {
	text := "package p\n\nimport \"a b/told\"\n\nvar x struct {\n\tA int `told:\"it is told\"`\n}\n\n" +
		"func f() {\n\tprintln(\"node %s is told\")\n\tprintln(\"told\", `spot share`, \"run `dear x` now\")\n}\n"
	commented := "// Package p is\n// to be read.\npackage p\n\n//go:generate told\n\n// beside returns `told` and what lies\n// there.\n" +
		"func beside() {} // Told it, anew\n\n// beside is `it is\n// told`.\nfunc f() {} /* dear */\n"
	lines := func(read func(func(int, string))) string {
		var all []string
		read(func(line int, text string) {
			if unusual(text) != "" {
				all = append(all, strconv.Itoa(line))
			}
		})
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		want string
		read func(func(int, string))
	}{
		{"10", func(check func(int, string)) {
			parsed(t, text).messages(check)
		}},
		{"1 7 9 13", func(check func(int, string)) {
			parsed(t, commented).comments(check)
		}},
		{"1 5", func(check func(int, string)) { page("docs/p.md", "dear\n```\ndear\n```\ndear `world`\n", check) }},
		{"4", func(check func(int, string)) {
			page("CHANGELOG.md", "# Changes\n\n## Next\ndear\n\n## 0.1\ndear\n", check)
		}},
		{"1 2", func(check func(int, string)) {
			description("# It is dear\n# as 5 % of it.\nkind: dear # dear\n# dear\n", check)
		}},
	} {
		if got := lines(c.read); got != c.want {
			t.Errorf("phrases on lines %q, want %q", got, c.want)
		}
	}
}

func parsed(t *testing.T, text string) *goFile {
	t.Helper()
	file, err := parse("p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// unusual names the first phrase in text; empty if text has no such phrase.
func unusual(text string) string {
	for _, l := range labels {
		if text == l {
			return ""
		}
	}
	prose := inlineCode.ReplaceAllString(text, "``")
	for _, p := range phrases {
		if found := p.pattern.FindString(prose); found != "" {
			return fmt.Sprintf("%q in %q; write: %s", found, text, p.say)
		}
	}
	return ""
}

var inlineCode = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")

// A goFile is a parsed Go file.
type goFile struct {
	set  *token.FileSet
	file *ast.File
}

func parse(path string, data []byte) (*goFile, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, data, parser.ParseComments|parser.SkipObjectResolution)
	return &goFile{set, file}, err
}

func (x *goFile) line(n ast.Node) int { return x.set.Position(n.Pos()).Line }

// comments passes every comment as one text, without directives. A name at its start is
// code and left out.
func (x *goFile) comments(check func(line int, text string)) {
	names := map[string]bool{}
	ast.Inspect(x.file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	for _, group := range x.file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		if first, rest, _ := strings.Cut(text, " "); names[first] {
			text = rest
		}
		check(x.line(group), text)
	}
}

// messages passes every string of several words in a Go file, other than import paths, tags
// and texts that are compared with what other programs wrote.
func (x *goFile) messages(check func(line int, text string)) {
	ast.Inspect(x.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.CallExpr:
			return !compares(n)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.Contains(strings.TrimSpace(text), " ") {
				check(x.line(n), text)
			}
		}
		return true
	})
}

// compares reports whether a call looks for a text or compiles a pattern.
func compares(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.Ident)
	return ok && (of.Name == "regexp" || of.Name == "strings" && f.Sel.Name != "Join" && f.Sel.Name != "Repeat")
}

// page passes the lines of a page outside of blocks of code; of the changelog those of its
// top section.
func page(path, text string, check func(line int, text string)) {
	code, sections := false, 0
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if strings.HasPrefix(line, "## ") {
			sections++
		}
		if path == "CHANGELOG.md" && sections > 1 {
			return
		}
		if !code {
			check(i+1, line)
		}
	}
}

// description passes the comment at the head of a scenario.
func description(text string, check func(line int, text string)) {
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "#") {
			return
		}
		check(i+1, line)
	}
}

func hasPart(path string, parts []string) bool {
	for _, part := range parts {
		if strings.HasPrefix(path, part) || strings.HasSuffix(path, part) || strings.HasPrefix(part, "/") && strings.Contains(path, part) {
			return true
		}
	}
	return false
}
