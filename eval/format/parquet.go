package format

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
)

// The keys of what a Parquet file says of itself: what the JSON has at its top, and
// unit and definition of each metric.
const (
	keySchemaVersion = "spotter.schema_version"
	keyVersion       = "spotter.version"
	keyInvocation    = "spotter.invocation"
	keyConfig        = "spotter.config"
	keyMetrics       = "spotter.metrics"
	keyTraces        = "spotter.traces"
)

// A parquetMetric says in a file what a column is.
type parquetMetric struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	About string `json:"about"`
}

// A parquetColumn is one column of the rows of runs. Its tag has name and options; its
// value is of the type kind, or nil for null where kind is a pointer.
type parquetColumn struct {
	tag   string
	kind  reflect.Type
	value func(r *eval.Report, i int) any
}

// columnOf makes a column of what of returns for a run.
func columnOf[T any](tag string, of func(r *eval.Report, i int) T) parquetColumn {
	return parquetColumn{tag, reflect.TypeFor[T](), func(r *eval.Report, i int) any { return of(r, i) }}
}

// parquetColumns are those of a run, under the names that they have in the JSON: first
// what was run, then the metrics, then where the figures come from.
func parquetColumns() []parquetColumn {
	columns := []parquetColumn{
		columnOf("scenario,dict", func(r *eval.Report, i int) string { return r.Runs[i].Scenario }),
		columnOf("window", func(r *eval.Report, i int) int64 { return int64(r.Runs[i].Window) }),
		columnOf("from,timestamp(millisecond)", func(r *eval.Report, i int) int64 { return int64(r.Runs[i].Bound.Start) }),
		columnOf("to,timestamp(millisecond)", func(r *eval.Report, i int) int64 { return int64(r.Runs[i].End()) }),
		columnOf("seed", func(r *eval.Report, i int) uint64 { return r.Runs[i].Seed }),
		columnOf("policy,dict", func(r *eval.Report, i int) string { return r.Runs[i].Policy }),
		columnOf("parameters,optional,dict", func(r *eval.Report, i int) string {
			_, parameters, _ := strings.Cut(r.Runs[i].Policy, ":")
			return parameters
		}),
		columnOf("role,dict", func(r *eval.Report, i int) string { return role(&r.Config, r.Runs[i].Policy) }),
		columnOf("baseline", func(r *eval.Report, i int) bool { return r.Runs[i].Policy == r.Config.Baseline }),
	}
	for _, m := range eval.Metrics() {
		columns = append(columns, metricColumn(m))
	}
	return append(columns, originColumns()...)
}

// metricColumn is null where the figure is unknown. Whole numbers are integers; others
// are the float64 of the run, bit for bit.
func metricColumn(m eval.Metric) parquetColumn {
	known := func(r *eval.Report, i int) (float64, bool) { v := r.Runs[i].Value(m.Name); return v.V, v.Known }
	switch {
	case m.YesNo():
		return columnOf(m.Name+",optional", orNull(known, func(v float64) bool { return v != 0 }))
	case m.Whole():
		return columnOf(m.Name+",optional", orNull(known, func(v float64) int64 { return int64(v) }))
	}
	return columnOf(m.Name+",optional", orNull(known, func(v float64) float64 { return v }))
}

// orNull returns a value as another type, nil where it is unknown.
func orNull[T any](known func(*eval.Report, int) (float64, bool), as func(float64) T) func(*eval.Report, int) *T {
	return func(r *eval.Report, i int) *T {
		v, ok := known(r, i)
		if !ok {
			return nil
		}
		x := as(v)
		return &x
	}
}

