package format

import "github.com/spotter-dev/spotter/eval"

type jsonOther struct {
	Other       string       `json:"other"`
	Program     string       `json:"program,omitempty"`
	Version     string       `json:"version,omitempty"`
	Files       string       `json:"files,omitempty"`
	Seeds       []uint64     `json:"seeds"`
	Verdict     eval.Outcome `json:"verdict"`
	Headline    string       `json:"headline"`
	BeyondNoise bool         `json:"beyond_noise"`
	SavingsWeek *float64     `json:"net_savings_usd_per_week,omitempty"`
	OutageWeek  *float64     `json:"outage_minutes_per_week,omitempty"`
	Changes     []jsonChange `json:"changes"`
	Warnings    []string     `json:"warnings"`
}

type jsonChange struct {
	Scenario    string         `json:"scenario"`
	Policy      string         `json:"policy"`
	Verdict     eval.Outcome   `json:"verdict"`
	Units       int            `json:"units"`
	Over        string         `json:"over"`
	Pairs       int            `json:"pairs"`
	Changed     int            `json:"changed"`
	Missing     int            `json:"missing"`
	Savings     jsonDifference `json:"net_savings_points"`
	Outage      jsonDifference `json:"outage_cost_points"`
	SavingsWeek *float64       `json:"net_savings_usd_per_week,omitempty"`
	OutageWeek  *float64       `json:"outage_minutes_per_week,omitempty"`
	Demand      int            `json:"other_demand,omitempty"`
	OnDemand    *float64       `json:"on_demand_usd_per_week,omitempty"`
}

type jsonDifference struct {
	Mean     *float64    `json:"mean,omitempty"`
	Median   *float64    `json:"median,omitempty"`
	Interval *[2]float64 `json:"interval,omitempty"`
	Need     int         `json:"need,omitempty"`
	Worse    *int        `json:"worse,omitempty"`
	Better   *int        `json:"better,omitempty"`
}

// newOther returns what the JSON output has of x, nil without one.
func newOther(x *eval.Comparison) *jsonOther {
	if x == nil {
		return nil
	}
	c := comparison{x}
	out := &jsonOther{Other: c.Other, Program: c.Program, Version: c.Version, Files: c.Files, Seeds: c.Seeds, Verdict: c.Outcome, Headline: c.headline(),
		BeyondNoise: c.BeyondNoise(), Changes: []jsonChange{}, Warnings: append([]string{}, c.warnings()...)}
	if main := c.main(); main != nil {
		out.SavingsWeek, out.OutageWeek = &main.SavingsWeek, &main.OutageWeek
	}
	for i := range c.Changes {
		x := &c.Changes[i]
		j := jsonChange{Scenario: x.Scenario, Policy: x.Policy, Verdict: x.Outcome, Units: x.Units, Over: x.Over, Pairs: x.Pairs, Changed: x.Changed, Missing: x.Missing, Demand: x.Demand}
		if x.Pairs > 0 {
			j.Savings, j.Outage = newDifference(&x.Savings), newDifference(&x.Outage)
			j.SavingsWeek, j.OutageWeek, j.OnDemand = &x.SavingsWeek, &x.OutageWeek, &x.OnDemandWeek
		}
		out.Changes = append(out.Changes, j)
	}
	return out
}

func newDifference(d *eval.Difference) jsonDifference {
	out := jsonDifference{Mean: &d.Mean, Median: &d.Median, Need: d.Need, Worse: &d.Worse, Better: &d.Better}
	if i := d.Interval; i != nil {
		out.Interval = &[2]float64{i.Low, i.High}
	}
	return out
}
