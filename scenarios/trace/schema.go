package trace

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// The names of the columns. Provider and region are columns only if the path does not contain them.
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

	// metaColumns lists the columns that were written. metaSum is a checksum of the metadata, since
	// the checksums of Parquet cover only pages.
	metaColumns = "spotter.columns"
	metaSum     = "spotter.sum"

	// metaExtra is the prefix of the keys of Trace.Meta.
	metaExtra = "spotter.meta."
)

// The keys of Trace.Meta with the source of the recorded prices, the dates of the recording, its
// frequency, and the recording program, in words.
const (
	MetaSource   = "source"
	MetaDates    = "dates"
	MetaSampling = "sampling"
	MetaFetcher  = "fetcher"
)

// MetaModelled is the key of Trace.Meta with a sentence about the values that were not recorded.
// Open adds it to the warnings.
const MetaModelled = "modelled"

// AboutScripted is the prefix of Trace.About of scripted prices. It identifies them in files that
// lack the key for it.
const AboutScripted = "scripted prices"

// schemaVersion is incremented when a reader of the old files could misread new ones.
const schemaVersion = "1"

// headerSum returns the checksum of the metadata with the prefix metaPrefix, except the checksum
// itself.
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

// checkHeader checks the metadata that Spotter wrote to a file, if it has any, against their
// checksum and the version of the schema.
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

// checkColumns returns an error if f lacks a column that was written to it. Additional columns are
// allowed.
func checkColumns(f *parquet.File) error {
	written, _ := f.Lookup(metaColumns)
	if written == "" {
		return nil
	}
	for name := range strings.SplitSeq(written, ",") {
		if f.Root().Column(name) == nil {
			return fmt.Errorf("%w: column %s was written and is missing; the file has %s",
				ErrColumn, name, columnNames(f.Root().Columns()))
		}
	}
	return nil
}

// A kind is the physical and logical type of a column.
type kind uint8

const (
	storedTime kind = iota
	storedString
	storedDouble
	storedBool
	storedInt
)

func (k kind) String() string {
	return [...]string{
		"TIMESTAMP (INT64, ms, us or ns)", "STRING", "DOUBLE", "BOOLEAN", "INT32 or INT64",
	}[k]
}

// node returns the Parquet node with which a column of this kind is written.
func (k kind) node() parquet.Node {
	switch k {
	case storedTime:
		return parquet.Encoded(parquet.Timestamp(parquet.Millisecond), &parquet.DeltaBinaryPacked)
	case storedString:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	case storedDouble:
		return parquet.Optional(parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.RLEDictionary))
	case storedBool:
		return parquet.Optional(parquet.Leaf(parquet.BooleanType))
	}
	return parquet.Optional(parquet.Leaf(parquet.Int32Type))
}

// A row is a row of a file.
type row struct {
	at     policy.Time
	market marketCode
	gap    int32 // Series.ProbeGap of the interval that starts here, -1 if the row has none
	Sample
}

// A marketCode contains the codes of a market's names: provider, region, zone, type and product.
type marketCode [5]int32

// A fileColumn is a column that a file may have.
type fileColumn struct {
	name     string
	stored   kind
	required bool // every file has it

	// market is the index of a column of names in a marketCode.
	market int

	// set stores values in rows without values, and returns the index of the first row with an
	// invalid value, with the error. get returns the value of a row and whether it is known. Both
	// are nil for times and names.
	set func(rows []row, values []parquet.Value) (int, error)
	get func(r *row) (float64, bool)
}

// fileColumns are in the order in which files contain them.
var fileColumns = [...]fileColumn{
	{name: colTime, stored: storedTime, required: true},
	{name: colProvider, stored: storedString, market: 0},
	{name: colRegion, stored: storedString, market: 1},
	{name: colZone, stored: storedString, market: 2, required: true},
	{name: colType, stored: storedString, market: 3, required: true},
	{name: colProduct, stored: storedString, market: 4},
	price(colSpot, policy.NoPrice, func(r *row) *policy.Money { return &r.Spot }),
	price(colOnDemand, 0, func(r *row) *policy.Money { return &r.OnDemand }),
	number(colAvailable, storedBool, 1, func(r *row) *int8 { return &r.Available }),
	number(colBand, storedInt, bandMax, func(r *row) *int8 { return &r.Band }),
	number(colScore, storedInt, ScoreMax, func(r *row) *int8 { return &r.Score }),
	number(colHazard, storedDouble, hazardMax, func(r *row) *float64 { return &r.Hazard }),
	number(colTrueHazard, storedDouble, hazardMax, func(r *row) *float64 { return &r.TrueHazard }),
	number(colProbeGap, storedInt, ProbeGapMax, func(r *row) *int32 { return &r.gap }),
	price(colBidP20, 0, func(r *row) *policy.Money { return &r.Bids[0] }),
	price(colBidP50, 0, func(r *row) *policy.Money { return &r.Bids[1] }),
	price(colBidP80, 0, func(r *row) *policy.Money { return &r.Bids[2] }),
	number(colRequested, storedInt, RequestedMax, func(r *row) *int32 { return &r.Requested }),
	number(colLaunched, storedInt, RequestedMax, func(r *row) *int32 { return &r.Launched }),
}

