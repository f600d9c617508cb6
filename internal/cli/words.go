package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Words returns the message of err for the user. It replaces the parts from libraries, which name
// Go types, functions and layouts.
func Words(err error) string {
	text := err.Error()
	if f, ok := recognise(err); ok {
		switch {
		case f.whole:
			return f.words
		case f.old != "":
			text = strings.ReplaceAll(text, f.old, f.words)
		}
	}
	eachError(err, func(e error) {
		if words := libraryWords(e); words != "" {
			text = strings.ReplaceAll(text, e.Error(), words)
		}
	})
	return yamlWords(text)
}

// eachError calls f with err and all errors that it wraps.
func eachError(err error, f func(error)) {
	if err == nil {
		return
	}
	f(err)
	switch x := err.(type) { //nolint:errorlint // each error of the chain is visited
	case interface{ Unwrap() error }:
		eachError(x.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, inner := range x.Unwrap() {
			eachError(inner, f)
		}
	}
}

// libraryWords describes an error of a library, empty if err is not one.
func libraryWords(err error) string {
	switch e := err.(type) { //nolint:errorlint // the caller unwraps
	case *json.UnmarshalTypeError:
		words := fmt.Sprintf("want %s, got %s", goKind(e.Type), jsonKind(e.Value))
		if e.Field != "" {
			return fmt.Sprintf("field %q: %s", strings.TrimPrefix(e.Field, "."), words)
		}
		return words
	case *json.SyntaxError:
		if strings.HasPrefix(e.Error(), "unexpected end") {
			return "the JSON ends too early"
		}
		return fmt.Sprintf("not JSON at byte %d: %s", e.Offset, e.Error())
	case *strconv.NumError:
		return NotNumber(e.Num, numberOf[e.Func], e).Error()
	case *time.ParseError:
		return fmt.Sprintf("%q is not a time such as 2026-01-31T12:00:00Z", e.Value)
	}
	return ""
}

// numberOf maps functions of strconv to the values that they parse.
var numberOf = map[string]string{
	"ParseInt": "a whole number", "Atoi": "a whole number", "ParseUint": "a whole number, 0 or more", "ParseFloat": "a number", "ParseBool": "true or false",
}

// NotNumber returns the error for text that is not the wanted value, such as "a whole number". If
// err is [strconv.ErrRange], it states that the number is too large or too small.
func NotNumber(text, want string, err error) error {
	switch {
	case !errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%q is not %s", text, want)
	case strings.HasPrefix(text, "-"):
		return fmt.Errorf("%s is too small a number", text)
	}
	return fmt.Errorf("%s is too large a number", text)
}

var duration = regexp.MustCompile(`^[-+]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$`)

// NotDuration returns the error for text that [time.ParseDuration] rejects.
func NotDuration(text string) error {
	if duration.MatchString(text) {
		return fmt.Errorf("%s is too long: a duration is at most %d years", text, int(time.Duration(1<<63-1).Hours()/24/365))
	}
	return fmt.Errorf("%q is not a length of time such as 90s, 15m or 24h", text)
}

// goKind describes the values of a Go type in a file.
func goKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Pointer:
		return goKind(t.Elem())
	}
	return "a mapping"
}

// jsonKind describes a value by its name in encoding/json.
func jsonKind(value string) string {
	switch kind, number, _ := strings.Cut(value, " "); {
	case kind == "number" && number != "":
		return number
	case kind == "array":
		return "a list"
	case kind == "object":
		return "a mapping"
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a text"
	}
	return "a " + value
}

var (
	yamlFrames = regexp.MustCompile(`error (converting YAML to JSON|unmarshaling JSON|unmarshaling YAML): |while decoding JSON: `)
	yamlPrefix = regexp.MustCompile(`(^|\s)yaml: (?:unmarshal errors:\s+)?`)
	yamlTypes  = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: `([^`]*)`)? into ([^\\s,;]+)")
	yamlKinds  = map[string]string{"seq": "a list", "map": "a mapping", "str": "a text", "int": "a number",
		"float": "a number", "bool": "true or false", "null": "nothing"}
)

// yamlWords replaces the messages of YAML decoders. It matches their text, because there are three
// decoders and most of their errors have no type.
func yamlWords(text string) string {
	text = yamlPrefix.ReplaceAllString(yamlFrames.ReplaceAllString(text, ""), "$1")
	return yamlTypes.ReplaceAllStringFunc(text, func(part string) string {
		m := yamlTypes.FindStringSubmatch(part)
		got := yamlKinds[m[1]]
		if m[2] != "" {
			got = strconv.Quote(m[2])
		}
		return fmt.Sprintf("want %s, got %s", typeNamed(m[3]), got)
	})
}

// typeNamed describes the values of the Go type with this name.
func typeNamed(name string) string {
	for _, t := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[uint](), reflect.TypeFor[float64](),
		reflect.TypeFor[string](), reflect.TypeFor[bool]()} {
		if strings.HasPrefix(name, t.String()) || strings.HasPrefix(name, strings.TrimSuffix(t.String(), "64")) {
			return goKind(t)
		}
	}
	if strings.HasPrefix(name, "[]") {
		return "a list"
	}
	return "a mapping"
}
