package format

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/tabular"
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

// A runOf is a place in Runs of a report, with the run as the JSON has it and the
// evidence of its case.
type runOf struct {
	*eval.Report
	i        int
	json     jsonRun
	evidence *eval.Evidence
}

func (r *runOf) run() *eval.RunRow { return &r.Runs[r.i] }

// runColumns are those of a run, under the names that they have in the JSON: first what
// was run, then the metrics, then where the figures come from.
func runColumns() []tabular.Column[*runOf] {
	out := []tabular.Column[*runOf]{
		tabular.Of("scenario", "dict", func(r *runOf) string { return r.run().Scenario }),
		tabular.Of("window", "", func(r *runOf) int64 { return int64(r.run().Window) }),
		tabular.Time("from", func(r *runOf) policy.Time { return r.run().Bound.Start }),
		tabular.Time("to", func(r *runOf) policy.Time { return r.run().End() }),
		tabular.Of("seed", "", func(r *runOf) uint64 { return r.run().Seed }),
		tabular.Of("policy", "dict", func(r *runOf) string { return r.run().Policy }),
		tabular.Text("parameters", func(r *runOf) string {
			_, parameters, _ := strings.Cut(r.run().Policy, ":")
			return parameters
		}),
		tabular.Of("role", "dict", func(r *runOf) string { return role(&r.Config, r.run().Policy) }),
		tabular.Of("baseline", "", func(r *runOf) bool { return r.run().Policy == r.Config.Baseline }),
	}
	out = append(out, MetricColumns((*runOf).run)...)
	return append(out, originColumns()...)
}

// MetricColumns are those of all metrics of the run that a row has, null where a figure is unknown.
// Whole numbers are integers; others are the float64 of the run, bit for bit.
func MetricColumns[R any](run func(R) *eval.RunRow) (out []tabular.Column[R]) {
	for _, m := range eval.Metrics() {
		switch {
		case m.YesNo():
			out = append(out, tabular.Of(m.Name, "optional", orNull(run, m.Name, func(v float64) bool { return v != 0 })))
		case m.Whole():
			out = append(out, tabular.Of(m.Name, "optional", orNull(run, m.Name, func(v float64) int64 { return int64(v) })))
		default:
			out = append(out, tabular.Of(m.Name, "optional", orNull(run, m.Name, func(v float64) float64 { return v })))
		}
	}
	return out
}

// orNull returns a metric as another type, nil where it is unknown.
func orNull[R, T any](run func(R) *eval.RunRow, metric string, as func(float64) T) func(R) *T {
	return func(r R) *T {
		v := run(r).Value(metric)
		if !v.Known {
			return nil
		}
		x := as(v.V)
		return &x
	}
}

// originColumns say how a run ended, what it was made of, and how to repeat it.
func originColumns() []tabular.Column[*runOf] {
	return []tabular.Column[*runOf]{
		tabular.Text("error", func(r *runOf) string { return r.json.Error }),
		tabular.Of("violations", "list", func(r *runOf) []string { return r.json.Violations }),
		tabular.Of("warnings", "list", func(r *runOf) []string { return r.json.Warnings }),
		tabular.Of("outage", "optional,json", func(r *runOf) string { return orEmpty(r.json.Outage == nil, r.json.Outage) }),
		tabular.Of("budgets", "optional,json", func(r *runOf) string { return orEmpty(r.json.Budgets == nil, r.json.Budgets) }),
		tabular.Of("weather", "optional", func(r *runOf) string { return r.json.Weather }),
		tabular.Of("hash", "optional", func(r *runOf) string { return r.json.Hash }),
		tabular.Of("warm_up_s", "", func(r *runOf) float64 { return r.run().Bound.WarmUp.Seconds() }),
		tabular.Of("ready_grace_s", "", func(r *runOf) float64 { return r.run().Bound.ReadyGrace.Seconds() }),
		tabular.Of("intensity", "", func(r *runOf) float64 { return r.run().Bound.Intensity }),
		tabular.Of("slots", "", func(r *runOf) int64 { return int64(r.run().Bound.Slots) }),
		tabular.Of("truth", "dict", func(r *runOf) string { return r.run().Bound.Truth.String() }),
		tabular.Text("karpenter_version", func(r *runOf) string { return karpenterOf(r.run().Bound) }),
		tabular.Text("start", func(r *runOf) string { return r.run().Bound.StartCluster.String() }),
		tabular.Text("node_fee", func(r *runOf) string { return feeOf(r.run().Bound) }),
		tabular.Of("scenario_digest", "dict", func(r *runOf) string { return r.evidence.File }),
		tabular.Of("conditions_digest", "dict", func(r *runOf) string { return r.evidence.Conditions }),
		tabular.Of("demand_digest", "dict", func(r *runOf) string { return r.evidence.Demand }),
		tabular.Of("trace", "dict", func(r *runOf) string { return r.run().Bound.Trace.Name }),
		tabular.Of("trace_digest", "dict", func(r *runOf) string { return hex.EncodeToString(r.run().Bound.TraceDigest[:]) }),
		tabular.Of("version", "dict", func(r *runOf) string { return r.Config.Version }),
		tabular.Of("command", "", func(r *runOf) string { return r.json.Command }),
	}
}

// orEmpty returns v as JSON, "" where it is empty. The JSON of a run cannot fail: it has
// no value that JSON lacks.
func orEmpty(empty bool, v any) string {
	if empty {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("format: " + err.Error())
	}
	return string(text)
}

// writeParquet writes a row for each run that was done of all reports, which have one
// configuration. Equal reports give equal bytes.
func writeParquet(w io.Writer, reports ...*eval.Report) error {
	options, err := parquetHead(reports[0])
	if err != nil {
		return err
	}
	return tabular.WriteParquet(w, runColumns(), func(yield func(*runOf) bool) {
		for _, r := range reports {
			evidence := make([]eval.Evidence, len(r.Config.Cases))
			for i := range evidence {
				evidence[i] = eval.EvidenceOf(r.Config.Cases[i].Bound)
			}
			for i := range r.Runs {
				run := &r.Runs[i]
				if !run.Unfinished() && !yield(&runOf{r, i, newRun(run, r.Command(i)), &evidence[run.CaseIndex]}) {
					return
				}
			}
		}
	}, options...)
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
