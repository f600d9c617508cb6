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

// Words returns the message of err for the user: the parts that libraries wrote, which name
// types of Go, functions and layouts, in plain words.
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

// eachError calls f with err and all that it wraps.
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

// libraryWords returns what err is in plain words, nothing where it is of no library.
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

// numberOf names what a function of strconv reads.
var numberOf = map[string]string{
	"ParseInt": "a whole number", "Atoi": "a whole number", "ParseUint": "a whole number, 0 or more", "ParseFloat": "a number", "ParseBool": "true or false",
}

// NotNumber returns the error about a text that is not what is wanted, "a whole number", as
// err of strconv has it: one that is one, but too large, is called so.
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

// NotDuration returns the error about a text that [time.ParseDuration] refused.
func NotDuration(text string) error {
	if duration.MatchString(text) {
		return fmt.Errorf("%s is too long: a duration is at most %d years", text, int(time.Duration(1<<63-1).Hours()/24/365))
	}
	return fmt.Errorf("%q is not a length of time such as 90s, 15m or 24h", text)
}

// goKind says what a value of a type of Go is in a file.
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

// jsonKind says what a value is that encoding/json calls so.
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

// yamlWords rewrites what readers of YAML say. It goes by their text, since there are three
// of them and most of their errors have no type.
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

// typeNamed says what a value of a type is that has this name in Go.
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