// originColumns say how a run ended, what it was made of, and how to repeat it.
func originColumns() []parquetColumn {
	evidence := func(of func(e *eval.Evidence) string) func(*eval.Report, int) string {
		return func(r *eval.Report, i int) string {
			e := eval.EvidenceOf(r.Runs[i].Bound)
			return of(&e)
		}
	}
	return []parquetColumn{
		columnOf("error,optional", func(r *eval.Report, i int) string { return newRun(&r.Runs[i], "").Error }),
		columnOf("violations,list", func(r *eval.Report, i int) []string { return newRun(&r.Runs[i], "").Violations }),
		columnOf("warnings,list", func(r *eval.Report, i int) []string { return newRun(&r.Runs[i], "").Warnings }),
		columnOf("weather,optional", func(r *eval.Report, i int) string { return newRun(&r.Runs[i], "").Weather }),
		columnOf("hash,optional", func(r *eval.Report, i int) string { return newRun(&r.Runs[i], "").Hash }),
		columnOf("warm_up_s", func(r *eval.Report, i int) float64 { return r.Runs[i].Bound.WarmUp.Seconds() }),
		columnOf("ready_grace_s", func(r *eval.Report, i int) float64 { return r.Runs[i].Bound.ReadyGrace.Seconds() }),
		columnOf("intensity", func(r *eval.Report, i int) float64 { return r.Runs[i].Bound.Intensity }),
		columnOf("slots", func(r *eval.Report, i int) int64 { return int64(r.Runs[i].Bound.Slots) }),
		columnOf("truth,dict", func(r *eval.Report, i int) string { return r.Runs[i].Bound.Truth.String() }),
		columnOf("scenario_digest,dict", evidence(func(e *eval.Evidence) string { return e.File })),
		columnOf("conditions_digest,dict", evidence(func(e *eval.Evidence) string { return e.Conditions })),
		columnOf("demand_digest,dict", evidence(func(e *eval.Evidence) string { return e.Demand })),
		columnOf("trace,dict", func(r *eval.Report, i int) string { return r.Runs[i].Bound.Trace.Name }),
		columnOf("trace_digest,dict", func(r *eval.Report, i int) string { return hex.EncodeToString(r.Runs[i].Bound.TraceDigest[:]) }),
		columnOf("version,dict", func(r *eval.Report, _ int) string { return r.Config.Version }),
		columnOf("command", func(r *eval.Report, i int) string { return r.Command(i) }),
	}
}

// writeParquet writes a row for each run that was done of all reports, which have one
// configuration. Equal reports give equal bytes.
func writeParquet(w io.Writer, reports ...*eval.Report) error {
	columns := parquetColumns()
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("C%d", i), Type: c.kind, Tag: reflect.StructTag("parquet:" + strconv.Quote(c.tag))}
	}
	row := reflect.New(reflect.StructOf(fields))
	options, err := parquetHead(reports[0])
	if err != nil {
		return err
	}
	out := parquet.NewWriter(w, append(options, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Zstd))...)
	for _, r := range reports {
		for i := range r.Runs {
			if r.Runs[i].Unfinished() {
				continue
			}
			for k, c := range columns {
				row.Elem().Field(k).Set(reflect.ValueOf(c.value(r, i)))
			}
			if err := out.Write(row.Interface()); err != nil {
				return err
			}
		}
	}
	return out.Close()
}

// parquetHead is what a file says of all of its runs.
func parquetHead(r *eval.Report) ([]parquet.WriterOption, error) {
	options := []parquet.WriterOption{
		parquet.KeyValueMetadata(keySchemaVersion, strconv.Itoa(SchemaVersion)), parquet.KeyValueMetadata(keyVersion, r.Config.Version),
		parquet.KeyValueMetadata(keyInvocation, r.Config.Invocation),
	}
	var metrics []parquetMetric
	for _, m := range eval.Metrics() {
		metrics = append(metrics, parquetMetric{m.Name, m.Unit, m.About})
	}
	for _, x := range []struct {
		key   string
		value any
	}{{keyConfig, newConfig(r)}, {keyMetrics, metrics}, {keyTraces, newTraces(r)}} {
		text, err := json.Marshal(x.value)
		if err != nil {
			return nil, err
		}
		options = append(options, parquet.KeyValueMetadata(x.key, string(text)))
	}
	return options, nil
}

// instant returns a column in milliseconds as the JSON writes an instant.
func instant(ms any) string {
	n, _ := ms.(int64)
	return policy.Time(n).String()
}
