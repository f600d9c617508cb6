// Package importer reads what providers and researchers recorded of prices and
// availability into traces. It knows every format by its content and nothing of
// how a trace is stored.
package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Options say how recordings are read, and what those that leave it out
// are of.
type Options struct {
	// Provider is that of rows that name none; empty means the one whose
	// format it is, and aws where that could be any.
	Provider string

	// Region is that of rows that name none and whose zone does not say.
	Region string

	// Zone and Type are those of a recording that does not name them. Type also overrides the type
	// that the name of a file implies.
	Zone, Type string

	// From is the start of a recording that does not name its own: samples of availability, events
	// of a fleet, a script.
	From policy.Time

	// At is when a snapshot was taken that does not say so.
	At policy.Time

	// PriceRatio is the price, as a share of that on demand, of markets of
	// which only the availability is known; 0 means DefaultPriceRatio. Prices,
	// if given, is where their prices are looked for first.
	PriceRatio float64
	Prices     *trace.Trace

	// Script says how a script of prices is run.
	Script ScriptOptions

	// Strict makes the first bad row an error.
	Strict bool

	// Store returns where a source is stored; nil means the disk, as does a nil store.
	Store func(path string) trace.Store
}

// DefaultPriceRatio is the share of the on-demand price at which the markets
// stand that never move: 0.30 is where most of those of AWS are pinned.
const DefaultPriceRatio = 0.30

// A Report says what was read and what became of it.
type Report struct {
	// Format names what each source was taken for, in the order given.
	Formats []string

	// Rows were read, Bad of them could not be used. BadRows are the first of
	// those, as "file:line: reason".
	Rows, Bad int
	BadRows   []string

	// Duplicates are rows for a market and time that came again; the last
	// holds. Joined are rows that say another thing of the same instant, as of
	// a price and of availability. Repeats are rows that say nothing new.
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

	// Unused are columns that say nothing of prices, and Skipped files of folders that
	// hold none, each with the reason.
	Unused, Skipped []string

	// Warnings say what about the recordings may surprise.
	Warnings []string
}

// badRowsShown is how many bad rows a report names.
const badRowsShown = 5

// Understood is what Import reads, a line each.
const Understood = `these are understood, also compressed by gzip or zstd, and folders of them:
  AWS: what "aws ec2 describe-spot-price-history" prints, as JSON, YAML, text or table
  AWS: CSV, TSV, JSON, JSON lines, YAML and Parquet of a time, zone or zone ID, instance type and price, and perhaps of a
    product, region and on-demand price; columns are known by names like Timestamp, availability_zone or "Spot Price", and
    rows without names by their values; other columns are left out
  SpotLake: tables with the columns Time,InstanceType,Region,AZ,SpotPrice and perhaps SPS,IF,OndemandPrice
  Google Cloud: tables with the columns t,region,az,instance_type,accel,accel_count,spot,ondemand
  Azure and others by region: tables with the columns t,cloud,region,instance_type,spot,ondemand
  Rackspace: tables with the columns t,region,serverclass,market_price,bid_p20,bid_p50,bid_p80
  Rackspace: the JSON of the percentiles feed
  availability: tables with the columns t,zone,requested,launched, of how many of the nodes requested at once came up
  availability: JSON with "metadata" and "data", of samples of one market, in files named like us-east-1a_v100_1.json
  availability: events of a fleet, rows of milliseconds,add|remove,node
  a script of prices: JSON with "default" and "series"`

// Import reads recordings of a provider's prices and availability into one
// trace. Their format is found out from their content. Rows may be in any
// order, and several recordings may speak of the same markets.
func Import(srcs []string, o Options) (*trace.Trace, *Report, error) {
	if len(srcs) == 0 {
		return nil, nil, fmt.Errorf("%w: no file named", trace.ErrEmpty)
	}
	c := &collection{o: &o, numbers: map[market]int32{}, regions: map[string][]byte{}, bids: make([][3]policy.Money, 1),
		from: trace.TimeMax}
	im := &importer{collection: c, notes: &notes{report: &Report{}, strict: o.Strict}}
	for _, src := range srcs {
		if err := im.source(src); err != nil {
			return nil, im.report, err
		}
	}
	a := assembly{collection: c, notes: im.notes}
	t, err := a.trace(srcs)
	return t, im.report, err
}

// An importer reads sources into a collection of events.
type importer struct {
	*collection
	*notes

	snapshots int // sources of a snapshot that did not say when it was taken
}

// A collection is the events of all sources, in the order in which they were read,
// and their markets.
type collection struct {
	o       *Options
	markets []market
	numbers map[market]int32  // of the markets
	regions map[string][]byte // of zones; empty if not known
	events  []event
	bids    [][3]policy.Money

	// from and to are the first and last instant of anything recorded.
	from, to policy.Time

	ids, names bool // zones of AWS were met by ID, by name
	zeros      int  // on-demand prices that are written 0
}

// notes are what there is to say of the sources, and of the one being read.
type notes struct {
	report   *Report
	strict   bool
	warnings []string
	zoneless bool // a time without a zone was warned of

	path string // of the source being read
}

// add takes in an event that is complete but for its order.
func (c *collection) add(e event) {
	e.order = int32(len(c.events))
	c.events = append(c.events, e)
	c.from, c.to = min(c.from, e.at), max(c.to, e.at)
}

// bad counts a row that cannot be used.
func (n *notes) bad(line int, reason error) error {
	return n.badAt(strconv.Itoa(line), reason)
}

