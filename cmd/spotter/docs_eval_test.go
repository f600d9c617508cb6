package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/reference"
)

// TestReferenceEval: the page on the JSON of eval is what its types and their comments
// say, and the metrics are those that there are.
func TestReferenceEval(t *testing.T) {
	types := evalTypes(t)
	var seen []string
	page, err := template.New("reference-eval.tmpl").Funcs(template.FuncMap{
		"version": func() int { return format.SchemaVersion },
		"metrics": metricRows,
		"types": func(root string) string {
			var b strings.Builder
			types.write(&b, root, &seen)
			return b.String()
		},
	}).ParseFiles(filepath.Join("testdata", "reference-eval.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, nil); err != nil {
		t.Fatal(err)
	}
	if len(seen) != len(types) || len(seen) < 25 {
		t.Errorf("%d of %d types are on the page: %v", len(seen), len(types), seen)
	}
	held(t, "reference-eval.md", out.String())
}

// metricRows are the rows of the table of metrics.
func metricRows() string {
	var lines []string
	for _, m := range eval.Metrics() {
		name := "`" + m.Name + "`"
		if m.Interval {
			name += " *"
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |", name, m.Unit, m.About))
	}
	return strings.Join(lines, "\n")
}

// jsonTypes are the types of a JSON output, by their names in Go.
type jsonTypes map[string]*ast.TypeSpec

// evalTypes returns those that eval writes.
func evalTypes(t *testing.T) jsonTypes {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.go", filepath.Join("format", "json*.go")} {
		found, err := filepath.Glob(filepath.Join("..", "..", "eval", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	all := jsonTypes{}
	for _, path := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.TYPE {
				continue
			}
			spec := g.Specs[0].(*ast.TypeSpec)
			of, is := spec.Type.(*ast.StructType)
			if is && (strings.HasPrefix(spec.Name.Name, "json") || slices.ContainsFunc(of.Fields.List, keyed)) {
				spec.Doc = g.Doc
				all[spec.Name.Name] = spec
			}
		}
	}
	return all
}

// keyed reports whether a field has a key in JSON.
func keyed(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "json:") }

// write writes a table of the type and of those that it has and that are not yet seen.
func (x jsonTypes) write(b *strings.Builder, name string, seen *[]string) {
	*seen = append(*seen, name)
	spec := x[name]
	title := strings.TrimPrefix(name, "json")
	_, about, _ := strings.Cut(strings.Join(strings.Fields(spec.Doc.Text()), " "), name+" is ")
	if about == "" {
		panic("the comment of " + name + " does not say what it is")
	}
	fmt.Fprintf(b, "### %s\n\n%s%s\n\n| key | type | meaning |\n|:--|:--|:--|\n", title, strings.ToUpper(about[:1]), coded(about[1:]))
	var below []string
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		if len(f.Names) > 0 && !f.Names[0].IsExported() {
			continue
		}
		kind, of := x.kind(f.Type)
		if of != "" {
			below = append(below, of)
		}
		if f.Tag == nil {
			fmt.Fprintf(b, "| | %s | its keys |\n", kind)
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			panic(err)
		}
		key, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if options == "omitempty" {
			kind += "?"
		}
		about := strings.Join(strings.Fields(f.Doc.Text()), " ")
		if m := linkedType.FindStringSubmatch(about); m != nil && x["json"+m[1]] != nil {
			below = append(below, "json"+m[1])
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, kind, coded(reference.Escaped(reference.Barred(about))))
	}
	for _, of := range below {
		if !slices.Contains(*seen, of) {
			b.WriteByte('\n')
			x.write(b, of, seen)
		}
	}
}

// kind returns what a type is in JSON, and which of the types it has.
func (x jsonTypes) kind(e ast.Expr) (kind, of string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return x.kind(e.X)
	case *ast.ArrayType:
		kind, of = x.kind(e.Elt)
		return kind + "[]", of
	case *ast.SelectorExpr:
		switch name := e.Sel.Name; {
		case name == "Interval":
			return "number[]", ""
		case x[name] != nil:
			return linkTo(name), name
		}
		return "string", "" // a text with a name
	case *ast.Ident:
		switch {
		case e.Name == "string":
		case e.Name == "bool":
			return "boolean", ""
		case e.Name == "ordered":
			return "object", ""
		case strings.HasPrefix(e.Name, "json"):
			return linkTo(e.Name), e.Name
		default:
			return "number", ""
		}
	}
	return "string", ""
}

// linkTo returns a link to the table of a type.
func linkTo(name string) string {
	title := strings.TrimPrefix(name, "json")
	return fmt.Sprintf("[%s](#%s)", title, strings.ToLower(title))
}

// linkedType matches a link to the table of a type in a comment.
var linkedType = regexp.MustCompile(`\[(\w+)\]\(#\w+\)`)

// codeIn matches what is code in a comment: a key or a flag.
var codeIn = regexp.MustCompile(`\b[a-z]+(?:_[a-z0-9]+)+\b|--[a-z-]+|\b[a-z]+\.[a-z]+\b`)

func coded(text string) string { return codeIn.ReplaceAllString(text, "`$0`") }
