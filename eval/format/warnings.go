package format

import (
	"fmt"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// shownMetrics are the metrics in the main table. A report without their values contains a warning.
var shownMetrics = []string{"bill_usd", "net_savings_usd", "net_savings_pct", "net_savings_delta_pct",
	"outage_minutes", "outage_delta", "outage_spot_minutes", "regret"}

// Warnings describes what could not be estimated, which never counts as good: a gate without a
// value fails, and missing values are named.
func Warnings(r *eval.Report) []string { return append(failureWarnings(r), estimateWarnings(r)...) }

// failureWarnings returns the warnings about failed runs and gates without a value.
func failureWarnings(r *eval.Report) (out []string) {
	if n := r.Missing(); n > 0 {
		out = append(out, fmt.Sprintf("%s of %s broke", figures.Integer(n), figures.Count(len(r.Runs), "run")))
	}
	for i := range r.Gates {
		if g := &r.Gates[i]; !g.Estimated() {
			out = append(out, "gate without a verdict: "+gateWords(r, g)+": it counts as failed")
		}
	}
	return out
}

// estimateWarnings returns the warnings about unknown values, bounds, intervals and the comparison.
func estimateWarnings(r *eval.Report) (out []string) {
	for i := range r.Groups {
		g := &r.Groups[i]
		for k := range g.Policies {
			p := &g.Policies[k]
			for _, name := range shownMetrics {
				if r.Stopped && name == "regret" {
					continue // its bound may be open
				}
				if n, done := p.Summary(name).N, p.Runs-p.Missing-p.Unfinished; n < done {
					out = append(out, fmt.Sprintf("%s of %s has no value in %d of %s%s", name, p.Policy, done-n,
						figures.Count(done, "run"), inScenario(r, g.Scenario)))
				}
			}
		}
	}
	for i := range r.Oracles {
		if n := r.Oracles[i].Short; n > 0 {
			k := &r.Config.Cases[i]
			out = append(out,
				fmt.Sprintf("the oracle of %s, window %d was cut short in %s of time by its limit of work: its bounds hold, and are lower than they could be", k.Scenario, k.Window, figures.Count(n, "piece")))
		}
	}
	out = append(out, intervalWarnings(r)...)
	if r.Comparison != nil {
		out = append(out, comparison{r.Comparison}.warnings()...)
	}
	return out
}
