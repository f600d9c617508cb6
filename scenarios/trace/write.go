package trace

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/spotter-dev/spotter/policy"
)

// groupRows is the most rows of a row group. DuckDB works on row groups in
// parallel and makes its own this long.
const groupRows = 122_880

// Write stores t as a trace at dir. Nothing is seen of it there until it is
// complete. A trace that was there is replaced; anything else makes it fail
// with ErrTarget.
func Write(dir string, t *Trace) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	dir = filepath.Clean(dir)
	old, err := checkTarget(dir)
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("%s: %w: %w", dir, ErrTarget, err)
	}
	temp, err := os.MkdirTemp(parent, ".spotter-new-*")
	if inner := (*os.PathError)(nil); errors.As(err, &inner) { // whose path nobody knows
		return fmt.Errorf("%s: %w: %w", dir, ErrTarget, inner.Err)
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := t.writeFolder(temp); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return replace(dir, temp, old)
}

// A target is what stands where a trace is to be written.
type target uint8

const (
	targetFree target = iota
	targetEmpty
	targetTrace
)

func checkTarget(dir string) (target, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return targetFree, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: it cannot be read as a folder: %w", dir, ErrTarget, err)
	}
	if len(entries) == 0 {
		return targetEmpty, nil
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "provider=") {
			return 0, fmt.Errorf("%s: %w: it holds %q, which is no part of a trace; choose another folder",
				dir, ErrTarget, e.Name())
		}
	}
	return targetTrace, nil
}

// replace puts temp in the place of dir. A trace that is there is moved aside
// first and removed last, so that one of the two is always whole.
func replace(dir, temp string, old target) error {
	switch old {
	case targetEmpty:
		if err := os.Remove(dir); err != nil {
			return err
		}
	case targetTrace:
		aside := temp + ".old"
		if err := os.Rename(dir, aside); err != nil {
			return err
		}
		if err := os.Rename(temp, dir); err != nil {
			return errors.Join(err, os.Rename(aside, dir))
		}
		return os.RemoveAll(aside)
	}
	return os.Rename(temp, dir)
}

// validate checks that t could have come from this package.
func (t *Trace) validate() error {
	if len(t.Series) == 0 {
		return fmt.Errorf("%w: no markets", ErrEmpty)
	}
	for i := range t.Series {
		s := &t.Series[i]
		if i > 0 && compareSeries(&t.Series[i-1], s) >= 0 {
			return fmt.Errorf("%w: market %s stands after %s", ErrOrder, s.Name(), t.Series[i-1].Name())
		}
		if slices.Contains([]string{s.Provider, s.Region, s.Zone, s.Type}, "") {
			return fmt.Errorf("%w: market %s lacks a name", ErrValue, s.Name())
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("market %s: %w", s.Name(), err)
		}
		if n := len(s.At); n == 0 || s.At[0] < t.From || s.At[n-1] > t.To {
			return fmt.Errorf("market %s: %w: its times do not lie within %v to %v", s.Name(), ErrValue, t.From, t.To)
		}
	}
	return nil
}

