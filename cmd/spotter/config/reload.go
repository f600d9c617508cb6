package config

import (
	"reflect"
	"slices"
	"strings"
)

// Reload copies the fields of next that differ and that can change while the program runs to c. It
// returns the paths of the fields that it copied and of those that require a restart.
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

// walk visits each leaf field of two configurations, in the order of the type.
func walk(path []string, a, b reflect.Value, visit func(path []string, a, b reflect.Value, reload bool)) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		below := slices.Concat(path, []string{name})
		switch {
		case name == "": // apiVersion and kind have only one valid value
		case f.Type.PkgPath() == a.Type().PkgPath() && f.Type.Kind() == reflect.Struct:
			walk(below, a.Field(i), b.Field(i), visit)
		default:
			visit(below, a.Field(i), b.Field(i), f.Tag.Get("reload") == "true")
		}
	}
}

// same reports whether two values have the same JSON.
func same(a, b reflect.Value) bool { return asJSON(a.Interface()) == asJSON(b.Interface()) }

// A Field is one setting of a configuration file.
type Field struct {
	// Path is the name of the field, preceded by the names of its parents, separated by dots.
	Path string

	// Default is the default value as JSON.
	Default string

	// Reload reports whether the field is applied while the program runs.
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
