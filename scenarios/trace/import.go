package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// ImportOptions say how recordings are read.
type ImportOptions struct {
	// Provider is that of all rows; empty means aws.
	Provider string

	// Region is that of rows that name none and whose zone does not tell.
	Region string

	// Strict makes the first bad row an error.
	Strict bool
}

// An ImportReport says what was read and what became of it.
type ImportReport struct {
	// Format names what each source was taken for, in the order given.
	Formats []string

	// Rows were read, Bad of them could not be used. BadRows are the first of
	// those, as "file:line: reason".
	Rows, Bad int
	BadRows   []string

	// Duplicates are rows for a market and time that came again; the last
	// holds. Repeats are rows that tell nothing new. Changes are left.
	Duplicates, Repeats, Changes int

	Markets  int
	From, To policy.Time

	// WithoutOnDemand are markets that neither a row nor the catalog gives an
	// on-demand price: they are kept, but no run can use them.
	WithoutOnDemand []string
}

// badRowsShown is how many bad rows a report names.
const badRowsShown = 5

// understood says what Import reads, for errors.
const understood = `understood are, also gzipped:
  the JSON of "aws ec2 describe-spot-price-history"
  CSV with the columns t,region,az,instance_type,spot,ondemand
  CSV with the columns t,az,instance_type,price
  CSV with the columns Timestamp,AvailabilityZone,InstanceType,ProductDescription,SpotPrice`

// Import reads recordings of a provider's prices into one trace. Their format
// is found out from their content. Rows may be in any order.
func Import(srcs []string, o ImportOptions) (*Trace, *ImportReport, error) {
	if len(srcs) == 0 {
		return nil, nil, fmt.Errorf("%w: no file named", ErrEmpty)
	}
	im := &importer{o: o, report: &ImportReport{}, symbols: symbols{known: map[string]int32{}}, regions: map[int32]int32{}}
	im.provider = im.symbols.code([]byte(cmp.Or(o.Provider, catalog.AWS)))
	im.linux = im.symbols.code([]byte(ProductLinux))
	for _, src := range srcs {
		if err := im.file(src); err != nil {
			return nil, im.report, err
		}
	}
	t, err := im.trace(srcs)
	return t, im.report, err
}

// An event is a row: from at on, a market costs this.
type event struct {
	market         marketCode
	at             policy.Time
	spot, onDemand policy.Money
	order          int32 // in which it was read
}

// An importer gathers the events of all sources.
type importer struct {
	o       ImportOptions
	report  *ImportReport
	symbols symbols
	regions map[int32]int32 // of zones; -1 if not known
	events  []event

	provider, linux int32
	ids, names      bool // zones were met by ID, by name

	path string // of the source being read
}

// bad counts a row that cannot be used.
func (im *importer) bad(line int, reason error) error {
	row := fmt.Sprintf("%s:%d: %v", im.path, line, reason)
	if im.o.Strict {
		return fmt.Errorf("%w: %s", ErrBadRows, row)
	}
	if im.report.Bad++; im.report.Bad <= badRowsShown {
		im.report.BadRows = append(im.report.BadRows, row)
	}
	return nil
}

// file reads one source.
func (im *importer) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	im.path = path
	r := bufio.NewReaderSize(f, 1<<16)
	if head, _ := r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return &FileError{File: path, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
		}
		defer z.Close()
		r = bufio.NewReaderSize(z, 1<<16)
	}
	err = im.content(r)
	var fault *FileError
	switch {
	case err == nil || errors.As(err, &fault) || errors.Is(err, ErrBadRows):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return &FileError{File: path, Err: err}
}

// content finds out what r holds and reads it.
func (im *importer) content(r *bufio.Reader) error {
	head, err := r.Peek(1 << 12)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(text) == 0:
		return fmt.Errorf("%w: it holds nothing", ErrEmpty)
	case text[0] == '{' || text[0] == '[':
		return im.json(r)
	case bytes.HasPrefix(text, []byte("PAR1")):
		return fmt.Errorf("%w: it is Parquet already and needs no import", ErrFormat)
	}
	header, _, _ := bytes.Cut(text, []byte("\n"))
	shape, ok := findShape(strings.TrimRight(string(header), "\r"))
	if !ok {
		return fmt.Errorf("%w: it begins %q; %s", ErrFormat, clip(string(header), 80), understood)
	}
	im.report.Formats = append(im.report.Formats, shape.name)
	return im.csv(r, shape)
}

