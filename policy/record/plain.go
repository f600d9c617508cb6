package record

import (
	"fmt"
	"reflect"

	"github.com/spotter-dev/spotter/policy/figures"
)

// show replaces all text in v by plain text if the steps of g are displayed to users.
func show[T any](g *segmentReader, v *T) {
	if g.plain {
		plain(v)
	}
}

// plain replaces all text in v by plain text.
func plain[T any](v *T) { makePlain(reflect.ValueOf(v).Elem()) }

// makePlain replaces all text in v by plain text: see [figures.Plain]. The types of snapshots,
// plans and memories are not recursive and contain no maps.
func makePlain(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s := figures.Plain(v.String()); s != v.String() {
			v.SetString(s)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				makePlain(f)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			makePlain(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			makePlain(v.Index(i))
		}
	case reflect.Map, reflect.Interface:
		panic(fmt.Sprintf("record: the texts of a %v are not made plain", v.Type()))
	}
}
