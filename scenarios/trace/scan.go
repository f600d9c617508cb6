package trace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spotter-dev/spotter/policy"
)

// ReadOptions select the part of a trace to read. The zero value selects all of it.
type ReadOptions struct {
	// From and To are the requested span; zero means unbounded. The day before From is read too,
	// since a run warms up before it is metered.
	From, To policy.Time

	// Providers, Regions, Zones and Types restrict the markets; empty means all.
	Providers, Regions, Zones, Types []string

	// Provider and Region apply to a file that does not state its own.
	Provider, Region string

	// Store is where the trace is stored; nil means the local disk.
	Store Store

	// Traffic, if not nil, receives the number of bytes read.
	Traffic *Traffic
}

func (o *ReadOptions) store() Store {
	if o.Store == nil {
		return disk{}
	}
	return o.Store
}

// narrow reports whether o selects only some of the markets.
func (o *ReadOptions) narrow() bool {
	return len(o.Providers)+len(o.Regions)+len(o.Zones)+len(o.Types) > 0
}

// Whole reports whether o selects the whole trace.
func (o *ReadOptions) Whole() bool {
	return !o.narrow() && o.From == 0 && o.To == 0
}

// start returns the time from which prices are read: the start of the day before From, at which
// every live market has a row.
func (o *ReadOptions) start() policy.Time {
	if o.From == 0 {
		return 0
	}
	return dayOf(o.From - day)
}

// end returns the last time in the requested span.
func (o *ReadOptions) end() policy.Time {
	if o.To == 0 {
		return TimeMax
	}
	return o.To
}

// batchRows is the number of rows that are read at once: few enough to stay in the processor's
// cache.
const batchRows = 1024

// A scanner reads the rows of files into buffers that are shared by all files of a trace.
type scanner struct {
	o *ReadOptions

	// names restricts the columns to times and names.
	names bool

	// meta is called for each file before its rows, and visit for its rows; first is the number of
	// rows before them in the file. Rows are invalid after visit returns.
	meta  func(*parquet.File) error
	visit func(file string, first int64, rows []row) error

	// symbols maps codes to names, and codes names to codes.
	symbols []string
	codes   map[string]int32

	rows    [batchRows]row
	values  [batchRows]parquet.Value
	reader  blockReader
	traffic *Traffic
	header  []format.KeyValue // the last metadata that passed the check
}

// newScanner returns a scanner for a trace whose files have the given total size in bytes.
func newScanner(o *ReadOptions, stored int64) *scanner {
	s := &scanner{o: o, codes: map[string]int32{}, traffic: o.Traffic}
	if s.traffic == nil {
		s.traffic = &Traffic{}
	}
	s.traffic.Stored = stored
	s.reader.count = &s.traffic.Read
	return s
}

// code returns the code of a name, which it assigns if necessary.
func (s *scanner) code(name []byte) int32 {
	code, ok := s.codes[string(name)]
	if !ok {
		code = int32(len(s.symbols))
		s.symbols = append(s.symbols, string(name))
		s.codes[s.symbols[code]] = code
	}
	return code
}

// market returns the provider, region, zone, type and product of a code.
func (s *scanner) market(code marketCode) (names [5]string) {
	for i, k := range code {
		names[i] = s.symbols[k]
	}
	return names
}

// files reads files until ctx is done.
func (s *scanner) files(ctx context.Context, files []source) error {
	for i := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.file(&files[i]); err != nil {
			return err
		}
	}
	return nil
}

// file reads one file. It returns an error if the Parquet library panics, which it does on some
// damaged files.
func (s *scanner) file(src *source) (err error) {
	defer recoverDamage(src.path, &err)
	file, err := src.open(s.o.store())
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := s.reader.open(src, file, !s.o.narrow())
	if err != nil {
		return err
	}
	if _, own := f.Lookup(metaSchema); own {
		defer func() {
			if fault := (*FileError)(nil); errors.As(err, &fault) {
				fault.Own = true
			}
		}()
	}
	if err = s.checkHeader(f); err == nil {
		err = s.meta(f)
	}
	if err != nil {
		return &FileError{File: src.path, Err: err}
	}
	leaves, err := findLeaves(src.path, f, s.names)
	if err != nil {
		return err
	}
	return s.groups(src, f, leaves)
}

