package main

import (
	"bytes"
	"cmp"
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
	"github.com/spotter-dev/spotter/internal/cli/clitest"
)

// TestReferenceEval: the page on the JSON of eval is what its types and their comments
// say, and the metrics are those that there are.
func TestReferenceEval(t *testing.T) {
	types := evalTypes(t)
	var seen, inlined []string
	page, err := template.New("reference-eval.tmpl").Funcs(template.FuncMap{
		"version": func() int { return format.SchemaVersion },
		"metrics": metricRows,
		"types": func(root string) string {
			var b strings.Builder
			types.write(&b, root, &seen, &inlined)
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
	for name := range types {
		if !slices.Contains(seen, name) && !slices.Contains(inlined, name) {
			t.Errorf("the type %s is not on the page", name)
		}
	}
	if len(seen) < 25 {
		t.Errorf("%d types are on the page: %v", len(seen), seen)
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
			if is && slices.ContainsFunc(of.Fields.List, keyed) {
				spec.Doc = g.Doc
				all[spec.Name.Name] = spec
			}
		}
	}
	return all
}

// keyed reports whether a field has a key in JSON.
func keyed(f *ast.Field) bool { return f.Tag != nil && keyOf(f) != "-" }

// keyOf returns the key of a field and its options, "-" where JSON does not have it.
func keyOf(f *ast.Field) string {
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		panic(err)
	}
	return reflect.StructTag(tag).Get("json")
}

// titleOf is the name of a type as readers of JSON see it.
func titleOf(name string) string {
	name = strings.TrimPrefix(name, "json")
	return cmp.Or(strings.TrimSuffix(name, "Report"), name)
}

// nameOf returns the name of a type, without its package.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// write writes a table of the type and of those that it has and that are not yet seen.
func (x jsonTypes) write(b *strings.Builder, name string, seen, inlined *[]string) {
	*seen = append(*seen, name)
	spec := x[name]
	_, about, _ := strings.Cut(firstPart(spec.Doc), name+" ")
	if about == "" {
		panic("the comment of " + name + " does not start with its name")
	}
	about = strings.TrimPrefix(about, "is ")
	fmt.Fprintf(b, "### %s\n\n%s%s\n\n| key | type | meaning |\n|:--|:--|:--|\n", titleOf(name), strings.ToUpper(about[:1]), coded(about[1:]))
	for _, of := range x.keys(b, name, inlined) {
		if !slices.Contains(*seen, of) {
			b.WriteByte('\n')
			x.write(b, of, seen, inlined)
		}
	}
}

// keys writes the rows of a type's keys, those of what it embeds among them, and returns the types
// that they have.
func (x jsonTypes) keys(b *strings.Builder, name string, inlined *[]string) (below []string) {
	for _, f := range x[name].Type.(*ast.StructType).Fields.List {
		if embedded := nameOf(f.Type); len(f.Names) == 0 && x[embedded] != nil {
			below = append(below, x.keys(b, embedded, inlined)...)
			*inlined = append(*inlined, embedded)
			continue
		}
		if !keyed(f) {
			continue
		}
		kind, of := x.kind(f.Type)
		key, options, _ := strings.Cut(keyOf(f), ",")
		if options != "" || slices.Contains(leftOut[name], key) {
			kind += "?"
		}
		about := firstPart(f.Doc)
		if m := linkedType.FindStringSubmatch(about); m != nil && x[m[1]] != nil {
			of = m[1]
		}
		if of != "" {
			below = append(below, of)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, kind, coded(clitest.Escaped(clitest.Barred(about))))
	}
	return below
}

// leftOut are the keys that a type's MarshalJSON leaves out where it has no figures.
var leftOut = map[string][]string{
	"Summary": {"mean", "median", "p5", "p25", "p75", "p95", "min", "max"},
	"Windows": {"window_min", "window_median", "window_max", "windows_positive"},
	"Change":  {"net_savings_usd_per_week", "outage_minutes_per_week", "on_demand_usd_per_week"},
}

// firstPart returns the first part of a comment; what follows an empty line is for readers of Go.
func firstPart(doc *ast.CommentGroup) string {
	first, _, _ := strings.Cut(doc.Text(), "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

// kind returns what a type is in JSON, and which of the types it has.
func (x jsonTypes) kind(e ast.Expr) (kind, of string) {
	if list, is := e.(*ast.ArrayType); is {
		kind, of = x.kind(list.Elt)
		return kind + "[]", of
	}
	switch name := nameOf(e); name {
	case "string", "Statistic", "Outcome", "Instant":
		return "string", ""
	case "bool":
		return "boolean", ""
	case "int", "int32", "int64", "uint64", "float64", "Value":
		return "number", ""
	case "Interval":
		return "number[]", ""
	case "Values", "Medians", "Summaries":
		return "object", ""
	case "Figure":
		return x.kind(ast.NewIdent("FigureReport"))
	default:
		if x[name] == nil {
			panic("what " + name + " is in JSON is not known")
		}
		return linkTo(name), name
	}
}

// linkTo returns a link to the table of a type.
func linkTo(name string) string {
	return fmt.Sprintf("[%s](#%s)", titleOf(name), strings.ToLower(titleOf(name)))
}

// linkedType matches a link to the table of a type in a comment.
var linkedType = regexp.MustCompile(`\[(\w+)\]\(#\w+\)`)

// codeIn matches what is code in a comment: a key or a flag.
var codeIn = regexp.MustCompile(`\b[a-z]+(?:_[a-z0-9]+)+\b|--[a-z-]+|\b[a-z]+\.[a-z]+\b`)

func coded(text string) string { return codeIn.ReplaceAllString(text, "`$0`") }
