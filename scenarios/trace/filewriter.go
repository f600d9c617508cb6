package trace

import (
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
)

// A fileWriter writes files with the same schema, one after another, and reuses its buffers.
type fileWriter struct {
	parquet *parquet.GenericWriter[any]
	columns []fileColumn
	rows    []writtenRow
	values  []parquet.Value
}

// A writtenRow is a row of a file, with the index of its series.
type writtenRow struct {
	row
	series int32
}

// codec is shared by all writers: an encoder has megabytes of tables, and the codec reuses those of
// finished writers. Dictionary and delta encoding leave little to compress: a higher level saves 8%
// of the bytes and needs far more memory.
var codec = &zstd.Codec{Level: zstd.SpeedFastest}

// columnsOf returns the names of the columns that any of series has.
func columnsOf(series []Series) map[string]bool {
	names := map[string]bool{}
	for i := range series {
		for _, c := range series[i].optional() {
			names[c.name] = names[c.name] || c.len() > 0
		}
	}
	return names
}

// newWriter returns a writer for the named columns and those that every file has. Unless all is
// set, its files contain only the region of market, which is in their metadata.
func (t *Trace) newWriter(names map[string]bool, market *Series, all bool) *fileWriter {
	w := &fileWriter{}
	group := orderedGroup{Group: parquet.Group{}}
	for _, c := range fileColumns {
		region := c.name == colProvider || c.name == colRegion
		if c.required || c.name == colProduct || region && all || !region && names[c.name] {
			w.columns = append(w.columns, c)
			group.Group[c.name] = c.stored.node()
			group.order = append(group.order, c.name)
		}
	}
	options := []parquet.WriterOption{
		parquet.NewSchema("trace", group),
		parquet.Compression(codec),
		parquet.PageBufferSize(1 << 20),
		parquet.WriteBufferSize(1 << 16),
		parquet.CreatedBy("spotter", "1", "0"),
		parquet.SortingWriterConfig(parquet.SortingColumns(
			parquet.Ascending(colZone), parquet.Ascending(colType), parquet.Ascending(colTime))),
	}
	meta := t.metadata()
	if !all {
		meta[metaProvider], meta[metaRegion] = market.Provider, market.Region
	}
	meta[metaColumns] = strings.Join(group.order, ",")
	meta[metaSum] = headerSum(meta)
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		options = append(options, parquet.KeyValueMetadata(key, meta[key]))
	}
	w.parquet = parquet.NewGenericWriter[any](io.Discard, options...)
	return w
}

// metadata returns the metadata about the whole trace in each file.
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

// An orderedGroup keeps its columns in the order of the schema instead of in alphabetical order.
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
func (w *fileWriter) writeFile(path string, series []Series, rows []rowRef) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w.parquet.Reset(f)
	for begin := 0; begin < len(rows); begin += groupRows {
		if err := w.writeGroup(series, rows[begin:min(begin+groupRows, len(rows))]); err != nil {
			return err
		}
	}
	return w.parquet.Close()
}

// writeGroup writes rows as a row group.
func (w *fileWriter) writeGroup(series []Series, rows []rowRef) error {
	const most = 4096
	writers := w.parquet.ColumnWriters()
	w.values = slices.Grow(w.values[:0], most)
	for part := range slices.Chunk(rows, most) {
		w.rows = w.rows[:0]
		for _, ref := range part {
			s, k := &series[ref.series], int(ref.interval)
			r := writtenRow{row{at: ref.at, gap: -1, Sample: s.Sample(k)}, ref.series}
			if s.ProbeGap != nil && s.At[k] == r.at { // otherwise the row only repeats the interval
				r.gap = s.ProbeGap[k]
			}
			w.rows = append(w.rows, r)
		}
		w.values = w.values[:len(w.rows)]
		for k := range w.columns {
			w.columns[k].values(w.values, k, series, w.rows)
			if _, err := writers[k].WriteRowValues(w.values); err != nil {
				return fmt.Errorf("column %s: %w", w.columns[k].name, err)
			}
		}
	}
	return w.parquet.Flush()
}
