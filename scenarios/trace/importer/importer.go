// Package importer converts recordings of prices and availability by providers and researchers to
// traces. It recognises each format by its content and does not depend on how traces are stored.
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

// Options control how recordings are read, and contain values that recordings omit.
type Options struct {
	// Provider is the provider of rows that name none. If it is empty, it is the provider whose
	// format is used, or aws for a format that is used by several.
	Provider string

	// Region is the region of rows that name none and whose zone does not imply one.
	Region string

	// Zone and Type are the zone and instance type of recordings that do not contain them. Type
	// also overrides the type implied by the name of a file.
	Zone, Type string

	// From is the start of a recording that does not contain it: samples of availability, events of
	// a fleet, or a script.
	From policy.Time

	// At is the time of a snapshot that does not contain it.
	At policy.Time

	// PriceRatio is the price, as a share of the on-demand price, of markets for which only
	// availability was recorded; 0 means DefaultPriceRatio. Prices, if not nil, takes precedence
	// where it has prices of these markets.
	PriceRatio float64
	Prices     *trace.Trace

	// Script are the options for running a script of prices.
	Script ScriptOptions

	// Strict makes the first invalid row an error.
	Strict bool

	// Store returns the store of a source. The disk is used if Store is nil or returns nil.
	Store func(path string) trace.Store
}

// DefaultPriceRatio is the share of the on-demand price at which the price of most constant AWS
// markets is fixed.
const DefaultPriceRatio = 0.30

// A Report describes the sources that were read and the result.
type Report struct {
	// Formats lists the recognised format of each source, in order.
	Formats []string

	// Rows is the number of rows, and Bad the number of invalid ones. BadRows are the first invalid
	// rows, as "file:line: reason".
	Rows, Bad int
	BadRows   []string

	// Duplicates are further rows for the same market and time, of which the last applies. Joined
	// are rows for the same market and time with other properties, such as a price and
	// availability. Repeats are rows without new values. Changes is the number of remaining
	// changes.
	Duplicates, Joined, Repeats, Changes int

	Markets  int
	From, To policy.Time

	// WithoutOnDemand are the markets without an on-demand price in the recording and the catalog.
	// They are in the trace, but runs cannot use them.
	WithoutOnDemand []string

	// UnknownTypes are the instance types, as "provider/type", that are not in the catalog. Their
	// markets are in the trace, but runs cannot use them.
	UnknownTypes []string

	// Modelled are the markets for which only availability was recorded.
	Modelled []string

	// Unused are columns without a known meaning. Skipped are files in folders that contain no
	// prices, each with the reason.
	Unused, Skipped []string

	// Warnings describe properties of the recordings that may be unexpected.
	Warnings []string
}

// badRowsShown is the maximum number of invalid rows in a report.
const badRowsShown = 5

// Understood lists the supported formats, one per line.
const Understood = `these are understood, also compressed by gzip or zstd, and folders of them:
  AWS: what "aws ec2 describe-spot-price-history" prints, as JSON, YAML, text or table
  AWS: CSV, TSV, JSON, JSON lines, YAML and Parquet of a time, zone or zone ID, instance type and price, and perhaps of a
    product, region and on-demand price; columns are known by names like Timestamp, availability_zone or "Spot Price", and
    rows without names by their values; other columns are left out
  SpotLake: tables with the columns Time,InstanceType,Region,AZ,SpotPrice and perhaps SPS,IF,OndemandPrice
  Google Cloud: tables with the columns t,region,az,instance_type,accel,accel_count,spot,ondemand
  Google Cloud: responses of advice.capacityHistory of the Compute Engine API, of prices and preemption rates, as JSON
  Azure and others by region: tables with the columns t,cloud,region,instance_type,spot,ondemand
  Rackspace: tables with the columns t,region,serverclass,market_price,bid_p20,bid_p50,bid_p80
  Rackspace: the JSON of the percentiles feed
  availability: tables with the columns t,zone,requested,launched, of how many of the nodes requested at once came up
  availability: JSON with "metadata" and "data", of samples of one market, in files named like us-east-1a_v100_1.json
  availability: events of a fleet, rows of milliseconds,add|remove,node
  a script of prices: JSON with "default" and "series"`

// Import reads recordings of prices and availability into one trace. It recognises their format by
// their content. Rows may be in any order, and several recordings may cover the same markets.
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

	snapshots int // number of snapshots whose time is in the options
}

// A collection contains the events of all sources, in the order in which they were read, and their
// markets.
type collection struct {
	o       *Options
	markets []market
	numbers map[market]int32  // indices of the markets
	regions map[string][]byte // by zone; empty if unknown
	events  []event
	bids    [][3]policy.Money

	// from and to are the first and last time of all events.
	from, to policy.Time

	ids, names bool // AWS zones were given by ID, by name
	zeros      int  // number of on-demand prices written as 0
}

// notes contain the report, and the state of the source that is being read.
type notes struct {
	report   *Report
	strict   bool
	warnings []string
	zoneless bool // there was a warning about a time without a time zone

	path string // path of the current source
}

// add appends an event and sets its order.
func (c *collection) add(e event) {
	e.order = int32(len(c.events))
	c.events = append(c.events, e)
	c.from, c.to = min(c.from, e.at), max(c.to, e.at)
}

// bad counts an invalid row.
func (n *notes) bad(line int, reason error) error {
	return n.badAt(strconv.Itoa(line), reason)
}

// badAt counts an invalid value at a place of the source other than a line. It returns an error if
// Strict is set.
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

// warn adds a warning unless it already exists.
func (n *notes) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(n.warnings, w) {
		n.warnings = append(n.warnings, w)
	}
}

// source reads a file, or all files in a folder.
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
		if name := filepath.Base(e.Name); name[0] == '.' || name[0] == '_' { // such as _SUCCESS
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

// file reads one file.
func (im *importer) file(store trace.Store, entry trace.Entry) error {
	f, err := store.Open(entry.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	im.path = entry.Name
	stream, ok := f.(io.Reader) // for a pipe, which has no size
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

// readSize is the number of bytes that are read at once, and that are examined to recognise the
// format.
const readSize = 1 << 16

// A packed reader decompresses data. Every error except io.EOF means that the data is damaged.
type packed struct{ io.Reader }

// Read implements [io.Reader].
func (p packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", trace.ErrCorrupt, err)
	}
	return n, err
}

// packers are the magic numbers of unsupported formats.
var packers = []struct{ magic, name string }{
	{"PK\x03\x04", "zip"}, {"\xfd7zX", "xz"}, {"BZh", "bzip2"}, {"7z\xbc\xaf", "7-Zip"}, {"\x04\x22\x4d\x18", "LZ4"},
	{"SQLi", "SQLite"},
}

// unpacked returns the decompressed content of r as UTF-8, and a function to call when it has been
// read.
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
	// Spreadsheets and shells on Windows write a byte order mark.
	return transform.NewReader(plain, unicode.BOMOverride(encoding.Nop.NewDecoder())), done, nil
}

// fleetRow matches the first row of a recording of a fleet, which has no header.
var fleetRow = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\d+\s*,\s*(add|remove)\s*,`) })

// content recognises the format of r and reads it.
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

// yamlStart matches the start of YAML: a key, possibly of a list element.
var yamlStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:---\s*\n\s*)?(?:-\s+)*["']?\w+["']?:(?: [^\t\n,;|]*)?\r?(?:\n|$)`)
})

// took records the recognised format of the source.
func (n *notes) took(format string) { n.report.Formats = append(n.report.Formats, format) }

func clip(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
