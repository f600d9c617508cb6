package trace

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// Open reads the trace at path, a folder or a single file.
//
// When a span is asked for, each series begins with the price in force at the
// begin of the day before it, whatever is stored before that.
func Open(path string, o ReadOptions) (*Trace, error) {
	files, err := findFiles(path, &o)
	if err != nil {
		return nil, err
	}
	t, err := load(path, files, o)
	if err == nil {
		t.Name = filepath.Base(filepath.Clean(path))
	}
	return t, err
}

// load reads files into a trace called name.
func load(name string, files []source, o ReadOptions) (*Trace, error) {
	if o.Columns != 0 {
		o.Columns |= ColumnTime | ColumnMarket | ColumnSpot
	}
	b := newBuilder(&o)
	s := newScanner(&o, b.add)
	s.meta = b.meta
	for i := range files {
		if i > 0 && (files[i].provider != files[i-1].provider || files[i].region != files[i-1].region) {
			b.flush()
		}
		if err := s.file(&files[i]); err != nil {
			return nil, err
		}
	}
	t, err := b.trace()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.Name = name
	return t, nil
}

// findFiles returns the files of the trace at path that o asks for, those of
// one region together and ascending by date.
func findFiles(path string, o *ReadOptions) ([]source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		src, err := locate(path)
		return []source{src}, err
	}
	var files []source
	found := false
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".parquet" {
			return err
		}
		found = true
		src, err := locate(p)
		if err == nil && src.wanted(o) {
			files = append(files, src)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: the folder holds no .parquet file", ErrNotTrace)}
	case len(files) == 0:
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: no file lies in the span, providers and regions asked for", ErrEmpty)}
	}
	// Paths sort by date already; only a folder that mixes layouts may not.
	slices.SortStableFunc(files, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// locate reads what the path of a file says of its content.
func locate(path string) (source, error) {
	src := source{path: path}
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		value, err := url.PathUnescape(value)
		if err != nil {
			return src, &FileError{File: path, Err: fmt.Errorf("%w: %w", ErrNotTrace, err)}
		}
		switch key {
		case "provider":
			src.provider = value
		case "region":
			src.region = value
		case "date":
			at, err := time.Parse(time.DateOnly, value)
			if err != nil {
				return src, &FileError{File: path, Err: fmt.Errorf("%w: date=%s is no date", ErrNotTrace, value)}
			}
			src.date = policy.TimeOf(at)
		}
	}
	return src, nil
}

func (src *source) wanted(o *ReadOptions) bool {
	return chosen(o.Providers, src.provider) && chosen(o.Regions, src.region) &&
		(src.date == 0 || src.date >= o.start() && src.date <= o.end())
}

// chosen reports whether name passes the choice; what has no name does, since
// it may be found in the file.
func chosen(choice []string, name string) bool {
	return len(choice) == 0 || name == "" || slices.Contains(choice, name)
}

// A builder puts the rows of files together into series.
type builder struct {
	o      *ReadOptions
	pages  [][]Series           // see of
	opened int32                // how many series there are
	index  map[marketCode]int32 // of the series of a market; -1 if not wanted

	// after[i] is the series that followed series i when it was last read. A
	// file of a date holds each market a few rows long and in the same order
	// as the one before, so the guess nearly always saves the look-up.
	after []int32
	codes []marketCode
	at    int32 // the series that was read last; -1 before the first

	tails []tail // of each series
	rows  rowLog // the rows that are not yet in their series

	info map[string]string
	from policy.Time
	to   policy.Time
	read int64 // rows

	unmarked bool // a file does not say whether it was generated

	seen   policy.Time // the earliest time of any row
	seenTo policy.Time // the latest

	// first and last bound the times that the metadata of the current file
	// allow.
	first, last policy.Time
}

func newBuilder(o *ReadOptions) *builder {
	return &builder{o: o, index: map[marketCode]int32{}, info: map[string]string{}, seen: timeMax, at: -1}
}

