package trace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spotter-dev/spotter/policy"
)

// ReadOptions choose what of a trace is read. The zero value reads all of it.
type ReadOptions struct {
	// From and To are the span that is wanted; zero means open. The day before
	// From is read too, since a run warms up before it is metered.
	From, To policy.Time

	// Providers, Regions, Zones and Types restrict what is read; empty means all.
	Providers, Regions, Zones, Types []string

	// Columns are those to read. Open always reads time, market and spot
	// price.
	Columns Columns

	// Provider and Region are those of a file that does not name its own.
	Provider, Region string

	// Store is where the trace lies; nil is the disk.
	Store Store

	// Traffic, if not nil, is where what is read is counted.
	Traffic *Traffic
}

func (o *ReadOptions) store() Store {
	if o.Store == nil {
		return disk{}
	}
	return o.Store
}

// narrow reports whether o asks for a part of the markets only.
func (o *ReadOptions) narrow() bool {
	return len(o.Providers)+len(o.Regions)+len(o.Zones)+len(o.Types) > 0
}

// Whole reports whether o asks for everything that a trace holds.
func (o *ReadOptions) Whole() bool {
	return !o.narrow() && o.From == 0 && o.To == 0 && o.Columns == 0
}

// start is the instant from which prices are wanted: the begin of the day
// before From, at which every live market has a row.
func (o *ReadOptions) start() policy.Time {
	if o.From == 0 {
		return 0
	}
	return dayOf(o.From - day)
}

// end is the last instant that is wanted.
func (o *ReadOptions) end() policy.Time {
	if o.To == 0 {
		return TimeMax
	}
	return o.To
}

// batchRows is how many rows are read at once. All columns of a batch fit in
// the second-level cache.
const batchRows = 16384

// A scanner holds the buffers that all files of a trace share.
type scanner struct {
	o     *ReadOptions
	visit func(*Batch) error

	batch   Batch
	symbols symbols
	linux   int32 // the code of ProductLinux
	codes   [5][]int32
	differs []int32 // of each row from the one before
	ends    []int32
	floats  [8][]float64
	time    []policy.Time
	money   [5][]policy.Money

	// tables are those of the dictionaries of the columns that are read, by
	// place, and reader has the block of the file: kept, so that the next file
	// needs no new memory.
	tables  []table
	reader  blockReader
	traffic *Traffic
	header  []format.KeyValue // the metadata that were found sound last

	choices map[string][]string // the values that are wanted of a column, ascending

	// meta is called with each file before its rows.
	meta func(*parquet.File) error
}

// newScanner returns a scanner of a trace of so many bytes.
func newScanner(o *ReadOptions, stored int64, visit func(*Batch) error) *scanner {
	s := &scanner{o: o, visit: visit, symbols: symbols{known: map[string]int32{}}, traffic: o.Traffic}
	if s.traffic == nil {
		s.traffic = &Traffic{}
	}
	s.traffic.Stored = stored
	s.reader.count = &s.traffic.Read
	s.choices = map[string][]string{
		colProvider: sorted(o.Providers), colRegion: sorted(o.Regions), colZone: sorted(o.Zones), colType: sorted(o.Types),
	}
	s.linux = s.symbols.code([]byte(ProductLinux))
	s.time = make([]policy.Time, batchRows)
	return s
}

// file reads one file. The library that decodes it panics on some damaged
// files; that too is an error here.
func (s *scanner) file(src *source) (err error) {
	defer recoverDamage(src.path, &err)
	file, err := src.open(s.o.store())
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := s.openParquet(src, file)
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
	if err := s.checkHeader(f); err != nil {
		return &FileError{File: src.path, Err: err}
	}
	if s.meta != nil {
		if err := s.meta(f); err != nil {
			return &FileError{File: src.path, Err: err}
		}
	}
	leaves, err := findLeaves(src.path, f, s.o.Columns)
	if err != nil {
		return err
	}
	return s.groups(src, f, leaves)
}

// groups reads the row groups of a file that can hold what is wanted.
func (s *scanner) groups(src *source, f *parquet.File, leaves []leaf) error {
	row := int64(0)
	all := f.RowGroups()
	for i, group := range all {
		if err := checkGroup(f, i); err != nil {
			return &FileError{File: src.path, Err: err}
		}
		if !s.skips(f, i, leaves) {
			if err := s.prefetch(f, i, leaves); err != nil {
				return &FileError{File: src.path, Err: err}
			}
			if err := s.group(src, f, i, leaves, row); err != nil {
				return err
			}
		}
		row += group.NumRows()
	}
	return nil
}

// checkHeader fails when the metadata of f are damaged, are of another version
// or name columns that f lacks. Files of one trace have the same metadata, of
// which the checksum is computed once.
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

// group reads the rows of row group g, which begins after row rows of the
// file.
func (s *scanner) group(src *source, f *parquet.File, g int, leaves []leaf, row int64) error {
	cursors := make([]cursor, len(leaves))
	for len(s.tables) < len(leaves) {
		s.tables = append(s.tables, table{})
	}
	chunks := f.RowGroups()[g].ColumnChunks()
	rows := f.Metadata().RowGroups[g].NumRows
	for i, l := range leaves {
		if err := checkPages(f, &f.Metadata().RowGroups[g].Columns[l.index].MetaData, rows); err != nil {
			return &FileError{File: src.path, Column: l.name, Err: err}
		}
		cursors[i] = cursor{leaf: l, file: src.path, pages: chunks[l.index].Pages(), row: row, table: &s.tables[i]}
		defer cursors[i].close()
	}
	names, err := s.marketNames(src, f, leaves)
	if err != nil {
		return err
	}
	for left := rows; left > 0; {
		n := int(min(left, batchRows))
		s.batch = Batch{File: src.path, Row: row, Rows: n, Runs: s.batch.Runs[:0], symbols: &s.symbols}
		for i := range cursors {
			if err := s.read(&cursors[i], n); err != nil {
				return err
			}
		}
		if s.o.Columns.has(ColumnMarket) {
			s.findRuns(names, n)
		}
		if err := s.batch.checkDepth(s.o.Columns); err != nil {
			return err
		}
		if err := s.visit(&s.batch); err != nil {
			return err
		}
		left, row = left-int64(n), row+int64(n)
	}
	return nil
}

