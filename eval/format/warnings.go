package format

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// shownMetrics are the metrics in the main table. A run without a value of one of them is warned
// about.
var shownMetrics = []string{"bill_usd", "net_savings_usd", "net_savings_pct", "net_savings_delta_pct",
	"outage_minutes", "outage_delta", "outage_spot_minutes", "regret"}

// Warnings returns the warnings of a report: failed runs, gates without a verdict, and those of
// estimateWarnings.
func Warnings(r *eval.Report) []string { return append(failureWarnings(r), estimateWarnings(r)...) }

// failureWarnings returns the warnings about failed runs and gates without a value.
func failureWarnings(r *eval.Report) (out []string) {
	out = brokenRuns(r)
	for i := range r.Gates {
		if gate := &r.Gates[i]; !gate.Estimated() {
			out = append(out, "gate without a verdict: "+gateWords(r, gate)+": it counts as failed")
		}
	}
	return out
}

// estimateWarnings returns the warnings about missing values, bounds, intervals and the comparison.
func estimateWarnings(r *eval.Report) []string {
	out := slices.Concat(valueWarnings(r), oracleWarnings(r), intervalWarnings(r))
	if r.Comparison != nil {
		out = append(out, comparison{r.Comparison}.warnings()...)
	}
	return out
}

// brokenRuns describes how many runs failed. It is empty if none did.
func brokenRuns(r *eval.Report) (out []string) {
	if n := r.Missing(); n > 0 {
		out = append(out, fmt.Sprintf("%s of %s broke", figures.Integer(n), figures.Count(len(r.Runs), "run")))
	}
	return out
}

// valueWarnings returns the warnings about runs without a value of a shown metric.
func valueWarnings(r *eval.Report) (out []string) {
	for i := range r.Groups {
		group := &r.Groups[i]
		for k := range group.Policies {
			p := &group.Policies[k]
			done := p.Runs - p.Missing - p.Unfinished
			for _, name := range shownMetrics {
				if r.Stopped && name == "regret" {
					continue // the oracle's bound may not be finished
				}
				if known := p.Summary(name).N; known < done {
					out = append(out, fmt.Sprintf("%s of %s has no value in %d of %s%s", name, p.Policy, done-known,
						figures.Count(done, "run"), inScenario(r, group.Scenario)))
				}
			}
		}
	}
	return out
}

// oracleWarnings returns the warnings about bounds of the oracle, which are by case.
func oracleWarnings(r *eval.Report) (out []string) {
	for i := range r.Oracles {
		if n := r.Oracles[i].Short; n > 0 {
			c := &r.Config.Cases[i]
			out = append(out, fmt.Sprintf("the oracle of %s, window %d was cut short in %s of time by its limit of work: "+
				"its bounds hold, and are lower than they could be", c.Scenario, c.Window, figures.Count(n, "piece")))
		}
	}
	return out
}
