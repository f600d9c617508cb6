// Package manifest writes Kubernetes objects as readable YAML for kubectl apply. It does not depend
// on any kind of object.
package manifest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// width is the maximum length of a comment line in bytes.
const width = 110

// Comment writes a paragraph as a comment: first is the prefix of its first line, and rest that of
// each further line.
func Comment(b *bytes.Buffer, first, rest, text string) {
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > width:
			b.WriteString(line + "\n")
			line = rest + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
}

// Write writes one object with the field names of its JSON. It leaves out the status and empty
// fields.
func Write(b *bytes.Buffer, object any) error { return write(b, object, false) }

// WriteWhole is like Write but also writes the status, as the last field.
func WriteWhole(b *bytes.Buffer, object any) error { return write(b, object, true) }

func write(b *bytes.Buffer, object any, status bool) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return err
	}
	root := n.Content[0]
	prune(root)
	last := take(root, "status")
	if status {
		root.Content = append(root.Content, last...)
	}
	for _, key := range []string{"metadata", "kind", "apiVersion"} {
		root.Content = append(take(root, key), root.Content...)
	}
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return err
	}
	return e.Close()
}

// ambiguous matches strings that a YAML 1.1 parser, such as that of kubectl, interprets as a
// boolean or a sexagesimal number.
var ambiguous = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)
})

// empties are the fields that have a meaning if they are empty.
var empties = []string{"selector", "labelSelector", "namespaceSelector", "podSelector"}

// prune gives a tree the style of a manifest and removes fields without content, such as an unset
// creation time.
func prune(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && ambiguous().MatchString(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			prune(c)
		}
		return
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		prune(key)
		prune(v)
		empty := v.Kind == yaml.MappingNode && len(v.Content) == 0
		if empty && !slices.Contains(empties, key.Value) || v.Tag == "!!null" {
			continue
		}
		kept = append(kept, key, v)
	}
	n.Content = kept
}

// take removes the field key and returns its name and value, or nil if there is no such field.
func take(n *yaml.Node, key string) []*yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			pair := slices.Clone(n.Content[i : i+2])
			n.Content = slices.Delete(n.Content, i, i+2)
			return pair
		}
	}
	return nil
}
