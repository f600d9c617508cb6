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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// ImportOptions say how recordings are read, and what those that leave it out
// are of.
type ImportOptions struct {
	// Provider is that of rows that name none; empty means the one whose
	// format it is, and aws where that could be any.
	Provider string

	// Region is that of rows that name none and whose zone does not tell.
	Region string

	// Zone and Type are those of a recording that names none. Type also
	// replaces that which the name of a file stands for.
	Zone, Type string

	// From is when a recording begins that does not say so: samples of
	// availability, events of a fleet, a script.
	From policy.Time

	// At is when a snapshot was taken that does not say so.
	At policy.Time

	// PriceRatio is the price, as a share of that on demand, of markets of
	// which only the availability is known; 0 means DefaultPriceRatio. Prices,
	// if given, is where their prices are looked for first.
	PriceRatio float64
	Prices     *Trace

	// Script says how a script of prices is played.
	Script ScriptOptions

	// Strict makes the first bad row an error.
	Strict bool
}

// DefaultPriceRatio is the share of the on-demand price at which the markets
// stand that never move: 0.30 is where most of those of AWS are pinned.
const DefaultPriceRatio = 0.30

// An ImportReport says what was read and what became of it.
type ImportReport struct {
	// Format names what each source was taken for, in the order given.
	Formats []string

	// Rows were read, Bad of them could not be used. BadRows are the first of
	// those, as "file:line: reason".
	Rows, Bad int
	BadRows   []string

	// Duplicates are rows for a market and time that came again; the last
	// holds. Joined are rows that say another thing of the same instant, as of
	// a price and of availability. Repeats are rows that tell nothing new.
	// Changes are left.
	Duplicates, Joined, Repeats, Changes int

	Markets  int
	From, To policy.Time

	// WithoutOnDemand are markets that neither a row nor the catalog gives an
	// on-demand price: they are kept, but no run can use them.
	WithoutOnDemand []string

	// UnknownTypes are instance types, as "provider/type", that the catalog does
	// not hold: their markets are kept, but no run can use them.
	UnknownTypes []string

	// Modelled are markets of which only the availability was recorded.
	Modelled []string

	// Warnings say what about the recordings may surprise.
	Warnings []string
}

// badRowsShown is how many bad rows a report names.
const badRowsShown = 5

// Understood says what Import reads, a line each.
const Understood = `understood are, also gzipped:
  AWS: the JSON of "aws ec2 describe-spot-price-history"
  AWS: CSV with the columns t,region,az,instance_type,spot,ondemand
  AWS: CSV with the columns t,az,instance_type,price
  AWS: CSV with the columns Timestamp,AvailabilityZone,InstanceType,ProductDescription,SpotPrice
  AWS: CSV of SpotLake (Time,InstanceType,Region,AZ,SPS,T3,T2,IF,OndemandPrice,SpotPrice,Savings)
  Google Cloud: CSV with the columns t,region,az,instance_type,accel,accel_count,spot,ondemand
  Azure and others by region: CSV with the columns t,cloud,region,instance_type,spot,ondemand
  Rackspace: CSV with the columns t,region,generation,serverclass,category,cpu,memory,market_price,bid_p20,bid_p50,bid_p80
  Rackspace: the JSON of the percentiles feed
  availability: CSV with the columns t,zone,requested,launched, of how many of the nodes requested at once came up
  availability: JSON with "metadata" and "data", of samples of one market, in files named like us-east-1a_v100_1.json
  availability: events of a fleet, rows of milliseconds,add|remove,node
  a script of prices: JSON with "default" and "series"`

// Import reads recordings of a provider's prices and availability into one
// trace. Their format is found out from their content. Rows may be in any
// order, and several recordings may speak of the same markets.
func Import(srcs []string, o ImportOptions) (*Trace, *ImportReport, error) {
	if len(srcs) == 0 {
		return nil, nil, fmt.Errorf("%w: no file named", ErrEmpty)
	}
	im := &importer{o: o, report: &ImportReport{}, symbols: symbols{known: map[string]int32{}}, regions: map[int32]int32{}}
	im.linux = im.symbols.code([]byte(ProductLinux))
	im.from = timeMax
	im.bids = make([][3]policy.Money, 1)
	for _, src := range srcs {
		if err := im.file(src); err != nil {
			return nil, im.report, err
		}
	}
	t, err := im.trace(srcs)
	return t, im.report, err
}

// says tells of what a row speaks.
type says uint8

const (
	saysSpot says = 1 << iota
	saysOnDemand
	saysAvailable
	saysBand
	saysScore
	saysBids
	saysDepth
)

