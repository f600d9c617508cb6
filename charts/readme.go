package charts

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Value is a documented key of a chart's values.
type Value struct {
	// Path is the key and its parent keys, separated by dots.
	Path string

	// Default is the default value as JSON on one line.
	Default string

	// Text is the comment of the key without its marker.
	Text string
}

// mark starts the comment that documents a value, as in helm-docs.
const mark = "# -- "

// Values returns the documented keys of a values.yaml in their order. It returns an error if a key
// is not documented and has no documented keys below it.
func Values(text []byte) ([]Value, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading values: %w", err)
	}
	if len(doc.Content) == 0 {
		return nil, nil // a chart may have no values
	}
	return valuesOf(doc.Content[0], "")
}

func valuesOf(m *yaml.Node, above string) ([]Value, error) {
	var all []Value
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		path := strings.TrimPrefix(above+"."+key.Value, ".")
		comment, documented := strings.CutPrefix(key.HeadComment, mark)
		switch {
		case documented:
			text, err := flat(value)
			if err != nil {
				return nil, fmt.Errorf("value %s: %w", path, err)
			}
			all = append(all, Value{Path: path, Default: text, Text: strings.ReplaceAll(comment, "\n# ", " ")})
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			below, err := valuesOf(value, path)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		default:
			return nil, fmt.Errorf("value %s has no comment that starts with %q", path, mark)
		}
	}
	return all, nil
}

// flat formats a value as JSON on one line.
func flat(n *yaml.Node) (string, error) {
	inline(n)
	text, err := yaml.Marshal(n)
	return strings.Join(strings.Fields(string(text)), " "), err
}

func inline(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		inline(c)
	}
}

// readme returns the README of the chart spotter, which has a table of the chart's values.
func readme(values []byte) (File, error) {
	all, err := Values(values)
	if err != nil {
		return File{}, err
	}
	var b strings.Builder
	b.WriteString(readmeHead)
	for _, v := range all {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.Path, strings.ReplaceAll(v.Default, "|", `\|`),
			strings.ReplaceAll(v.Text, "|", `\|`))
	}
	return File{filepath.Join("spotter", "README.md"), []byte(b.String())}, nil
}

const readmeHead = `<!-- Made by make generate from values.yaml; do not edit. -->
# The chart spotter

` + "```sh" + `
helm install spotter charts/spotter --namespace spotter --create-namespace   # shadow: changes nothing
helm test spotter --namespace spotter
` + "```" + `

How to install, upgrade and uninstall, and what each mode is let do: [docs/install.md](../../docs/install.md). Whoever
comes from another system: [docs/migration.md](../../docs/migration.md).

Values are checked: a key that is not in this table, a value of the wrong type or out of its range is refused by name.

| value | default | what it is |
|---|---|---|
`
