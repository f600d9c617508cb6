package edit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Set applies a change that is written KIND/NAME.path=value. A path consists of keys separated by
// dots, [2] for an index of a list, [key=value] for the list element with this value, and [any.key]
// for a key that contains dots. The value is YAML; null removes the field. Missing keys are
// created, and an index equal to the length of a list appends to it.
func (f *File) Set(change string) error {
	ref, value, err := Split(change)
	if err != nil {
		return err
	}
	doc, rest, err := f.find(ref)
	if err != nil {
		return err
	}
	return put(doc, rest, value)
}

// put sets the value at a path below doc.
func put(doc *yaml.Node, at, value string) error {
	path, err := parsePath(at)
	if err != nil {
		return err
	}
	var v yaml.Node
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		return fmt.Errorf("the value %q is not YAML: %w", value, err)
	}
	if len(v.Content) == 0 {
		return errors.New("there is no value: write null to take the field away, \"\" for an empty text")
	}
	s := setter{path: path, value: v.Content[0]}
	forget(s.value)
	return s.set(doc)
}

// Split splits a change into the reference to a field and the value.
func Split(change string) (ref, value string, err error) {
	depth := 0
	for i, c := range change {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '=' && depth == 0:
			return strings.TrimSpace(change[:i]), strings.TrimSpace(change[i+1:]), nil
		}
	}
	return "", "", fmt.Errorf("%q gives no value, as in deployment/web.spec.replicas=4", change)
}

// forget clears the positions of nodes, which are meaningless in another document.
func forget(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		forget(c)
	}
}

// A step is an element of a path: a key or, in brackets, a selector whose meaning depends on the
// node.
type step struct {
	text    string
	bracket bool
}

func (s step) String() string {
	if s.bracket {
		return "[" + s.text + "]"
	}
	return s.text
}

