package trace

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// A Table is a Parquet file of any writer, as rows of text.
type Table struct {
	// Columns are the names of all columns, those of parts of structures with dots, and
	// Types how they are stored.
	Columns, Types []string

	path   string
	f      *parquet.File
	leaves []*parquet.Column
}

// OpenTable reads the end of a Parquet file, which is called path. The error wraps
// [ErrStored] where this package has written it.
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

// recoverDamage makes an error of a panic of the library that decodes Parquet.
func recoverDamage(path string, err *error) {
	if r := recover(); r != nil {
		*err = &FileError{File: path, Err: fmt.Errorf("%w: %v", ErrCorrupt, r)}
	}
}

// add adds the leaves below a column.
func (t *Table) add(c *parquet.Column) {
	if !c.Leaf() {
		for _, below := range c.Columns() {
			t.add(below)
		}
		return
	}
	t.leaves = append(t.leaves, c)
	t.Columns = append(t.Columns, strings.Join(c.Path(), "."))
	t.Types = append(t.Types, c.Type().String())
}

// Rows calls visit with the values of some columns in each row, by their numbers; number
// -1 has none. A row of lists is several: visit is called with each element, and with the
// row's other values again.
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
		if err := t.check(group, c); err != nil {
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
	cells := make([]*cells, len(columns))
	for i, number := range columns {
		if number >= 0 {
			c := t.leaves[number]
			cells[i] = newCells(c, from)
			defer cells[i].values.Close()
		}
	}
	fields := make([][]byte, len(columns))
	for range group.NumRows {
		*row++
		n := 1
		for i, c := range cells {
			if c == nil {
				continue
			}
			if err := c.row(); err != nil {
				err = fmt.Errorf("%w: %w", ErrCorrupt, err)
				return &FileError{File: t.path, Column: t.Columns[columns[i]], Row: *row, Err: err}
			}
			n = max(n, len(c.texts))
		}
		for k := range n {
			for i, c := range cells {
				if c != nil {
					fields[i] = c.element(k)
				}
			}
			if err := visit(*row, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// check fails when the footer promises more of a column than the file can hold.
func (t *Table) check(group *format.RowGroup, c *parquet.Column) error {
	if err := checkChunk(t.f, group, c.Index()); err != nil {
		return err
	}
	m := &group.Columns[c.Index()].MetaData
	switch m.Codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.Lz4Raw, format.Brotli:
	default:
		return fmt.Errorf("%w: compression %v; zstd, snappy, gzip, LZ4_RAW, brotli and none are read", ErrFormat, m.Codec)
	}
	if c.MaxRepetitionLevel() == 0 && m.NumValues != group.NumRows {
		return fmt.Errorf("%w: it has %d values, its row group %d rows", ErrCorrupt, m.NumValues, group.NumRows)
	}
	return checkPages(t.f, m, m.NumValues)
}

// cells are the values of a column of a row group, a row at a time.
type cells struct {
	text func(b []byte, v parquet.Value) []byte

	values parquet.ColumnChunkValueReader
	read   [256]parquet.Value
	left   []parquet.Value // of those read

	texts [][]byte // of the row
}

func newCells(c *parquet.Column, group parquet.RowGroup) *cells {
	return &cells{text: textOf(c.Type()), values: parquet.NewColumnChunkValueReader(group.ColumnChunks()[c.Index()])}
}

// row takes the values of the next row.
func (c *cells) row() error {
	c.texts = c.texts[:0]
	for {
		if len(c.left) == 0 {
			n, err := c.values.ReadValues(c.read[:])
			if n == 0 && errors.Is(err, io.EOF) && len(c.texts) > 0 {
				return nil
			} else if n == 0 {
				return err
			}
			c.left = c.read[:n]
		}
		v := c.left[0]
		if len(c.texts) > 0 && v.RepetitionLevel() == 0 {
			return nil
		}
		n := len(c.texts)
		if n == cap(c.texts) {
			c.texts = append(c.texts, nil)
		}
		c.texts = c.texts[:n+1]
		if c.texts[n] = c.texts[n][:0]; !v.IsNull() {
			c.texts[n] = c.text(c.texts[n], v)
		}
		c.left = c.left[1:]
	}
}

// element returns element k of the row, and the only one of a column that has no list.
func (c *cells) element(k int) []byte {
	switch {
	case k < len(c.texts):
		return c.texts[k]
	case len(c.texts) == 1:
		return c.texts[0]
	}
	return nil
}

// textOf returns how values of a type are written: numbers in full, times as in RFC 3339,
// and without a zone where the type says so.
func textOf(t parquet.Type) func(b []byte, v parquet.Value) []byte {
	kind := t.Kind()
	if unit, utc := timeUnit(t); unit > 0 && kind == parquet.Int64 {
		return func(b []byte, v parquet.Value) []byte { return appendTime(b, v.Int64(), unit, utc) }
	}
	if scale, ok := decimalScale(t); ok {
		return func(b []byte, v parquet.Value) []byte { return appendDecimal(b, unscaled(v), scale) }
	}
	switch kind {
	case parquet.Boolean:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendBool(b, v.Boolean()) }
	case parquet.Int32:
		if isDate(t) {
			return func(b []byte, v parquet.Value) []byte {
				return time.Unix(int64(v.Int32())*86400, 0).UTC().AppendFormat(b, time.DateOnly)
			}
		}
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

// timeUnit returns the unit of a timestamp, 0 if t is none, and whether it counts from 1970
// in UTC, not by a clock somewhere.
func timeUnit(t parquet.Type) (unit time.Duration, utc bool) {
	if scale := timeScale(t); scale > 0 {
		unit = time.Millisecond / time.Duration(scale)
	}
	if logical := t.LogicalType(); logical != nil {
		if stamp, ok := logical.Value.(*format.TimestampType); ok {
			return unit, stamp.IsAdjustedToUTC
		}
	}
	return unit, true
}

// appendTime writes an instant that is n units after 1970.
func appendTime(b []byte, n int64, unit time.Duration, utc bool) []byte {
	second := int64(time.Second / unit)
	at := time.Unix(n/second, n%second*int64(unit)).UTC()
	if utc {
		return at.AppendFormat(b, time.RFC3339Nano)
	}
	return at.AppendFormat(b, "2006-01-02 15:04:05.999999999")
}

// appendInt96 writes a time as Hive and Impala store it: the nanoseconds of a day and the
// number of the day. Which zone it is in, nothing says.
func appendInt96(b []byte, v deprecated.Int96) []byte {
	const julianOf1970 = 2_440_588
	nanos := int64(uint64(v[1])<<32 | uint64(v[0]))
	at := time.Unix((int64(v[2])-julianOf1970)*86400, nanos).UTC()
	return at.AppendFormat(b, "2006-01-02 15:04:05.999999999")
}

func isDate(t parquet.Type) bool {
	if logical := t.LogicalType(); logical != nil {
		_, ok := logical.Value.(*format.DateType)
		return ok
	}
	converted := t.ConvertedType()
	return converted != nil && *converted == deprecated.Date
}

// decimalScale returns how many digits of a decimal number follow the point.
func decimalScale(t parquet.Type) (scale int, ok bool) {
	if logical := t.LogicalType(); logical != nil {
		if d, ok := logical.Value.(*format.DecimalType); ok && d.Scale >= 0 && d.Scale <= 76 {
			return int(d.Scale), true
		}
	}
	return 0, false
}

// unscaled returns a decimal number without its point.
func unscaled(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	bytes := v.ByteArray() // two's complement, the greatest first
	n := new(big.Int).SetBytes(bytes)
	if len(bytes) > 0 && bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
	}
	return n
}

// appendDecimal writes n with its point scale digits before the end.
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
