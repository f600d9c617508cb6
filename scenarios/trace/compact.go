package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

const (
	// compactRows is the maximum number of rows in a row group of a compact trace, which is the
	// minimum that a reader reads. Half as many make files a tenth longer and reading a fifth
	// slower; four times as many make files a tenth shorter and reading two fifths faster. Each
	// zone starts a new row group, so that the bounds of a group show which types it contains, and
	// a group contains whole types if they fit.
	compactRows = 1 << 13

	// partRows is the approximate number of rows in memory during compaction.
	partRows = 3 << 20

	// partGroups is the approximate number of row groups of a region in one file per month. A
	// larger region has several files, since the metadata of each group is in memory until its file
	// is complete.
	partGroups = 1 << 13
)

// Compact writes the trace at src, in any form, to the folder dir as a compact trace: one file per
// region and month (several for a region of more than 40 million rows), in which the rows of each
// market are contiguous, and an index. A reader can read a part of it without the rest. An unknown
// on-demand price is replaced by the one before it, or else by the first one after it, as in runs.
// The trace becomes visible only when it is complete. A nil store means the disk.
func Compact(ctx context.Context, src string, store Store, dir string) (*Index, error) {
	c, err := newCompaction(ctx, src, store)
	if err != nil {
		return nil, err
	}
	return c.run(dir)
}

func newCompaction(ctx context.Context, src string, store Store) (*compaction, error) {
	o := ReadOptions{Store: store}
	found, err := findFiles(src, &o)
	if err != nil {
		return nil, err
	}
	c := &compaction{ctx: ctx, src: src, o: o, found: found, columns: map[string]bool{}, rows: map[[4]string]int64{},
		most: partRows, groupsMost: partGroups}
	return c, c.survey()
}

func (c *compaction) run(dir string) (*Index, error) {
	c.index = &Index{From: c.head.From, To: c.head.To, Markets: int64(c.markets), Sizes: map[string]int64{}}
	return c.index, replaceFolder(dir, c.write)
}

// A compaction is a compaction in progress.
type compaction struct {
	ctx   context.Context // of the call
	src   string
	o     ReadOptions
	found *listing

	// The result of the survey: the trace without its series, the number of markets, the columns,
	// and the number of rows by provider, region, zone and type.
	head    *Trace
	markets int
	columns map[string]bool
	rows    map[[4]string]int64

	most       int64 // maximum number of rows in memory, unless a single market has more
	groupsMost int   // maximum number of row groups in open files, each with some kilobytes of metadata
	index      *Index
	digest     *digester
	rowRefs    []rowRef
}

// survey reads the names and times of all rows.
func (c *compaction) survey() error {
	s := newScanner(&c.o, c.found.stored)
	s.names = true
	b := newBuilder(s)
	markets := map[marketCode]int64{}
	s.visit = func(_ string, _ int64, rows []row) error {
		for i := range rows {
			b.seen, b.seenTo = min(b.seen, rows[i].at), max(b.seenTo, rows[i].at)
			markets[rows[i].market]++
		}
		return nil
	}
	s.meta = func(f *parquet.File) error {
		for _, column := range f.Root().Columns() {
			c.columns[column.Name()] = true
		}
		return b.meta(f)
	}
	if err := s.files(c.ctx, c.found.files); err != nil {
		return err
	}
	if len(markets) == 0 {
		return fmt.Errorf("%s: %w: it has no rows", c.src, ErrEmpty)
	}
	for market, rows := range markets {
		names := s.market(market)
		c.rows[[4]string(names[:4])] += rows
	}
	c.head, c.markets = b.head(), len(markets)
	return nil
}

// write writes all regions to dir, and then the index.
func (c *compaction) write(dir string) error {
	c.digest = newDigester(c.markets)
	kinds := slices.SortedFunc(maps.Keys(c.rows), func(a, b [4]string) int { return slices.Compare(a[:], b[:]) })
	for begin := 0; begin < len(kinds); {
		end := sharing(kinds, begin, 2)
		if err := c.region(dir, kinds[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	c.index.Digest = c.digest.sum()
	text, err := c.index.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, IndexName), text, 0o644)
}

// sharing returns the end of the kinds, from index begin on, that have the same first n names.
func sharing(kinds [][4]string, begin, n int) int {
	end := begin + 1
	for end < len(kinds) && slices.Equal(kinds[end][:n], kinds[begin][:n]) {
		end++
	}
	return end
}

// together returns the end of the kinds, from index begin on, that are in memory at once: whole
// zones, or some types of a zone with too many rows.
func (c *compaction) together(kinds [][4]string, begin int) int {
	sum := func(kinds [][4]string) (rows int64) {
		for _, kind := range kinds {
			rows += c.rows[kind]
		}
		return rows
	}
	end := begin
	if begin == 0 || sharing(kinds, begin-1, 3) == begin {
		for end < len(kinds) && sum(kinds[begin:sharing(kinds, end, 3)]) <= c.most {
			end = sharing(kinds, end, 3)
		}
	}
	for zone := sharing(kinds, begin, 3); end < zone && sum(kinds[begin:end+1]) <= c.most; {
		end++
	}
	return max(end, begin+1)
}

// region writes the months of one region, some zones or some types of one zone at a time.
func (c *compaction) region(dir string, kinds [][4]string) (err error) {
	at := regionPath(kinds[0][0], kinds[0][1])
	m := &monthWriter{compaction: c, dir: dir, region: at, files: map[policy.Time]*monthFile{}}
	defer func() { err = errors.Join(err, m.close()) }()
	for begin := 0; begin < len(kinds); {
		end := c.together(kinds, begin)
		part, err := c.read(kinds[begin:end])
		if err != nil {
			return err
		}
		for i := range part.Series {
			s := &part.Series[i]
			s.fillOnDemand()
			c.digest.series(s)
		}
		if err := m.add(part.Series); err != nil {
			return err
		}
		if m.groups > c.groupsMost {
			if err := m.close(); err != nil {
				return err
			}
		}
		begin = end
	}
	return nil
}

// read reads some kinds of a region: whole zones, or types of one zone.
func (c *compaction) read(kinds [][4]string) (*Trace, error) {
	o := c.o
	o.Providers, o.Regions = []string{kinds[0][0]}, []string{kinds[0][1]}
	for begin := 0; begin < len(kinds); begin = sharing(kinds, begin, 3) {
		o.Zones = append(o.Zones, kinds[begin][2])
	}
	if len(o.Zones) == 1 {
		for _, kind := range kinds {
			o.Types = append(o.Types, kind[3])
		}
	}
	s := newScanner(&o, c.found.stored)
	b := newBuilder(s)
	files := slices.DeleteFunc(slices.Clone(c.found.files), func(src source) bool { return !src.wanted(&o) })
	if err := s.files(c.ctx, files); err != nil {
		return nil, err
	}
	t, err := b.trace()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.src, err)
	}
	return t, nil
}

