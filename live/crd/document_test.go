package crd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/test/golden"
)

// TestDocument: the reference is what the definitions say.
func TestDocument(t *testing.T) { golden.Hold(t, "../../docs/reference-crds.md", reference()) }

// TestDocumentIsComplete holds the reference against the manifests as they are
// written, and not as they were read: it has a row for every name that stands under
// "properties", of every default and of every bound.
func TestDocumentIsComplete(t *testing.T) {
	text := reference()
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|")
	rows := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		parts := strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(".[]*", r) })
		rows[parts[len(parts)-1]] = true
		if strings.TrimSpace(m[2]) == "" {
			t.Errorf("%s has no type", m[1])
		}
	}
	found, defaults := 0, 0
	key := regexp.MustCompile(`^( *)([A-Za-z]+):`)
	for _, name := range crd.Files() {
		at := []int{-1} // the indents of the "properties" that a line is below
		_, fields, _ := bytes.Cut(crd.File(name), []byte("\n  versions:\n"))
		first, _, _ := strings.Cut(string(fields), "\n  - ")
		for _, line := range strings.Split(first, "\n") {
			m := key.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			indent := len(m[1])
			for indent <= at[len(at)-1] {
				at = at[:len(at)-1]
			}
			inside := at[len(at)-1] >= 0 && indent == at[len(at)-1]+2
			switch {
			case !inside && m[2] == "properties":
				at = append(at, indent)
			case !inside && m[2] == "default":
				defaults++
			case inside && !rows[m[2]] && at[len(at)-1] > 10: // at 10 stand apiVersion, kind and metadata
				t.Errorf("%s: %s is not in the reference", name, m[2])
			case inside:
				found++
			}
		}
	}
	if found < 140 || defaults < 10 {
		t.Errorf("%d fields and %d defaults are found", found, defaults)
	}
	reported := regexp.MustCompile("(?m)^\\| `[^`]+` \\| [^|]+ \\| `").FindAllString(text, -1)
	if len(reported) != defaults {
		t.Errorf("%d defaults are in the reference, and %d in the manifests", len(reported), defaults)
	}
	for _, want := range []string{"| `spec.mode` | string | `\"shadow\"` | one of", "at most 1000000000000", "`status.conditions[].reason`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the reference lacks %s", want)
		}
	}
}

const preface = `# Kinds

Every field of the kinds of Spotter, as the definitions in ` + "`live/crd`" + ` have it. It is written from them. A value out
of its bounds is refused by the API server, and ` + "`kubectl apply`" + ` refuses a field that is not in these tables;
` + "`spotter scenario validate`" + ` does both without a cluster.

` + "`[]`" + ` marks each item of a list, and ` + "`.*`" + ` for each key of a map. A field that is *required* must be set where the
one above it is. Rules are those that an API server holds a whole value to.
`

// reference returns the page on the kinds, in Markdown.
func reference() string {
	var b strings.Builder
	b.WriteString(preface)
	for _, d := range crd.Objects() {
		names := d.Spec.Names
		scope := "in a namespace"
		if d.Spec.Scope == apiextensionsv1.ClusterScoped {
			scope = "in the cluster, without a namespace"
		}
		schema := d.Spec.Versions[0].Schema.OpenAPIV3Schema // that of all versions
		fmt.Fprintf(&b, "\n## %s\n\n`%s/%s`, %s; `kubectl get %s`", names.Kind, d.Spec.Group,
			strings.Join(crd.Versions, "` or `"+d.Spec.Group+"/"), scope, names.Plural)
		for _, short := range names.ShortNames {
			fmt.Fprintf(&b, " or `kubectl get %s`", short)
		}
		fmt.Fprintf(&b, ".\n\n%s\n", strings.TrimSpace(schema.Description))
		for _, part := range []string{"spec", "status"} {
			if p, ok := schema.Properties[part]; ok {
				fmt.Fprintf(&b, "\n### %s of %s\n\n| field | type | default | bounds | what it is |\n|:--|:--|:--|:--|:--|\n", part, names.Kind)
				writeField(&b, part, &p, slices.Contains(schema.Required, part))
			}
		}
	}
	return b.String()
}

