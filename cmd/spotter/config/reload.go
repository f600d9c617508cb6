package config

import (
	"reflect"
	"slices"
	"strings"
)

// Reload takes into c what next says differently and what can change while the program
// runs, and returns the fields that it took and those that take a restart.
func (c *SpotterConfiguration) Reload(next *SpotterConfiguration) (taken, left []string) {
	walk(nil, reflect.ValueOf(c).Elem(), reflect.ValueOf(next).Elem(),
		func(path []string, old, now reflect.Value, reload bool) {
			name := strings.Join(path, ".")
			switch {
			case same(old, now):
			case reload:
				old.Set(now)
				taken = append(taken, name)
			default:
				left = append(left, name)
			}
		})
	return taken, left
}

// walk visits the fields of two configurations that have none below them, in the order
// of the type.
func walk(path []string, a, b reflect.Value, visit func(path []string, a, b reflect.Value, reload bool)) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		below := slices.Concat(path, []string{name})
		switch {
		case name == "": // apiVersion and kind, of which there is one
		case f.Type.PkgPath() == a.Type().PkgPath() && f.Type.Kind() == reflect.Struct:
			walk(below, a.Field(i), b.Field(i), visit)
		default:
			visit(below, a.Field(i), b.Field(i), f.Tag.Get("reload") == "true")
		}
	}
}

// same reports whether two values are written alike.
func same(a, b reflect.Value) bool { return asJSON(a.Interface()) == asJSON(b.Interface()) }

// A Field is one setting of a file.
type Field struct {
	// Path is its name with those above it, divided by dots.
	Path string

	// Default is its value by default, as JSON has it.
	Default string

	// Reload says that it is applied while the program runs.
	Reload bool
}

// Fields returns all settings, in the order of the type.
func Fields() []Field {
	var all []Field
	d := reflect.ValueOf(Default()).Elem()
	walk(nil, d, d, func(path []string, value, _ reflect.Value, reload bool) {
		all = append(all, Field{strings.Join(path, "."), asJSON(value.Interface()), reload})
	})
	return all
}
