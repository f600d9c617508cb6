package format

import (
	"encoding/json"
	"io"
	"iter"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/policy"
)

// A reportedRun is a run of a report with the fields of the JSON, and its case.
type reportedRun struct {
	*eval.Report
	i int
	eval.RunReport
	of *eval.CaseReport
}

func (r *reportedRun) row() *eval.RunRow { return &r.Runs[r.i] }

// reportedRuns returns the finished runs of all reports.
func reportedRuns(reports ...*eval.Report) iter.Seq[*reportedRun] {
	return func(yield func(*reportedRun) bool) {
		for _, r := range reports {
			cases := r.CaseReports()
			for i := range r.Runs {
				run := &r.Runs[i]
				if !run.Unfinished() && !yield(&reportedRun{r, i, run.Report(r.Command(i)), &cases[run.CaseIndex]}) {
					return
				}
			}
		}
	}
}

// runColumns returns the columns of a run, which have the same names as in the JSON: first what was
// run, then the metrics, then the origin of the results.
func runColumns() []tabular.Column[*reportedRun] {
	out := []tabular.Column[*reportedRun]{
		tabular.Of("scenario", "dict", func(r *reportedRun) string { return r.Scenario }),
		tabular.Of("window", "", func(r *reportedRun) int64 { return int64(r.Window) }),
		tabular.Time("from", func(r *reportedRun) policy.Time { return policy.Time(r.of.From) }),
		tabular.Time("to", func(r *reportedRun) policy.Time { return policy.Time(r.of.To) }),
		tabular.Of("seed", "", func(r *reportedRun) uint64 { return r.Seed }),
		tabular.Of("policy", "dict", func(r *reportedRun) string { return r.Policy }),
		tabular.Text("parameters", func(r *reportedRun) string {
			_, parameters, _ := strings.Cut(r.Policy, ":")
			return parameters
		}),
		tabular.Of("role", "dict", func(r *reportedRun) string { return r.Config.Role(r.Policy) }),
		tabular.Of("baseline", "", func(r *reportedRun) bool { return r.Policy == r.Config.Baseline }),
	}
	out = append(out, MetricColumns((*reportedRun).row)...)
	return append(out, originColumns()...)
}

// MetricColumns returns a column for each metric of a run, null if the value is unknown. Whole
// numbers are integers; others are exactly the float64 of the run.
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

// orNull returns a function that converts a metric to T, nil if it is unknown.
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

// originColumns returns the columns about the end of a run, its inputs, and the command that
// repeats it.
func originColumns() []tabular.Column[*reportedRun] {
	return []tabular.Column[*reportedRun]{
		tabular.Of("worst", "", func(r *reportedRun) bool {
			return r.Group(r.Scenario).Policies[r.i%len(r.Config.Policies)].Worst == r.i
		}),
		tabular.Text("gates", func(r *reportedRun) string { return gatesOf(r.Report, r.Policy, r.Scenario) }),
		tabular.Text("error", func(r *reportedRun) string { return r.Error }),
		tabular.Of("violations", "list", func(r *reportedRun) []string { return r.Violations }),
		tabular.Of("warnings", "list", func(r *reportedRun) []string { return r.RunReport.Warnings }),
		longest("outage_longest_workload", func(x *eval.Incident) string { return x.Workload }),
		longest("outage_longest_began", func(x *eval.Incident) string { return x.Began.String() }),
		longest("outage_longest_cause", func(x *eval.Incident) string { return x.Cause }),
		tabular.Of("outage", "optional,json", func(r *reportedRun) string { return orEmpty(r.Outage == nil, r.Outage) }),
		tabular.Of("budgets", "optional,json", func(r *reportedRun) string { return orEmpty(r.Budgets == nil, r.Budgets) }),
		tabular.Of("weather", "optional", func(r *reportedRun) string { return r.Weather }),
		tabular.Of("hash", "optional", func(r *reportedRun) string { return r.Hash }),
		tabular.Of("warm_up_s", "", func(r *reportedRun) float64 { return r.of.WarmUp }),
		tabular.Of("ready_grace_s", "", func(r *reportedRun) float64 { return r.of.ReadyGrace }),
		tabular.Of("intensity", "", func(r *reportedRun) float64 { return r.of.Intensity }),
		tabular.Of("slots", "", func(r *reportedRun) int64 { return int64(r.of.Slots) }),
		tabular.Of("truth", "dict", func(r *reportedRun) string { return r.of.Truth }),
		tabular.Text("karpenter_version", func(r *reportedRun) string { return r.of.Karpenter }),
		tabular.Text("start", func(r *reportedRun) string { return r.of.Start }),
		tabular.Text("node_fee", func(r *reportedRun) string { return r.of.NodeFee }),
		tabular.Of("scenario_digest", "dict", func(r *reportedRun) string { return r.of.File }),
		tabular.Of("conditions_digest", "dict", func(r *reportedRun) string { return r.of.Conditions }),
		tabular.Of("demand_digest", "dict", func(r *reportedRun) string { return r.of.Demand }),
		tabular.Of("trace", "dict", func(r *reportedRun) string { return r.of.Trace }),
		tabular.Of("trace_digest", "dict", func(r *reportedRun) string { return r.of.TraceDigest }),
		tabular.Of("version", "dict", func(r *reportedRun) string { return r.Config.Version }),
		tabular.Of("command", "", func(r *reportedRun) string { return r.RunReport.Command }),
	}
}