// writeField writes the row of a field, and below it those of what it consists of.
func writeField(b *strings.Builder, path string, p *apiextensionsv1.JSONSchemaProps, required bool) {
	value := ""
	if p.Default != nil {
		value = code(string(p.Default.Raw))
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", path, typeOf(p), value,
		cell(strings.Join(bounds(p, required), "; ")), cell(p.Description))
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		below := p.Properties[name]
		writeField(b, path+"."+name, &below, slices.Contains(p.Required, name))
	}
	if item := itemOf(p); item != nil && !plain(item) {
		writeField(b, path+"[]", item, false)
	}
	if value := valueOf(p); value != nil && !plain(value) {
		writeField(b, path+".*", value, false)
	}
}

func itemOf(p *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if p.Items == nil {
		return nil
	}
	return p.Items.Schema
}

func valueOf(p *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if p.AdditionalProperties == nil {
		return nil
	}
	return p.AdditionalProperties.Schema
}

// plain reports whether the type of a value says all that there is to say of it.
func plain(p *apiextensionsv1.JSONSchemaProps) bool {
	return len(p.Properties) == 0 && len(bounds(p, false)) == 0 && itemOf(p) == nil && valueOf(p) == nil
}

// typeOf returns the type of a field in words.
func typeOf(p *apiextensionsv1.JSONSchemaProps) string {
	switch item, value := itemOf(p), valueOf(p); {
	case p.XIntOrString:
		return "integer or string"
	case item != nil:
		return "list of " + typeOf(item)
	case value != nil:
		return "map to " + typeOf(value)
	}
	if p.Format != "" {
		return p.Type + " (" + p.Format + ")"
	}
	return p.Type
}

// bounds returns what a value is held to, in addition to its type.
func bounds(p *apiextensionsv1.JSONSchemaProps, required bool) []string {
	var all []string
	if required {
		all = append(all, "required")
	}
	if len(p.Enum) > 0 {
		names := make([]string, len(p.Enum))
		for i, e := range p.Enum {
			names[i] = plainText(e.Raw)
		}
		all = append(all, "one of "+strings.Join(names, ", "))
	}
	number := func(word string, x *float64) {
		if x != nil {
			all = append(all, word+" "+plainNumber(*x))
		}
	}
	above, below := "at least", "at most"
	if p.ExclusiveMinimum {
		above = "more than"
	}
	if p.ExclusiveMaximum {
		below = "less than"
	}
	number(above, p.Minimum)
	number(below, p.Maximum)
	count := func(word, of string, n *int64) {
		if n != nil {
			all = append(all, fmt.Sprintf("%s %d %s", word, *n, of))
		}
	}
	count("at least", "characters", p.MinLength)
	count("at most", "characters", p.MaxLength)
	count("at least", "items", p.MinItems)
	count("at most", "items", p.MaxItems)
	count("at least", "keys", p.MinProperties)
	count("at most", "keys", p.MaxProperties)
	switch {
	case p.XIntOrString && p.Pattern != "": // that of resource.Quantity, which is longer than the row
		all = append(all, "a quantity, as `4` or `16Gi`")
	case p.Pattern != "":
		all = append(all, "matches "+code(p.Pattern))
	}
	for _, r := range p.XValidations {
		all = append(all, r.Message)
	}
	return all
}

// plainText returns a text in JSON as a code, and anything else as it is.
func plainText(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return code(text)
}

// plainNumber returns a number with all its digits, as 1000000000000.
func plainNumber(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", x), "0"), ".")
}

func code(text string) string {
	if text == "" {
		return "\"\""
	}
	return "`" + text + "`"
}

// cell puts a text on one line of a table, in which a bar would end the cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
