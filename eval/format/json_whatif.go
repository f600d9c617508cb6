package format

import (
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
)

// A jsonWhatIf is the whole output of `spotter whatif`.
type jsonWhatIf struct {
	Scenario string `json:"scenario"`
	// How many windows of the trace were run.
	Windows int      `json:"windows"`
	Seeds   []uint64 `json:"seeds"`
	// All runs, those of the scenario as it is included.
	Runs int `json:"runs"`
	// Of each interval: all of them share an error rate of 5%.
	Confidence float64 `json:"confidence"`
	// It was stopped: figures are of what was finished.
	Incomplete bool `json:"incomplete,omitempty"`
	// The outcome in one line.
	Headline string `json:"headline"`
	// No gate failed, and chance explains what every variant changes.
	Quiet bool `json:"within_noise"`
	// The setting that is swept.
	Sweep string `json:"sweep,omitempty"`
	// The variant at the knee of a sweep, left out where there is none.
	Knee string        `json:"knee,omitempty"`
	AsIs jsonWhatIfRow `json:"as_is"`
	// In the order of the call.
	Variants []jsonWhatIfRow `json:"variants"`
	// A result for each gate and variant, which stands as the policy.
	Gates []jsonGate `json:"gates,omitempty"`
	// The program that ran it.
	Version string `json:"version,omitempty"`
	// Command that repeats it.
	Invocation string `json:"invocation,omitempty"`
}

// A jsonWhatIfRow is what the scenario as it is, or one variant, comes to.
type jsonWhatIfRow struct {
	Name string `json:"name"`
	// What is changed, in full.
	Changes []string `json:"changes,omitempty"`
	// Who decides.
	Policy string `json:"policy"`
	// What it does, in a sentence.
	Words string `json:"words,omitempty"`
	// Pairs of runs of which one is missing.
	Missing int `json:"missing,omitempty"`
	// The workloads ask for something else.
	Demand bool `json:"other_demand,omitempty"`
	// Every run came to the same as that of the scenario as it is.
	Equal bool `json:"equal,omitempty"`
	// The bill with what was paid in advance.
	Cost *jsonWhatIfData `json:"cost_usd_per_month"`
	// Against the scenario as it is, run by run.
	Change    *jsonWhatIfData `json:"change_usd_per_month,omitempty"`
	ChangePct *jsonWhatIfData `json:"change_pct,omitempty"`
	// What outages cost, which is not in the bill.
	OutageCost   *jsonWhatIfData `json:"outage_cost_usd_per_month"`
	OutageChange *jsonWhatIfData `json:"outage_cost_change_usd_per_month,omitempty"`
	// Of a run.
	Incidents *jsonWhatIfData `json:"outage_incidents"`
	Minutes   *jsonWhatIfData `json:"outage_minutes"`
	// For whatever reason.
	Evictions   *jsonWhatIfData `json:"evictions_per_pod_day"`
	MoreEvicted *jsonWhatIfData `json:"evictions_change_per_pod_day,omitempty"`
	// Mean of a run.
	Nodes *jsonWhatIfData `json:"nodes"`
	// Of the vCPUs, or GPUs in pools of these.
	SpotShare *jsonWhatIfData `json:"spot_share"`
}

// A jsonWhatIfData is a figure over runs.
type jsonWhatIfData struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// That of the median, of changes and where enough was run.
	Interval *stats.Interval `json:"interval,omitempty"`
	// How many windows or seeds an interval needs, where there are too few.
	Need int `json:"need,omitempty"`
}

// WhatIf returns r as it is written in JSON and YAML.
func WhatIf(r *eval.WhatIf) any {
	out := jsonWhatIf{
		Scenario: r.Config.Cases[0].Scenario, Windows: len(r.Config.Cases), Seeds: r.Config.Seeds, Runs: len(r.Runs), Confidence: r.Level,
		Incomplete: r.Stopped, Headline: whatIfHeadline(r), Quiet: whatIfQuiet(r), Sweep: r.Sweep,
		AsIs: newWhatIfRow(&r.AsIs), Variants: []jsonWhatIfRow{}, Version: r.Config.Version, Invocation: r.Config.Invocation,
	}
	switch knee, ok := r.Knee(); {
	case ok && knee < 0:
		out.Knee = r.AsIs.Name
	case ok:
		out.Knee = r.Variants[knee].Name
	}
	for i := range r.Variants {
		x := &r.Variants[i]
		row := newWhatIfRow(x)
		row.Words, row.Equal = whatIfSentence(r, x), x.Equal
		row.Change, row.ChangePct = newWhatIfData(&x.Change), newWhatIfData(&x.ChangePct)
		row.OutageChange, row.MoreEvicted = newWhatIfData(&x.OutageChange), newWhatIfData(&x.EvictionChange)
		out.Variants = append(out.Variants, row)
	}
	if r.Judged != nil {
		out.Gates = newGates(r.Judged)
	}
	return out
}

func newWhatIfRow(x *eval.WhatIfRow) jsonWhatIfRow {
	return jsonWhatIfRow{
		Name: x.Name, Changes: x.Changes, Policy: x.Policy, Missing: x.Missing, Demand: x.Demand,
		Cost: newWhatIfData(&x.Cost), OutageCost: newWhatIfData(&x.OutageCost), Incidents: newWhatIfData(&x.Incidents),
		Minutes: newWhatIfData(&x.OutageMinutes), Evictions: newWhatIfData(&x.Evictions), Nodes: newWhatIfData(&x.Nodes), SpotShare: newWhatIfData(&x.SpotShare),
	}
}

// newWhatIfData returns s, nil where it has nothing.
func newWhatIfData(s *eval.Summary) *jsonWhatIfData {
	if s.N == 0 {
		return nil
	}
	return &jsonWhatIfData{Mean: s.Mean, Median: s.Median, Min: s.Min, Max: s.Max, Interval: s.MedianInterval, Need: s.Need}
}
