package eval

// An Across is one policy over several scenarios. Nothing
// in it is summed or averaged: such a figure would be true for none of them.
type Across struct {
	// Name as written.
	Policy string `json:"policy"`
	// Scenarios in which its median net_savings_pct is the greatest of all policies that keep the
	// manifests, equals included.
	First int `json:"first"`
	// Scenarios in which it has a median.
	Of int `json:"of"`
	// Scenarios in which it does not keep the manifests, and so is not first.
	Marked int `json:"violating_scenarios"`
	// The scenario in which it is furthest below the first.
	Worst *Shortfall `json:"worst_shortfall,omitempty"`
	// The run with the most outage minutes.
	Outage *WorstOutage `json:"worst_outage,omitempty"`

	// WorstOutage indexes Report.Runs: the run with the most outage minutes, the
	// first among equals. It is -1 without runs.
	WorstOutage int `json:"-"`
}

// A Shortfall is how far a policy is below the first of a scenario.
type Shortfall struct {
	// Points of the on-demand bill; below 0 for one that saves more everywhere and does not keep the
	// manifests.
	Points   float64 `json:"points"`
	Scenario string  `json:"scenario"`
	// The policy that is first there.
	Best string `json:"best"`
}

// A WorstOutage is the run of a policy with the most outage.
type WorstOutage struct {
	Minutes float64 `json:"minutes"`
	// The part that would not be without Spot.
	SpotMinutes float64 `json:"spot_minutes"`
	Place
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
		*x = Across{Policy: name, WorstOutage: -1}
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
				if x.Worst == nil || points > x.Worst.Points {
					x.Worst = &Shortfall{points, g.Scenario, r.Config.Policies[r.Best(g)]}
				}
			}
			if run := r.worstOutage(g, p); run >= 0 && (x.WorstOutage < 0 ||
				r.Runs[run].Result.Outage > r.Runs[x.WorstOutage].Result.Outage) {
				x.WorstOutage = run
			}
		}
		if i := x.WorstOutage; i >= 0 {
			x.Outage = &WorstOutage{r.Runs[i].Value("outage_minutes").V, r.Runs[i].Value("outage_spot_minutes").V, r.Place(i)}
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
