package trace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// Open reads the trace at path, which is a folder or a single file.
//
// If the options contain a start, each series starts with the price at the start of the previous
// day, even if earlier prices are stored.
func Open(path string, o ReadOptions) (*Trace, error) {
	found, err := findFiles(path, &o)
	if err != nil {
		return nil, err
	}
	t, err := load(path, found, o)
	if err != nil {
		return nil, err
	}
	if found.index != nil && o.Whole() && t.Digest != found.index.Digest {
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: its prices do not fit the digest in %s", ErrCorrupt,
			IndexName)}
	}
	t.Name = filepath.Base(filepath.Clean(path))
	return t, nil
}

// load reads files into a trace with this name.
func load(name string, found *listing, o ReadOptions) (*Trace, error) {
	s := newScanner(&o, found.stored)
	b := newBuilder(s)
	if err := s.files(context.Background(), found.files); err != nil {
		return nil, err
	}
	t, err := b.trace()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.Name = name
	if found.index != nil && !o.Whole() {
		t.Digest = found.index.Digest
	} else {
		t.Digest = digest(t.Series)
	}
	return t, nil
}

// A builder builds series from the rows of files.
type builder struct {
	o       *ReadOptions
	scanner *scanner
	series  []*openSeries              // in the order of their first rows
	index   map[marketCode]*openSeries // nil for a market that is not selected

	// market and at are the market and series of the last row.
	market marketCode
	at     *openSeries

	info map[string]string
	from policy.Time
	to   policy.Time
	read int64 // number of rows

	unmarked bool // a file does not state whether it was generated

	seen   policy.Time // the minimum time of all rows
	seenTo policy.Time // the maximum time of all rows

	// first and last are the bounds of times in the current file, according to its metadata.
	first, last policy.Time
}

// An openSeries is a series under construction.
type openSeries struct {
	Series
	lastAt policy.Time // time of the last row that started an interval
	last   Sample
}

// newBuilder returns a builder of the rows that s reads.
func newBuilder(s *scanner) *builder {
	b := &builder{
		o: s.o, scanner: s, index: map[marketCode]*openSeries{}, market: marketCode{-1},
		info: map[string]string{}, seen: TimeMax,
	}
	s.meta, s.visit = b.meta, b.add
	return b
}

// meta reads the metadata of a file. Files of one trace have the same metadata. If they differ, the
// span is the union of all spans, and other values are those of the first file.
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

// add adds rows of a file. First is the number of rows before them in the file.
func (b *builder) add(file string, first int64, rows []row) error {
	b.read += int64(len(rows))
	start, end := b.o.start(), b.o.end()
	for i := range rows {
		r := &rows[i]
		if r.market != b.market {
			b.market, b.at = r.market, b.find(r.market)
		}
		s := b.at
		if s == nil {
			continue
		}
		b.seen, b.seenTo = min(b.seen, r.at), max(b.seenTo, r.at)
		if r.at > end {
			continue
		}
		if fault := b.fault(s, r); fault != nil {
			fault.File, fault.Row = file, first+int64(i)+1
			return fault
		}
		if r.Sample == s.last && len(s.At) > 0 {
			continue
		}
		if r.at <= start {
			s.Cut(0, 0) // the previous interval ended before the span
		}
		s.Append(r.at, r.Sample, max(0, r.gap))
		s.lastAt, s.last = r.at, r.Sample
	}
	return nil
}

// fault returns an error about a row of s, or nil if the row is valid.
func (b *builder) fault(s *openSeries, r *row) *FileError {
	switch {
	case r.at < b.first || r.at > b.last:
		return &FileError{Column: colTime, Value: r.at.String(), Err: fmt.Errorf(
			"%w: outside of %v to %v, which the metadata give as its span", ErrCorrupt, b.first, b.last)}
	case r.at < s.lastAt:
		return &FileError{Column: colTime, Err: fmt.Errorf(
			"%w: market %s has %v after %v", ErrOrder, s.Name(), r.at, s.lastAt)}
	case r.at == s.lastAt && r.Sample != s.last:
		return &FileError{Column: colTime, Err: fmt.Errorf(
			"%w: market %s has two different rows at %v", ErrOrder, s.Name(), r.at)}
	case r.Requested == -1 && r.Launched == -1:
		return nil
	case r.Requested < 1:
		return &FileError{Column: colRequested, Value: fmt.Sprint(r.Requested), Err: fmt.Errorf(
			"%w: how many nodes were requested is unknown or none, while launched is given", ErrValue)}
	case r.Launched < 0 || r.Launched > r.Requested:
		return &FileError{Column: colLaunched, Value: fmt.Sprint(r.Launched), Err: fmt.Errorf(
			"%w: not between 0 and the %d nodes requested", ErrValue, r.Requested)}
	case !r.depthFits():
		return &FileError{Column: colAvailable, Value: fmt.Sprint(r.Available), Err: fmt.Errorf(
			"%w: %d nodes launched, so that it must be %t", ErrValue, r.Launched, r.Launched > 0)}
	}
	return nil
}

// find returns the series of a market, which it creates if necessary, or nil if the options exclude
// the market.
func (b *builder) find(market marketCode) *openSeries {
	s, ok := b.index[market]
	if ok {
		return s
	}
	name := b.scanner.market(market)
	if chosen(b.o.Providers, name[0]) && chosen(b.o.Regions, name[1]) &&
		chosen(b.o.Zones, name[2]) && chosen(b.o.Types, name[3]) {
		s = &openSeries{Series: Series{Provider: name[0], Region: name[1], Zone: name[2], Type: name[3], Product: name[4]}}
		b.series = append(b.series, s)
	}
	b.index[market] = s
	return s
}

// trace returns the trace, without its digest.
func (b *builder) trace() (*Trace, error) {
	if b.read == 0 {
		return nil, fmt.Errorf("%w: it has no rows", ErrEmpty)
	}
	t := b.head()
	t.Series = b.wanted()
	if len(t.Series) == 0 || t.From > t.To {
		return nil, fmt.Errorf("%w: no market in the requested span, regions and types; it covers %v to %v%s",
			ErrEmpty, t.WholeFrom, t.WholeTo, b.choice())
	}
	return t, t.sort()
}

// head returns a trace without series: its span and its metadata.
func (b *builder) head() *Trace {
	t := &Trace{
		WholeFrom: b.from, WholeTo: b.to,
		Synthetic: b.info[metaSynthetic] == "true",
		// If the key is missing, About still identifies scripted prices.
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

// wanted returns the series that have intervals in the requested span.
func (b *builder) wanted() []Series {
	series := make([]Series, 0, len(b.series))
	for _, s := range b.series {
		s.restate(b.o.start())
		s.dropUnknown()
		if len(s.At) > 0 {
			series = append(series, s.Series)
		}
	}
	return series
}

func (b *builder) choice() string {
	var names []string
	for _, s := range b.series {
		names = append(names, s.Region)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return ""
	}
	return " in " + strings.Join(names, ", ")
}