// An event is a row: from at on, what it says holds for a market.
type event struct {
	market                 marketCode
	says                   says
	available, band, score int8
	order                  int32 // in which it was read
	requested, launched    int32
	gap                    int32 // seconds since the market was last looked at
	bids                   int32 // place in importer.bids; 0 if there are none
	at                     policy.Time
	spot, onDemand         policy.Money
}

// An importer gathers the events of all sources.
type importer struct {
	o       ImportOptions
	report  *ImportReport
	symbols symbols
	regions map[int32]int32 // of zones; -1 if not known
	events  []event
	bids    [][3]policy.Money

	// from and to are the first and last instant that anything speaks of.
	from, to policy.Time

	linux      int32
	ids, names bool // zones of AWS were met by ID, by name
	last       says // what the row spoke of that was taken last

	zeros     int // on-demand prices that are written 0
	snapshots int // sources of a snapshot that did not say when it was taken
	warnings  []string

	path string // of the source being read
}

// add takes in an event that is complete but for its order.
func (im *importer) add(e event) {
	e.order = int32(len(im.events))
	im.events = append(im.events, e)
	im.from, im.to = min(im.from, e.at), max(im.to, e.at)
}

// bad counts a row that cannot be used.
func (im *importer) bad(line int, reason error) error {
	return im.badAt(strconv.Itoa(line), reason)
}

// badAt counts something that cannot be used, which stands at a place of the
// source that is no line.
func (im *importer) badAt(place string, reason error) error {
	row := fmt.Sprintf("%s:%s: %v", im.path, place, reason)
	if im.o.Strict {
		return fmt.Errorf("%w: %s", ErrBadRows, row)
	}
	if im.report.Bad++; im.report.Bad <= badRowsShown {
		im.report.BadRows = append(im.report.BadRows, row)
	}
	return nil
}

// warn notes what may surprise, once.
func (im *importer) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(im.warnings, w) {
		im.warnings = append(im.warnings, w)
	}
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

// fleetRow is the first row of a recording of a fleet, which has no header.
var fleetRow = regexp.MustCompile(`^\s*\d+\s*,\s*(add|remove)\s*,`)

// content finds out what r holds and reads it.
func (im *importer) content(r *bufio.Reader) error {
	head, err := r.Peek(1 << 12)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if mark := []byte("\ufeff"); bytes.HasPrefix(head, mark) { // spreadsheets put it before what they write
		if _, err := r.Discard(len(mark)); err != nil {
			return err
		}
		head = head[len(mark):]
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(text) == 0:
		return fmt.Errorf("%w: it holds nothing", ErrEmpty)
	case text[0] == '{' || text[0] == '[':
		return im.anyJSON(r, text)
	case bytes.HasPrefix(text, []byte("PAR1")):
		return fmt.Errorf("%w: it is Parquet already and needs no import", ErrFormat)
	}
	header, _, _ := bytes.Cut(text, []byte("\n"))
	if fleetRow.Match(header) {
		im.took("events of a fleet")
		return im.fleet(r)
	}
	shape, ok := findShape(strings.TrimRight(string(header), "\r"))
	if !ok {
		return fmt.Errorf("%w: it begins %q; %s", ErrFormat, clip(string(header), 80), Understood)
	}
	im.took(shape.name)
	return im.csv(r, shape)
}

// took notes what the source was taken for.
func (im *importer) took(format string) { im.report.Formats = append(im.report.Formats, format) }

func clip(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// price reads a price; an empty one is absent.
func price(text []byte, absent policy.Money) (policy.Money, error) {
	if len(text) == 0 {
		return absent, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || bytes.ContainsAny(text, "xX_") { // as 0x1p-2 and 1_000 in Go
		return 0, fmt.Errorf("price %q is no number", text)
	}
	m, ok := money(v)
	if !ok {
		return 0, fmt.Errorf("price %q is impossible", text)
	}
	return m, nil
}

// instant reads a time, as Unix seconds, in RFC 3339 or, which is then UTC,
// without a zone.
func instant(text []byte) (policy.Time, error) {
	var at policy.Time
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		at = policy.Time(max(-1, min(v, int64(timeMax))) * 1000)
	} else if v, err := strconv.ParseFloat(string(text), 64); err == nil && v > 0 && v < float64(timeMax) {
		at = policy.Time(v * 1000)
	} else if v, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		at = policy.TimeOf(v)
	} else if v, ok := dateTime(string(text)); ok {
		at = v
	} else {
		return 0, fmt.Errorf("time %q is neither Unix seconds nor RFC 3339", text)
	}
	if at < timeMin || at > timeMax {
		return 0, fmt.Errorf("time %q is not between 1970 and 2200", text)
	}
	return at, nil
}

