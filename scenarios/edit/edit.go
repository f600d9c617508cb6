// Package edit changes the text of a scenario: single fields, whole pools, and the capacity that
// pools may buy. It treats documents as YAML without interpreting them; errors in a changed
// document are found when the scenario is read.
package edit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// A File contains the documents of a scenario. The zero value has no documents.
type File struct {
	docs []*yaml.Node // mappings
}

// Read parses the documents in data; name identifies the text in errors. Kubernetes lists are
// replaced by their items.
func Read(name string, data []byte) (*File, error) {
	f := &File{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
			continue
		}
		doc := n.Content[0]
		if doc.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s:%d: a document is not an object", name, doc.Line)
		}
		if items := child(doc, "items"); strings.HasSuffix(text(doc, "kind"), "List") && items != nil {
			for _, item := range items.Content {
				f.docs = append(f.docs, listed(item, doc))
			}
			continue
		}
		f.docs = append(f.docs, doc)
	}
}

// listed returns an item of a list. If the item states no kind, it gets the kind and apiVersion
// that the list implies.
func listed(item, list *yaml.Node) *yaml.Node {
	kind := strings.TrimSuffix(text(list, "kind"), "List")
	if kind == "" || item.Kind != yaml.MappingNode || text(item, "kind") != "" {
		return item
	}
	word := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	item.Content = append([]*yaml.Node{word("apiVersion"), word(text(list, "apiVersion")), word("kind"), word(kind)},
		item.Content...)
	return item
}

// Text returns the documents in their current state as YAML.
func (f *File) Text() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	for _, d := range f.docs {
		if err := enc.Encode(d); err != nil {
			return nil, err
		}
	}
	err := enc.Close()
	return b.Bytes(), err
}

// shortNames maps the short names that kubectl accepts to the lower-case kind.
var shortNames = map[string]string{
	"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "po": "pod",
	"pdb": "poddisruptionbudget", "pc": "priorityclass", "cpool": "capacitypool",
}

// kindIs reports whether a word written by a user denotes kind: the kind itself, its plural
// resource name as in kubectl, or a short name.
func kindIs(word, kind string) bool {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	kind = strings.ToLower(kind)
	word = cmp.Or(shortNames[word], word)
	return word == kind || word == kind+"s" || word == kind+"es"
}

// find returns the object that the prefix of ref identifies, as KIND/NAME or KIND/NAMESPACE/NAME,
// and the rest of ref.
func (f *File) find(ref string) (doc *yaml.Node, rest string, err error) {
	word, ref, ok := strings.Cut(ref, "/")
	if !ok {
		return nil, "", fmt.Errorf("%q names no object, as in capacitypool/general.spec.mode=active", word)
	}
	var kinds, names []string
	length := -1
	var found []*yaml.Node
	for _, d := range f.docs {
		kind := text(d, "kind")
		kinds = append(kinds, strings.ToLower(kind))
		if !kindIs(word, kind) {
			continue
		}
		name, namespace := text(d, "metadata", "name"), text(d, "metadata", "namespace")
		names = append(names, name)
		for _, n := range []string{name, cmp.Or(namespace, "default") + "/" + name} {
			behind, begins := strings.CutPrefix(ref, n)
			if !begins || behind != "" && !strings.HasPrefix(behind, ".") && !strings.HasPrefix(behind, "[") {
				continue
			}
			if len(n) > length { // the longest name wins: web.v2 instead of web
				found, length = nil, len(n)
			}
			if len(n) == length {
				found = append(found, d)
			}
		}
	}
	switch {
	case len(names) == 0:
		return nil, "", fmt.Errorf("there is no kind %q%s", word, there(word, kinds))
	case len(found) == 0:
		name, _, _ := strings.Cut(ref, ".")
		return nil, "", fmt.Errorf("there is no %s %q%s", strings.ToLower(word), name, there(name, names))
	case len(found) > 1:
		return nil, "", fmt.Errorf("there is more than one %s/%s: write %[1]s/NAMESPACE/%[2]s", word, ref[:length])
	}
	return found[0], strings.TrimPrefix(ref[length:], "."), nil
}

// there returns a hint that lists names and suggests the one most similar to word.
func there(word string, names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return ""
	}
	meant := ""
	if best, ok := nearest.Of(word, names); ok {
		meant = fmt.Sprintf("; did you mean %q?", best)
	}
	const shown = 12
	more := ""
	if n := len(names) - shown; n > 0 {
		names, more = names[:shown], fmt.Sprintf(" and %d more", n)
	}
	return ": there is " + strings.Join(names, ", ") + more + meant
}

// child returns the value under key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// text returns the scalar at path, or "".
func text(n *yaml.Node, path ...string) string {
	for _, key := range path {
		if n = child(n, key); n == nil {
			return ""
		}
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Value
}