// longest returns a column about the longest incident, null if there is no incident.
func longest(name string, of func(*eval.Incident) string) tabular.Column[*reportedRun] {
	return tabular.Text(name, func(r *reportedRun) string {
		if r.Outage == nil {
			return ""
		}
		return of(r.Outage.Longest)
	})
}

// gatesOf returns pass or fail if gates apply to the policy in the scenario, else "".
func gatesOf(r *eval.Report, policy, scenario string) string {
	result := ""
	for i := range r.Gates {
		switch g := &r.Gates[i]; {
		case g.Policy != policy || g.Scenario != scenario:
		case !g.Pass:
			return "fail"
		default:
			result = "pass"
		}
	}
	return result
}

// orEmpty returns v as JSON, or "" if empty is true. It panics if v cannot be encoded.
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

// writeCSV writes a line for each finished run of all reports, which must have the same
// configuration. Unknown values are empty.
func writeCSV(w io.Writer, reports ...*eval.Report) error {
	return tabular.WriteCSV(w, append(runColumns(), wholeColumns()...), reportedRuns(reports...))
}

// wholeColumns returns the columns that CSV repeats in every line, and that other formats contain
// once.
func wholeColumns() []tabular.Column[*reportedRun] {
	return []tabular.Column[*reportedRun]{
		tabular.Time("trace_from", func(r *reportedRun) policy.Time { return r.row().Bound.Trace.From }),
		tabular.Time("trace_to", func(r *reportedRun) policy.Time { return r.row().Bound.Trace.To }),
		tabular.Text("trace_prices", func(r *reportedRun) string { return r.row().Bound.Trace.Prices() }),
		tabular.Text("trace_reclaims", func(r *reportedRun) string { return reclaims(r.Report, &r.row().Bound.Trace) }),
		tabular.Of("discount_1y", "", func(r *reportedRun) float64 { return r.Config.Discount1y }),
		tabular.Of("discount_3y", "", func(r *reportedRun) float64 { return r.Config.Discount3y }),
		tabular.Of("run_count", "", func(r *reportedRun) int64 { return int64(len(r.Runs)) }),
		tabular.Of("runs_done", "", func(r *reportedRun) int64 { return int64(r.Done()) }),
		tabular.Of("incomplete", "", func(r *reportedRun) bool { return r.Stopped }),
		tabular.Text("invocation", func(r *reportedRun) string { return r.Config.Invocation }),
	}
}
