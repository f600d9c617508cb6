package eval

import (
	"fmt"
	"slices"
)

// shownMetrics are those of which a report that lacks them has to warn: what
// its table shows.
var shownMetrics = []string{"bill_usd", "net_savings_usd", "net_savings_pct", "net_savings_delta_pct", "outage_minutes", "outage_delta", "regret"}

// Warnings say what could not be estimated. None of it counts as good: a gate
// without a value fails, and what a reader might take for a result is named.
func (r *Report) Warnings() []string {
	var out []string
	if n := r.Missing(); n > 0 {
		out = append(out, fmt.Sprintf("%d of %s broke", n, plural(len(r.Runs), "run")))
	}
	for i := range r.Gates {
		if g := &r.Gates[i]; !g.Estimated() {
			out = append(out, "gate without a verdict: "+firstLine(r.gateLine(g))+": it counts as failed")
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		for k := range g.Policies {
			p := &g.Policies[k]
			for _, name := range shownMetrics {
				if r.Stopped && slices.Contains(boundMetrics, name) {
					continue
				}
				if n, done := p.summary(name).N, p.Runs-p.Missing-p.Unfinished; n < done {
					out = append(out, fmt.Sprintf("%s of %s has no value in %d of %s%s", name, p.Policy, done-n, plural(done, "run"), r.in(g.Scenario)))
				}
			}
		}
	}
	for i := range r.Oracles {
		if n := r.Oracles[i].Short; n > 0 {
			k := &r.Config.Cases[i]
			out = append(out, fmt.Sprintf("the oracle of %s, window %d was cut short in %s of time by its limit of work: its bounds hold, and are lower than they could be", k.Scenario, k.Window, plural(n, "piece")))
		}
	}
	out = append(out, r.intervalWarnings()...)
	if r.Comparison != nil {
		out = append(out, r.Comparison.Warnings...)
	}
	return out
}

// Estimated reports whether the gate had a value of every run to judge by. One
// that had not, or whose comparison was stopped, fails for want of an answer and
// not for a bad one.
func (g *GateResult) Estimated() bool { return g.Missing == 0 && g.Actual.Known && !g.Stopped }
