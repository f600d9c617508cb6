package format

import (
	"encoding/json"
	"io"
	"reflect"
	"slices"

	"github.com/spotter-dev/spotter/eval"
)

// SchemaVersion is the version of the JSON output, which docs/reference-eval.md describes. It is
// incremented when a key is removed or changes its meaning, but not when a key is added.
const SchemaVersion = 2

// The types below extend those of package eval with fields that only package format knows.
// docs/reference-eval.md is generated from both and their comments: go test ./cmd/spotter -run
// TestReference -rewrite.

// A jsonReport is a complete report of a comparison.
type jsonReport struct {
	// Version of this schema.
	SchemaVersion int `json:"schema_version"`
	// Version of the program that made the report.
	Version string `json:"version"`
	// Command that repeats the whole comparison.
	Invocation string `json:"invocation"`
	// Settings of the comparison, including defaults.
	Config jsonConfig `json:"config"`
	// Current cost of the cluster, if known: saved_today_pct is relative to it.
	Today *jsonToday `json:"today,omitempty"`
	// Traces that were used.
	Traces []jsonTrace `json:"traces"`
	// Scenarios and their windows.
	Cases []eval.CaseReport `json:"cases"`
	// Number of runs, including missing ones.
	RunCount int `json:"run_count"`
	// Number of runs that failed.
	MissingCount int `json:"missing_count"`
	// Number of finished runs, including failed ones. It is less than run_count if the comparison
	// was stopped.
	RunsDone int `json:"runs_done"`
	// Whether the comparison was stopped. Metrics then only cover the finished runs, and no gate
	// passes.
	Incomplete bool `json:"incomplete"`
	// Whether no run is missing, no gate failed, the comparison with another side did not fail, and
	// the comparison was not stopped.
	Passed bool `json:"passed"`
	// A result for each gate, policy and scenario.
	Gates []jsonGate `json:"gates"`
	// Difference to another side, with --compare or --compare-scenarios.
	Comparison *jsonComparison `json:"comparison,omitempty"`
	// What could not be estimated, and therefore counts as failed.
	Warnings []string `json:"warnings"`
	// A summary of each scenario.
	Groups []eval.Group `json:"groups"`
	// With several scenarios, results over all of them. Nothing is summed over scenarios.
	Across *jsonAcrossScenarios `json:"across,omitempty"`
	// All finished runs, ordered by case, seed and policy. Empty with --no-runs.
	Runs []eval.RunReport `json:"runs"`
	// Remarks that readers must know, in sentences.
	Notes []string `json:"notes"`
}

// A jsonConfig contains the settings of a comparison.
type jsonConfig struct {
	*eval.Config
	// Gates as written by the user.
	Gates []string `json:"gates"`
	// Confidence level of each interval: 1 − 0.05 ÷ number of policies.
	Confidence float64 `json:"confidence"`
}

// A jsonToday is the current cost of a cluster's nodes. It is not simulated.
type jsonToday struct {
	*eval.Today
	// Factor from the bill of a run to a month: 730 hours ÷ hours of the window, times the number
	// of nodes that one simulated node represents.
	BillsPerMonth float64 `json:"bills_per_month"`
}

// A jsonTrace is the source of prices and reclaims.
type jsonTrace struct {
	// File, folder, or name of an embedded trace.
	Name string `json:"name"`
	// First instant of the whole trace.
	From eval.Instant `json:"from"`
	// Last instant of the whole trace.
	To eval.Instant `json:"to"`
	// recorded, synthetic, scripted by hand, or modelled if only availability was recorded.
	Prices string `json:"prices"`
	// recorded, recorded in part and modelled elsewhere, generated, decided by price and bid in
	// auctions, or modelled.
	Reclaims string `json:"reclaims"`
	// How the trace was made, or where it was recorded.
	About string `json:"about"`
	// Bytes read from its files for all windows; 0 for an embedded trace.
	BytesRead int64 `json:"bytes_read"`
	// Total size of its files in bytes.
	BytesStored int64 `json:"bytes_stored"`
}

// A jsonGate is the result of one gate for one policy in one scenario.
type jsonGate struct {
	// The gate as written by the user.
	Gate string `json:"gate"`
	*eval.GateResult
	// Why low or high has no value.
	Reason string `json:"reason,omitempty"`
	// For min and max, the command that repeats the run with the value.
	Command string `json:"command,omitempty"`
}

