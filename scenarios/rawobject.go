package scenarios

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A RawObject is one object of a YAML or JSON file, for callers that read kinds which scenarios do
// not contain. It has the same strictness and the same errors as scenarios.
type RawObject struct{ doc document }

// RawObjects splits a file into its objects; file identifies it in errors. A list is replaced by
// its items.
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

// DecodeFile decodes the single object of a file that is not a scenario into v; see
// [RawObject.Decode]. Problem creates an error about a field of the file, with its line.
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

// Scalar returns the text at path, or "" if the object has no text there.
func (o *RawObject) Scalar(path ...string) string { return o.doc.scalar(path...) }

// Has reports whether the object has a non-null value at path, where "[i]" is entry i of a list.
func (o *RawObject) Has(path ...string) bool {
	n := o.doc.at(path)
	return n != nil && (n.Kind != yaml.ScalarNode || n.Tag != "!!null")
}

// Line returns the line of the field at path, or of the deepest part of the path that exists.
func (o *RawObject) Line(path ...string) int {
	return o.doc.line(path)
}

// Decode decodes the object into v, a pointer to a struct with JSON tags. An unknown or duplicate
// key is an error. A field of type metav1.FieldsV1 accepts any value and ignores it. Each error is
// a *FieldError that includes the value; several are joined.
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

// unknownKey is the start of the error about an unknown key.
const unknownKey = "unknown key"

// Problem returns an error about the field at path.
func (o *RawObject) Problem(path []string, format string, args ...any) error {
	return o.doc.problem(path, format, args...)
}

// JoinPath formats a path for errors, as in "spec.taints[0].key".
func JoinPath(path ...string) string { return joinPath(path) }
