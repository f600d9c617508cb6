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

// An Object is a Kubernetes object of a text, as [EachObject] reads it.
type Object struct {
	// Value is a pointer to the object. Objects that differ in nothing but their name share it:
	// only Name is that of this one.
	Value metav1.Object
	Name  string

	// Problem returns an error that names a field of the object.
	Problem func(path []string, format string, args ...any) error
}

// An ObjectKind makes the value of an object of one kind.
type ObjectKind struct {
	APIVersion string
	Make       func() metav1.Object
}

// EachObject reads the objects of a text one after the other, and keeps none: the text of a large
// cluster has many. Only those of the kinds in of are decoded; their statuses may hold fields that are not
// known. It returns how many objects it skipped, by kind.
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
	shape   []byte            // of the document that is read
}

// cutDocument cuts the first document off a text: it ends before a line that starts with three
// dashes.
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

// read reads a document that starts on a line of the file.
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
	text = bytes.Clone(text) // and not the whole file
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

// split returns the objects of a document, with their lines in the file.
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

// mistyped returns an error for a kind that is nearly one of those that are read, of the same group.
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

// cutName cuts the name out of the text of an object in block style: the rest, which it leaves in
// r.shape, is equal for objects that differ in nothing else. It reports false for a text of which the
// name is not found by its indentation.
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

// plainName reports whether a YAML scalar without quotes is a string and the name of an object.
func plainName(s string) bool {
	if s == "" || s[0] < 'a' || s[0] > 'z' || !strings.ContainsAny(s, "-.") {
		return false // a word that YAML may read as something else
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}
