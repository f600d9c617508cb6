package trace

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// A Table is a Parquet file written by any program, read as rows of text.
type Table struct {
	// Columns are the names of all columns, with dots for fields of structures. Types are their
	// Parquet types.
	Columns, Types []string

	path   string
	f      *parquet.File
	leaves []*parquet.Column
	texts  []func(b []byte, v parquet.Value) []byte // formatters of the values of each column
}

// OpenTable reads the footer of a Parquet file; path is used in errors. The error wraps [ErrStored]
// if this package wrote the file.
func OpenTable(path string, file File, size int64) (t *Table, err error) {
	defer recoverDamage(path, &err)
	t = &Table{path: path}
	r := &blockReader{count: new(int64)}
	if t.f, err = r.open(&source{path: path, size: size}, file, false); err != nil {
		return nil, err
	}
	if _, ok := t.f.Lookup(metaSchema); ok {
		return nil, &FileError{File: path, Err: ErrStored}
	}
	t.add(t.f.Root())
	return t, nil
}

// recoverDamage converts a panic of the Parquet library to an error.
func recoverDamage(path string, err *error) {
	if r := recover(); r != nil {
		*err = &FileError{File: path, Err: fmt.Errorf("%w: %v", ErrCorrupt, r)}
	}
}

// add adds the leaf columns below c.
func (t *Table) add(c *parquet.Column) {
	if !c.Leaf() {
		for _, below := range c.Columns() {
			t.add(below)
		}
		return
	}
	t.leaves = append(t.leaves, c)
	t.texts = append(t.texts, textOf(c.Type()))
	t.Columns = append(t.Columns, strings.Join(c.Path(), "."))
	t.Types = append(t.Types, c.Type().String())
}

// Rows calls visit with the values of the columns with these indices in each row; an index of -1
// has no value. For a row with lists, it calls visit once per element, with the other values
// repeated.
func (t *Table) Rows(columns []int, visit func(row int64, fields [][]byte) error) (err error) {
	defer recoverDamage(t.path, &err)
	row := int64(0)
	for g := range t.f.RowGroups() {
		if err := t.group(g, columns, &row, visit); err != nil {
			return err
		}
	}
	return nil
}