// fillOnDemand replaces unknown on-demand prices by the one before, or else by the first one.
func (s *Series) fillOnDemand() {
	first := slices.IndexFunc(s.OnDemand, func(p policy.Money) bool { return p > 0 })
	if first < 0 || !slices.Contains(s.OnDemand, 0) {
		return
	}
	price := s.OnDemand[first]
	for i, p := range s.OnDemand {
		price = cmp.Or(p, price)
		s.OnDemand[i] = price
	}
	s.collapse()
}

// A monthWriter writes the files of one region.
type monthWriter struct {
	*compaction
	dir, region string
	files       map[policy.Time]*monthFile
	groups      int   // in open files
	part        int   // number of the files of each month
	ends        []int // end of the rows of each type, in the current zone and month
}

// A monthFile is a file being written.
type monthFile struct {
	path   string // below the folder of the trace
	file   *os.File
	writer *fileWriter
}

// add appends series, in which the series of a zone are contiguous.
func (m *monthWriter) add(series []Series) error {
	t := *m.head
	t.Series = series
	first, last := t.days(series)
	next := make([]int, len(series))
	for month := monthOf(first); month <= last; month = nextMonth(month) {
		for begin, end := 0, 0; begin < len(series); begin = end {
			end = alike(series, begin, 3)
			if err := m.zone(series, next, begin, end, month); err != nil {
				return err
			}
		}
	}
	return nil
}

// zone writes a month of series[begin:end], which belong to one zone.
func (m *monthWriter) zone(series []Series, next []int, begin, end int, month policy.Time) error {
	rows := m.rowRefs[:0]
	m.ends = m.ends[:0]
	for begin < end {
		stop := alike(series, begin, 4)
		rows = addSpan(rows, series[begin:stop], next[begin:stop], begin, month, nextMonth(month))
		m.ends = append(m.ends, len(rows))
		begin = stop
	}
	m.rowRefs = rows
	if len(rows) == 0 {
		return nil
	}
	f, err := m.month(month, &series[0])
	if err != nil {
		return err
	}
	m.index.Rows += int64(len(rows))
	for at := 0; at < len(rows); {
		end := groupEnd(m.ends, at)
		if err := f.writer.writeGroup(series, rows[at:end]); err != nil {
			return err
		}
		m.groups++
		at = end
	}
	return nil
}

// groupEnd returns the end of the row group that starts at row at. Ends are the row numbers at
// which the types end. The group contains as many whole types as fit, so that a reader finds each
// type in one group; a type that does not fit is split.
func groupEnd(ends []int, at int) int {
	fits, _ := slices.BinarySearch(ends, at+compactRows+1)
	if fits > 0 && ends[fits-1] > at {
		return ends[fits-1]
	}
	return at + compactRows
}

// month returns the file of a month, and creates it if necessary.
func (m *monthWriter) month(month policy.Time, of *Series) (*monthFile, error) {
	if f := m.files[month]; f != nil {
		return f, nil
	}
	f := &monthFile{path: filepath.Join(m.region, "month="+month.Std().Format(monthLayout),
		fmt.Sprintf("part-%d.parquet", m.part))}
	path := filepath.Join(m.dir, f.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	var err error
	if f.file, err = os.Create(path); err != nil {
		return nil, err
	}
	m.files[month] = f
	f.writer = m.head.newWriter(m.columns, of, false)
	f.writer.parquet.Reset(f.file)
	return f, nil
}

// close completes the files and records their sizes. Series that are added later go to new files.
func (m *monthWriter) close() error {
	var errs []error
	for _, month := range slices.Sorted(maps.Keys(m.files)) {
		f := m.files[month]
		errs = append(errs, f.writer.parquet.Close())
		info, err := f.file.Stat()
		if err == nil {
			m.index.Sizes[filepath.ToSlash(f.path)] = info.Size()
		}
		errs = append(errs, err, f.file.Close())
	}
	clear(m.files)
	m.groups, m.part = 0, m.part+1
	return errors.Join(errs...)
}

// monthOf returns the start of the UTC month that contains t.
func monthOf(t policy.Time) policy.Time {
	at := t.Std()
	return policy.TimeOf(time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC))
}

func nextMonth(month policy.Time) policy.Time { return policy.TimeOf(month.Std().AddDate(0, 1, 0)) }
