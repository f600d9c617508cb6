package workload

// A PoolSafety describes how well a pool would tolerate the loss of Spot nodes.
type PoolSafety struct {
	// CriticalOnSpot is the fraction of the critical pods that run on Spot.
	CriticalOnSpot float64 `json:"critical_service_spot_concentration"`

	// Slack1 and Slack2 are the numbers of disruptions that the tightest budget still allows after
	// the loss of the worst node and of the two worst nodes. A negative value means that the budget
	// is violated.
	Slack1 float64 `json:"min_pdb_slack_if_one_node_lost"`
	Slack2 float64 `json:"min_pdb_slack_if_two_nodes_lost"`

	// Stateful is the fraction of the pods that belong to StatefulSets.
	Stateful float64 `json:"stateful_pod_fraction"`

	// Restart is the 95th percentile of the startup time, in seconds.
	Restart float64 `json:"restart_p95_seconds"`

	// Risk in [0, 1] estimates how likely the loss of a node violates the requirements of the pool
	// before it has recovered.
	Risk float64 `json:"recovery_budget_violation_risk"`

	// SpareOnDemand is the idle part of the on-demand nodes, in nodes.
	SpareOnDemand float64 `json:"spare_od_headroom_nodes"`

	// Zones is 1 for at least three zones, 0.5 for two and 0 for one.
	Zones float64 `json:"zone_diversification_score"`

	// Evictable is the fraction of the pods that could be evicted now.
	Evictable float64 `json:"evictable_pod_fraction"`

	// SafeMax is the largest Spot share that all of these values allow.
	SafeMax float64 `json:"safe_max_spot_ratio"`
}

// DefaultPoolSafety returns the assumed safety of a pool without data.
func DefaultPoolSafety() PoolSafety {
	return PoolSafety{Restart: 300, Zones: 1, Evictable: 1, SafeMax: 1}
}

// Normal returns p with every fraction limited to [0, 1] and every quantity to at least 0. Slack is
// not limited. The zero PoolSafety means that there is no data and becomes [DefaultPoolSafety].
func (p PoolSafety) Normal() PoolSafety {
	if p == (PoolSafety{}) {
		return DefaultPoolSafety()
	}
	p.CriticalOnSpot = unit(p.CriticalOnSpot)
	p.Stateful = unit(p.Stateful)
	p.Restart = max(0, p.Restart)
	p.Risk = unit(p.Risk)
	p.SpareOnDemand = max(0, p.SpareOnDemand)
	p.Zones = unit(p.Zones)
	p.Evictable = unit(p.Evictable)
	p.SafeMax = unit(p.SafeMax)
	return p
}

// A SafetyInput is the input of [Safety]: counts over one pool.
type SafetyInput struct {
	OnDemandNodes int

	// Pods is the number of pods, without those of DaemonSets, which are replaced with their node.
	// The next four fields count subsets of them.
	Pods, Stateful, Evictable, Critical, CriticalOnSpot int

	// Budgets are the PodDisruptionBudgets that select a pod of the pool.
	Budgets []BudgetSpread

	// Utilization in [0, 1] is the utilization of the nodes.
	Utilization float64

	// ZoneCount is the number of zones over which a loss would be spread.
	ZoneCount int

	// Restart is the 95th percentile of the startup time, in seconds.
	Restart float64
}

// A BudgetSpread describes how the pods of one PodDisruptionBudget are spread over nodes.
type BudgetSpread struct {
	// Allowed is how many of the pods may be disrupted.
	Allowed int

	// Most and Second are the two largest numbers of these pods on one node.
	Most, Second int
}

