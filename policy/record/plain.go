package record

import (
	"reflect"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/policy/figures"
)

// plainers are the results of plainer, by type.
var plainers sync.Map

// show makes v plain where g reads for a reader.
func show[T any](g *segmentReader, v *T) {
	if g.plain {
		plain(v)
	}
}

// plain makes every text in v plain.
func plain[T any](v *T) {
	if do := plainer(reflect.TypeFor[T]()); do != nil {
		do(reflect.ValueOf(v).Elem())
	}
}

// plainer returns what makes the texts in a value of type t plain, nil where it has none.
func plainer(t reflect.Type) func(reflect.Value) {
	if do, known := plainers.Load(t); known {
		return do.(func(reflect.Value))
	}
	do := newPlainer(t)
	plainers.Store(t, do)
	return do
}

// newPlainer makes what plainer returns. No type of a snapshot, a plan or a memory holds itself.
func newPlainer(t reflect.Type) func(reflect.Value) {
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value) {
			if s := v.String(); figures.Plain(s) != s {
				v.SetString(figures.Plain(s))
			}
		}
	case reflect.Struct:
		return plainFields(t)
	case reflect.Map:
		return plainMap(t)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		do := plainer(t.Elem())
		if do == nil {
			return nil
		}
		if t.Kind() == reflect.Pointer {
			return func(v reflect.Value) {
				if !v.IsNil() {
					do(v.Elem())
				}
			}
		}
		return func(v reflect.Value) {
			for i := range v.Len() {
				do(v.Index(i))
			}
		}
	}
	return nil
}

func plainFields(t reflect.Type) func(reflect.Value) {
	var fields []func(reflect.Value)
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			if do := plainer(f.Type); do != nil {
				fields = append(fields, func(v reflect.Value) { do(v.Field(i)) })
			}
		}
	}
	if fields == nil {
		return nil
	}
	return func(v reflect.Value) {
		for _, do := range fields {
			do(v)
		}
	}
}

// plainMap replaces the entries of a map whose keys or values have texts.
func plainMap(t reflect.Type) func(reflect.Value) {
	parts := []func(reflect.Value){plainer(t.Key()), plainer(t.Elem())}
	if !slices.ContainsFunc(parts, func(do func(reflect.Value)) bool { return do != nil }) {
		return nil
	}
	return func(v reflect.Value) {
		for _, key := range v.MapKeys() {
			entry := []reflect.Value{reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()}
			entry[0].Set(key)
			entry[1].Set(v.MapIndex(key))
			for i, do := range parts {
				if do != nil {
					do(entry[i])
				}
			}
			v.SetMapIndex(key, reflect.Value{})
			v.SetMapIndex(entry[0], entry[1])
		}
	}
}