// groups reads the row groups of a file that may contain requested rows.
func (s *scanner) groups(src *source, f *parquet.File, leaves []leaf) error {
	base, err := s.base(src, f)
	if err != nil {
		return err
	}
	leaves = slices.DeleteFunc(leaves, func(l leaf) bool {
		return l.name == colProvider && src.provider != "" || l.name == colRegion && src.region != ""
	})
	first := int64(0)
	for i, group := range f.RowGroups() {
		if err := checkGroup(f, i); err != nil {
			return &FileError{File: src.path, Err: err}
		}
		if !s.skips(f, i, leaves) {
			if err := s.prefetch(f, i, leaves); err != nil {
				return &FileError{File: src.path, Err: err}
			}
			if err := s.group(src, f, i, leaves, base, first); err != nil {
				return err
			}
		}
		first += group.NumRows()
	}
	return nil
}

// checkHeader returns an error if the metadata of f are damaged, have another version, or list
// columns that f lacks. Files of one trace have the same metadata, whose checksum is computed only
// once.
func (s *scanner) checkHeader(f *parquet.File) error {
	header := f.Metadata().KeyValueMetadata
	if s.header == nil || !slices.Equal(header, s.header) {
		if err := checkHeader(header); err != nil {
			return err
		}
		s.header = header
	}
	return checkColumns(f)
}

// group reads the rows of row group g. First is the number of rows before it in the file.
func (s *scanner) group(src *source, f *parquet.File, g int, leaves []leaf, base row, first int64) error {
	cursors := make([]cursor, len(leaves))
	chunks := f.RowGroups()[g].ColumnChunks()
	left := f.Metadata().RowGroups[g].NumRows
	for i, l := range leaves {
		if err := checkPages(f, &f.Metadata().RowGroups[g].Columns[l.index].MetaData, left); err != nil {
			return &FileError{File: src.path, Column: l.name, Err: err}
		}
		cursors[i] = cursor{l, src.path, parquet.NewColumnChunkValueReader(chunks[l.index]), nil, 0}
		defer cursors[i].Close()
	}
	for left > 0 {
		rows := s.rows[:min(left, batchRows)]
		rows[0] = base
		for n := 1; n < len(rows); n *= 2 {
			copy(rows[n:], rows[:n])
		}
		for i := range cursors {
			if err := s.read(&cursors[i], first, rows); err != nil {
				return err
			}
		}
		if err := s.visit(src.path, first, rows); err != nil {
			return err
		}
		left, first = left-int64(len(rows)), first+int64(len(rows))
	}
	return nil
}

// A cursor reads one column of one row group sequentially.
type cursor struct {
	leaf
	file string
	parquet.ColumnChunkValueReader

	// text is the last name that was read, and code its code.
	text []byte
	code int32
}

// read reads a column into rows. First is the number of rows before them in the file.
func (s *scanner) read(c *cursor, first int64, rows []row) error {
	for len(rows) > 0 {
		values := s.values[:len(rows)]
		n, err := c.ReadValues(values)
		if n == 0 {
			return &FileError{File: c.file, Column: c.name, Err: fmt.Errorf("%w: reading its values: %w", ErrCorrupt, err)}
		}
		if i, err := s.put(c, rows, values[:n]); err != nil {
			fault := &FileError{File: c.file, Column: c.name, Row: first + int64(i) + 1, Err: err}
			switch {
			case values[i].IsNull():
			case c.set == nil:
				fault.Value = strconv.FormatInt(int64(rows[i].at), 10) + " ms"
			default:
				fault.Value = strconv.FormatFloat(float(values[i]), 'g', -1, 64)
			}
			return fault
		}
		rows, first = rows[n:], first+int64(n)
	}
	return nil
}

