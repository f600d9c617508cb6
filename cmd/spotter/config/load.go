package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Load reads the file at path over the defaults. Its errors name the file and, for each error, the
// field and its value. It does not check whether values are valid: see
// [SpotterConfiguration.Validate].
func Load(path string) (*SpotterConfiguration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads the text of a configuration file over the defaults.
func Parse(text []byte) (*SpotterConfiguration, error) {
	inJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	numbers := json.NewDecoder(bytes.NewReader(inJSON))
	numbers.UseNumber()
	var raw any
	if err := numbers.Decode(&raw); err != nil {
		return nil, err
	}
	if _, is := raw.(map[string]any); !is && raw != nil {
		return nil, fmt.Errorf("%s is not an object", asJSON(raw))
	}
	c := Default()
	c.TypeMeta = metav1.TypeMeta{}
	all := decode(nil, raw, reflect.ValueOf(c).Elem())
	for _, x := range []struct{ name, value, want string }{{"apiVersion", c.APIVersion, APIVersion},
		{"kind", c.Kind, Kind}} {
		switch x.value {
		case x.want:
		case "":
			all = append(all, field.Required(field.NewPath(x.name), "must be "+x.want))
		default:
			all = append(all, field.NotSupported(field.NewPath(x.name), x.value, []string{x.want}))
		}
	}
	return c, all.ToAggregate()
}

// decode stores raw in the value into and returns every error of raw, each with its field.
func decode(at *field.Path, raw any, into reflect.Value) field.ErrorList {
	if raw == nil {
		return nil
	}
	if _, leaf := into.Addr().Interface().(json.Unmarshaler); leaf || into.Kind() != reflect.Struct {
		if err := json.Unmarshal([]byte(asJSON(raw)), into.Addr().Interface()); err != nil {
			return field.ErrorList{field.TypeInvalid(at, raw, "must be "+kindOf(into))}
		}
		return nil
	}
	object, is := raw.(map[string]any)
	if !is {
		return field.ErrorList{field.TypeInvalid(at, raw, "must be an object")}
	}
	known, all := fieldsOf(into.Type()), field.ErrorList{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if f, is := known[key]; is {
			all = append(all, decode(at.Child(key), object[key], into.FieldByIndex(f.Index))...)
			continue
		}
		all = append(all, field.Invalid(at.Child(key), object[key], "unknown field"))
	}
	return all
}

// asJSON returns a value as JSON.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("config: %#v is not of JSON: %v", value, err))
	}
	return string(text)
}

// fieldsOf returns the fields of a struct, by their names in a file.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all[name] = f
		}
	}
	return all
}

// kindOf describes the type of a value for an error message.
func kindOf(v reflect.Value) string {
	switch v.Interface().(type) {
	case metav1.Duration:
		return "a duration, as 10m"
	case resource.Quantity:
		return "a quantity, as 4Gi"
	case []string:
		return "a list of strings"
	case bool:
		return "true or false"
	case string:
		return "a string"
	case int:
		return "a whole number"
	}
	return "a number"
}

// Text returns a configuration as JSON, a valid configuration file.
func Text(c *SpotterConfiguration) string { return asJSON(c) }
