package trace

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/spotter-dev/spotter/policy"
)

// A fileWriter writes files of one schema, one after the other, in the same
// buffers.
type fileWriter struct {
	parquet *parquet.GenericWriter[any]
	columns []writtenColumn
}

// A writtenColumn is a column and how its value is taken from a row.
type writtenColumn struct {
	name  string
	node  parquet.Node
	named bool // of a name of the market, the same in all rows of a series
	level int  // the definition level of a value: 1 if the column may have nulls
	value func(s *Series, at policy.Time, interval int32) parquet.Value
}

// codec is shared by all writers: an encoder has megabytes of tables, and the
// codec keeps those that are not in use. Dictionaries and differences leave
// little to compress: a higher level saves 8 % of the bytes and asks for far
// more memory.
var codec = &zstd.Codec{Level: zstd.SpeedFastest}

// newWriter returns a writer for the columns that any of series has.
func (t *Trace) newWriter(series []Series, withRegion bool) *fileWriter {
	columns := columnsOf(series, withRegion)
	group := orderedGroup{Group: parquet.Group{}}
	for _, c := range columns {
		group.Group[c.name] = c.node
		group.order = append(group.order, c.name)
	}
	options := []parquet.WriterOption{
		parquet.NewSchema("trace", group),
		parquet.Compression(codec),
		parquet.PageBufferSize(1 << 20),
		parquet.CreatedBy("spotter", "1", "0"),
		parquet.SortingWriterConfig(parquet.SortingColumns(
			parquet.Ascending(colZone), parquet.Ascending(colType), parquet.Ascending(colTime))),
	}
	meta := t.metadata()
	if !withRegion {
		meta[metaProvider], meta[metaRegion] = series[0].Provider, series[0].Region
	}
	meta[metaColumns] = strings.Join(group.order, ",")
	meta[metaSum] = headerSum(meta)
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		options = append(options, parquet.KeyValueMetadata(key, meta[key]))
	}
	return &fileWriter{parquet: parquet.NewGenericWriter[any](io.Discard, options...), columns: columns}
}

// metadata returns what each file says of the whole trace.
func (t *Trace) metadata() map[string]string {
	meta := map[string]string{
		metaSchema: schemaVersion,
		metaFrom:   t.From.Std().Format(time.RFC3339Nano),
		metaTo:     t.To.Std().Format(time.RFC3339Nano),
		metaAbout:  t.About,
	}
	if !t.Unmarked {
		meta[metaSynthetic] = strconv.FormatBool(t.Synthetic)
	}
	if t.Scripted {
		meta[metaScripted] = "true"
	}
	for key, value := range t.Meta {
		meta[metaExtra+key] = value
	}
	return meta
}

// columnsOf returns the columns that any of series needs, in the order of the
// schema.
func columnsOf(series []Series, withRegion bool) []writtenColumn {
	name := func(column string, get func(*Series) string) writtenColumn {
		node := parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		return writtenColumn{column, node, true, 0, func(s *Series, _ policy.Time, _ int32) parquet.Value {
			return parquet.ByteArrayValue([]byte(get(s)))
		}}
	}
	columns := []writtenColumn{{
		colTime, parquet.Encoded(parquet.Timestamp(parquet.Millisecond), &parquet.DeltaBinaryPacked), false, 0,
		func(_ *Series, at policy.Time, _ int32) parquet.Value { return parquet.Int64Value(int64(at)) },
	}}
	if withRegion {
		columns = append(columns,
			name(colProvider, func(s *Series) string { return s.Provider }),
			name(colRegion, func(s *Series) string { return s.Region }))
	}
	columns = append(columns,
		name(colZone, func(s *Series) string { return s.Zone }),
		name(colType, func(s *Series) string { return s.Type }),
		name(colProduct, func(s *Series) string { return cmp.Or(s.Product, ProductLinux) }))
	return append(columns, valueColumns(series)...)
}

// A priceColumn is a column of money, and what stands there for null.
type priceColumn struct {
	name    string
	of      func(*Series) []policy.Money
	unknown policy.Money
}

var priceColumns = [...]priceColumn{
	{colSpot, func(s *Series) []policy.Money { return s.Spot }, policy.NoPrice},
	{colOnDemand, func(s *Series) []policy.Money { return s.OnDemand }, 0},
	{colBidP20, func(s *Series) []policy.Money { return s.Bids[0] }, 0},
	{colBidP50, func(s *Series) []policy.Money { return s.Bids[1] }, 0},
	{colBidP80, func(s *Series) []policy.Money { return s.Bids[2] }, 0},
}

