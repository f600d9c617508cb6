package trace

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// The names of the columns. Provider and region stand in the path where that
// has them, and are columns only where it has not.
const (
	colTime       = "time"
	colProvider   = "provider"
	colRegion     = "region"
	colZone       = "zone"
	colType       = "instance_type"
	colProduct    = "product"
	colSpot       = "spot_price"
	colOnDemand   = "on_demand_price"
	colAvailable  = "available"
	colBand       = "interruption_band"
	colScore      = "placement_score"
	colHazard     = "hazard"
	colTrueHazard = "true_hazard"
	colProbeGap   = "probe_gap"
	colRequested  = "requested"
	colLaunched   = "launched"
	colBidP20     = "bid_p20"
	colBidP50     = "bid_p50"
	colBidP80     = "bid_p80"
)

// The keys of the metadata of a file.
const (
	metaPrefix    = "spotter."
	metaSchema    = "spotter.schema"
	metaFrom      = "spotter.from"
	metaTo        = "spotter.to"
	metaSynthetic = "spotter.synthetic"
	metaScripted  = "spotter.scripted"
	metaAbout     = "spotter.about"
	metaProvider  = "spotter.provider"
	metaRegion    = "spotter.region"

	// metaColumns names the columns that were written and metaSum is a checksum
	// of the metadata: Parquet protects pages by one, but not what stands
	// behind them.
	metaColumns = "spotter.columns"
	metaSum     = "spotter.sum"

	// metaExtra begins the keys of Trace.Meta.
	metaExtra = "spotter.meta."
)

// The keys of Trace.Meta under which a recording says, in words, whose the prices are, on which dates
// they were recorded, how often, and by what.
const (
	MetaSource   = "source"
	MetaDates    = "dates"
	MetaSampling = "sampling"
	MetaFetcher  = "fetcher"
)

// MetaModelled is the key of Trace.Meta under which a recording says, in a
// sentence, what of it was not recorded. Open repeats it as a warning.
const MetaModelled = "modelled"

// AboutScripted begins Trace.About of scripted prices, which is what tells them
// in files that have not the key for it.
const AboutScripted = "scripted prices"

// schemaVersion is raised when a reader of the old files could misread new
// ones.
const schemaVersion = "1"

// headerSum returns the checksum of the metadata under our prefix, but for the
// checksum itself.
func headerSum(meta map[string]string) string {
	var b []byte
	text := func(s string) {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if strings.HasPrefix(key, metaPrefix) && key != metaSum {
			text(key)
			text(meta[key])
		}
	}
	return strconv.FormatUint(portable.Hash(b), 16)
}

// checkHeader compares the metadata of a file, if there are any of ours, with
// their checksum and the version of the schema.
func checkHeader(header []format.KeyValue) error {
	meta := map[string]string{}
	for _, kv := range header {
		meta[kv.Key] = kv.Value
	}
	if version, ok := meta[metaSchema]; ok && version != schemaVersion {
		return fmt.Errorf("%w: schema version %q, this program reads %s", ErrVersion, version, schemaVersion)
	}
	if sum, ok := meta[metaSum]; ok && sum != headerSum(meta) {
		return fmt.Errorf("%w: its metadata do not fit their checksum", ErrCorrupt)
	}
	return nil
}

// checkColumns fails when f lacks a column that it was written with. Columns
// may have been added since.
func checkColumns(f *parquet.File) error {
	written, _ := f.Lookup(metaColumns)
	if written == "" {
		return nil
	}
	columns := f.Root().Columns()
	for name := range strings.SplitSeq(written, ",") {
		if !slices.ContainsFunc(columns, func(c *parquet.Column) bool { return c.Name() == name }) {
			return fmt.Errorf("%w: column %s was written and is missing; the file has %s", ErrColumn, name, columnNames(columns))
		}
	}
	return nil
}

// Columns chooses what is read. Zero means everything that is there.
type Columns uint16

// The columns that can be chosen. ColumnMarket is the five names of a market
// together, ColumnBids the three percentiles of an auction's bids, ColumnDepth
// how many nodes were requested and how many of them came up.
const (
	ColumnTime Columns = 1 << iota
	ColumnMarket
	ColumnSpot
	ColumnOnDemand
	ColumnAvailable
	ColumnBand
	ColumnScore
	ColumnHazard
	ColumnTrueHazard
	ColumnProbeGap
	ColumnBids
	ColumnDepth
)

// has reports whether any column of want is chosen.
func (c Columns) has(want Columns) bool { return c == 0 || c&want != 0 }

// A physical says how the values of a column are stored.
type physical uint8

const (
	storedTime physical = iota
	storedString
	storedDouble
	storedBool
	storedInt
)