// writeFolder writes one file for each region and date.
func (t *Trace) writeFolder(dir string) error {
	var rows rowBuffer
	for begin := 0; begin < len(t.Series); {
		first := &t.Series[begin]
		end := begin + 1
		for end < len(t.Series) && t.Series[end].Provider == first.Provider && t.Series[end].Region == first.Region {
			end++
		}
		region := filepath.Join(dir, "provider="+url.PathEscape(first.Provider), "region="+url.PathEscape(first.Region))
		if err := t.writeRegion(region, t.Series[begin:end], &rows); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

func (t *Trace) writeRegion(dir string, series []Series, rows *rowBuffer) error {
	first, last := t.days(series)
	next := make([]int, len(series)) // the spell of each series that is next
	w := t.newWriter(series, false)
	for d := first; d <= last; d += day {
		rows.reset()
		for begin := 0; begin < len(series); {
			end := begin + 1
			for end < len(series) && series[end].Zone == series[begin].Zone && series[end].Type == series[begin].Type {
				end++
			}
			rows.addDay(series[begin:end], next[begin:end], begin, d)
			begin = end
		}
		if len(rows.at) == 0 {
			continue
		}
		folder := filepath.Join(dir, "date="+d.Std().Format(time.DateOnly))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := w.writeFile(filepath.Join(folder, "part-0.parquet"), series, rows); err != nil {
			return err
		}
	}
	return nil
}

// days returns the first and last day that need a file.
func (t *Trace) days(series []Series) (first, last policy.Time) {
	first, last = timeMax, 0
	for i := range series {
		if at := series[i].At; len(at) > 0 {
			first, last = min(first, at[0]), max(last, at[len(at)-1])
		}
	}
	// A span that ends at midnight has nothing in the day that begins then.
	return dayOf(first), dayOf(max(last, t.To-1))
}

// A rowBuffer holds rows in the order in which they are written.
type rowBuffer struct {
	at     []policy.Time
	series []int32
	spell  []int32 // of the series; the values of a row are those of a spell
	values []parquet.Value
}

func (r *rowBuffer) reset() { r.at, r.series, r.spell = r.at[:0], r.series[:0], r.spell[:0] }

func (r *rowBuffer) add(at policy.Time, series, spell int) {
	r.at = append(r.at, at)
	r.series = append(r.series, int32(series))
	r.spell = append(r.spell, int32(spell))
}

// addDay adds the rows of day d of some series, which differ only in their
// product and of which the first has the number base.
func (r *rowBuffer) addDay(series []Series, next []int, base int, d policy.Time) {
	begin := len(r.at)
	for k := range series {
		s, i := &series[k], next[k]
		if i > 0 && (i == len(s.At) || s.At[i] != d) && s.sample(i-1).live() {
			r.add(d, base+k, i-1)
		}
		for ; i < len(s.At) && s.At[i] < d+day; i++ {
			r.add(s.At[i], base+k, i)
		}
		next[k] = i
	}
	if len(series) > 1 {
		r.sort(begin)
	}
}

// sort puts the rows from begin on in order of time, keeping that of products.
func (r *rowBuffer) sort(begin int) {
	order := make([]int, len(r.at)-begin)
	for i := range order {
		order[i] = begin + i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(r.at[a] - r.at[b]) })
	at, series, spell := slices.Clone(r.at), slices.Clone(r.series), slices.Clone(r.spell)
	for i, from := range order {
		r.at[begin+i], r.series[begin+i], r.spell[begin+i] = at[from], series[from], spell[from]
	}
}

// live reports whether a spell says something that a reader who begins later
// must know.
func (v sample) live() bool { return v.spot != policy.NoPrice || v.available >= 0 }

// WriteFile stores t as a single file, all of a market's rows together.
func WriteFile(path string, t *Trace) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	var rows rowBuffer
	for begin := 0; begin < len(t.Series); {
		end := begin + 1
		for end < len(t.Series) && sameButProduct(&t.Series[begin], &t.Series[end]) {
			end++
		}
		first := len(rows.at)
		for k := begin; k < end; k++ {
			for i, at := range t.Series[k].At {
				rows.add(at, k, i)
			}
		}
		if end-begin > 1 {
			rows.sort(first)
		}
		begin = end
	}
	first, last := &t.Series[0], &t.Series[len(t.Series)-1]
	several := first.Provider != last.Provider || first.Region != last.Region
	w := t.newWriter(t.Series, several)
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	temp.Close()
	defer os.Remove(temp.Name())
	if err := w.writeFile(temp.Name(), t.Series, &rows); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Chmod(temp.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func sameButProduct(a, b *Series) bool {
	return a.Provider == b.Provider && a.Region == b.Region && a.Zone == b.Zone && a.Type == b.Type
}

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
	level int // the definition level of a value: 1 if the column may have nulls
	value func(s *Series, at policy.Time, spell int32) parquet.Value
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
		return writtenColumn{column, node, 0, func(s *Series, _ policy.Time, _ int32) parquet.Value {
			return parquet.ByteArrayValue([]byte(get(s)))
		}}
	}
	columns := []writtenColumn{{
		colTime, parquet.Encoded(parquet.Timestamp(parquet.Millisecond), &parquet.DeltaBinaryPacked), 0,
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
	return writtenColumn{name, parquet.Optional(node), 1, func(s *Series, _ policy.Time, spell int32) parquet.Value {
		if col := of(s); col != nil {
			if v, ok := value(col[spell]); ok {
				return v
			}
		}
		return parquet.NullValue()
	}}
}

// sparse returns a column of what belongs to the begin of a spell, so that a
// row which only restates the spell at midnight has null there.
func sparse(name string, node parquet.Node, of func(*Series) []int32) writtenColumn {
	return writtenColumn{name, parquet.Optional(node), 1, func(s *Series, at policy.Time, spell int32) parquet.Value {
		if col := of(s); col != nil && s.At[spell] == at {
			return parquet.Int32Value(col[spell])
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
	for k, c := range w.columns {
		for at := begin; at < end; at += chunk {
			rows.values = rows.values[:0]
			for i := at; i < min(at+chunk, end); i++ {
				v := c.value(&series[rows.series[i]], rows.at[i], rows.spell[i])
				level := c.level
				if v.IsNull() {
					level = 0
				}
				rows.values = append(rows.values, v.Level(0, level, k))
			}
			if _, err := writers[k].WriteRowValues(rows.values); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
		}
	}
	return w.parquet.Flush()
}
