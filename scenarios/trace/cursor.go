package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// A cursor reads one column of one row group from front to back. It works on
// the typed arrays of whole pages and not on rows, and decodes each entry of
// a dictionary once, since a price or a name stands in thousands of rows.
type cursor struct {
	leaf
	file  string
	pages parquet.Pages

	page   parquet.Page
	levels []byte // definition level of each row of the page; nil without nulls
	single parquet.ValueReader
	next   int // row of the page to read next
	value  int // and where its value is among those that are not null
	rows   int // rows of the page

	// row is the number of rows read in the file, counting all row groups.
	row int64

	// dictionary is that of the page, nil if its values stand in it plainly. A
	// row group has one at most for each column; decoded says that table holds
	// its entries.
	dictionary parquet.Dictionary
	decoded    bool
	table      *table
}

// A table holds the decoded entries of the dictionary of a column: prices,
// where badPrice marks faults, or codes of names.
type table struct {
	prices []policy.Money
	codes  []int32

	// text and ends are the names of the codes as they are stored. Most files
	// of a trace have the same names as the one before.
	text []byte
	ends []uint32
}

// badPrice marks an entry of a dictionary that is no price. Whether a row uses
// it is only known when one does.
const badPrice policy.Money = math.MinInt64

func (c *cursor) fault(at int, value string, err error) error {
	return &FileError{File: c.file, Column: c.name, Row: c.row + int64(at) + 1, Value: value, Err: err}
}

var errShort = fmt.Errorf("%w: it has fewer rows than it says", ErrCorrupt)

// span makes the next rows of a page current and returns how many of them, at
// most most, can be read, and whether some of those are null.
func (c *cursor) span(most int) (n int, nulls bool, err error) {
	for c.next == c.rows {
		if err := c.turn(); err != nil {
			return 0, false, err
		}
	}
	n = min(most, c.rows-c.next)
	if c.levels != nil {
		nulls = bytes.IndexByte(c.levels[c.next:c.next+n], 0) >= 0
	}
	return n, nulls, nil
}

// turn goes on to the next page.
func (c *cursor) turn() error {
	c.release()
	page, err := c.pages.ReadPage()
	if errors.Is(err, io.EOF) {
		return &FileError{File: c.file, Column: c.name, Err: errShort}
	}
	if err != nil {
		return &FileError{File: c.file, Column: c.name, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	c.page, c.next, c.value = page, 0, 0
	c.rows = int(page.NumRows())
	c.levels = page.DefinitionLevels()
	if len(c.levels) == 0 {
		c.levels = nil
	}
	c.dictionary = page.Dictionary()
	return nil
}

func (c *cursor) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.single = nil, nil
	}
	c.next, c.rows = 0, 0
}

// moved notes that n rows with present values were read.
func (c *cursor) moved(n, present int) {
	c.next += n
	c.value += present
	c.row += int64(n)
}

// fill reads len(dst) values of a column, page after page, with read, which reads
// those of one page that are present. absent stands for null, unless a value is
// required in every row.
func fill[T any](c *cursor, dst []T, absent T, required bool, read func([]T) error) error {
	for len(dst) > 0 {
		n, nulls, err := c.span(len(dst))
		if err != nil {
			return err
		}
		if nulls && required {
			i := bytes.IndexByte(c.levels[c.next:], 0)
			return c.fault(i, "", fmt.Errorf("%w: null", ErrValue))
		}
		part, present := dst[:n], n
		if nulls {
			present = countPresent(c.levels[c.next : c.next+n])
		}
		// Values are read to the front and, where some are null, spread out
		// from the back, so that none is overwritten before it was moved.
		if err := read(part[:present]); err != nil {
			return err
		}
		if nulls {
			spread(part, c.levels[c.next:c.next+n], present, absent)
		}
		c.moved(n, present)
		dst = dst[n:]
	}
	return nil
}

// times reads len(dst) rows.
func (c *cursor) times(dst []policy.Time) error { return fill(c, dst, 0, true, c.pageTimes) }

func (c *cursor) pageTimes(dst []policy.Time) error {
	if d := c.dictionary; d != nil {
		data := c.page.Data()
		for i, code := range data.Int32()[c.value : c.value+len(dst)] {
			if uint(code) >= uint(d.Len()) {
				return c.fault(i, "", errCode(code, d.Len()))
			}
			dst[i] = policy.Time(d.Index(code).Int64())
		}
	} else {
		data := c.page.Data()
		for i, v := range data.Int64()[c.value : c.value+len(dst)] {
			dst[i] = policy.Time(v)
		}
	}
	if c.scale != 1 {
		for i, v := range dst {
			dst[i] = v / policy.Time(c.scale)
		}
	}
	for i, v := range dst {
		if v < TimeMin || v > TimeMax {
			return c.fault(i, strconv.FormatInt(int64(v), 10)+" ms", fmt.Errorf("%w: not between 1970 and 2200", ErrValue))
		}
	}
	return nil
}

func errCode(code int32, entries int) error {
	return fmt.Errorf("%w: entry %d of a dictionary of %d", ErrCorrupt, code, entries)
}

// money reads len(dst) prices; absent stands for null.
func (c *cursor) money(dst []policy.Money, absent policy.Money) error {
	return fill(c, dst, absent, false, c.pageMoney)
}

func countPresent(levels []byte) int { return bytes.Count(levels, []byte{1}) }