func (c *cursor) close() {
	c.release()
	c.pages.Close()
}

// read reads n rows of one column into the batch.
func (s *scanner) read(c *cursor, n int) error {
	b := &s.batch
	switch c.name {
	case colTime:
		b.Time = s.time[:n]
		return c.times(b.Time)
	case colSpot:
		b.Spot = buffer(&s.money[0], n)
		return c.money(b.Spot, policy.NoPrice)
	case colOnDemand:
		b.OnDemand = buffer(&s.money[1], n)
		return c.money(b.OnDemand, 0)
	case colProvider:
		return c.names(buffer(&s.codes[0], n), &s.symbols, -1)
	case colRegion:
		return c.names(buffer(&s.codes[1], n), &s.symbols, -1)
	case colZone:
		return c.names(buffer(&s.codes[2], n), &s.symbols, -1)
	case colType:
		return c.names(buffer(&s.codes[3], n), &s.symbols, -1)
	case colProduct:
		return c.names(buffer(&s.codes[4], n), &s.symbols, s.linux)
	case colAvailable:
		b.Available = buffer(&s.floats[0], n)
		return c.numbers(b.Available, 1)
	case colBand:
		b.Band = buffer(&s.floats[1], n)
		return c.numbers(b.Band, bandMax)
	case colScore:
		b.Score = buffer(&s.floats[2], n)
		return c.numbers(b.Score, ScoreMax)
	case colHazard:
		b.Hazard = buffer(&s.floats[3], n)
		return c.numbers(b.Hazard, hazardMax)
	case colProbeGap:
		b.ProbeGap = buffer(&s.floats[5], n)
		return c.numbers(b.ProbeGap, ProbeGapMax)
	case colBidP20, colBidP50, colBidP80:
		k := slices.Index([]string{colBidP20, colBidP50, colBidP80}, c.name)
		b.Bids[k] = buffer(&s.money[2+k], n)
		return c.money(b.Bids[k], 0)
	case colRequested:
		b.Requested = buffer(&s.floats[6], n)
		return c.numbers(b.Requested, RequestedMax)
	case colLaunched:
		b.Launched = buffer(&s.floats[7], n)
		return c.numbers(b.Launched, RequestedMax)
	}
	b.TrueHazard = buffer(&s.floats[4], n)
	return c.numbers(b.TrueHazard, hazardMax)
}

func buffer[T any](buf *[]T, n int) []T {
	if *buf == nil {
		*buf = make([]T, batchRows)
	}
	return (*buf)[:n]
}

// marketNames returns the codes of the names that are the same in all of a
// file, and -1 for those that stand in a column.
func (s *scanner) marketNames(src *source, f *parquet.File, leaves []leaf) (names marketCode, err error) {
	if !s.o.Columns.has(ColumnMarket) {
		return names, nil
	}
	names = marketCode{-2, -2, -1, -1, s.linux}
	for _, l := range leaves {
		switch l.name {
		case colProvider:
			names[0] = -1
		case colRegion:
			names[1] = -1
		case colProduct:
			names[4] = -1
		}
	}
	outside := [2]struct{ column, meta, path, option string }{
		{colProvider, metaProvider, src.provider, s.o.Provider},
		{colRegion, metaRegion, src.region, s.o.Region},
	}
	for i, w := range outside {
		name := w.path
		if name == "" && names[i] == -1 {
			continue
		}
		if name == "" {
			name, _ = f.Lookup(w.meta)
		}
		if name == "" {
			name = w.option
		}
		if name == "" {
			return names, &FileError{File: src.path, Err: fmt.Errorf(
				"%w: there is no column %q, no %s=… in the path and no %q in the metadata",
				ErrNoRegion, w.column, w.column, w.meta)}
		}
		names[i] = s.symbols.code([]byte(name))
	}
	return names, nil
}

// constant reports whether all codes of col, which is not empty, are equal.
func constant(col []int32) bool {
	first := col[0]
	for _, code := range col {
		if code != first {
			return false
		}
	}
	return true
}

// findRuns fills in the runs of the n rows of the batch. It has no branch that
// depends on the data for each row, since a market has a few rows only and the
// processor would guess wrong at the end of each.
func (s *scanner) findRuns(names marketCode, n int) {
	var cols [5][]int32
	var at [5]int
	varying := 0
	differs := buffer(&s.differs, n)
	clear(differs)
	for k, code := range names {
		if code != -1 {
			continue
		}
		col := s.codes[k][:n]
		if constant(col) {
			names[k] = col[0]
			continue
		}
		cols[varying], at[varying] = col, k
		varying++
		for i, code := range col[1:] {
			differs[i+1] |= code ^ col[i]
		}
	}
	ends := buffer(&s.ends, n)
	found := 0
	for row, d := range differs {
		ends[found] = int32(row)
		if d != 0 {
			found++
		}
	}
	ends[found] = int32(n)
	runs, begin := s.batch.Runs, int32(0)
	for _, end := range ends[:found+1] {
		for v, col := range cols[:varying] {
			names[at[v]] = col[begin]
		}
		runs = append(runs, Run{market: names, End: int(end)})
		begin = end
	}
	s.batch.Runs = runs
}