func (p physical) String() string {
	return [...]string{
		"TIMESTAMP (INT64, ms, us or ns)", "STRING", "DOUBLE", "BOOLEAN", "INT32 or INT64",
	}[p]
}

// A columnSpec is what is known of a column before a file is opened.
type columnSpec struct {
	name     string
	bit      Columns
	stored   physical
	required bool // every file has it, and no row lacks it
}

// columnSpecs are in the order in which columns are written.
var columnSpecs = [...]columnSpec{
	{colTime, ColumnTime, storedTime, true},
	{colProvider, ColumnMarket, storedString, false},
	{colRegion, ColumnMarket, storedString, false},
	{colZone, ColumnMarket, storedString, true},
	{colType, ColumnMarket, storedString, true},
	{colProduct, ColumnMarket, storedString, false},
	{colSpot, ColumnSpot, storedDouble, true},
	{colOnDemand, ColumnOnDemand, storedDouble, false},
	{colAvailable, ColumnAvailable, storedBool, false},
	{colBand, ColumnBand, storedInt, false},
	{colScore, ColumnScore, storedInt, false},
	{colHazard, ColumnHazard, storedDouble, false},
	{colTrueHazard, ColumnTrueHazard, storedDouble, false},
	{colProbeGap, ColumnProbeGap, storedInt, false},
	{colBidP20, ColumnBids, storedDouble, false},
	{colBidP50, ColumnBids, storedDouble, false},
	{colBidP80, ColumnBids, storedDouble, false},
	{colRequested, ColumnDepth, storedInt, false},
	{colLaunched, ColumnDepth, storedInt, false},
}

// A leaf is a column of an open file.
type leaf struct {
	columnSpec
	index int

	// scale turns stored times into milliseconds: above zero they are divided
	// by it.
	scale int64
}

// findLeaves returns the columns of f that o asks for, and fails when a needed
// one is absent or stored otherwise than it must be.
func findLeaves(file string, f *parquet.File, want Columns) ([]leaf, error) {
	var leaves []leaf
	columns := f.Root().Columns()
	for _, spec := range columnSpecs {
		if !want.has(spec.bit) {
			continue
		}
		i := slices.IndexFunc(columns, func(c *parquet.Column) bool { return c.Name() == spec.name })
		if i < 0 {
			if spec.required {
				return nil, &FileError{
					File: file, Column: spec.name,
					Err:   fmt.Errorf("%w: it is missing", ErrColumn),
					Value: "the file has " + columnNames(columns),
				}
			}
			continue
		}
		l := leaf{columnSpec: spec, scale: 1}
		if !l.accept(columns[i]) {
			return nil, &FileError{
				File: file, Column: spec.name,
				Err:   fmt.Errorf("%w: it must be %v", ErrColumn, spec.stored),
				Value: "it is " + columns[i].String(),
			}
		}
		leaves = append(leaves, l)
	}
	return leaves, nil
}

func columnNames(columns []*parquet.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name()
	}
	if len(names) == 0 {
		return "no columns"
	}
	return strings.Join(names, ", ")
}

// accept reports whether c is stored as l must be, and notes how.
func (l *leaf) accept(c *parquet.Column) bool {
	if !c.Leaf() || c.Repeated() {
		return false
	}
	l.index = c.Index()
	kind := c.Type().Kind()
	switch l.stored {
	case storedTime:
		l.scale = timeScale(c.Type())
		return kind == parquet.Int64 && l.scale > 0
	case storedString:
		return kind == parquet.ByteArray
	case storedDouble:
		return kind == parquet.Double
	case storedBool:
		return kind == parquet.Boolean
	}
	return kind == parquet.Int32 || kind == parquet.Int64
}

// timeScale returns how many units of a timestamp are one millisecond, 0 if t
// is none.
func timeScale(t parquet.Type) int64 {
	if logical := t.LogicalType(); logical != nil {
		stamp, ok := logical.Value.(*format.TimestampType)
		if !ok {
			return 0
		}
		switch stamp.Unit.Value.(type) {
		case *format.MilliSeconds:
			return 1
		case *format.MicroSeconds:
			return 1_000
		case *format.NanoSeconds:
			return 1_000_000
		}
		return 0
	}
	if converted := t.ConvertedType(); converted != nil {
		switch *converted {
		case deprecated.TimestampMillis:
			return 1
		case deprecated.TimestampMicros:
			return 1_000
		}
	}
	return 0
}

// Price returns a price of so many dollars as a trace has it, and whether it can be one.
func Price(dollars float64) (policy.Money, bool) {
	if !(dollars >= 0 && dollars <= priceMax.Float()) {
		return 0, false
	}
	return policy.Dollars(dollars), true
}
