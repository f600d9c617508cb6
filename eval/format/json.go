package format

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// SchemaVersion is that of the JSON output, described in docs/reference-eval.md.
// It rises when a key goes away or changes its meaning; new keys may come
// without.
const SchemaVersion = 2

// An ordered is an object whose keys stand in the order in which they were
// added, which a map would lose.
type ordered []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in their order.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(m.key) + ":")
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// writeJSON writes the report as docs/reference-eval.md describes it.
func writeJSON(w io.Writer, r *eval.Report) error {
	c := &r.Config
	out := jsonReport{
		SchemaVersion: SchemaVersion, Version: c.Version, Invocation: c.Invocation,
		Config: newConfig(r),
		Cases:  newCases(r), RunCount: len(r.Runs), MissingCount: r.Missing(), RunsDone: r.Done(), Incomplete: r.Stopped, Passed: r.ExitCode() == 0,
		Gates: newGates(r), Comparison: newOther(r.Comparison), Warnings: append([]string{}, Warnings(r)...), Across: newAcross(r), Runs: newRuns(r), Notes: Notes(r),
	}
	if t := c.Today; t != nil {
		out.Today = &jsonToday{t.Name, t.Nodes, t.SpotShare, t.Month, t.PerMonth(c.Cases[0].Bound.Duration)}
	}
	out.Traces = newTraces(r)
	for i := range r.Groups {
		out.Groups = append(out.Groups, newGroup(r, &r.Groups[i]))
	}
	return encode(w, out)
}

func newConfig(r *eval.Report) jsonConfig {
	c := &r.Config
	out := jsonConfig{Policies: c.Policies, Baseline: c.Baseline, Seeds: c.Seeds, Gates: []string{},
		Discount1y: c.Discount1y, Discount3y: c.Discount3y, Confidence: r.Level}
	for _, g := range c.Gates {
		out.Gates = append(out.Gates, g.String())
	}
	return out
}

// encode writes v as JSON for programs and readers.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func newTraces(r *eval.Report) (out []jsonTrace) {
	for i := range r.Traces {
		t := &r.Traces[i]
		j := jsonTrace{Name: t.Name, From: t.From.String(), To: t.To.String(), Prices: t.Prices(), Reclaims: reclaims(r, t), About: t.About}
		if b := t.Traffic; b != nil {
			j.BytesRead, j.BytesStored = b.Read, b.Stored
		}
		out = append(out, j)
	}
	return out
}

func newCases(r *eval.Report) []jsonCase {
	var out []jsonCase
	for i := range r.Config.Cases {
		k := &r.Config.Cases[i]
		w := k.Bound
		e, bound := eval.EvidenceOf(w), &r.Oracles[i]
		out = append(out, jsonCase{
			Scenario: k.Scenario, Window: k.Window, From: w.Start.String(), To: k.End().String(),
			WarmUpS: w.WarmUp.Seconds(), ReadyGraceS: w.ReadyGrace.Seconds(), Intensity: w.Intensity, Slots: w.Slots, Karpenter: karpenterOf(w), NodeFee: feeOf(w), Start: w.StartCluster.String(), Truth: w.Truth.String(),
			ScenarioDigest: e.File, Conditions: e.Conditions, Demand: e.Demand, Trace: w.Trace.Name, TraceDigest: hex.EncodeToString(w.TraceDigest[:]),
			OracleUSD: usd(bound, bound.Cost), OracleODUSD: usd(bound, bound.OnDemand),
			OracleSlotsUSD: usd(bound, bound.Slots), OracleCutShort: bound.Short > 0,
			Warnings: append([]string{}, w.Warnings...),
		})
	}
	return out
}

// karpenterOf returns the version of Karpenter that was asked for, empty for none.
func karpenterOf(w *scenarios.BoundScenario) string {
	if w.Karpenter == 0 {
		return ""
	}
	return w.Karpenter.String()
}

// feeOf returns what every node costs per hour on top of its price, empty for nothing.
func feeOf(w *scenarios.BoundScenario) string {
	if w.NodeFee == 0 {
		return ""
	}
	return strconv.FormatFloat(w.NodeFee.Float(), 'f', -1, 64)
}

func newGates(r *eval.Report) []jsonGate {
	out := []jsonGate{}
	for i := range r.Gates {
		g := &r.Gates[i]
		j := jsonGate{Gate: g.Gate.String(), Policy: g.Policy, Versus: g.Gate.Versus, Scenario: g.Scenario, Metric: g.Gate.Metric, Statistic: string(g.Gate.Statistic),
			Op: g.Gate.Op, Value: g.Gate.Value, Missing: g.Missing, Reason: gateReason(r, g), Pass: g.Pass}
		if g.Actual.Known {
			j.Actual = &g.Actual.V
		}
		if g.Run >= 0 {
			j.Command = r.Command(g.Run)
		}
		out = append(out, j)
	}
	return out
}

func newGroup(r *eval.Report, g *eval.Group) jsonGroup {
	out := jsonGroup{Scenario: g.Scenario, Windows: g.Windows, IntervalsOver: g.IntervalsOver()}
	if _, best, ok := r.Frontier(g); ok {
		out.BestStatic = r.Config.Policies[best]
	}
	for i := range g.Policies {
		out.Policies = append(out.Policies, newPolicy(r, &g.Policies[i]))
	}
	return out
}