// badAt counts something unusable at a place in the source other than a line.
func (n *notes) badAt(place string, reason error) error {
	row := fmt.Sprintf("%s:%s: %v", n.path, place, reason)
	if n.strict {
		return fmt.Errorf("%w: %s", trace.ErrBadRows, row)
	}
	if n.report.Bad++; n.report.Bad <= badRowsShown {
		n.report.BadRows = append(n.report.BadRows, row)
	}
	return nil
}

// warn notes what may surprise, once.
func (n *notes) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(n.warnings, w) {
		n.warnings = append(n.warnings, w)
	}
}

// source reads a file, or all files of a folder.
func (im *importer) source(path string) error {
	store := trace.Disk()
	if im.o.Store != nil {
		if other := im.o.Store(path); other != nil {
			store = other
		}
	}
	entries, err := store.List(path)
	if err != nil {
		return err
	}
	if len(entries) == 1 && entries[0].Name == path {
		return im.file(store, entries[0])
	}
	var skipped error
	read := 0
	for _, e := range entries {
		if name := filepath.Base(e.Name); name[0] == '.' || name[0] == '_' { // as _SUCCESS
			continue
		}
		switch err := im.file(store, e); {
		case err == nil:
			read++
		case !errors.Is(err, trace.ErrFormat) && !errors.Is(err, trace.ErrEmpty) || errors.Is(err, trace.ErrStored):
			return err
		default:
			skipped = cmp.Or(skipped, err)
			reason, _, _ := strings.Cut(err.Error(), "; these are understood")
			im.report.Skipped = append(im.report.Skipped, reason)
		}
	}
	if read == 0 {
		none := &trace.FileError{File: path, Err: fmt.Errorf("%w: the folder holds no files", trace.ErrEmpty)}
		return cmp.Or(skipped, error(none))
	}
	return nil
}

// file reads one source.
func (im *importer) file(store trace.Store, entry trace.Entry) error {
	f, err := store.Open(entry.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	im.path = entry.Name
	stream, ok := f.(io.Reader) // as a pipe, which has no size
	if !ok {
		stream = io.NewSectionReader(f, 0, entry.Size)
	}
	r := bufio.NewReaderSize(stream, readSize)
	if head, _ := r.Peek(4); string(head) == "PAR1" {
		return im.parquet(f, entry.Size)
	}
	plain, done, err := unpacked(r)
	if err == nil {
		defer done()
		err = im.content(bufio.NewReaderSize(plain, readSize))
	}
	if fault := (*trace.FileError)(nil); err == nil || errors.As(err, &fault) || errors.Is(err, trace.ErrBadRows) {
		return err
	}
	return &trace.FileError{File: entry.Name, Err: err}
}

// readSize is how many bytes are read at once, and how many of them are looked at to find
// out what a source is.
const readSize = 1 << 16

// A packed reader unpacks data, of which every fault is damage.
type packed struct{ io.Reader }

// Read implements [io.Reader].
func (p packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", trace.ErrCorrupt, err)
	}
	return n, err
}

// packers have the first bytes of what is packed otherwise than it is read.
var packers = []struct{ magic, name string }{
	{"PK\x03\x04", "zip"}, {"\xfd7zX", "xz"}, {"BZh", "bzip2"}, {"7z\xbc\xaf", "7-Zip"}, {"\x04\x22\x4d\x18", "LZ4"},
	{"SQLi", "SQLite"},
}

// unpacked returns what r holds, as UTF-8, and what to call when it is read.
func unpacked(r *bufio.Reader) (plain io.Reader, done func(), err error) {
	plain, done = r, func() {}
	head, _ := r.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", trace.ErrCorrupt, err)
		}
		plain = packed{z}
	case string(head) == "\x28\xb5\x2f\xfd", len(head) == 4 && string(head[1:]) == "\x2a\x4d\x18":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<28))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", trace.ErrCorrupt, err)
		}
		plain, done = packed{z}, z.Close
	}
	for _, p := range packers {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return nil, nil, fmt.Errorf("%w: it is a file of %s; unpack or export it first", trace.ErrFormat, p.name)
		}
	}
	// Spreadsheets and shells of Windows mark which encoding they write.
	return transform.NewReader(plain, unicode.BOMOverride(encoding.Nop.NewDecoder())), done, nil
}

// fleetRow is the first row of a recording of a fleet, which has no header.
var fleetRow = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\d+\s*,\s*(add|remove)\s*,`) })

// content finds out what r holds and reads it.
func (im *importer) content(r *bufio.Reader) error {
	head, err := r.Peek(readSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case len(text) == 0:
		return fmt.Errorf("%w: it holds nothing", trace.ErrEmpty)
	case text[0] == '{' || text[0] == '[':
		return im.anyJSON(r, text)
	case bytes.HasPrefix(text, []byte("PAR1")):
		return fmt.Errorf("%w: it is packed Parquet; unpack it first", trace.ErrFormat)
	case fleetRow().Match(first):
		im.took("events of a fleet")
		return im.fleet(r)
	case yamlStart().Match(text):
		return im.yaml(r)
	}
	return im.lines(r, head, err != nil)
}

// yamlStart is the start of YAML: a member, perhaps of an element.
var yamlStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:---\s*\n\s*)?(?:-\s+)*["']?\w+["']?:(?: [^\t\n,;|]*)?\r?(?:\n|$)`)
})

// took notes what the source was taken for.
func (n *notes) took(format string) { n.report.Formats = append(n.report.Formats, format) }

func clip(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