func clip(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// zone returns the codes of a zone and its region.
func (im *importer) zone(zone, region []byte) (zoneCode, regionCode int32, err error) {
	if len(zone) == 0 {
		return 0, 0, errors.New("no zone")
	}
	zoneCode = im.symbols.code(zone)
	if len(region) > 0 {
		im.note(zoneCode)
		return zoneCode, im.symbols.code(region), nil
	}
	if code := im.note(zoneCode); code >= 0 {
		return zoneCode, code, nil
	}
	if im.o.Region == "" {
		return 0, 0, fmt.Errorf("zone %q does not tell its region; name the region", zone)
	}
	return zoneCode, im.symbols.code([]byte(im.o.Region)), nil
}

// note returns the region of a zone, -1 if unknown, looking it up once.
func (im *importer) note(zone int32) int32 {
	if code, ok := im.regions[zone]; ok {
		return code
	}
	code := int32(-1)
	region, id := regionOf(im.symbols.names[zone])
	if region != "" {
		im.ids, im.names = im.ids || id, im.names || !id
		code = im.symbols.code([]byte(region))
	}
	im.regions[zone] = code
	return code
}

// price reads a price; an empty one is absent.
func price(text []byte, absent policy.Money) (policy.Money, error) {
	if len(text) == 0 {
		return absent, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, fmt.Errorf("price %q is no number", text)
	}
	m, ok := money(v)
	if !ok {
		return 0, fmt.Errorf("price %q is impossible", text)
	}
	return m, nil
}

// instant reads a time, as Unix seconds or in RFC 3339.
func instant(text []byte) (policy.Time, error) {
	var at policy.Time
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		at = policy.Time(max(-1, min(v, int64(timeMax))) * 1000)
	} else if v, err := strconv.ParseFloat(string(text), 64); err == nil && v > 0 && v < float64(timeMax) {
		at = policy.Time(v * 1000)
	} else if v, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		at = policy.TimeOf(v)
	} else {
		return 0, fmt.Errorf("time %q is neither Unix seconds nor RFC 3339", text)
	}
	if at < timeMin || at > timeMax {
		return 0, fmt.Errorf("time %q is not between 1970 and 2200", text)
	}
	return at, nil
}

// trace sorts the events and makes series of them.
func (im *importer) trace(srcs []string) (*Trace, error) {
	if len(im.events) == 0 {
		if len(im.report.BadRows) > 0 {
			return nil, fmt.Errorf("%w: none of %d rows can be used; the first: %s", ErrEmpty, im.report.Rows, im.report.BadRows[0])
		}
		return nil, fmt.Errorf("%w: %s has no rows", ErrEmpty, strings.Join(srcs, ", "))
	}
	slices.SortFunc(im.events, func(a, b event) int {
		return cmp.Or(compareMarkets(&a.market, &b.market), cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	var series []Series
	for i := range im.events {
		e := &im.events[i]
		if i == 0 || e.market != im.events[i-1].market {
			series = append(series, im.series(e.market))
		}
		im.push(&series[len(series)-1], e)
	}
	names := make([]string, len(srcs))
	for i, src := range srcs {
		names[i] = filepath.Base(src)
	}
	t, err := New(strings.Join(names, "+"), series)
	if err != nil {
		return nil, err
	}
	t.From, t.To = im.span()
	t.WholeFrom, t.WholeTo = t.From, t.To
	t.About = "recorded prices, imported from " + strings.Join(names, ", ")
	if im.ids && im.names {
		t.Warnings = append(t.Warnings,
			"zones are given by ID and by name; names differ between accounts, so the two cannot be joined")
	}
	im.fill(t)
	return t, nil
}

func compareMarkets(a, b *marketCode) int {
	for i := range a {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return 0
}

func (im *importer) series(m marketCode) Series {
	n := im.symbols.names
	return Series{Provider: n[m[0]], Region: n[m[1]], Zone: n[m[2]], Type: n[m[3]], Product: n[m[4]]}
}

// push adds an event to the series of its market.
func (im *importer) push(s *Series, e *event) {
	v := blank
	v.spot, v.onDemand = e.spot, e.onDemand
	if n := len(s.At); n > 0 && s.At[n-1] == e.at {
		im.report.Duplicates++
		s.cut(0, n-1)
	}
	if n := len(s.At); n > 0 && s.sample(n-1) == v {
		im.report.Repeats++
		return
	}
	s.push(e.at, v, false)
}

func (im *importer) span() (from, to policy.Time) {
	from = timeMax
	for i := range im.events {
		from, to = min(from, im.events[i].at), max(to, im.events[i].at)
	}
	return from, to
}

// fill completes the report.
func (im *importer) fill(t *Trace) {
	r := im.report
	r.Markets, r.From, r.To = len(t.Series), t.From, t.To
	for i := range t.Series {
		s := &t.Series[i]
		r.Changes += len(s.At)
		if _, ok := catalog.OnDemand(s.Provider, s.Region, s.Type); s.OnDemand == nil && !ok {
			r.WithoutOnDemand = append(r.WithoutOnDemand, s.Name())
		}
	}
}