// parsePath parses a path such as "spec.taints[0].key".
func parsePath(text string) ([]step, error) {
	var path []step
	whole := text
	for text != "" {
		if text[0] == '[' {
			inner, rest, ok := strings.Cut(text[1:], "]")
			if !ok || inner == "" {
				return nil, fmt.Errorf("the path %q has a bracket that is empty or does not end", whole)
			}
			path, text = append(path, step{inner, true}), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(text, ".[")
		if end < 0 {
			end = len(text)
		}
		if end == 0 {
			return nil, fmt.Errorf("the path %q has an empty key", whole)
		}
		path = append(path, step{text[:end], false})
		if text = text[end:]; strings.HasPrefix(text, ".") {
			if text = text[1:]; text == "" {
				return nil, fmt.Errorf("the path %q ends with a dot", whole)
			}
		}
	}
	if len(path) == 0 {
		return nil, errors.New("there is no path behind the name, as in deployment/web.spec.replicas=4")
	}
	return path, nil
}

// A setter sets a value at a path.
type setter struct {
	path  []step
	value *yaml.Node
	at    int // number of path elements that are resolved
}

// here returns the resolved part of the path.
func (s *setter) here() string {
	var b strings.Builder
	for i, p := range s.path[:s.at] {
		if i > 0 && !p.bracket {
			b.WriteByte('.')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

func (s *setter) removes() bool { return s.value.Tag == "!!null" }

// set sets the value below n, which it may modify.
func (s *setter) set(n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		return s.inMapping(n)
	case yaml.SequenceNode:
		return s.inList(n)
	}
	return fmt.Errorf("%s is %q: there is no %s in it", s.here(), n.Value, s.path[s.at])
}

func (s *setter) inMapping(n *yaml.Node) error {
	p := s.path[s.at]
	last := s.at == len(s.path)-1
	i := 0
	for ; i < len(n.Content) && n.Content[i].Value != p.text; i += 2 {
	}
	switch have := i < len(n.Content); {
	case !have && s.removes():
		var keys []string
		for k := 0; k < len(n.Content); k += 2 {
			keys = append(keys, n.Content[k].Value)
		}
		s.at++
		return fmt.Errorf("%s is not set, so it cannot be removed%s", s.here(), there(p.text, keys))
	case !have:
		next := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: p.text}, next)
	case last && s.removes():
		n.Content = slices.Delete(n.Content, i, i+2)
		return nil
	}
	s.at++
	return s.into(&n.Content[i+1], last)
}

func (s *setter) inList(n *yaml.Node) error {
	p := s.path[s.at]
	last := s.at == len(s.path)-1
	i, err := s.place(n, p)
	if err != nil {
		return err
	}
	s.at++
	switch {
	case i == len(n.Content) && s.removes():
		return fmt.Errorf("%s does not exist, so it cannot be removed", s.here())
	case i == len(n.Content):
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
	case last && s.removes():
		n.Content = slices.Delete(n.Content, i, i+1)
		return nil
	}
	return s.into(&n.Content[i], last)
}

// place returns the index in the list n that p selects. It may equal the length of the list.
func (s *setter) place(n *yaml.Node, p step) (int, error) {
	if !p.bracket {
		return 0, fmt.Errorf("%s is a list: write [0] to [%d], or [key=value], before %s", s.here(), len(n.Content), p.text)
	}
	key, value, chosen := strings.Cut(p.text, "=")
	if !chosen {
		i, err := strconv.Atoi(p.text)
		if err != nil || i < 0 || i > len(n.Content) {
			return 0, fmt.Errorf("%s has %d elements: %s is not among them, and [%[2]d] appends one", s.here(),
				len(n.Content), p)
		}
		return i, nil
	}
	var have []string
	for i, x := range n.Content {
		if v := text(x, key); v == value {
			return i, nil
		} else if v != "" {
			have = append(have, v)
		}
	}
	return 0, fmt.Errorf("no element of %s has %s=%s%s", s.here(), key, value, there(value, have))
}

// into stores the value in slot if this is the last element of the path, and otherwise continues
// below slot.
func (s *setter) into(slot **yaml.Node, last bool) error {
	if !last {
		*slot = own(*slot)
		return s.set(*slot)
	}
	v := s.value
	if parent := s.parent(); v.Kind == yaml.ScalarNode && slices.Contains(textMaps, parent) {
		v.Tag, v.Style = "!!str", yaml.DoubleQuotedStyle // a value of 5 in an annotation becomes "5"
	}
	*slot = v
	return nil
}

// textMaps are the Kubernetes mappings whose values are strings.
var textMaps = []string{"annotations", "labels", "matchLabels", "nodeSelector"}

// parent returns the second to last key of the path, or "".
func (s *setter) parent() string {
	if len(s.path) < 2 {
		return ""
	}
	return s.path[len(s.path)-2].text
}

// own returns n, or a copy of its target if n is an alias, so that a change affects only this
// place. A null becomes an empty mapping.
func own(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if n.Kind != yaml.AliasNode {
		return n
	}
	return copied(n.Alias)
}

func copied(n *yaml.Node) *yaml.Node {
	out := *n
	out.Anchor = ""
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = copied(c)
	}
	return &out
}

// Short shortens a change to its distinctive parts: kind, name, and the end of the field path.
func Short(text string) string {
	ref, value, err := Split(text)
	if err != nil {
		ref = text
	} else {
		value = "=" + value
	}
	at := strings.IndexByte(ref, '/') + 1
	dot := strings.IndexAny(ref[at:], ".[")
	if dot < 0 {
		return text
	}
	object, path := ref[:at+dot], ref[at+dot:]
	if strings.HasSuffix(path, "]") {
		return object + " " + path[strings.LastIndexByte(path, '[')+1:len(path)-1] + value
	}
	last := strings.LastIndexByte(path, '.') + 1
	if element, ok := strings.CutSuffix(path[:last], "]."); ok {
		element = element[strings.LastIndexByte(element, '[')+1:]
		if _, chosen, ok := strings.Cut(element, "="); ok {
			element = chosen
		}
		return object + " " + element[strings.LastIndexByte(element, '/')+1:] + " " + path[last:] + value
	}
	return object + " " + path[last:] + value
}
