package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// WriteTo writes the objects as YAML that kubectl apply takes, each under its
// warnings as comments.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	comments(&b, r.Warnings)
	for i := range r.Objects {
		if i > 0 || len(r.Warnings) > 0 {
			b.WriteString("---\n")
		}
		comments(&b, r.Objects[i].Warnings)
		if err := document(&b, r.Objects[i].Object); err != nil {
			return 0, fmt.Errorf("writing %s: %w", name(r.Objects[i].Object), err)
		}
	}
	return b.WriteTo(w)
}

// comments writes warnings, each as a paragraph of its own.
func comments(b *bytes.Buffer, warnings []Warning) {
	const width = 110
	for _, w := range warnings {
		line := "# Warning:"
		for _, word := range strings.Fields(w.String()) {
			if len(line)+1+len(word) > width && line != "#  " {
				b.WriteString(line + "\n")
				line = "#  "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
}

// document writes one object. It goes through JSON, whose names of fields are
// those of the manifests.
func document(b *bytes.Buffer, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return err
	}
	root := n.Content[0]
	tidy(root)
	first(root, "apiVersion")
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return err
	}
	return e.Close()
}

// ambiguous are strings that a reader of YAML 1.1, as kubectl is, takes for a
// truth value or a number to the base of sixty.
var ambiguous = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)
})

// tidy gives a tree the style of a manifest and takes out what says nothing: an
// empty status, a time of creation that nobody has set.
func tidy(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && ambiguous().MatchString(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			tidy(c)
		}
		return
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		tidy(key)
		tidy(v)
		empty := v.Kind == yaml.MappingNode && len(v.Content) == 0
		if empty && key.Value != "selector" || v.Tag == "!!null" {
			continue
		}
		kept = append(kept, key, v)
	}
	n.Content = kept
}

// first moves the field called key to the front.
func first(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			pair := slices.Clone(n.Content[i : i+2])
			n.Content = slices.Concat(pair, n.Content[:i], n.Content[i+2:])
			return
		}
	}
}

func name(object any) string {
	switch v := object.(type) {
	case *v1alpha1.CapacityPool:
		return "CapacityPool " + v.Name
	case *v1alpha1.GPUBudget:
		return "GPUBudget " + v.Name
	}
	return "object"
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
