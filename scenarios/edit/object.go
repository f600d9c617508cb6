package edit

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ObjectAt returns, as KIND/NAME, the object at a line of a text, or "" if the line is in no
// object. It is used to report errors of a changed text in terms that its author knows.
func ObjectAt(written []byte, line int) string {
	f, err := Read("", written)
	if err != nil {
		return ""
	}
	name := ""
	for _, d := range f.docs {
		if d.Line <= line {
			name = strings.ToLower(text(d, "kind")) + "/" + text(d, "metadata", "name")
		}
	}
	return name
}

// Setting returns the object and the field path that a change identifies; see [File.Set] for the
// format of changes.
func (f *File) Setting(change string) (kind, namespace, name, path string, err error) {
	ref, _, err := Split(change)
	if err != nil {
		return "", "", "", "", err
	}
	doc, path, err := f.find(ref)
	if err != nil {
		return "", "", "", "", err
	}
	return text(doc, "kind"), cmp.Or(text(doc, "metadata", "namespace"), "default"), text(doc, "metadata", "name"),
		path, nil
}

// Fields returns the settings that a change may refer to, as KIND/NAME.path, in document order: all
// scalars below spec that are not in lists.
func (f *File) Fields() (out []string) {
	for _, d := range f.docs {
		if d.Kind == yaml.DocumentNode {
			d = d.Content[0]
		}
		object := strings.ToLower(text(d, "kind")) + "/" + text(d, "metadata", "name")
		if spec := child(d, "spec"); spec != nil {
			out = fieldsBelow(out, object+".spec", spec)
		}
	}
	return out
}

func fieldsBelow(out []string, at string, n *yaml.Node) []string {
	switch n.Kind {
	case yaml.ScalarNode:
		return append(out, at)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if strings.Contains(key, ".") {
				key = "[" + key + "]"
			} else {
				key = "." + key
			}
			out = fieldsBelow(out, at+key, n.Content[i+1])
		}
	}
	return out
}
