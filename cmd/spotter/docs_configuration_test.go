package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
)

const configurationHead = `# Configuration

Every field of the file of ` + "`spotter run --config FILE`" + `, with its default. The page is made of the program. The file is strict:
an unknown field, a value of the wrong type or out of its range ends the call with exit code 2, which names the file, the field
and the value.

` + "```yaml" + `
apiVersion: ` + config.APIVersion + `
kind: ` + config.Kind + `
mode: shadow
prices: {regions: [us-east-1]}
recording: {dir: /var/lib/spotter/record}
` + "```" + `

A flag of ` + "[`spotter run`](reference-cli.md#spotter-run)" + ` that is given holds instead of the field. What is marked *at once* is applied
when the file changes; all else takes a restart, and is named in the log until then ([how](run.md#configuration)).

| field | default | changes | what it is |
|:--|:--|:--|:--|
`

// TestReferenceConfiguration: the page on the configuration is what the types and their
// comments say.
func TestReferenceConfiguration(t *testing.T) {
	text := commentsOf(t, filepath.Join("config", "configuration.go"))
	var b strings.Builder
	b.WriteString(configurationHead)
	fields := config.Fields()
	if len(fields) < 45 {
		t.Errorf("%d fields are found", len(fields))
	}
	for _, f := range fields {
		about := text[f.Path]
		if about == "" {
			t.Errorf("%s has no comment", f.Path)
		}
		when := "with a restart"
		if f.Reload {
			when = "at once"
		}
		value := f.Default
		if plain, err := strconv.Unquote(value); err == nil {
			value = plain
		}
		if value != "" && value != "[]" {
			value = "`" + clitest.Barred(value) + "`"
		}
		value = strings.TrimPrefix(value, "[]")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Path, value, when, clitest.Escaped(clitest.Barred(about)))
	}
	held(t, "reference-configuration.md", b.String())
}

// commentsOf returns the comments of the fields of the configuration, by their paths.
func commentsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	structs := map[string]*ast.StructType{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, is := n.(*ast.TypeSpec); is {
			structs[s.Name.Name], _ = s.Type.(*ast.StructType)
		}
		return true
	})
	all := map[string]string{}
	var walk func(above, of string)
	walk = func(above, of string) {
		for _, f := range structs[of].Fields.List {
			tag, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if name == "" {
				continue
			}
			if kind, is := f.Type.(*ast.Ident); is && structs[kind.Name] != nil {
				walk(above+name+".", kind.Name)
				continue
			}
			about := strings.Join(strings.Fields(f.Doc.Text()), " ")
			all[above+name] = strings.Replace(about, f.Names[0].Name, "`"+name+"`", 1)
		}
	}
	walk("", config.Kind)
	return all
}

// TestDocsConfigurations: every configuration that a page shows can be meant.
func TestDocsConfigurations(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range pages {
		for _, m := range shownConfiguration.FindAllStringSubmatch(document(t, filepath.Base(page)), -1) {
			n++
			c, err := config.Parse([]byte(m[1]))
			if err == nil {
				err = c.Validate().ToAggregate()
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
			}
		}
	}
	if n < 6 {
		t.Errorf("%d configurations are shown", n)
	}
}

// shownConfiguration matches one in a block of its own, and one that a command writes.
var shownConfiguration = regexp.MustCompile("(?ms)^(apiVersion: " + regexp.QuoteMeta(config.APIVersion) + "\n.*?)^(?:```|END$)")