// price returns a column of prices.
func price(name string, unknown policy.Money, field func(*row) *policy.Money) fileColumn {
	return fileColumn{
		name: name, stored: storedDouble, required: name == colSpot,
		set: func(rows []row, values []parquet.Value) (int, error) {
			for i, v := range values {
				if v.IsNull() {
					continue
				}
				m, ok := Price(v.Double())
				if !ok && v.Double() < 0 {
					return i, fmt.Errorf("%w: negative price", ErrValue)
				} else if !ok {
					return i, fmt.Errorf("%w: a price must be a number from 0 up", ErrValue)
				}
				*field(&rows[i]) = m
			}
			return 0, nil
		},
		get: func(r *row) (float64, bool) { m := *field(r); return m.Float(), m != unknown },
	}
}

// number returns a column of numbers in [0, most]; -1 means unknown.
func number[T int8 | int32 | float64](name string, stored kind, most float64, field func(*row) *T) fileColumn {
	return fileColumn{
		name: name, stored: stored,
		set: func(rows []row, values []parquet.Value) (int, error) {
			for i, v := range values {
				if v.IsNull() {
					continue
				}
				x := float(v)
				if !(x >= 0 && x <= most || x == -1) {
					return i, fmt.Errorf("%w: not between 0 and %g", ErrValue, most)
				}
				*field(&rows[i]) = T(x)
			}
			return 0, nil
		},
		get: func(r *row) (float64, bool) { v := *field(r); return float64(v), v >= 0 },
	}
}

// values sets values to those of the column, which has index k, in rows. Rows refer to series in
// all.
func (c *fileColumn) values(values []parquet.Value, k int, all []Series, rows []writtenRow) {
	for i := range rows {
		r := &rows[i]
		switch {
		case c.stored == storedTime:
			values[i] = parquet.Int64Value(int64(r.at)).Level(0, 0, k)
		case c.stored != storedString:
			values[i] = parquet.NullValue().Level(0, 0, k)
			if v, ok := c.get(&r.row); ok {
				values[i] = c.value(v).Level(0, 1, k)
			}
		case i > 0 && r.series == rows[i-1].series:
			values[i] = values[i-1]
		default:
			values[i] = parquet.ByteArrayValue([]byte(all[r.series].names()[c.market])).Level(0, 0, k)
		}
	}
}

// value returns a number in the type of the column.
func (c *fileColumn) value(v float64) parquet.Value {
	switch c.stored {
	case storedBool:
		return parquet.BooleanValue(v == 1)
	case storedInt:
		return parquet.Int32Value(int32(v))
	}
	return parquet.DoubleValue(v)
}

// A leaf is a column of an open file.
type leaf struct {
	*fileColumn
	index int

	// scale is the number of units of a stored time per millisecond.
	scale int64
}

// findLeaves returns the known columns of f, or only those of times and names if names is set. It
// returns an error if a required column is missing or a column has the wrong type.
func findLeaves(file string, f *parquet.File, names bool) ([]leaf, error) {
	var leaves []leaf
	found := f.Root().Columns()
	for i := range fileColumns {
		c := &fileColumns[i]
		if names && c.get != nil {
			continue
		}
		stored := f.Root().Column(c.name)
		switch {
		case stored == nil && c.required:
			return nil, &FileError{
				File: file, Column: c.name,
				Err:   fmt.Errorf("%w: it is missing", ErrColumn),
				Value: "the file has " + columnNames(found),
			}
		case stored == nil:
			continue
		}
		l := leaf{fileColumn: c, scale: 1}
		if !l.accept(stored) {
			return nil, &FileError{
				File: file, Column: c.name,
				Err:   fmt.Errorf("%w: it must be %v", ErrColumn, c.stored),
				Value: "it is " + stored.String(),
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

// accept reports whether c has the type that l requires, and records its index and scale.
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

// timeScale returns the number of units of a timestamp per millisecond, 0 if t is not a timestamp.
func timeScale(t parquet.Type) int64 {
	logical := t.LogicalType()
	if logical == nil {
		return 0
	}
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

// Price converts a price in dollars to the unit of traces. It reports false for an impossible
// price.
func Price(dollars float64) (policy.Money, bool) {
	if !(dollars >= 0 && dollars <= priceMax.Float()) {
		return 0, false
	}
	return policy.Dollars(dollars), true
}