// dateTime reads a time in one of the ways in which databases and Python print
// it: with a blank for the T, without a zone, which then is UTC, or both.
func dateTime(text string) (policy.Time, bool) {
	for _, layout := range [...]string{time.DateTime, time.DateTime + "Z07:00", "2006-01-02T15:04:05"} {
		if v, err := time.Parse(layout, text); err == nil {
			return policy.TimeOf(v), true
		}
	}
	return 0, false
}

// trace sorts the events and makes series of them.
func (im *importer) trace(srcs []string) (*Trace, error) {
	if len(im.events) == 0 {
		if len(im.report.BadRows) > 0 {
			return nil, fmt.Errorf("%w: none of %d rows can be used; the first: %s", ErrEmpty, im.report.Rows, im.report.BadRows[0])
		}
		return nil, fmt.Errorf("%w: %s has no rows", ErrEmpty, strings.Join(srcs, ", "))
	}
	im.lookUpPrices()
	slices.SortFunc(im.events, func(a, b event) int {
		return cmp.Or(compareMarkets(&a.market, &b.market), cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	noteProbes(im.events)
	var series []Series
	for i := range im.events {
		e := &im.events[i]
		if i == 0 || e.market != im.events[i-1].market {
			series = append(series, im.series(e.market))
			im.last = 0
		}
		im.push(&series[len(series)-1], e)
	}
	said := im.modelPrices(series)
	names := make([]string, len(srcs))
	for i, src := range srcs {
		names[i] = filepath.Base(src)
	}
	t, err := New(clip(strings.Join(names, "+"), 200), series)
	if err != nil {
		return nil, err
	}
	t.From, t.To = im.from, im.to
	t.WholeFrom, t.WholeTo = t.From, t.To
	t.About, t.Scripted = im.about(names), im.fromScript()
	if said != "" {
		t.About += "; " + said
		t.Meta = map[string]string{MetaModelled: said}
		t.Warnings = append(t.Warnings, said)
	}
	if im.ids && im.names {
		im.warn("zones are given by ID and by name; names differ between accounts, so the two cannot be joined")
	}
	if im.zeros > 0 {
		im.warn("%d on-demand prices are written 0 and taken as unknown", im.zeros)
	}
	t.Warnings = append(t.Warnings, im.warnings...)
	im.fill(t)
	return t, nil
}

// about says in one line what t is a recording of.
func (im *importer) about(names []string) string {
	prices, availability := false, false
	for i := range im.events {
		prices = prices || im.events[i].says&saysSpot != 0
		availability = availability || im.events[i].says&saysAvailable != 0
	}
	what := "recorded prices"
	switch {
	case im.fromScript():
		what = aboutScripted
	case prices && availability:
		what = "recorded prices and availability"
	case availability:
		what = "recorded availability"
	}
	if len(names) > 4 {
		names = append(slices.Clone(names[:3]), fmt.Sprintf("%d more", len(names)-3))
	}
	return what + ", imported from " + strings.Join(names, ", ")
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

// push adds an event to the series of its market. What the event does not
// speak of goes on.
func (im *importer) push(s *Series, e *event) {
	v, gap := blank, e.gap
	if n := len(s.At); n > 0 {
		v = s.sample(n - 1)
	}
	v.take(e, im.bids)
	said := e.says
	if n := len(s.At); n > 0 && s.At[n-1] == e.at {
		if im.last&e.says != 0 {
			im.report.Duplicates++
		} else {
			im.report.Joined++
		}
		if s.sample(n-1) == v {
			im.last |= e.says
			return
		}
		gap, said = max(gap, s.probeGap(n-1)), said|im.last
		s.Cut(0, n-1)
	}
	im.last = said
	if n := len(s.At); n > 0 && s.sample(n-1) == v {
		im.report.Repeats++
		im.last = 0
		return
	}
	s.push(e.at, v, gap, true)
}

// take puts into v what e says.
func (v *sample) take(e *event, bids [][3]policy.Money) {
	if e.says&saysSpot != 0 {
		v.spot = e.spot
	}
	if e.says&saysOnDemand != 0 {
		v.onDemand = e.onDemand
	}
	if e.says&saysAvailable != 0 {
		v.available, v.requested, v.launched = e.available, -1, -1
	}
	if e.says&saysBand != 0 {
		v.band = e.band
	}
	if e.says&saysScore != 0 {
		v.score = e.score
	}
	if e.says&saysBids != 0 {
		v.bids = bids[e.bids]
	}
	if e.says&saysDepth != 0 {
		v.requested, v.launched = e.requested, e.launched
	}
}