// meta takes in the metadata of a file. Files of one trace say the same; where
// they do not, the span is what covers all, and the first file speaks for the
// rest.
func (b *builder) meta(f *parquet.File) error {
	b.first, b.last = timeMin, timeMax
	if _, ok := f.Lookup(metaSynthetic); !ok {
		b.unmarked = true
	}
	for _, kv := range f.Metadata().KeyValueMetadata {
		if !strings.HasPrefix(kv.Key, metaPrefix) {
			continue
		}
		switch kv.Key {
		case metaFrom, metaTo:
			at, err := time.Parse(time.RFC3339Nano, kv.Value)
			if err != nil {
				return fmt.Errorf("%w: metadata %s: %w", ErrValue, kv.Key, err)
			}
			b.span(kv.Key, policy.TimeOf(at))
		default:
			if _, ok := b.info[kv.Key]; !ok {
				b.info[kv.Key] = kv.Value
			}
		}
	}
	return nil
}

func (b *builder) span(key string, at policy.Time) {
	if key == metaTo {
		b.last, b.to = at, max(b.to, at)
		return
	}
	if b.first = at; b.from == 0 || at < b.from {
		b.from = at
	}
}

// add takes in the rows of a batch.
func (b *builder) add(batch *Batch) error {
	b.read += int64(batch.Rows)
	var block *logBlock
	if batch.extras() || batch.ProbeGap != nil {
		b.flush()
	} else {
		block = b.block()
	}
	begin := 0
	for i := range batch.Runs {
		end := batch.Runs[i].End
		if k := b.find(batch, i); k >= 0 {
			var err error
			if block != nil && !b.tails[k].wide {
				err = b.log(block, k, batch, begin, end)
			} else {
				err = b.append(k, batch, begin, end)
			}
			if err != nil {
				return err
			}
		}
		begin = end
	}
	return nil
}

// find returns the series of run i, a new one if there is none, or -1 when the
// market is not wanted.
func (b *builder) find(batch *Batch, i int) int32 {
	code := batch.Runs[i].market
	if b.at >= 0 {
		if next := b.after[b.at]; next >= 0 && b.codes[next].equal(&code) {
			b.at = next
			return next
		}
	}
	k, ok := b.index[code]
	if !ok {
		k = b.open(batch.Market(i), code)
	}
	if k < 0 {
		return k
	}
	if b.at >= 0 {
		b.after[b.at] = k
	}
	b.at = k
	return k
}

// seriesPage is how many series are allocated at once.
const seriesPage = 256

// of returns series k. Series are large and there are thousands of them, so
// that they stand in pages, which are never copied to make room for more.
func (b *builder) of(k int32) *Series { return &b.pages[k/seriesPage][k%seriesPage] }

func (b *builder) open(name [5]string, code marketCode) int32 {
	if !chosen(b.o.Providers, name[0]) || !chosen(b.o.Regions, name[1]) || !chosen(b.o.Types, name[3]) {
		b.index[code] = -1
		return -1
	}
	k := b.opened
	if b.opened++; int(k)/seriesPage == len(b.pages) {
		b.pages = append(b.pages, make([]Series, seriesPage))
	}
	b.index[code] = k
	*b.of(k) = Series{Provider: name[0], Region: name[1], Zone: name[2], Type: name[3], Product: name[4]}
	b.after = append(b.after, -1)
	b.codes = append(b.codes, code)
	b.tails = append(b.tails, noTail)
	return k
}