// newAcross is nil with one scenario.
func newAcross(r *eval.Report) *jsonAcross {
	across := r.Across()
	if across == nil {
		return nil
	}
	out := &jsonAcross{Scenarios: len(r.Groups)}
	for _, x := range across {
		j := jsonAcrossPolicy{Policy: x.Policy, First: x.First, Of: x.Of, Marked: x.Marked}
		if x.Behind >= 0 {
			g := &r.Groups[x.Behind]
			j.Shortfall = &jsonShortfall{x.Shortfall, g.Scenario, r.Config.Policies[r.Best(g)]}
		}
		if i := x.WorstOutage; i >= 0 {
			j.WorstOutage = &jsonWorstOutage{outageOf(r, i), placeOf(r, i)}
		}
		out.Policies = append(out.Policies, j)
	}
	return out
}

func newPolicy(r *eval.Report, p *eval.PolicyReport) jsonPolicy {
	out := jsonPolicy{Policy: p.Policy, Role: role(&r.Config, p.Policy), Runs: p.Runs, Missing: p.Missing, Unfinished: p.Unfinished,
		WorseRuns: p.Worse, OutageRuns: p.Outages, Outage: newOutage(r, &p.Outage), Workloads: []jsonWorkload{},
		Violations: append([]eval.Violation{}, p.Violations...), ViolatingRuns: p.Violating}
	for _, m := range eval.Metrics() {
		out.Metrics = append(out.Metrics, member{m.Name, newSummary(p.Summary(m.Name))})
	}
	for _, w := range p.Windows {
		k := &r.Config.Cases[w.Case]
		out.Windows = append(out.Windows, jsonWindow{k.Scenario, k.Window, medians(&w)})
	}
	if p.Worst >= 0 {
		out.WorstRun = &jsonWorst{placeOf(r, p.Worst), metricsOf(&r.Runs[p.Worst])}
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		out.Workloads = append(out.Workloads, jsonWorkload{
			w.Scenario, w.Name, w.Kind.String(), w.Runs, w.PodValue.Float(), w.OutageMinutes, w.OutageMax,
			w.Incidents, w.OutageCost, w.Availability, w.SpotShare, newOutage(r, &w.Outage),
		})
	}
	return out
}

// placeOf names run i.
func placeOf(r *eval.Report, i int) jsonPlace {
	run := &r.Runs[i]
	return jsonPlace{run.Scenario, run.Window, run.Seed, r.Command(i)}
}

// usd returns one of the bounds in dollars, nil where it is open.
func usd(b *oracle.Bound, m policy.Money) *float64 {
	if b.Open {
		return nil
	}
	x := m.Float()
	return &x
}

func newRuns(r *eval.Report) []jsonRun {
	var out []jsonRun
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Unfinished() {
			continue
		}
		out = append(out, newRun(run, r.Command(i)))
	}
	return out
}

// Run returns one run as the JSON output has those of a comparison. Command repeats it.
func Run(run *eval.RunRow, command string) any { return newRun(run, command) }

func newRun(run *eval.RunRow, command string) jsonRun {
	j := jsonRun{Scenario: run.Scenario, Window: run.Window, Seed: run.Seed, Policy: run.Policy, Metrics: metricsOf(run), Command: command}
	if run.Err != nil {
		j.Error = run.Err.Error()
		return j
	}
	j.Weather, j.Hash = hex.EncodeToString(run.Result.Weather[:]), hex.EncodeToString(run.Result.Hash[:])
	j.Warnings, j.Violations, j.Outage = run.Result.Warnings, run.Result.Violations, newRunOutage(run.Result)
	for _, b := range run.Result.Budgets {
		j.Budgets = append(j.Budgets, jsonBudget{b.Name, b.Action.String(), b.GPUHours, b.WindowHours, b.WindowCost.Float(),
			b.Peak, b.OverMinutes, b.ClosedMinutes, b.Evictions, b.Pauses})
	}
	return j
}

// metricsOf are the known figures of a run, truth values as such.
func metricsOf(run *eval.RunRow) ordered {
	out := ordered{}
	for _, m := range eval.Metrics() {
		switch v := run.Value(m.Name); {
		case !v.Known:
		case m.YesNo():
			out = append(out, member{m.Name, v.V != 0})
		default:
			out = append(out, member{m.Name, v.V})
		}
	}
	return out
}

// medians are the known ones of a window, by metric.
func medians(w *eval.WindowMedians) ordered {
	out := ordered{}
	for _, m := range eval.Metrics() {
		if v := w.Median(m.Name); v.Known {
			out = append(out, member{m.Name, v.V})
		}
	}
	return out
}

func newSummary(s *eval.Summary) jsonSummary {
	out := jsonSummary{N: s.N, Need: s.Need, MedianInterval: s.MedianInterval}
	if s.N == 0 {
		return out
	}
	out.Mean, out.Median, out.P5, out.P25, out.P75, out.P95, out.Min, out.Max = &s.Mean, &s.Median, &s.P5, &s.P25, &s.P75, &s.P95, &s.Min, &s.Max
	if w := &s.Windows; w.N > 0 {
		out.WindowMin, out.WindowMedian, out.WindowMax, out.WindowsPositive = &w.Min, &w.Median, &w.Max, &w.Positive
	}
	return out
}
