package mcp

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
)

// Types are the Go types of the JSON objects that the commands of tools print, by tool. With several
// types a result is of one of them; with none it may be an array, and the tool has no output schema.
type Types map[string][]reflect.Type

// inputSchema returns the schema of an input.
func inputSchema(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[text](): {Types: []string{"string", "integer"}},
	}})
	if err != nil {
		return nil, err
	}
	withoutNull(s)
	if v := s.Properties["variants"]; v != nil {
		v.MinItems, v.Items.MinProperties = jsonschema.Ptr(1), jsonschema.Ptr(1)
	}
	return s, nil
}

// withoutNull requires of values that they are not null: a field that is not set is left out.
func withoutNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	if s.Items != nil {
		withoutNull(s.Items)
	}
}

// outputSchema returns the schema of an object of one of the types, nil without types.
func outputSchema(types []reflect.Type) (*jsonschema.Schema, error) {
	if len(types) == 0 {
		return nil, nil //nolint:nilnil // no schema is needed
	}
	known, err := marshalled()
	if err != nil {
		return nil, err
	}
	var all []*jsonschema.Schema
	for _, t := range types {
		if err := addTexts(t, known, map[reflect.Type]bool{}); err != nil {
			return nil, err
		}
		s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return &jsonschema.Schema{Type: "object", AnyOf: all}, nil
}

// marshalled returns the schemas of the types of comparisons that write their JSON themselves.
func marshalled() (map[reflect.Type]*jsonschema.Schema, error) {
	object := func(of *jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", AdditionalProperties: of}
	}
	known := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[stats.Interval](): {Type: "array", Items: &jsonschema.Schema{Type: "number"},
			MinItems: jsonschema.Ptr(2), MaxItems: jsonschema.Ptr(2)},
		reflect.TypeFor[eval.Value]():   {Types: []string{"null", "number"}},
		reflect.TypeFor[eval.Values]():  object(&jsonschema.Schema{Types: []string{"number", "boolean"}}),
		reflect.TypeFor[eval.Medians](): object(&jsonschema.Schema{Type: "number"}),
	}
	windows, err := jsonschema.ForType(reflect.TypeFor[eval.Windows](), nil)
	if err != nil {
		return nil, err
	}
	// Of a summary without values only n is written, and of a change without pairs no figures.
	for _, x := range []struct {
		of, in   reflect.Type
		required []string
	}{
		{reflect.TypeFor[eval.Summary](), reflect.TypeFor[eval.Summary](), []string{"n"}},
		{reflect.TypeFor[eval.Figure](), reflect.TypeFor[eval.FigureReport](), nil},
		{reflect.TypeFor[eval.Difference](), reflect.TypeFor[eval.Difference](), []string{}},
		{reflect.TypeFor[eval.Change](), reflect.TypeFor[eval.Change](), []string{"scenario", "policy", "verdict"}},
	} {
		s, err := jsonschema.ForType(x.in, &jsonschema.ForOptions{TypeSchemas: known})
		if err != nil {
			return nil, err
		}
		if x.of == reflect.TypeFor[eval.Summary]() { // its own fields hide those of Windows in Go, not in JSON
			maps.Copy(s.Properties, windows.Properties)
			s.PropertyOrder = nil
		}
		if x.required != nil {
			s.Required = x.required
		} else {
			s.Type, s.Types = "", []string{"null", "object"}
		}
		known[x.of] = s
	}
	known[reflect.TypeFor[eval.Summaries]()] = object(known[reflect.TypeFor[eval.Summary]()].CloneSchemas())
	return known, nil
}

// addTexts adds to known the types within t that are written as text, because the schema would
// otherwise be that of their values. It returns an error for a type that writes its JSON itself and
// is not known.
func addTexts(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	if known[t] != nil || seen[t] {
		return nil
	}
	seen[t] = true
	own := t.Name() != "" && t.PkgPath() != "time"
	switch {
	case own && t.Kind() != reflect.Interface && t.Implements(reflect.TypeFor[json.Marshaler]()):
		return fmt.Errorf("%v has no schema", t)
	case own && t.Kind() != reflect.Interface && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		known[t] = &jsonschema.Schema{Type: "string"}
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return addTexts(t.Elem(), known, seen)
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return nil
		}
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous) {
				if err := addTexts(f.Type, known, seen); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