// append adds rows begin to end of the batch, all of series k, of which none
// is in the log.
func (b *builder) append(k int32, batch *Batch, begin, end int) error {
	s := b.of(k)
	extras := batch.extras() || s.extras()
	for i := begin; i < end; i++ {
		at, v := batch.Time[i], batch.sample(i, extras)
		if at < b.first || at > b.last {
			return b.outside(batch, i)
		}
		if n := len(s.At); n > 0 {
			same := v.spot == s.Spot[n-1] && v.onDemand == s.onDemand(n-1) && (!extras || v == s.sample(n-1))
			if at < s.At[n-1] || at == s.At[n-1] && !same {
				return clockError(batch, i, s, s.At[n-1])
			}
			if same {
				b.seenTo = max(b.seenTo, at)
				continue
			}
		}
		s.push(at, v, batch.probeGap(i), extras)
		b.seen, b.seenTo = min(b.seen, at), max(b.seenTo, at)
	}
	if n := len(s.At); n > 0 {
		t := &b.tails[k]
		t.at, t.spot, t.onDemand = s.At[n-1], s.Spot[n-1], s.onDemand(n-1)
		t.wide = t.wide || s.extras() || s.ProbeGap != nil
	}
	return nil
}

// outside reports row i of a batch, whose time cannot be.
func (b *builder) outside(batch *Batch, i int) error {
	return &FileError{
		File: batch.File, Column: colTime, Row: batch.Row + int64(i) + 1, Value: batch.Time[i].String(),
		Err: fmt.Errorf("%w: outside of %v to %v, which the metadata give as its span", ErrCorrupt, b.first, b.last),
	}
}

// extras reports whether there is more than prices.
func (b *Batch) extras() bool {
	return b.Available != nil || b.Launched != nil || b.Band != nil || b.Score != nil || b.Hazard != nil || b.TrueHazard != nil ||
		b.Bids[0] != nil || b.Bids[1] != nil || b.Bids[2] != nil
}

// probeGap returns how long before row i the market was last looked at; 0 if
// the row does not say.
func (b *Batch) probeGap(i int) int32 {
	if b.ProbeGap == nil {
		return 0
	}
	return max(0, int32(b.ProbeGap[i]))
}

// extras reports whether there is more than prices.
func (s *Series) extras() bool {
	return s.Available != nil || s.Launched != nil || s.Band != nil || s.Score != nil || s.Hazard != nil || s.TrueHazard != nil ||
		s.Bids[0] != nil || s.Bids[1] != nil || s.Bids[2] != nil
}

func (s *Series) onDemand(i int) policy.Money {
	if s.OnDemand == nil {
		return 0
	}
	return s.OnDemand[i]
}

// clockError reports row i of a batch, which is not later than the last spell
// of its series.
func clockError(batch *Batch, i int, s *Series, last policy.Time) error {
	at := batch.Time[i]
	err := fmt.Errorf("%w: market %s has %v after %v", ErrOrder, s.Name(), at, last)
	if at == last {
		err = fmt.Errorf("%w: market %s has two different rows at %v", ErrOrder, s.Name(), at)
	}
	return &FileError{File: batch.File, Column: colTime, Row: batch.Row + int64(i) + 1, Err: err}
}

func (b *Batch) sample(i int, extras bool) sample {
	v := blank
	v.spot = b.Spot[i]
	if b.OnDemand != nil {
		v.onDemand = b.OnDemand[i]
	}
	if !extras {
		return v
	}
	if b.Available != nil {
		v.available = int8(b.Available[i])
	}
	if b.Band != nil {
		v.band = int8(b.Band[i])
	}
	if b.Score != nil {
		v.score = int8(b.Score[i])
	}
	if b.Hazard != nil {
		v.hazard = b.Hazard[i]
	}
	if b.TrueHazard != nil {
		v.trueHazard = b.TrueHazard[i]
	}
	for k, col := range b.Bids {
		if col != nil {
			v.bids[k] = col[i]
		}
	}
	if b.Launched != nil {
		v.requested, v.launched = int32(b.Requested[i]), int32(b.Launched[i])
	}
	return v
}

