package spotvortex

import "github.com/spotter-dev/spotter/policy/workload"

// An Action is the change that the rules require of a pool.
type Action uint8

// The actions, numbered like those of the SpotVortex agent.
const (
	Hold Action = iota
	Decrease10
	Decrease30
	Increase10
	Increase30
	EmergencyExit
)

// String returns the agent's name for a.
func (a Action) String() string {
	return [...]string{"HOLD", "DECREASE_10", "DECREASE_30", "INCREASE_10", "INCREASE_30", "EMERGENCY_EXIT"}[a]
}

// Change returns the change of the Spot share by a, negative for a reduction.
func (a Action) Change() float64 {
	return [...]float64{0, -0.10, -0.30, 0.10, 0.30, -1}[a]
}

// A Mode is how a pool responds while a decision is in effect.
type Mode string

// The response modes.
const (
	AllowGrowth   Mode = "allow_growth"
	Keep          Mode = "hold"
	Freeze        Mode = "freeze_spot"
	ReduceGradual Mode = "reduce_spot_gradual"
	ReduceFast    Mode = "reduce_spot_fast"
	Exit          Mode = "emergency_exit"
)

// An Urgency is how soon a decision must be carried out.
type Urgency string

// The urgencies.
const (
	Low      Urgency = "low"
	Medium   Urgency = "medium"
	High     Urgency = "high"
	Critical Urgency = "critical"
)

// The reasons of a decision.
const (
	EmergencyRisk     = "emergency_risk"
	HighRisk          = "high_risk"
	MediumRisk        = "medium_risk"
	SafetyFast        = "pool_safety_reduce_fast"
	SafetyGradual     = "pool_safety_reduce_gradual"
	CapReached        = "cap_reached"
	SafetyFreeze      = "pool_safety_freeze"
	OutsideIncrease10 = "ood_conservative_increase10"
	OutsideHold       = "ood_conservative_hold"
	EconomicIncrease3 = "economic_increase30"
	EconomicIncrease1 = "economic_increase10"
	HoldNoEdge        = "hold_no_edge"
)

// A State contains the inputs of the rules for a pool.
type State struct {
	// SpotPrice and OnDemandPrice are dollars per node-hour.
	SpotPrice     float64 `json:"spot_price"`
	OnDemandPrice float64 `json:"on_demand_price"`

	// Startup is in seconds, Penalty in hours, MigrationCost in dollars per
	// node moved.
	Startup       float64 `json:"pod_startup_time"`
	Penalty       float64 `json:"outage_penalty_hours"`
	MigrationCost float64 `json:"migration_cost"`

	// Priority, Utilization and Share are in [0, 1].
	Priority    float64 `json:"priority_score"`
	Utilization float64 `json:"cluster_utilization"`
	Share       float64 `json:"current_spot_ratio"`

	// Grain is the fraction of the pool that one node is: the share cannot be controlled more
	// precisely. Zero, as in the agent, means no tolerance.
	Grain float64 `json:"-"`
}

// A Decision is the result of the rules, with the values on which it is based.
type Decision struct {
	Action  Action
	Reason  string
	Mode    Mode
	Urgency Urgency

	// Composite is the larger of the two risk scores.
	Composite float64

	// FeatureCap is the maximum share that the cap rules allow, WorkloadCap the maximum share that
	// pool safety allows too, and Cap the WorkloadCap limited to the configured minimum and
	// maximum.
	FeatureCap, WorkloadCap, Cap float64

	// Outside is the set of features outside the range for which the thresholds were tuned.
	Outside Outside
}

// Outside is a set of features that are outside their buckets.
type Outside uint8

// The features that are checked, in the order in which they are named.
const (
	OutsideStartup Outside = 1 << iota
	OutsidePenalty
	OutsidePriority
	OutsideUtilization
)