// group reads the rows of row group g.
func (t *Table) group(g int, columns []int, row *int64, visit func(row int64, fields [][]byte) error) error {
	group := &t.f.Metadata().RowGroups[g]
	var indexes []int
	packed := false
	for _, number := range columns {
		if number < 0 {
			continue
		}
		c := t.leaves[number]
		err := checkChunk(t.f, group, c.Index(), c.MaxRepetitionLevel() > 0, format.Lz4Raw, format.Brotli)
		if err == nil {
			m := &group.Columns[c.Index()].MetaData
			err = checkPages(t.f, m, m.NumValues)
		}
		if err != nil {
			return &FileError{File: t.path, Column: t.Columns[number], Err: err}
		}
		indexes = append(indexes, c.Index())
		packed = packed || unpackers[group.Columns[c.Index()].MetaData.Codec] != nil
	}
	from := t.f.RowGroups()[g]
	if packed {
		plain, err := repacked(t.f, g, indexes)
		if err != nil {
			return &FileError{File: t.path, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
		}
		from = plain.RowGroups()[0]
	}
	chunks := make([]parquet.ColumnChunk, len(indexes))
	for i, index := range indexes {
		chunks[i] = from.ColumnChunks()[index]
	}
	reader := parquet.NewColumnChunkRowReader(chunks)
	defer reader.Close()
	values := make([][]parquet.Value, len(group.Columns)) // of a row, by column index
	fields := make([][]byte, len(columns))
	var rows [64]parquet.Row
	for left := group.NumRows; left > 0; {
		n, err := reader.ReadRows(rows[:min(left, int64(len(rows)))])
		if n == 0 {
			return &FileError{File: t.path, Row: *row + 1, Err: fmt.Errorf("%w: reading its values: %w", ErrCorrupt, err)}
		}
		for _, r := range rows[:n] {
			*row++
			clear(values)
			for begin, end := 0, 0; begin < len(r); begin = end {
				c := r[begin].Column()
				for end = begin + 1; end < len(r) && r[end].Column() == c; end++ {
				}
				values[c] = r[begin:end]
			}
			if err := t.row(*row, columns, values, fields, visit); err != nil {
				return err
			}
		}
		left -= int64(n)
	}
	return nil
}

// row calls visit for each element of a row.
func (t *Table) row(
	row int64, columns []int, values [][]parquet.Value, fields [][]byte, visit func(row int64, fields [][]byte) error,
) error {
	elements := 1
	for _, number := range columns {
		if number < 0 {
			continue
		}
		n := len(values[t.leaves[number].Index()])
		if n == 0 {
			err := fmt.Errorf("%w: it has no value", ErrCorrupt)
			return &FileError{File: t.path, Column: t.Columns[number], Row: row, Err: err}
		}
		elements = max(elements, n)
	}
	for k := range elements {
		for i, number := range columns {
			if number < 0 {
				continue
			}
			all, at := values[t.leaves[number].Index()], k
			if len(all) == 1 {
				at = 0 // not a list
			}
			if fields[i] = fields[i][:0]; at < len(all) && !all[at].IsNull() {
				fields[i] = t.texts[number](fields[i], all[at])
			}
		}
		if err := visit(row, fields); err != nil {
			return err
		}
	}
	return nil
}

// textOf returns a formatter for the values of a type: numbers in full, and times in the format of
// RFC 3339, without a zone if the type has none.
func textOf(t parquet.Type) func(b []byte, v parquet.Value) []byte {
	kind := t.Kind()
	var logical any
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case *format.TimestampType:
		if scale := timeScale(t); scale > 0 && kind == parquet.Int64 {
			unit, utc := time.Millisecond/time.Duration(scale), l.IsAdjustedToUTC
			return func(b []byte, v parquet.Value) []byte { return appendTime(b, v.Int64(), unit, utc) }
		}
	case *format.DecimalType:
		if scale := int(l.Scale); scale >= 0 && scale <= 76 {
			return func(b []byte, v parquet.Value) []byte { return appendDecimal(b, unscaled(v), scale) }
		}
	case *format.DateType:
		if kind == parquet.Int32 {
			return func(b []byte, v parquet.Value) []byte {
				return time.Unix(int64(v.Int32())*86400, 0).UTC().AppendFormat(b, time.DateOnly)
			}
		}
	}
	switch kind {
	case parquet.Boolean:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendBool(b, v.Boolean()) }
	case parquet.Int32:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendInt(b, int64(v.Int32()), 10) }
	case parquet.Int64:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendInt(b, v.Int64(), 10) }
	case parquet.Int96:
		return func(b []byte, v parquet.Value) []byte { return appendInt96(b, v.Int96()) }
	case parquet.Float:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendFloat(b, float64(v.Float()), 'g', -1, 32) }
	case parquet.Double:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendFloat(b, v.Double(), 'g', -1, 64) }
	}
	return func(b []byte, v parquet.Value) []byte { return append(b, v.ByteArray()...) }
}

// appendTime appends the time n units after 1970, in UTC or in an unknown local time.
func appendTime(b []byte, n int64, unit time.Duration, utc bool) []byte {
	second := int64(time.Second / unit)
	at := time.Unix(n/second, n%second*int64(unit)).UTC()
	if utc {
		return at.AppendFormat(b, time.RFC3339Nano)
	}
	return at.AppendFormat(b, "2006-01-02 15:04:05.999999999")
}

// appendInt96 appends a time in the format of Hive and Impala: the nanoseconds of a day and the
// number of the day. Its time zone is unknown.
func appendInt96(b []byte, v deprecated.Int96) []byte {
	const julianOf1970 = 2_440_588
	nanos := int64(uint64(v[1])<<32 | uint64(v[0]))
	at := time.Unix((int64(v[2])-julianOf1970)*86400, nanos).UTC()
	return at.AppendFormat(b, "2006-01-02 15:04:05.999999999")
}

// unscaled returns a decimal number without its decimal point.
func unscaled(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	bytes := v.ByteArray() // two's complement, big-endian
	n := new(big.Int).SetBytes(bytes)
	if len(bytes) > 0 && bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
	}
	return n
}

// appendDecimal appends n with a decimal point before its last scale digits.
func appendDecimal(b []byte, n *big.Int, scale int) []byte {
	digits := new(big.Int).Abs(n).String()
	if lacks := scale + 1 - len(digits); lacks > 0 {
		digits = strings.Repeat("0", lacks) + digits
	}
	if n.Sign() < 0 {
		b = append(b, '-')
	}
	whole := len(digits) - scale
	b = append(b, digits[:whole]...)
	if scale > 0 {
		b = append(append(b, '.'), digits[whole:]...)
	}
	return b
}
