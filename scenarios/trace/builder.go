package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

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
	return &builder{o: o, index: map[marketCode]int32{}, info: map[string]string{}, seen: TimeMax, at: -1}
}

// meta takes in the metadata of a file. Files of one trace say the same; where
// they do not, the span is what covers all, and the first file speaks for the
// rest.
func (b *builder) meta(f *parquet.File) error {
	b.first, b.last = TimeMin, TimeMax
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
			from, to := b.trim(batch.Time, begin, end)
			if block != nil && !b.tails[k].wide {
				err = b.log(block, k, batch, from, to)
			} else {
				err = b.append(k, batch, from, to)
			}
			if err != nil {
				return err
			}
		}
		begin = end
	}
	return nil
}

// trim leaves out, of rows of one market, those behind the span that is asked for and those
// before the one that is in force at its begin: of a month a run may need a week.
func (b *builder) trim(times []policy.Time, begin, end int) (int, int) {
	b.seen, b.seenTo = min(b.seen, times[begin]), max(b.seenTo, times[end-1])
	for start := b.o.start(); begin+1 < end && times[begin+1] <= start; {
		begin++
	}
	for last := b.o.end(); end > begin && times[end-1] > last; {
		end--
	}
	return begin, end
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
	if !chosen(b.o.Providers, name[0]) || !chosen(b.o.Regions, name[1]) ||
		!chosen(b.o.Zones, name[2]) || !chosen(b.o.Types, name[3]) {
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
			same := v.Spot == s.Spot[n-1] && v.OnDemand == s.onDemand(n-1) && (!extras || v == s.Sample(n-1))
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

// clockError reports row i of a batch, which is not later than the last interval
// of its series.
func clockError(batch *Batch, i int, s *Series, last policy.Time) error {
	at := batch.Time[i]
	err := fmt.Errorf("%w: market %s has %v after %v", ErrOrder, s.Name(), at, last)
	if at == last {
		err = fmt.Errorf("%w: market %s has two different rows at %v", ErrOrder, s.Name(), at)
	}
	return &FileError{File: batch.File, Column: colTime, Row: batch.Row + int64(i) + 1, Err: err}
}

// trace returns what was read, without its digest.
func (b *builder) trace() (*Trace, error) {
	if b.read == 0 {
		return nil, fmt.Errorf("%w: it has no rows", ErrEmpty)
	}
	b.flush()
	t := b.head()
	t.Series = b.wanted()
	if len(t.Series) == 0 || t.From > t.To {
		return nil, fmt.Errorf("%w: no market in the requested span, regions and types; it covers %v to %v%s",
			ErrEmpty, t.WholeFrom, t.WholeTo, b.choice())
	}
	return t, t.sort()
}

// head returns a trace without series: its span and what the files say of it.
func (b *builder) head() *Trace {
	t := &Trace{
		WholeFrom: b.from, WholeTo: b.to,
		Synthetic: b.info[metaSynthetic] == "true",
		// Where the key is missing the line still says it.
		Scripted: b.info[metaScripted] == "true" || strings.HasPrefix(b.info[metaAbout], AboutScripted),
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
	return t
}

// wanted returns the series that have intervals in the span asked for.
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
