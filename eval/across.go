package eval

// An Across summarizes one policy over several scenarios. It contains no sum or mean over
// scenarios, because such a number would be true of none of them.
type Across struct {
	// Name of the policy, as written in the configuration.
	Policy string `json:"policy"`
	// Number of scenarios in which the policy has the highest median net_savings_pct of all policies
	// that comply with the manifests, ties included.
	First int `json:"first"`
	// Number of scenarios in which the policy has a median.
	Of int `json:"of"`
	// Number of scenarios in which the policy violates the manifests, and therefore cannot be
	// first.
	Marked int `json:"violating_scenarios"`
	// The scenario in which the policy is furthest behind the first.
	Worst *Shortfall `json:"worst_shortfall,omitempty"`
	// The run with the most outage minutes.
	Outage *WorstOutage `json:"worst_outage,omitempty"`

	// WorstOutage is the index in Report.Runs of the run with the most outage minutes, the first if
	// several are equal. It is -1 if there are no runs.
	WorstOutage int `json:"-"`
}

// A Shortfall is the distance of a policy from the first of a scenario.
type Shortfall struct {
	// Percentage points of the on-demand bill. Negative for a policy that saves more than the first
	// in every scenario, but violates the manifests.
	Points   float64 `json:"points"`
	Scenario string  `json:"scenario"`
	// The policy that is first in the scenario.
	Best string `json:"best"`
}

// A WorstOutage describes the run of a policy with the most outage minutes.
type WorstOutage struct {
	Minutes float64 `json:"minutes"`
	// The part of the outage that would not have occurred without Spot.
	SpotMinutes float64 `json:"spot_minutes"`
	Place
}

// Across returns one element for each policy, in the order of Config.Policies. It returns nil for
// fewer than two scenarios.
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

// worstOutage returns the index of the run of policy p in g with the longest total outage, or -1 if
// no run succeeded.
func (r *Report) worstOutage(g *Group, p int) int {
	worst := -1
	for _, i := range r.RunsOf(g, p) {
		if r.Runs[i].Err == nil && (worst < 0 || r.Runs[i].Result.Outage > r.Runs[worst].Result.Outage) {
			worst = i
		}
	}
	return worst
}
