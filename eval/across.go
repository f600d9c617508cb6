package eval

// An Across is what can be said of one policy over several scenarios. Nothing
// in it is summed or averaged: such a figure would be true for none of them.
type Across struct {
	Policy string

	// First is in how many scenarios it saves the most in the median run of all
	// policies that keep the manifests, equals included; Of is in how many its
	// savings are known, and Marked in how many it does not keep the manifests
	// and so is not first.
	First, Of, Marked int

	// Shortfall is how many points of the on-demand bill its median net savings
	// lie below those of the first of a scenario, in the scenario where that is
	// most: Behind indexes Report.Groups. It is below 0 where the policy is marked
	// and saves more everywhere. Behind is -1 where no shortfall is known.
	Shortfall float64
	Behind    int

	// WorstOutage indexes Report.Runs: the run with the most outage minutes, the
	// first among equals. It is -1 without runs.
	WorstOutage int
}

// Across returns one of each policy in the order of Config.Policies, none with
// a single scenario.
func (r *Report) Across() []Across {
	if len(r.Groups) < 2 {
		return nil
	}
	out := make([]Across, len(r.Config.Policies))
	for p, name := range r.Config.Policies {
		x := &out[p]
		*x = Across{Policy: name, Behind: -1, WorstOutage: -1}
		for i := range r.Groups {
			g := &r.Groups[i]
			if g.Policies[p].Marked() {
				x.Marked++
			}
			if g.Policies[p].Summary("net_savings_pct").N > 0 {
				x.Of++
			}
			if points, ok := r.Shortfall(g, p); ok {
				if points == 0 && !g.Policies[p].Marked() {
					x.First++
				}
				if x.Behind < 0 || points > x.Shortfall {
					x.Shortfall, x.Behind = points, i
				}
			}
			if run := r.worstOutage(g, p); run >= 0 && (x.WorstOutage < 0 || r.Runs[run].Result.Outage > r.Runs[x.WorstOutage].Result.Outage) {
				x.WorstOutage = run
			}
		}
	}
	return out
}

// worstOutage returns the run of policy p in g with the longest outages in sum, -1
// without runs.
func (r *Report) worstOutage(g *Group, p int) int {
	worst := -1
	for _, i := range r.RunsOf(g, p) {
		if r.Runs[i].Err == nil && (worst < 0 || r.Runs[i].Result.Outage > r.Runs[worst].Result.Outage) {
			worst = i
		}
	}
	return worst
}
