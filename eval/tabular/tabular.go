// Package tabular writes rows as typed columns, in Parquet or CSV. A list of columns defines their
// names and values. Equal rows result in equal bytes.
package tabular

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// A Column is one column of rows of type R.
type Column[R any] struct {
	Name string

	// options are the Parquet options of the column. Values have type kind.
	options string
	kind    reflect.Type
	value   func(R) any

	// text formats the value for CSV, empty for null.
	text func(R) string
}

// Of returns a column whose values are returned by value. options are in the format of the struct
// tags of parquet-go, such as "optional,dict".
func Of[T, R any](name, options string, value func(R) T) Column[R] {
	return Column[R]{name, options, reflect.TypeFor[T](), func(r R) any { return value(r) },
		func(r R) string { return plain(value(r)) }}
}

// plain formats a value for CSV: null is empty, and the elements of a list are separated by
// semicolons.
func plain(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, "; ")
	case float64:
		if v == 0 { // avoids −0
			return "0"
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	x := reflect.ValueOf(v)
	if x.Kind() != reflect.Pointer {
		return fmt.Sprint(v)
	}
	if x.IsNil() {
		return ""
	}
	return plain(x.Elem().Interface())
}

// Text returns a column of strings with repeated values; "" is null.
func Text[R any](name string, value func(R) string) Column[R] {
	return Of(name, "optional,dict", value)
}

// Time returns a column of times in UTC, which are never null.
func Time[R any](name string, value func(R) policy.Time) Column[R] {
	c := Of(name, "timestamp(millisecond)", func(r R) int64 { return int64(value(r)) })
	c.text = func(r R) string { return value(r).Std().Format("2006-01-02T15:04:05Z") }
	return c
}

// Decimal returns a column of numbers with scale decimal places. value returns them as integers in
// units of the last digit, and false for null.
func Decimal[R any](name string, scale int, value func(R) (int64, bool)) Column[R] {
	c := Of(name, fmt.Sprintf("decimal(%d:18)", scale), func(r R) *int64 {
		x, ok := value(r)
		if !ok {
			return nil
		}
		return &x
	})
	c.text = func(r R) string {
		x, ok := value(r)
		if !ok {
			return ""
		}
		return decimal(x, scale)
	}
	return c
}

// Money returns a column of dollar amounts, which are never null.
func Money[R any](name string, value func(R) policy.Money) Column[R] {
	const scale = 6
	c := Of(name, fmt.Sprintf("decimal(%d:18)", scale), func(r R) int64 { return int64(value(r)) })
	c.text = func(r R) string { return decimal(int64(value(r)), scale) }
	return c
}

// decimal formats x, in units of the last of scale decimal places, without trailing zeros.
func decimal(x int64, scale int) string {
	sign := ""
	if x < 0 {
		sign, x = "-", -x
	}
	digits := strconv.FormatInt(x, 10)
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	return sign + strings.TrimSuffix(digits[:point]+"."+strings.TrimRight(digits[point:], "0"), ".")
}

// WriteParquet writes rows as Parquet, compressed with zstd.
func WriteParquet[R any](w io.Writer, columns []Column[R], rows iter.Seq[R], options ...parquet.WriterOption) error {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		tag := strings.TrimSuffix(c.Name+","+c.options, ",")
		fields[i] = reflect.StructField{Name: fmt.Sprintf("C%d", i), Type: c.kind,
			Tag: reflect.StructTag("parquet:" + strconv.Quote(tag))}
	}
	row := reflect.New(reflect.StructOf(fields))
	out := parquet.NewWriter(w, append(options, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Zstd))...)
	for r := range rows {
		for i, c := range columns {
			row.Elem().Field(i).Set(reflect.ValueOf(c.value(r)))
		}
		if err := out.Write(row.Interface()); err != nil {
			return err
		}
	}
	return out.Close()
}

// textTypes are the types of columns with text.
var textTypes = []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[*string](), reflect.TypeFor[[]string]()}

// notFormula returns text in a form that spreadsheets do not evaluate as a formula.
func notFormula(text string) string {
	if strings.ContainsRune("=+-@\t\r", []rune(text + " ")[0]) {
		return "'" + text
	}
	return text
}

// WriteCSV writes a header line and a line for each row.
func WriteCSV[R any](w io.Writer, columns []Column[R], rows iter.Seq[R]) error {
	out, line := csv.NewWriter(w), make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.Name
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for r := range rows {
		for i, c := range columns {
			if line[i] = c.text(r); slices.Contains(textTypes, c.kind) {
				line[i] = notFormula(line[i])
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