// spread moves the first present values of part to where levels is 1, and puts
// absent elsewhere.
func spread[T any](part []T, levels []byte, present int, absent T) {
	for i := len(part) - 1; i >= 0; i-- {
		if levels[i] == 1 {
			present--
			part[i] = part[present]
		} else {
			part[i] = absent
		}
	}
}

func (c *cursor) pageMoney(dst []policy.Money) error {
	data := c.page.Data()
	if c.dictionary != nil {
		c.decodePrices()
		prices := c.table.prices
		for i, code := range data.Int32()[c.value : c.value+len(dst)] {
			if uint(code) >= uint(len(prices)) {
				return c.fault(c.rowOf(i), "", errCode(code, len(prices)))
			}
			if dst[i] = prices[code]; dst[i] == badPrice {
				return c.badPrice(i, c.dictionary.Index(code).Double())
			}
		}
		return nil
	}
	for i, v := range data.Double()[c.value : c.value+len(dst)] {
		m, ok := Price(v)
		if !ok {
			return c.badPrice(i, v)
		}
		dst[i] = m
	}
	return nil
}

// rowOf returns the row, from the cursor on, of the i-th present value.
func (c *cursor) rowOf(i int) int {
	if c.levels == nil {
		return i
	}
	for row, level := range c.levels[c.next:] {
		if level != 1 {
			continue
		}
		if i == 0 {
			return row
		}
		i--
	}
	return 0
}

func (c *cursor) badPrice(i int, v float64) error {
	err := fmt.Errorf("%w: a price must be a number from 0 up", ErrValue)
	if v < 0 {
		err = fmt.Errorf("%w: negative price", ErrValue)
	}
	return c.fault(c.rowOf(i), strconv.FormatFloat(v, 'g', -1, 64), err)
}

func (c *cursor) decodePrices() {
	if c.decoded {
		return
	}
	c.decoded = true
	data := c.dictionary.Page().Data()
	values := data.Double()
	prices := slices.Grow(c.table.prices[:0], len(values))[:len(values)]
	for i, v := range values {
		m, ok := Price(v)
		if !ok {
			m = badPrice
		}
		prices[i] = m
	}
	c.table.prices = prices
}

// names reads len(dst) names as codes of symbols; absent stands for null, and
// is below 0 where null is not allowed.
func (c *cursor) names(dst []int32, symbols *symbols, absent int32) error {
	return fill(c, dst, absent, absent < 0, func(part []int32) error { return c.pageNames(part, symbols) })
}

func (c *cursor) pageNames(dst []int32, symbols *symbols) error {
	data := c.page.Data()
	if c.dictionary == nil {
		text, offsets := data.ByteArray()
		for i := range dst {
			dst[i] = symbols.code(text[offsets[c.value+i]:offsets[c.value+i+1]])
		}
		return nil
	}
	c.decodeNames(symbols)
	codes := c.table.codes
	for i, code := range data.Int32()[c.value : c.value+len(dst)] {
		if uint(code) >= uint(len(codes)) {
			return c.fault(c.rowOf(i), "", errCode(code, len(codes)))
		}
		dst[i] = codes[code]
	}
	return nil
}

func (c *cursor) decodeNames(symbols *symbols) {
	if c.decoded {
		return
	}
	c.decoded = true
	data := c.dictionary.Page().Data()
	text, ends := data.ByteArray()
	t := c.table
	if len(ends) > 0 && bytes.Equal(text, t.text) && slices.Equal(ends, t.ends) {
		return
	}
	t.text, t.ends, t.codes = append(t.text[:0], text...), append(t.ends[:0], ends...), t.codes[:0]
	for i := range c.dictionary.Len() {
		t.codes = append(t.codes, symbols.code(text[ends[i]:ends[i+1]]))
	}
}

// numbers reads len(dst) values of a column that few traces have, one by one;
// -1 stands for null.
func (c *cursor) numbers(dst []float64, most float64) error {
	var buf [64]parquet.Value
	for len(dst) > 0 {
		n, _, err := c.span(min(len(dst), len(buf)))
		if err != nil {
			return err
		}
		if c.single == nil {
			c.single = c.page.Values()
		}
		if n, err = c.single.ReadValues(buf[:n]); n == 0 {
			return c.fault(0, "", fmt.Errorf("%w: %w", errShort, err))
		}
		for i, v := range buf[:n] {
			x := number(v)
			if !(x >= 0 && x <= most || x == -1) {
				err := fmt.Errorf("%w: not between 0 and %g", ErrValue, most)
				return c.fault(i, strconv.FormatFloat(x, 'g', -1, 64), err)
			}
			dst[i] = x
		}
		c.moved(n, 0)
		dst = dst[n:]
	}
	return nil
}

func number(v parquet.Value) float64 {
	switch {
	case v.IsNull():
		return -1
	case v.Kind() == parquet.Boolean:
		if v.Boolean() {
			return 1
		}
		return 0
	case v.Kind() == parquet.Int32:
		return float64(v.Int32())
	case v.Kind() == parquet.Int64:
		return float64(v.Int64())
	}
	return v.Double()
}

// symbols gives each name a number. Numbers are dense and never reused.
type symbols struct {
	names []string
	known map[string]int32
}

func (s *symbols) code(name []byte) int32 {
	if code, ok := s.known[string(name)]; ok {
		return code
	}
	code := int32(len(s.names))
	s.names = append(s.names, string(name))
	s.known[s.names[code]] = code
	return code
}
