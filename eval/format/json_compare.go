package format

import "github.com/spotter-dev/spotter/eval"

// A jsonComparison is the difference to another side.
type jsonComparison struct {
	// What was compared with, in words.
	Other string `json:"other"`
	// The other program as named.
	Program string `json:"program,omitempty"`
	// What it calls its version.
	Version string `json:"version,omitempty"`
	// Folder of the other side's files.
	Files string `json:"files,omitempty"`
	// Seeds that were run in the end: those of config.seeds, and more where these did not tell.
	Seeds []uint64 `json:"seeds"`
	// The worst of all changes: no change, pass, undecided, not comparable or fail, which alone ends with exit code 1.
	Verdict eval.Outcome `json:"verdict"`
	// What the change does to one policy in one scenario: the one that loses most of those with the worst verdict, else the one that changes most.
	Headline string `json:"headline"`
	// An interval of a median leaves out 0, or the verdict is fail.
	BeyondNoise bool `json:"beyond_noise"`
	// Change of the headline in dollars; more is better.
	SavingsWeek *float64 `json:"net_savings_usd_per_week,omitempty"`
	// The same in outage minutes; more is worse.
	OutageWeek *float64 `json:"outage_minutes_per_week,omitempty"`
	// A change for each scenario and policy.
	Changes []jsonChange `json:"changes"`
	// What could not be estimated.
	Warnings []string `json:"warnings"`
}

// A jsonChange is what becomes of one policy in one scenario. Changes a week are means.
type jsonChange struct {
	Scenario string       `json:"scenario"`
	Policy   string       `json:"policy"`
	Verdict  eval.Outcome `json:"verdict"`
	// Independent units that the verdict rests on; the value of one is the mean over its cells.
	Units int `json:"units"`
	// What they are: windows where there are enough, else seeds, and then the result holds for these windows only.
	Over string `json:"over"`
	// Cells that both sides ran.
	Pairs int `json:"pairs"`
	// Of them, those in which something else happened.
	Changed int `json:"changed"`
	// Cells that one of the sides lacks.
	Missing int `json:"missing"`
	// Net savings in points of the other side's on-demand bill, or under another demand of each side's own; more is better.
	Savings jsonDifference `json:"net_savings_points"`
	// Outage cost in such points; more is worse.
	Outage jsonDifference `json:"outage_cost_points"`
	// Net savings.
	SavingsWeek *float64 `json:"net_savings_usd_per_week,omitempty"`
	OutageWeek  *float64 `json:"outage_minutes_per_week,omitempty"`
	// In how many cells another demand was met.
	Demand int `json:"other_demand,omitempty"`
	// The on-demand bill.
	OnDemand *float64 `json:"on_demand_usd_per_week,omitempty"`
}

// A jsonDifference is a [Difference](#difference), which is empty without pairs.
type jsonDifference struct{ *eval.Difference }

// newOther returns what the JSON output has of x, nil without one.
func newOther(x *eval.Comparison) *jsonComparison {
	if x == nil {
		return nil
	}
	c := comparison{x}
	out := &jsonComparison{Other: c.Other, Program: c.Program, Version: c.Version, Files: c.Files, Seeds: c.Seeds, Verdict: c.Outcome, Headline: c.headline(),
		BeyondNoise: c.BeyondNoise(), Changes: []jsonChange{}, Warnings: append([]string{}, c.warnings()...)}
	if main := c.Main(); main != nil {
		out.SavingsWeek, out.OutageWeek = &main.SavingsWeek, &main.OutageWeek
	}
	for i := range c.Changes {
		x := &c.Changes[i]
		j := jsonChange{Scenario: x.Scenario, Policy: x.Policy, Verdict: x.Outcome, Units: x.Units, Over: x.Over, Pairs: x.Pairs, Changed: x.Changed, Missing: x.Missing, Demand: x.Demand}
		if x.Pairs > 0 {
			j.Savings, j.Outage = jsonDifference{&x.Savings}, jsonDifference{&x.Outage}
			j.SavingsWeek, j.OutageWeek, j.OnDemand = &x.SavingsWeek, &x.OutageWeek, &x.OnDemandWeek
		}
		out.Changes = append(out.Changes, j)
	}
	return out
}
