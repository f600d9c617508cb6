package mcp

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/input"
)

// wordsOf returns the words of a command line that prints JSON, with the arguments and flags that v,
// one of the inputs, sets.
func wordsOf(command []string, v any) []string {
	var args, flags []string
	collect(reflect.ValueOf(v), &args, &flags)
	words := slices.Clone(command)
	flags = append(flags, "-o", "json")
	if slices.ContainsFunc(args, func(s string) bool { return strings.HasPrefix(s, "-") }) {
		return slices.Concat(words, flags, []string{"--"}, args) // no argument is a flag
	}
	return slices.Concat(words, args, flags)
}

// collect appends the arguments and flags that the fields of v set.
func collect(v reflect.Value, args, flags *[]string) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if field.Anonymous {
			collect(value, args, flags)
			continue
		}
		if variants, ok := value.Interface().([]change); ok {
			for k := range variants {
				var own []string
				collect(reflect.ValueOf(variants[k]), nil, &own)
				for n, word := range own {
					if n > 0 {
						*flags = append(*flags, "--with")
					}
					*flags = append(*flags, word)
				}
			}
			continue
		}
		if _, ok := field.Tag.Lookup("arg"); ok {
			*args = append(*args, valuesOf(value)...)
			continue
		}
		name, option, _ := strings.Cut(field.Tag.Get("flag"), ",")
		values := valuesOf(value)
		if x := field.Tag.Get("default"); x != "" && len(values) == 0 {
			values = []string{x}
		}
		switch {
		case option == "not":
			if !value.Bool() {
				*flags = append(*flags, "--"+name)
			}
			continue
		case option == "join" && len(values) > 0:
			values = []string{strings.Join(values, ",")}
		}
		for _, x := range values {
			if value.Kind() == reflect.Bool {
				*flags = append(*flags, "--"+name)
				continue
			}
			*flags = append(*flags, "--"+name+"="+x)
		}
	}
}

// valuesOf returns the values of a field as text: none of a field that is not set.
func valuesOf(v reflect.Value) (out []string) {
	switch {
	case v.IsZero():
		return nil
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			out = append(out, v.Index(i).String())
		}
		return out
	}
	return []string{fmt.Sprint(reflect.Indirect(v))}
}

// errProtocol is the error of a path that names the input of the protocol.
var errProtocol = errors.New("standard input carries the protocol, and cannot be read")

// checkPaths returns an error if a path in v names the input of the protocol, of which a command
// would take messages.
func checkPaths(v reflect.Value, protocol *os.File) error {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		var err error
		_, path := field.Tag.Lookup("path")
		switch {
		case field.Anonymous:
			err = checkPaths(value, protocol)
		case value.Type() == reflect.TypeFor[[]change]():
			for k := 0; k < value.Len() && err == nil; k++ {
				err = checkPaths(value.Index(k), protocol)
			}
		case path:
			for _, x := range valuesOf(value) {
				if x == input.Stdin || isFile(x, protocol) {
					name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
					return fmt.Errorf("%s: %q: %w", name, x, errProtocol)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isFile reports whether path is f, under whatever name.
func isFile(path string, f *os.File) bool {
	if f == nil {
		return false
	}
	a, err := os.Stat(path)
	b, errOf := f.Stat()
	return err == nil && errOf == nil && os.SameFile(a, b)
}