// push appends a spell, adding columns that s did not have. Without extras, v
// holds prices only.
func (s *Series) push(at policy.Time, v sample, gap int32, extras bool) {
	n := len(s.At)
	s.At = append(s.At, at)
	s.Spot = append(s.Spot, v.spot)
	pushColumn(&s.OnDemand, n, v.onDemand, 0)
	pushColumn(&s.ProbeGap, n, gap, 0)
	if !extras {
		return
	}
	pushColumn(&s.Available, n, v.available, -1)
	pushColumn(&s.Band, n, v.band, -1)
	pushColumn(&s.Score, n, v.score, -1)
	pushColumn(&s.Hazard, n, v.hazard, -1)
	pushColumn(&s.TrueHazard, n, v.trueHazard, -1)
	for k := range s.Bids {
		pushColumn(&s.Bids[k], n, v.bids[k], 0)
	}
	pushColumn(&s.Requested, n, v.requested, -1)
	pushColumn(&s.Launched, n, v.launched, -1)
}

// pushColumn appends v to a column of n values. A column comes to be when the
// first value is not unknown.
func pushColumn[T comparable](col *[]T, n int, v, unknown T) {
	if *col == nil {
		if v == unknown {
			return
		}
		*col = slices.Repeat([]T{unknown}, n)
	}
	*col = append(*col, v)
}

// trace returns what was read.
func (b *builder) trace() (*Trace, error) {
	if b.read == 0 {
		return nil, fmt.Errorf("%w: it has no rows", ErrEmpty)
	}
	b.flush()
	t := &Trace{
		WholeFrom: b.from, WholeTo: b.to,
		Synthetic: b.info[metaSynthetic] == "true",
		// Where the key is missing the line still says it.
		Scripted: b.info[metaScripted] == "true" || strings.HasPrefix(b.info[metaAbout], aboutScripted),
		About:    b.info[metaAbout], Unmarked: b.unmarked,
	}
	if t.Unmarked {
		t.Warnings = append(t.Warnings, "the files do not say whether their prices were recorded or generated")
	}
	if t.WholeFrom == 0 {
		t.WholeFrom = b.seen
	}
	t.WholeTo = max(t.WholeTo, b.seenTo)
	t.From, t.To = max(t.WholeFrom, b.o.start()), min(t.WholeTo, b.o.end())
	for key, value := range b.info {
		if name, ok := strings.CutPrefix(key, metaExtra); ok {
			if t.Meta == nil {
				t.Meta = map[string]string{}
			}
			t.Meta[name] = value
		}
	}
	if said := t.Meta[MetaModelled]; said != "" {
		t.Warnings = append(t.Warnings, said)
	}
	t.Series = b.wanted()
	if len(t.Series) == 0 || t.From > t.To {
		return nil, fmt.Errorf("%w: no market in the span, regions and types asked for; it covers %v to %v%s",
			ErrEmpty, t.WholeFrom, t.WholeTo, b.choice())
	}
	return t, t.order()
}

// wanted returns the series that have spells in the span asked for.
func (b *builder) wanted() []Series {
	series := make([]Series, 0, b.opened)
	for k := range b.opened {
		s := b.of(k)
		s.clip(b.o)
		s.dropUnknown()
		if len(s.At) > 0 {
			series = append(series, *s)
		}
	}
	return series
}

func (b *builder) choice() string {
	var names []string
	for k := range b.opened {
		names = append(names, b.of(k).Region)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return ""
	}
	return " in " + strings.Join(names, ", ")
}

// clip cuts s to what was asked for. The price in force at the begin is stated
// as of then, and a market not offered there begins when it is, so that a
// window of a folder and of a single file with the same content are equal.
func (s *Series) clip(o *ReadOptions) {
	first, end := 0, len(s.At)
	for end > 0 && s.At[end-1] > o.end() {
		end--
	}
	if start := o.start(); start > 0 {
		for first+1 < end && s.At[first+1] <= start {
			first++
		}
		if first < end && s.At[first] < start {
			s.At[first] = start
			if s.ProbeGap != nil {
				s.ProbeGap[first] = 0
			}
		}
		if first < end && s.At[first] == start && !s.sample(first).live() {
			first++
		}
	}
	s.Cut(first, end)
}