// Safety returns the safety of a pool.
//
// With compat it reproduces the agent exactly: a pool without budgets counts as one whose budgets
// are exhausted. Otherwise such a pool is unconstrained (the loss of every pod is allowed), and
// slack lowers SafeMax only and does not affect Risk: Risk freezes a pool at its current share,
// which does not protect a budget.
func Safety(in SafetyInput, compat bool) PoolSafety {
	p := DefaultPoolSafety()
	p.Restart = in.Restart
	p.SpareOnDemand = max(0, float64(float64(in.OnDemandNodes)*(1-unit(in.Utilization))))
	p.Zones = zoneScore(in.ZoneCount)
	if in.Pods <= 0 {
		return p
	}
	if in.Critical > 0 {
		p.CriticalOnSpot = float64(in.CriticalOnSpot) / float64(in.Critical)
	}
	p.Stateful = float64(in.Stateful) / float64(in.Pods)
	p.Evictable = float64(in.Evictable) / float64(in.Pods)
	p.Slack1, p.Slack2 = slack(in.Budgets)
	if len(in.Budgets) == 0 && !compat {
		p.Slack1, p.Slack2 = float64(in.Pods), float64(in.Pods)
	}
	p.Risk = risk(&p)
	if compat {
		p.Risk = max(p.Risk, slackRisk(&p))
	}
	p.SafeMax = safeMax(&p)
	return p
}

func zoneScore(zones int) float64 {
	switch {
	case zones >= 3:
		return 1
	case zones == 2:
		return 0.5
	}
	return 0
}

// slack returns how many disruptions the tightest budget still allows after the loss of the worst
// node and of the two worst nodes. Both are 0 without budgets.
func slack(budgets []BudgetSpread) (one, two float64) {
	for i, b := range budgets {
		x, y := float64(b.Allowed-b.Most), float64(b.Allowed-b.Most-b.Second)
		if i == 0 {
			one, two = x, y
			continue
		}
		one, two = min(one, x), min(two, y)
	}
	return one, two
}

// risk returns the maximum of the risks from all values except slack.
func risk(p *PoolSafety) float64 {
	r := 0.0
	if p.CriticalOnSpot > 0 {
		r = max(r, unit(0.20+float64(0.80*p.CriticalOnSpot)))
	}
	if p.Stateful > 0 {
		r = max(r, unit(0.15+float64(0.65*p.Stateful)))
	}
	switch {
	case p.Restart >= 600:
		r = max(r, 0.75)
	case p.Restart >= 300:
		r = max(r, 0.50)
	case p.Restart >= 120:
		r = max(r, 0.30)
	}
	if p.SpareOnDemand < 1 {
		r = max(r, 0.55)
	}
	return unit(max(r, (1-p.Zones)*0.60, (1-p.Evictable)*0.85))
}

func slackRisk(p *PoolSafety) float64 {
	switch {
	case p.Slack1 < 0:
		return 0.95
	case p.Slack2 < 0:
		return 0.85
	case p.Slack1 < 1:
		return 0.70
	case p.Slack2 < 1:
		return 0.55
	}
	return 0
}

// safeMax returns the minimum of the shares that the values in p allow.
func safeMax(p *PoolSafety) float64 {
	return min(
		atLeast(p.CriticalOnSpot, 0.80, 0.10, 0.50, 0.25, 0.25, 0.50),
		below(p.Slack1, 0, 0.10, 1, 0.35),
		below(p.Slack2, 0, 0.25, 1, 0.50),
		atLeast(p.Stateful, 0.50, 0.50, 0.25, 0.70, 2, 1),
		atLeast(p.Restart, 600, 0.25, 300, 0.50, 1e18, 1),
		atLeast(p.Risk, 0.90, 0.10, 0.75, 0.25, 0.60, 0.40),
		below(p.SpareOnDemand, 1, 0.60, 1, 0.60),
		below(p.Zones, 0.50, 0.60, 0.50, 0.60),
		below(p.Evictable, 0.25, 0.20, 0.50, 0.40),
	)
}

// atLeast returns the share for the first limit that x reaches, or 1 if it reaches no limit. The
// limits must be descending.
func atLeast(x, limit1, share1, limit2, share2, limit3, share3 float64) float64 {
	switch {
	case x >= limit1:
		return share1
	case x >= limit2:
		return share2
	case x >= limit3:
		return share3
	}
	return 1
}

// below returns the share for the first limit that x is below, or 1 if there is no such limit. The
// limits must be ascending.
func below(x, limit1, share1, limit2, share2 float64) float64 {
	switch {
	case x < limit1:
		return share1
	case x < limit2:
		return share2
	}
	return 1
}

// unit returns x limited to [0, 1].
func unit(x float64) float64 { return max(0, min(1, x)) }
