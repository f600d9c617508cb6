package format

import (
	"encoding/json"
	"io"
	"reflect"
	"slices"

	"github.com/spotter-dev/spotter/eval"
)

// SchemaVersion is that of the JSON output, described in docs/reference-eval.md.
// It rises when a key goes away or changes its meaning; new keys may come
// without.
const SchemaVersion = 2

// The types here add what only package format knows to those of package eval. docs/reference-eval.md
// is made of both and of their comments: go test ./cmd/spotter -run TestReference -rewrite.

// A jsonReport is the whole of a comparison.
type jsonReport struct {
	// Version of this schema.
	SchemaVersion int `json:"schema_version"`
	// The program that made the report.
	Version string `json:"version"`
	// Command that repeats the whole comparison.
	Invocation string `json:"invocation"`
	// The settings of the comparison, defaults filled in.
	Config jsonConfig `json:"config"`
	// What the cluster costs as it is, where that is known: saved_today_pct is measured against it.
	Today *jsonToday `json:"today,omitempty"`
	// Traces used.
	Traces []jsonTrace `json:"traces"`
	// Scenarios and their windows.
	Cases []eval.CaseReport `json:"cases"`
	// Runs, missing ones included.
	RunCount int `json:"run_count"`
	// Runs that failed.
	MissingCount int `json:"missing_count"`
	// Runs that ended, failed ones included: fewer than run_count where the comparison was stopped.
	RunsDone int `json:"runs_done"`
	// The comparison was stopped: figures are of what was finished, and no gate passes.
	Incomplete bool `json:"incomplete"`
	// No run is missing, no gate failed, the comparison with another build did not fail, and nothing
	// was stopped.
	Passed bool `json:"passed"`
	// A result for each gate, policy and scenario.
	Gates []jsonGate `json:"gates"`
	// Difference to another side, with --compare or --compare-scenarios.
	Comparison *jsonComparison `json:"comparison,omitempty"`
	// What could not be estimated. None of it counts as good.
	Warnings []string `json:"warnings"`
	// A summary of each scenario.
	Groups []eval.Group `json:"groups"`
	// With several scenarios, the figures over all of them. Nothing in it is summed.
	Across *jsonAcrossScenarios `json:"across,omitempty"`
	// Every run that ended, by case, seed and policy; empty with --no-runs.
	Runs []eval.RunReport `json:"runs"`
	// What a reader must know, in sentences.
	Notes []string `json:"notes"`
}

// A jsonConfig is the settings of a comparison.
type jsonConfig struct {
	*eval.Config
	// Gates as written.
	Gates []string `json:"gates"`
	// Confidence of each interval: 1 − 0.05 ÷ number of policies.
	Confidence float64 `json:"confidence"`
}

// A jsonToday is what the nodes of a cluster cost as they are. It is not simulated.
type jsonToday struct {
	*eval.Today
	// The number of bills of a run in a month: 730 hours ÷ those of the window, times the nodes
	// that one simulated node represents.
	BillsPerMonth float64 `json:"bills_per_month"`
}

// A jsonTrace is where prices and reclaims come from.
type jsonTrace struct {
	// File, folder, or name of an embedded trace.
	Name string `json:"name"`
	// First instant of the whole trace.
	From eval.Instant `json:"from"`
	// Last instant of the whole trace.
	To eval.Instant `json:"to"`
	// recorded, synthetic, scripted by hand, or modelled where only availability was recorded.
	Prices string `json:"prices"`
	// recorded, recorded in part and modelled elsewhere, generated, decided by price and bid in
	// auctions, or modelled.
	Reclaims string `json:"reclaims"`
	// How it was made, or where it was recorded.
	About string `json:"about"`
	// What was read of its files for all windows; 0 of an embedded one.
	BytesRead int64 `json:"bytes_read"`
	// What its files have.
	BytesStored int64 `json:"bytes_stored"`
}

// A jsonGate is the result of one gate for one policy in one scenario.
type jsonGate struct {
	// The gate as written.
	Gate string `json:"gate"`
	*eval.GateResult
	// Why low or high has no value.
	Reason string `json:"reason,omitempty"`
	// Repeats the run that has the value, for min and max.
	Command string `json:"command,omitempty"`
}

// A jsonComparison is the difference to another side.
type jsonComparison struct {
	*eval.Comparison
	// What the change does to one policy in one scenario: the one that loses most of those with the
	// worst verdict, else the one that changes most.
	Headline string `json:"headline"`
	// An interval of a median leaves out 0, or the verdict is fail.
	BeyondNoise bool `json:"beyond_noise"`
	// Change of the headline in dollars; more is better.
	SavingsWeek *float64 `json:"net_savings_usd_per_week,omitempty"`
	// The same in outage minutes; more is worse.
	OutageWeek *float64 `json:"outage_minutes_per_week,omitempty"`
	// What could not be estimated.
	Warnings []string `json:"warnings"`
}

// A jsonAcrossScenarios is the figures over several scenarios.
type jsonAcrossScenarios struct {
	// How many there are.
	Scenarios int `json:"scenarios"`
	// One of each policy.
	Policies []eval.Across `json:"policies"`
}

// ReportType is the type of a report in JSON, of which JSON Schema can be made.
func ReportType() reflect.Type { return reflect.TypeFor[jsonReport]() }

// writeJSON writes the report as docs/reference-eval.md describes it.
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

// encode writes v as JSON for programs and readers.
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