// put stores values of a column in rows. It returns the index of the first row with an invalid
// value, with the error.
func (s *scanner) put(c *cursor, rows []row, values []parquet.Value) (int, error) {
	if c.set != nil {
		return c.set(rows, values)
	}
	for i, v := range values {
		r := &rows[i]
		switch {
		case v.IsNull():
			if c.name != colProduct {
				return i, fmt.Errorf("%w: null", ErrValue)
			}
		case c.stored == storedString:
			if name := v.ByteArray(); c.text == nil || !bytes.Equal(name, c.text) {
				c.code, c.text = s.code(name), append(c.text[:0], name...)
			}
			r.market[c.market] = c.code
		default:
			if r.at = policy.Time(v.Int64() / c.scale); r.at < TimeMin || r.at > TimeMax {
				return i, fmt.Errorf("%w: not between 1970 and 2200", ErrValue)
			}
		}
	}
	return 0, nil
}

// float returns the value of a number, regardless of its physical type.
func float(v parquet.Value) float64 {
	switch v.Kind() {
	case parquet.Double:
		return v.Double()
	case parquet.Int32:
		return float64(v.Int32())
	case parquet.Int64:
		return float64(v.Int64())
	}
	if v.Boolean() {
		return 1
	}
	return 0
}

// base returns a row with the names that are constant in the file and without known values.
func (s *scanner) base(src *source, f *parquet.File) (row, error) {
	r := row{gap: -1, Sample: unknown}
	r.market[4] = s.code([]byte(ProductLinux))
	for i, w := range [...]struct{ column, meta, path, option string }{
		{colProvider, metaProvider, src.provider, s.o.Provider},
		{colRegion, metaRegion, src.region, s.o.Region},
	} {
		stored, _ := f.Lookup(w.meta)
		name := cmp.Or(w.path, stored, w.option)
		if name == "" && f.Root().Column(w.column) == nil {
			return r, &FileError{File: src.path, Err: fmt.Errorf(
				"%w: there is no column %q, no %s=… in the path and no %q in the metadata",
				ErrNoRegion, w.column, w.column, w.meta)}
		}
		r.market[i] = s.code([]byte(name))
	}
	return r, nil
}

// skips reports whether the statistics of row group g of f exclude every requested row: all
// requested names are outside its bounds, or its times are after the span. Rows before the span
// must be read, since they contain the prices at its start.
//
// Spotter writes one page per column and row group, so a page index would not exclude more.
func (s *scanner) skips(f *parquet.File, g int, leaves []leaf) bool {
	choices := [5][]string{s.o.Providers, s.o.Regions, s.o.Zones, s.o.Types}
	for _, l := range leaves {
		chunk := f.RowGroups()[g].ColumnChunks()[l.index].(*parquet.FileColumnChunk)
		least, most, ok := chunk.Bounds()
		switch {
		case !ok:
		case l.name == colTime:
			if policy.Time(least.Int64()/l.scale) > s.o.end() {
				return true
			}
		case l.stored == storedString && len(choices[l.market]) > 0:
			first, last := string(least.ByteArray()), string(most.ByteArray())
			within := func(name string) bool { return first <= name && name <= last }
			if !slices.ContainsFunc(choices[l.market], within) {
				return true
			}
		}
	}
	return false
}

// stretch returns the range of bytes in f that contains the requested columns of row group g.
func stretch(f *parquet.File, g int, leaves []leaf) (begin, end int64) {
	begin = f.Size()
	for _, l := range leaves {
		m := &f.Metadata().RowGroups[g].Columns[l.index].MetaData
		at := chunkBegin(m)
		begin, end = min(begin, at), max(end, at+m.TotalCompressedSize)
	}
	return begin, end
}

// prefetch reads row group g into memory, together with the following requested groups that are
// close to it, up to blockMax bytes. A group that is too long is read page by page.
func (s *scanner) prefetch(f *parquet.File, g int, leaves []leaf) error {
	begin, end := stretch(f, g, leaves)
	if end-begin > blockMax || begin >= end {
		return nil
	}
	if r := &s.reader; begin >= r.at && end <= r.at+int64(len(r.block)) {
		return nil
	}
	for next := g + 1; next < len(f.RowGroups()); next++ {
		if s.skips(f, next, leaves) || checkGroup(f, next) != nil {
			continue
		}
		from, to := stretch(f, next, leaves)
		if from < end || from > end+gapMax || to-begin > blockMax {
			break
		}
		end = to
	}
	return s.reader.fetch(begin, end)
}
