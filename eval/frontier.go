package eval

import "strings"

// A frontier is what can be had by choosing nothing but how much to put on
// spot: the fixed mixes of a comparison, each with what it saves and what its
// outages cost. What a policy knows beyond that shows as its distance from the
// best of them.
type frontier struct {
	// mixes are the places in Config.Policies of the fixed mixes, in their
	// order, and best the one of those that keep the manifests which saves most in
	// the median run.
	mixes []int
	best  int
}

// fixedMix is how the fixed mixes begin.
const fixedMix = "static:share="

// frontierOf returns the frontier of g; false with fewer than two fixed mixes,
// or where none of them ran and kept the manifests.
func (r *Report) frontierOf(g *Group) (f frontier, ok bool) {
	f.best = -1
	for p, name := range r.Config.Policies {
		if !strings.HasPrefix(name, fixedMix) {
			continue
		}
		f.mixes = append(f.mixes, p)
		s := g.Policies[p].summary("net_savings_pct")
		if s.N > 0 && !g.Policies[p].Marked() && (f.best < 0 || s.Median > g.Policies[f.best].summary("net_savings_pct").Median) {
			f.best = p
		}
	}
	return f, len(f.mixes) > 1 && f.best >= 0
}

// frontierTable returns heading and rows of the frontier of g and of every
// other policy beside it; none where there is no frontier.
func (r *Report) frontierTable(g *Group) (heading []string, rows [][]string) {
	f, ok := r.frontierOf(g)
	if !ok {
		return nil, nil
	}
	heading = []string{"FRONTIER OF static", "SAVED %", "OUTAGE COST % (mean)", "OUTAGE MIN (max)", "OVER BEST, %", "(worst window)"}
	for _, p := range f.mixes {
		rows = append(rows, r.frontierRow(g, p, f.best))
	}
	for p, name := range r.Config.Policies {
		if !strings.HasPrefix(name, fixedMix) {
			rows = append(rows, r.frontierRow(g, p, f.best))
		}
	}
	return heading, rows
}

// frontierRow returns the row of policy p beside the best fixed mix.
func (r *Report) frontierRow(g *Group, p, best int) []string {
	x := &g.Policies[p]
	row := []string{r.label(x), unknown, unknown, unknown, unknown, unknown}
	saved, bill, outage := x.summary("net_savings_pct"), x.summary("on_demand_bill_usd"), x.summary("outage_cost_usd")
	if saved.N == 0 {
		return row
	}
	row[1] = percent(saved.Median)
	if bill.Mean > 0 {
		row[2] = plain(outage.Mean/bill.Mean*100, 2)
	}
	row[3] = whole(x.summary("outage_minutes").Max)
	if p == best {
		row[4], row[5] = "best", ""
		return row
	}
	gate := Gate{Policy: x.Policy, Versus: r.Config.Policies[best], Metric: "net_savings_delta_pct"}
	gate.Statistic = Median
	if v := gate.look(r, g, p).Actual; v.Known {
		row[4] = signed(v.V, 1)
	}
	gate.Statistic = WindowMin
	if v := gate.look(r, g, p).Actual; v.Known {
		row[5] = signed(v.V, 1)
	}
	return row
}
