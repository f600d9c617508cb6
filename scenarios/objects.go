package scenarios

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// An Object is a Kubernetes object that [EachObject] read.
type Object struct {
	// Value is a pointer to the object. Objects that differ only in their name share it, so use
	// Name instead of the name in Value.
	Value metav1.Object
	Name  string

	// Problem returns an error about a field of the object.
	Problem func(path []string, format string, args ...any) error
}

// An ObjectKind describes how to decode objects of one kind.
type ObjectKind struct {
	APIVersion string
	Make       func() metav1.Object
}

// EachObject passes the objects of a text to take one after the other and retains none, since the
// text of a large cluster contains many. It decodes only the kinds in of, and ignores unknown
// fields of their status. It returns the number of skipped objects by kind.
func EachObject(file string, data []byte, of map[string]ObjectKind, take func(Object) error) (skipped map[string]int,
	err error) {
	r := objectReader{file: file, kinds: of, take: take, skipped: map[string]int{},
		fields: map[reflect.Type]map[string][]int{}, shapes: map[string]Object{}}
	for line := 1; len(data) > 0; {
		text, rest := cutDocument(data)
		if err := r.read(text, line); err != nil {
			return nil, err
		}
		line += bytes.Count(data[:len(data)-len(rest)], []byte("\n"))
		data = rest
	}
	return r.skipped, nil
}

type objectReader struct {
	file    string
	kinds   map[string]ObjectKind
	take    func(Object) error
	skipped map[string]int
	fields  map[reflect.Type]map[string][]int
	shapes  map[string]Object // by the text without the name
	shape   []byte            // of the current document
}

// cutDocument cuts the first document off a text. A document ends before a line that starts with
// three dashes.
func cutDocument(data []byte) (text, rest []byte) {
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte("\n---"))
		if i < 0 {
			return data, nil
		}
		end := from + i + 1
		directives := from == 0 && data[0] == '%'
		if after := end + 3; !directives && (after == len(data) || data[after] == '\n' || data[after] == ' ' ||
			data[after] == '\r') {
			return data[:end], data[end:]
		}
		from = end
	}
}

// read reads a document that starts at a line of the file.
func (r *objectReader) read(text []byte, line int) error {
	name, plain := r.cutName(text)
	if plain {
		if o, known := r.shapes[string(r.shape)]; known {
			o.Name = name
			return r.take(o)
		}
	}
	docs, err := r.split(text, line)
	if err != nil {
		return err
	}
	text = bytes.Clone(text) // does not keep the whole file in memory
	for i := range docs {
		o, known, err := r.decode(&docs[i])
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		o.Problem = func(path []string, format string, args ...any) error {
			docs, err := r.split(text, line)
			if err != nil {
				return err
			}
			return docs[i].problem(path, format, args...)
		}
		if plain && len(docs) == 1 && o.Name == name {
			r.shapes[string(r.shape)] = o
		}
		if err := r.take(o); err != nil {
			return err
		}
	}
	return nil
}

// split returns the objects of a document, with their line numbers in the file.
func (r *objectReader) split(text []byte, line int) ([]document, error) {
	docs, err := split(r.file, text)
	if f := (*FieldError)(nil); errors.As(err, &f) {
		f.Line += line - 1
	}
	for i := range docs {
		rebase(docs[i].node, 1-line)
	}
	return docs, err
}

func (r *objectReader) decode(d *document) (o Object, known bool, err error) {
	kind, version := d.kind(), d.version()
	k, known := r.kinds[kind]
	switch {
	case kind == "" && (version != "" || d.at([]string{"metadata"}) != nil):
		return o, false, d.problem([]string{"kind"}, "must be set")
	case !known || groupOf(k.APIVersion) != groupOf(version):
		r.skipped[cmp.Or(kind, "document without a kind")]++
		return o, false, r.mistyped(d)
	case version != k.APIVersion:
		return o, false, d.problem([]string{"apiVersion"}, "%q of a %s, want %q%s", version, kind, k.APIVersion,
			newVersion(version))
	}
	o.Value = k.Make()
	dec := &decoder{doc: d, fields: r.fields, openStatus: true}
	if err := dec.into(o.Value); err != nil {
		return o, false, InOrder([]error{err})
	}
	if o.Name = d.name(); o.Name == "" {
		return o, false, d.problem([]string{"metadata", "name"}, "must be set")
	}
	return o, true, nil
}

// mistyped returns an error if the kind of d is similar to one of the requested kinds in the same
// API group.
func (r *objectReader) mistyped(d *document) error {
	if _, other := unsimulatedKinds[d.kind()]; other || kinds[d.kind()].make != nil {
		return nil
	}
	best, near := nearest.Of(d.kind(), slices.Sorted(maps.Keys(r.kinds)))
	if near && groupOf(r.kinds[best].APIVersion) == groupOf(d.version()) {
		return d.problem([]string{"kind"}, "%q is not read here; did you mean %q?", d.kind(), best)
	}
	return nil
}

// cutName finds the name in the text of an object in block style. It stores the text without the
// name in r.shape, which is equal for objects that differ only in their name. It reports false if
// it does not find the name by its indentation.
func (r *objectReader) cutName(text []byte) (name string, ok bool) {
	_, after, found := bytes.Cut(text, []byte("\nmetadata:\n"))
	for found && bytes.HasPrefix(after, []byte("  ")) {
		line, rest, _ := bytes.Cut(after, []byte("\n"))
		if value, is := bytes.CutPrefix(line, []byte("  name: ")); is && plainName(string(value)) {
			r.shape = append(append(r.shape[:0], text[:len(text)-len(after)]...), rest...)
			return string(value), true
		}
		after = rest
	}
	return "", false
}

// plainName reports whether an unquoted YAML scalar is a string and a valid object name.
func plainName(s string) bool {
	if s == "" || s[0] < 'a' || s[0] > 'z' || !strings.ContainsAny(s, "-.") {
		return false // YAML may parse such a word as another type
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}
