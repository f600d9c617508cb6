package tabular

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spotter-dev/spotter/policy"
)

// parquetMagic is the start of a Parquet file.
const parquetMagic = "PAR1"

// Inflated returns a reader of r that decompresses gzip, which it detects by its first bytes.
func Inflated(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := b.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

// Plain returns the name of a column in lower case without punctuation: exports of the same
// provider use line_item_usage_amount, lineItem/UsageAmount or LineItemUsageAmount.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// A Row contains the selected values of one row.
type Row struct {
	names, values []string
}

// Text returns the value of the nth selected column, empty for null and for a missing column.
func (r Row) Text(n int) string { return r.values[n] }

// Number returns the value of the nth selected column as a number, 0 if it is empty.
func (r Row) Number(n int) (float64, error) {
	if r.values[n] == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(r.values[n], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s: %q is not a number", r.names[n], r.values[n])
	}
	return v, nil
}

// timeLayouts are the layouts of times in exports. A time without a zone is in UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04Z07:00", time.DateOnly}

// Time returns the value of the nth selected column as a time.
func (r Row) Time(n int) (policy.Time, error) {
	text := strings.TrimSuffix(r.values[n], " UTC")
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return policy.TimeOf(at), nil
		}
	}
	return 0, fmt.Errorf("%s: %q is not a time", r.names[n], r.values[n])
}

// A Reader selects and receives the rows of a table.
type Reader struct {
	// Want receives the names of the columns and returns the indexes of those to read, -1 for a
	// column whose value is always empty.
	Want func(names []string) ([]int, error)

	// Each is called for each row, in order.
	Each func(Row) error
}

// Read reads Parquet if the file starts with its magic bytes, otherwise CSV with a header line,
// which may be compressed with gzip. The error of a row contains its number, from 1.
func (t *Reader) Read(f io.ReaderAt, size int64) error {
	head := make([]byte, len(parquetMagic))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(head) == parquetMagic {
		return t.parquet(f, size)
	}
	text, err := Inflated(io.NewSectionReader(f, 0, size))
	if err != nil {
		return err
	}
	return t.csv(text)
}

func (t *Reader) csv(r io.Reader) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	line, err := in.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	} else if err != nil {
		return err
	}
	line[0] = strings.TrimPrefix(line[0], "\ufeff")
	wanted, row, err := t.begin(append([]string(nil), line...))
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		if line, err = in.Read(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i, k := range wanted {
			if k >= 0 {
				row.values[i] = line[k]
			}
		}
		if err := t.Each(row); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
}

// begin returns the selected columns, and the row for their values.
func (t *Reader) begin(names []string) (wanted []int, row Row, err error) {
	if wanted, err = t.Want(names); err != nil {
		return nil, row, err
	}
	row = Row{make([]string, len(wanted)), make([]string, len(wanted))}
	for i, k := range wanted {
		if k >= 0 {
			row.names[i] = names[k]
		}
	}
	return wanted, row, nil
}

// batch is the number of values that are read at once.
const batch = 1024

func (t *Reader) parquet(data io.ReaderAt, size int64) (err error) {
	defer func() {
		if p := recover(); p != nil { // the decoder panics on some damaged files
			err = fmt.Errorf("it is not a complete Parquet file: %v", p)
		}
	}()
	f, err := parquet.OpenFile(data, size)
	if err != nil {
		return fmt.Errorf("it is not a complete Parquet file: %w", err)
	}
	var leaves []*parquet.Column
	var names []string
	for _, c := range f.Root().Columns() {
		if c.Leaf() && !c.Repeated() { // maps and lists are not supported
			leaves, names = append(leaves, c), append(names, c.Name())
		}
	}
	wanted, row, err := t.begin(names)
	if err != nil {
		return err
	}
	before := 0
	for _, group := range f.RowGroups() {
		if err := t.group(group, leaves, wanted, row, before); err != nil {
			return err
		}
		before += int(group.NumRows())
	}
	return nil
}