// A jsonComparison is the difference to another side.
type jsonComparison struct {
	*eval.Comparison
	// Effect of the change on one policy in one scenario: of those with the worst verdict, the one
	// with the largest loss, else the one with the largest difference.
	Headline string `json:"headline"`
	// Whether the verdict is fail, or the interval of a median does not contain 0.
	BeyondNoise bool `json:"beyond_noise"`
	// Change of net savings in the headline, in dollars per week; higher is better.
	SavingsWeek *float64 `json:"net_savings_usd_per_week,omitempty"`
	// Change of outage minutes in the headline per week; higher is worse.
	OutageWeek *float64 `json:"outage_minutes_per_week,omitempty"`
	// What could not be estimated.
	Warnings []string `json:"warnings"`
}

// A jsonAcrossScenarios contains the results over several scenarios.
type jsonAcrossScenarios struct {
	// Number of scenarios.
	Scenarios int `json:"scenarios"`
	// A result for each policy.
	Policies []eval.Across `json:"policies"`
}

// ReportType is the type of a report in JSON, of which JSON Schema can be made.
func ReportType() reflect.Type { return reflect.TypeFor[jsonReport]() }

// writeJSON writes the report in the format of docs/reference-eval.md.
func writeJSON(w io.Writer, r *eval.Report) error { return encode(w, newReport(r)) }

// writeJSON writes the part of the report that o selects.
func (o Options) writeJSON(w io.Writer, r *eval.Report) error {
	out := newReport(r)
	if len(o.Metrics) > 0 {
		out.Groups = slices.Clone(out.Groups)
		for i := range out.Groups {
			out.Groups[i] = out.Groups[i].Only(o.Metrics)
		}
	}
	if o.NoRuns {
		out.Runs = []eval.RunReport{}
	}
	return encode(w, out)
}

func newReport(r *eval.Report) *jsonReport {
	c := &r.Config
	out := jsonReport{
		SchemaVersion: SchemaVersion, Version: c.Version, Invocation: c.Invocation,
		Config: newConfig(r), Traces: newTraces(r), Cases: r.CaseReports(),
		RunCount: len(r.Runs), MissingCount: r.Missing(), RunsDone: r.Done(), Incomplete: r.Stopped, Passed: r.ExitCode() == 0,
		Gates: newGates(r), Warnings: append([]string{}, Warnings(r)...),
		Groups: r.Groups, Runs: r.RunReports(), Notes: Notes(r),
	}
	if t := c.Today; t != nil {
		out.Today = &jsonToday{t, t.PerMonth(c.Cases[0].Bound.Duration)}
	}
	if r.Comparison != nil {
		x := comparison{r.Comparison}
		out.Comparison = &jsonComparison{
			Comparison: x.Comparison, Headline: x.headline(), BeyondNoise: x.BeyondNoise(), Warnings: append([]string{},
				x.warnings()...),
		}
		if main := x.Main(); main != nil {
			out.Comparison.SavingsWeek, out.Comparison.OutageWeek = &main.SavingsWeek, &main.OutageWeek
		}
	}
	if across := r.Across(); across != nil {
		out.Across = &jsonAcrossScenarios{len(r.Groups), across}
	}
	return &out
}

// encode writes v as indented JSON.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func newConfig(r *eval.Report) jsonConfig {
	out := jsonConfig{&r.Config, []string{}, r.Level}
	for _, g := range r.Config.Gates {
		out.Gates = append(out.Gates, g.String())
	}
	return out
}

func newTraces(r *eval.Report) (out []jsonTrace) {
	for i := range r.Traces {
		t := &r.Traces[i]
		j := jsonTrace{Name: t.Name, From: eval.Instant(t.From), To: eval.Instant(t.To), Prices: t.Prices(),
			Reclaims: reclaims(r, t), About: t.About}
		if b := t.Traffic; b != nil {
			j.BytesRead, j.BytesStored = b.Read, b.Stored
		}
		out = append(out, j)
	}
	return out
}

func newGates(r *eval.Report) []jsonGate {
	out := []jsonGate{}
	for i := range r.Gates {
		g := &r.Gates[i]
		j := jsonGate{Gate: g.Gate.String(), GateResult: g, Reason: gateReason(r, g)}
		if g.Run >= 0 {
			j.Command = r.Command(g.Run)
		}
		out = append(out, j)
	}
	return out
}