// valueColumns returns the columns that are not names. The price of a spot
// node is always there, the others where any of series has them.
func valueColumns(series []Series) []writtenColumn {
	var columns []writtenColumn
	double := parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.RLEDictionary)
	whole := parquet.Leaf(parquet.Int32Type)
	for _, c := range priceColumns {
		if c.name == colSpot || anyHas(series, c.of) {
			columns = append(columns, optional(c.name, double, c.of, func(m policy.Money) (parquet.Value, bool) {
				return parquet.DoubleValue(m.Float()), m != c.unknown
			}))
		}
	}
	if available := func(s *Series) []int8 { return s.Available }; anyHas(series, available) {
		columns = append(columns, optional(colAvailable, parquet.Leaf(parquet.BooleanType), available,
			func(v int8) (parquet.Value, bool) { return parquet.BooleanValue(v == 1), v >= 0 }))
	}
	if gap := func(s *Series) []int32 { return s.ProbeGap }; anyHas(series, gap) {
		columns = append(columns, sparse(colProbeGap, whole, gap))
	}
	if launched := func(s *Series) []int32 { return s.Launched }; anyHas(series, launched) {
		count := func(n int32) (parquet.Value, bool) { return parquet.Int32Value(n), n >= 0 }
		columns = append(columns, optional(colRequested, whole, func(s *Series) []int32 { return s.Requested }, count),
			optional(colLaunched, whole, launched, count))
	}
	small := func(name string, of func(*Series) []int8) {
		if anyHas(series, of) {
			columns = append(columns, optional(name, whole, of,
				func(v int8) (parquet.Value, bool) { return parquet.Int32Value(int32(v)), v >= 0 }))
		}
	}
	small(colBand, func(s *Series) []int8 { return s.Band })
	small(colScore, func(s *Series) []int8 { return s.Score })
	rate := func(name string, of func(*Series) []float64) {
		if anyHas(series, of) {
			columns = append(columns, optional(name, double, of,
				func(v float64) (parquet.Value, bool) { return parquet.DoubleValue(v), v >= 0 }))
		}
	}
	rate(colHazard, func(s *Series) []float64 { return s.Hazard })
	rate(colTrueHazard, func(s *Series) []float64 { return s.TrueHazard })
	slices.SortFunc(columns, func(a, b writtenColumn) int { return placeOf(a.name) - placeOf(b.name) })
	return columns
}

// placeOf returns the place of a column in the schema.
func placeOf(name string) int {
	return slices.IndexFunc(columnSpecs[:], func(c columnSpec) bool { return c.name == name })
}

func anyHas[T any](series []Series, of func(*Series) []T) bool {
	return slices.ContainsFunc(series, func(s Series) bool { return of(&s) != nil })
}

// optional returns a column that may have nulls: where a series lacks it, and
// where value says so.
func optional[T any](
	name string, node parquet.Node, of func(*Series) []T, value func(T) (parquet.Value, bool),
) writtenColumn {
	return writtenColumn{name, parquet.Optional(node), false, 1, func(s *Series, _ policy.Time, interval int32) parquet.Value {
		if col := of(s); col != nil {
			if v, ok := value(col[interval]); ok {
				return v
			}
		}
		return parquet.NullValue()
	}}
}

// sparse returns a column of what belongs to the begin of an interval, so that a
// row which only restates the interval at midnight has null there.
func sparse(name string, node parquet.Node, of func(*Series) []int32) writtenColumn {
	return writtenColumn{name, parquet.Optional(node), false, 1, func(s *Series, at policy.Time, interval int32) parquet.Value {
		if col := of(s); col != nil && s.At[interval] == at {
			return parquet.Int32Value(col[interval])
		}
		return parquet.NullValue()
	}}
}

// An orderedGroup keeps columns in the order of the schema and not in that of
// the alphabet.
type orderedGroup struct {
	parquet.Group
	order []string
}

// Fields returns the columns in order.
func (g orderedGroup) Fields() []parquet.Field {
	fields := g.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(g.order, a.Name()) - slices.Index(g.order, b.Name())
	})
	return fields
}

// writeFile writes rows to path.
func (w *fileWriter) writeFile(path string, series []Series, rows *rowBuffer) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	buffered := bufio.NewWriterSize(f, 1<<16)
	w.parquet.Reset(buffered)
	for begin := 0; begin < len(rows.at); begin += groupRows {
		end := min(begin+groupRows, len(rows.at))
		if err := w.writeGroup(series, rows, begin, end); err != nil {
			return err
		}
	}
	if err := w.parquet.Close(); err != nil {
		return err
	}
	return buffered.Flush()
}

func (w *fileWriter) writeGroup(series []Series, rows *rowBuffer, begin, end int) error {
	const chunk = 4096
	writers := w.parquet.ColumnWriters()
	rows.values = slices.Grow(rows.values[:0], chunk)
	for k, c := range w.columns {
		for at := begin; at < end; at += chunk {
			rows.values = rows.values[:min(chunk, end-at)]
			for n := range rows.values {
				i := at + n
				of := rows.series[i]
				if c.named && n > 0 && of == rows.series[i-1] {
					rows.values[n] = rows.values[n-1]
					continue
				}
				v := c.value(&series[of], rows.at[i], rows.interval[i])
				level := c.level
				if v.IsNull() {
					level = 0
				}
				rows.values[n] = v.Level(0, level, k)
			}
			if _, err := writers[k].WriteRowValues(rows.values); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
		}
	}
	return w.parquet.Flush()
}