// Names returns the agent's names of the features in o; it is never nil.
func (o Outside) Names() []string {
	names := []string{}
	for i, name := range [...]string{"pod_startup_time", "outage_penalty_hours", "priority_score", "cluster_utilization"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// reachedWithin is the distance from the cap that counts as reaching it.
const reachedWithin = 1e-6

// Evaluate applies the agent's deterministic rules: it is a pure function of the state of a pool,
// its safety and the two risk scores in [0, 1]. The zero safety means that it is unknown. cfg is
// used as it is; see [Config.Normal].
func Evaluate(cfg *Config, st State, safety workload.PoolSafety, capacity, runtime float64) Decision {
	r := &cfg.Rules
	safety = safety.Normal()
	d := Decision{Composite: max(capacity, runtime), FeatureCap: r.featureCap(&st)}
	d.WorkloadCap = unit(min(d.FeatureCap, safety.SafeMax))
	d.Cap = min(max(d.WorkloadCap, cfg.MinShare), cfg.MaxShare)
	d.Outside = r.Buckets.outside(&st)

	if runtime >= r.RuntimeEmergency || d.Composite >= r.Emergency {
		return d.say(EmergencyExit, EmergencyRisk, Exit, Critical)
	}
	if d.Composite >= r.HighRisk {
		return d.say(Decrease30, HighRisk, ReduceFast, High)
	}
	if d.Composite >= r.MediumRisk {
		return d.say(Decrease10, MediumRisk, ReduceGradual, Medium)
	}
	if over := st.Share - d.Cap; over > max(reachedWithin, st.Grain) {
		if over >= 0.25 || safety.Risk >= 0.85 || safety.Slack1 < 0 {
			return d.say(Decrease30, SafetyFast, ReduceFast, High)
		}
		return d.say(Decrease10, SafetyGradual, ReduceGradual, Medium)
	}
	if st.Share >= d.Cap-max(reachedWithin, st.Grain/2) {
		return d.say(Hold, CapReached, Freeze, Medium)
	}
	if safety.Risk >= 0.60 {
		return d.say(Hold, SafetyFreeze, Freeze, Medium)
	}
	if d.Outside != 0 && r.OutsideConservative {
		if r.OutsideIncrease.allow(&st, d.Composite) {
			return d.say(Increase10, OutsideIncrease10, AllowGrowth, Low)
		}
		return d.say(Hold, OutsideHold, Keep, Low)
	}
	if (Edge{r.MediumRisk, r.Increase.SavingsMin, r.Increase.PaybackMax}).allow(&st, d.Composite) {
		if d.Cap-st.Share >= 0.25 {
			return d.say(Increase30, EconomicIncrease3, AllowGrowth, Low)
		}
		return d.say(Increase10, EconomicIncrease1, AllowGrowth, Low)
	}
	return d.say(Hold, HoldNoEdge, Keep, Low)
}

func (d Decision) say(a Action, reason string, m Mode, u Urgency) Decision {
	d.Action, d.Reason, d.Mode, d.Urgency = a, reason, m, u
	return d
}

// featureCap returns the minimum of the shares that the tables of cap rules allow.
func (r *Rules) featureCap(st *State) float64 {
	return unit(min(
		r.PriorityCaps.share(st.Priority),
		r.PenaltyCaps.share(st.Penalty),
		r.StartupCaps.share(st.Startup),
		r.MigrationCaps.share(st.MigrationCost),
		r.UtilizationCaps.share(st.Utilization),
	))
}

// share returns the share of the first rule whose threshold x reaches, or 1 if x reaches none.
func (c Caps) share(x float64) float64 {
	for _, rule := range c {
		if x >= rule.Threshold {
			return rule.MaxShare
		}
	}
	return 1
}

// allow reports whether e lets the share grow.
func (e Edge) allow(st *State, risk float64) bool {
	saving := max(0, st.OnDemandPrice-st.SpotPrice)
	return st.OnDemandPrice > 0 && saving > 0 && risk <= e.RiskMax &&
		saving/st.OnDemandPrice >= e.SavingsMin && st.MigrationCost/saving <= e.PaybackMax
}

func (b *Buckets) outside(st *State) Outside {
	var o Outside
	for i, f := range [...]struct {
		x      float64
		bounds []float64
	}{{st.Startup, b.Startup}, {st.Penalty, b.Penalty}, {st.Priority, b.Priority}, {st.Utilization, b.Utilization}} {
		if n := len(f.bounds); n > 0 && (f.x < f.bounds[0] || f.x > f.bounds[n-1]) {
			o |= 1 << i
		}
	}
	return o
}

// unit returns x limited to [0, 1].
func unit(x float64) float64 { return max(0, min(1, x)) }
