// Package edit changes the text of a scenario: single fields, whole pools, and what they may buy. It
// knows documents of YAML and not what they mean; what is wrong with a changed one is found where
// scenarios are read.
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

// A File is the documents of a scenario, to be changed. The zero value holds none.
type File struct {
	docs []*yaml.Node // mappings
}

// Read reads the documents of data; name says in errors what it is. Lists of Kubernetes become
// their items.
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

// listed returns an item of a list with the kind that the list implies, where it states none.
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

// Text returns the documents as they are now.
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

// shortNames are the names that kubectl accepts for a kind in addition to its resource.
var shortNames = map[string]string{
	"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "po": "pod",
	"pdb": "poddisruptionbudget", "pc": "priorityclass", "cpool": "capacitypool",
}

// kindIs reports whether word, as a user writes it, means kind: the kind itself, its resource as
// kubectl takes it, or the short name of that.
func kindIs(word, kind string) bool {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	kind = strings.ToLower(kind)
	word = cmp.Or(shortNames[word], word)
	return word == kind || word == kind+"s" || word == kind+"es"
}

// find returns the object that the start of ref names, as KIND/NAME or KIND/NAMESPACE/NAME, and the
// rest of ref.
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
			if len(n) > length { // of web and web.v2, the latter
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

// there says what there is in place of word, and which of it was probably meant.
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

// child returns the value under key, nil without one.
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

// text returns the scalar under the keys of path, empty without one.
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
