package scenarios

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A RawObject is one object of a file of YAML or JSON, for callers that read
// kinds which no scenario holds. They get the same strictness and the same
// errors.
type RawObject struct{ doc document }

// RawObjects cuts a file into its objects; file names it in errors. An object of kind List is
// replaced by its items.
func RawObjects(file string, data []byte) ([]RawObject, error) {
	docs, err := split(file, data)
	if err != nil {
		return nil, err
	}
	all := make([]RawObject, len(docs))
	for i, d := range docs {
		all[i] = RawObject{d}
	}
	return all, nil
}

// DecodeFile reads the one object of a file other than a scenario into v, as [RawObject.Decode] does. It
// returns what makes an error about a field of the file, with its line.
func DecodeFile(file string, data []byte, v any) (problem func(path []string, format string, args ...any) error,
	err error) {
	objects, err := RawObjects(file, data)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, &FieldError{File: file, Line: 1, Problem: fmt.Sprintf("the file holds %d objects, want one", len(objects))}
	}
	return objects[0].Problem, objects[0].Decode(v)
}

// File returns the name of the file that contains the object.
func (o *RawObject) File() string { return o.doc.file }

// Scalar returns the text under the keys of path; empty if there is no text.
func (o *RawObject) Scalar(path ...string) string { return o.doc.scalar(path...) }

// Has reports whether the object has the field at path, where "[i]" is the i-th
// entry of a list, and a value in it.
func (o *RawObject) Has(path ...string) bool {
	n := o.doc.at(path)
	return n != nil && (n.Kind != yaml.ScalarNode || n.Tag != "!!null")
}

// Line returns the line of the field at path, or of the deepest part of the
// path that the object has.
func (o *RawObject) Line(path ...string) int {
	return o.doc.line(path)
}

// Decode reads the object into v, a pointer to a struct with JSON tags. An unknown or duplicate key
// is an error. A field of type metav1.FieldsV1 accepts any value and keeps nothing of it. Each
// error is a *FieldError that includes the value; several are joined.
func (o *RawObject) Decode(v any) error {
	dec := &decoder{doc: &o.doc, fields: map[reflect.Type]map[string][]int{}}
	err := dec.into(v)
	for _, err := range dec.errs {
		var f *FieldError
		if errors.As(err, &f) && strings.HasPrefix(f.Problem, unknownKey) {
			if n := o.doc.at(splitPath(f.Field)); n != nil {
				f.Problem += "; its value is " + got(n)
			}
		}
	}
	return err
}

// unknownKey is the start of the message about a key that a type does not have.
const unknownKey = "unknown key"

// Problem returns an error about the field at path.
func (o *RawObject) Problem(path []string, format string, args ...any) error {
	return o.doc.problem(path, format, args...)
}

// JoinPath formats a path for errors, as in "spec.taints[0].key".
func JoinPath(path ...string) string { return joinPath(path) }