// group reads the rows of a row group. before is the number of rows in earlier groups.
func (t *Reader) group(group parquet.RowGroup, leaves []*parquet.Column, wanted []int, row Row, before int) error {
	readers, values := make([]parquet.ColumnChunkValueReader, len(wanted)), make([][batch]parquet.Value, len(wanted))
	for i, k := range wanted {
		if k >= 0 {
			readers[i] = parquet.NewColumnChunkValueReader(group.ColumnChunks()[leaves[k].Index()])
			defer readers[i].Close()
		}
	}
	for left := int(group.NumRows()); left > 0; {
		n := min(left, batch)
		for i, k := range wanted {
			if k < 0 {
				continue
			}
			for got := 0; got < n; {
				more, err := readers[i].ReadValues(values[i][got:n])
				if got += more; err != nil && got < n {
					return fmt.Errorf("%s: %w", leaves[k].Name(), err)
				}
			}
		}
		for j := range n {
			for i, k := range wanted {
				if k >= 0 {
					row.values[i] = textOf(leaves[k].Type(), values[i][j])
				}
			}
			before++
			if err := t.Each(row); err != nil {
				return fmt.Errorf("row %d: %w", before, err)
			}
		}
		left -= n
	}
	return nil
}

// julianEpoch is the Julian day number of 1970-01-01. The days of an INT96 are Julian day numbers.
const julianEpoch = 2440588

// textOf formats a Parquet value as in CSV.
func textOf(kind parquet.Type, v parquet.Value) string {
	if v.IsNull() {
		return ""
	}
	if v.Kind() == parquet.Int96 { // nanoseconds of the day, then the day
		x := v.Int96()
		nanos := int64(x[1])<<32 | int64(x[0])
		return time.Unix((int64(x[2])-julianEpoch)*86400, nanos).UTC().Format(time.RFC3339Nano)
	}
	if logical := kind.LogicalType(); logical != nil {
		switch of := logical.Value.(type) {
		case *format.TimestampType:
			return stampOf(of, v.Int64()).UTC().Format(time.RFC3339Nano)
		case *format.DateType:
			return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly)
		case *format.DecimalType:
			return decimalOf(of, v)
		}
	}
	return strings.Clone(v.String())
}

func stampOf(of *format.TimestampType, v int64) time.Time {
	switch of.Unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(v)
	case *format.MicroSeconds:
		return time.UnixMicro(v)
	}
	return time.Unix(0, v)
}

// decimalOf formats a decimal, which is stored as an integer in units of its last digit.
func decimalOf(of *format.DecimalType, v parquet.Value) string {
	var whole big.Int
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		whole.SetString(v.String(), 10)
	default: // two's complement, big-endian
		bits := v.ByteArray()
		whole.SetBytes(bits)
		if len(bits) > 0 && bits[0]&0x80 != 0 {
			whole.Sub(&whole, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bits))))
		}
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(of.Scale)), nil)
	return new(big.Rat).SetFrac(&whole, scale).FloatString(int(of.Scale))
}

// Find returns the index in names of each wanted column, -1 if there is no such column. Names are
// compared in the form of [Plain].
func Find(names []string, wanted ...string) []int {
	at := map[string]int{}
	for i, n := range names {
		at[Plain(n)] = i
	}
	out := make([]int, len(wanted))
	for i, w := range wanted {
		k, there := at[Plain(w)]
		if out[i] = k; !there {
			out[i] = -1
		}
	}
	return out
}

// IsJSON reports whether b starts with a JSON object or array.
func IsJSON(b *bufio.Reader) bool {
	for {
		c, err := b.Peek(1)
		switch {
		case err != nil:
			return false
		case c[0] == '{' || c[0] == '[':
			return true
		case !unicode.IsSpace(rune(c[0])):
			return false
		}
		_, _ = b.Discard(1)
	}
}
