package eval

import (
	"encoding/json"
	"math"
	"time"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim"
)

// A Metric is a quantity that is measured for each run, with the name that all outputs and gates
// use.
type Metric struct {
	Name string

	// Unit is "$", "%", "min", "s", "h", "share", "count", "yes/no" or "per pod-day".
	Unit string

	// About defines the metric in one sentence.
	About string

	// Interval reports whether confidence intervals are computed for the metric.
	Interval bool

	value func(*match) (float64, bool)
}

// YesNo reports whether m is a boolean rather than a number.
func (m *Metric) YesNo() bool { return m.Unit == "yes/no" }

// Whole reports whether all values of m are whole numbers.
func (m *Metric) Whole() bool { return m.Unit == "count" || m.Unit == "min" }

// Metrics returns all metrics in the order of outputs.
func Metrics() []Metric { return append([]Metric(nil), metrics...) }

// improvementFloor is the fraction of the on-demand bill below which the net savings of the
// baseline are not used as a denominator. Otherwise a baseline that saves almost nothing would turn
// cents into large percentages.
const improvementFloor = 0.05

// metrics contains all metrics. Indexes into it are only used within the package.
var metrics = []Metric{
	{"bill_usd", "$", "What the nodes of the run cost inside the window.", true,
		func(m *match) (float64, bool) { return m.run.Bill.Float(), true }},
	{"on_demand_bill_usd", "$", "The bill of the policy on-demand in the same case and seed.", false,
		func(m *match) (float64, bool) { return onDemand(m, func(r *sim.Result) policy.Money { return r.Bill }) }},
	{"outage_cost_usd", "$", "2 × unserved, the penalties of incidents, and work of jobs not done in time.", true,
		func(m *match) (float64, bool) { return m.run.OutageCost.Float(), true }},
	{"on_demand_outage_cost_usd", "$", "The outage cost of the policy on-demand in the same case and seed.", false,
		func(m *match) (float64, bool) {
			return onDemand(m, func(r *sim.Result) policy.Money { return r.OutageCost })
		}},
	{"net_savings_usd", "$", "On-demand's bill and outage cost less the run's.", true,
		func(m *match) (float64, bool) { return m.savings.Float(), m.onDemand != nil }},
	{"net_savings_pct", "%", "Net savings in percent of the on-demand bill.", true,
		func(m *match) (float64, bool) { return m.percentOfBill(m.savings) }},
	{"net_savings_delta_pct", "%", "Net savings less the baseline's, in percent of the on-demand bill.", true,
		func(m *match) (float64, bool) {
			v, ok := m.percentOfBill(m.savings - m.baseSavings)
			return v, ok && m.baseline != nil
		}},
	{"net_profit_improvement_pct", "%",
		"Net savings less the baseline's, in percent of the baseline's or of 5% of the on-demand bill, whichever is more.", true,
		improvement},
	{"improvement_floored", "yes/no",
		"Whether 5% of the on-demand bill was the denominator of net_profit_improvement_pct.", false,
		func(m *match) (float64, bool) {
			_, ok := improvement(m)
			return yes(m.floored()), ok
		}},
	{"net_savings_vs_1y_usd", "$", "Net savings against the on-demand nodes under a one-year commitment.", false,
		committed(func(c *Config) float64 { return c.Discount1y }, inDollars)},
	{"net_savings_vs_1y_pct", "%", "net_savings_vs_1y_usd in percent of the on-demand bill.", false,
		committed(func(c *Config) float64 { return c.Discount1y }, (*match).percentOfBill)},
	{"net_savings_vs_3y_usd", "$", "Net savings against the on-demand nodes under a three-year commitment.", false,
		committed(func(c *Config) float64 { return c.Discount3y }, inDollars)},
	{"net_savings_vs_3y_pct", "%", "net_savings_vs_3y_usd in percent of the on-demand bill.", false,
		committed(func(c *Config) float64 { return c.Discount3y }, (*match).percentOfBill)},
	{"outage_minutes", "min",
		"Minutes with fewer ready pods than required, summed over incidents and workloads and rounded once, half up.", true,
		func(m *match) (float64, bool) { return float64(m.run.OutageMinutes), true }},
	{"outage_delta", "min", "Outage minutes less the baseline's.", true,
		minutesOver(func(o *sim.Outages) int64 { return o.OutageMinutes })},
	{"outage_incidents", "count", "Times with fewer ready pods than required; gaps under 5 minutes join.", false,
		count(func(r *sim.Result) int64 { return r.Incidents })},
	{"outage_longest_s", "s", "Seconds below the required number of the longest incident, 0 without one.", false,
		func(m *match) (float64, bool) { return seconds(m.run.Longest.Outage), true }},
	{"outage_pods", "count", "The most pods missing at once in an incident, summed over incidents.", false,
		count(func(r *sim.Result) int64 { return r.PodsAffected })},
	{"outage_spot_minutes", "min",
		"The part of outage_minutes that would not be without Spot: without the pods lost to reclaims and those that wait for a refused spot launch.", false,
		count(func(r *sim.Result) int64 { return r.SpotMinutes() })},
	{"outage_spot_delta", "min", "outage_spot_minutes less the baseline's.", true,
		minutesOver((*sim.Outages).SpotMinutes)},
	{"unserved_usd", "$", "The integral of missing pods × pod value.", false,
		func(m *match) (float64, bool) { return m.run.Unserved.Float(), true }},
	{"incident_cost_usd", "$", "The penalties of incidents, a part of the outage cost.", false,
		func(m *match) (float64, bool) { return m.run.IncidentCost.Float(), true }},
	{"job_cost_usd", "$", "The cost of work of jobs not done in time, a part of the outage cost.", false,
		func(m *match) (float64, bool) { return m.run.JobCost.Float(), true }},
	{"availability", "share", "Mean over workloads of the share of time with all desired pods ready.", true,
		func(m *match) (float64, bool) { return m.run.Availability, true }},
	{"voluntary_evictions_per_pod_day", "per pod-day", "Pods moved by drains, evictions and consolidation.", true,
		perPodDay(func(r *sim.Result) int64 { return r.VoluntaryEvictions })},
	{"reclaim_evictions_per_pod_day", "per pod-day", "Pods lost with nodes that the provider took.", true,
		perPodDay(func(r *sim.Result) int64 { return r.ReclaimEvictions })},
	{"time_to_ready_p50_s", "s", "Median time from a pod's creation to ready.", false,
		func(m *match) (float64, bool) { return seconds(m.run.TimeToReadyP50), true }},
	{"time_to_ready_p95_s", "s", "95th percentile of the time from a pod's creation to ready.", false,
		func(m *match) (float64, bool) { return seconds(m.run.TimeToReadyP95), true }},
	{"node_launches", "count", "Nodes bought.", false, count(func(r *sim.Result) int64 { return r.Launches })},
	{"refusals", "count", "Launches refused for lack of capacity.", false,
		count(func(r *sim.Result) int64 { return r.Refusals })},
	{"outbid", "count", "Nodes whose bid a market price rose above.", false,
		count(func(r *sim.Result) int64 { return r.Outbid })},
	{"reclaims", "count", "Nodes that the provider took while they ran.", false,
		count(func(r *sim.Result) int64 { return r.Reclaims })},
	{"notices", "count", "Notices given, also to nodes that were drained and gone before the reclaim.", false,
		count(func(r *sim.Result) int64 { return r.Notices })},
	{"recommendations", "count", "Rebalance recommendations given.", false,
		count(func(r *sim.Result) int64 { return r.Recommendations })},
	{"drains", "count", "Nodes drained.", false, count(func(r *sim.Result) int64 { return r.Drains })},
	{"node_hours", "h", "Hours of initialized nodes.", false,
		func(m *match) (float64, bool) { return m.run.NodeHours, true }},
	{"capacity_hours", "h", "vCPU-hours held, GPU-hours in GPU scenarios.", false,
		func(m *match) (float64, bool) { return m.run.CapacityHours, true }},
	{"spot_bill_usd", "$", "The part of the bill that Spot nodes cost.", false,
		func(m *match) (float64, bool) { return m.run.SpotBill.Float(), true }},
	{"spot_share", "share", "Spot part of the vCPU-hours (GPU-hours in GPU scenarios) held.", true,
		func(m *match) (float64, bool) { return m.run.SpotShare, true }},
	{"spot_barred_min", "min",
		"Minutes for which a pool was on demand because its loss budget was used up, summed over pools.", false,
		func(m *match) (float64, bool) { return math.Round(m.run.SpotBarred.Minutes()), true }},
	{"jobs_done", "count", "Instances of jobs done in time.", false,
		count(func(r *sim.Result) int64 { return r.JobsDone })},
	{"jobs_missed", "count", "Instances of jobs that missed their deadline.", false,
		count(func(r *sim.Result) int64 { return r.JobsMissed })},
	{"work_lost_h", "h", "Work of jobs that had to be done twice; the bill holds it.", false,
		func(m *match) (float64, bool) { return m.run.WorkLost.Hours(), true }},
	{"gangs_not_started", "count", "Instances of gangs of which all pods were never ready at once.", false,
		count(func(r *sim.Result) int64 { return r.Gangs.NotStarted })},
	{"gangs_failed", "count", "Instances of gangs that were lost more often than they may be.", false,
		count(func(r *sim.Result) int64 { return r.Gangs.Failed })},
	{"gang_wait_p50_s", "s",
		"Median time from the release of a gang until all of its pods are ready; unknown where none started.", false,
		func(m *match) (float64, bool) { return seconds(m.run.Gangs.WaitP50), m.run.Gangs.Started > 0 }},
	{"gang_wait_p95_s", "s", "95th percentile of the same.", false,
		func(m *match) (float64, bool) { return seconds(m.run.Gangs.WaitP95), m.run.Gangs.Started > 0 }},
	{"gang_restarts", "count", "How often all pods of a gang were recreated because one was lost.", false,
		count(func(r *sim.Result) int64 { return r.Gangs.Restarts })},
	{"gang_requeues", "count", "How often a gang was evicted since not all of its pods were ready in time.", false,
		count(func(r *sim.Result) int64 { return r.Gangs.Requeues })},
	{"oracle_usd", "$", "A lower bound on bill and outage cost over every policy.", false,
		bounded(func(m *match) (float64, bool) { return m.bound.Cost.Float(), true })},
	{"oracle_on_demand_usd", "$",
		"A lower bound on bill and outage cost over the policies that buy on demand only.", false,
		bounded(func(m *match) (float64, bool) { return m.bound.OnDemand.Float(), true })},
	{"packing_overhead", "share",
		"The on-demand bill as a share of oracle_on_demand_usd: 1 is nodes that are full at all times; unknown with budgets, since the bill is without what they keep out.", false,
		bounded(func(m *match) (float64, bool) {
			if m.onDemand == nil || m.bound.OnDemand <= 0 || len(m.onDemand.Budgets) > 0 {
				return 0, false
			}
			return float64(m.onDemand.Bill) / float64(m.bound.OnDemand), true
		})},
	{"regret", "share", "Bill and outage cost above the oracle, as a share of the on-demand bill.", true,
		regret(func(b *oracle.Bound) policy.Money { return b.Cost })},
	{"attainable_share", "share", "On-demand's cost less the run's, as a share of on-demand's cost less the oracle.", true,
		attainable(func(b *oracle.Bound) policy.Money { return b.Cost })},
	{"oracle_slots_usd", "$",
		"A lower bound on bill and outage cost over every policy, for which a market has no more nodes at once than its slots and shortages allow in the weather of the seed.", false,
		bounded(func(m *match) (float64, bool) { return m.bound.Slots.Float(), true })},
	{"regret_slots", "share", "Bill and outage cost above oracle_slots_usd, as a share of the on-demand bill.", true,
		regret(func(b *oracle.Bound) policy.Money { return b.Slots })},
	{"attainable_share_slots", "share",
		"On-demand's cost less the run's, as a share of on-demand's cost less oracle_slots_usd.", true,
		attainable(func(b *oracle.Bound) policy.Money { return b.Slots })},
	{"spared_usd", "$", "What the nodes would have cost more without commitments; it is in no bill.", false,
		func(m *match) (float64, bool) { return m.run.Spared.Float(), true }},
	{"commitment_fee_usd", "$",
		"What was paid in advance for the window, the same for every policy and in no bill; unknown where a fee is not stated.", false,
		func(m *match) (float64, bool) {
			return m.run.CommitmentFee.Float(), m.run.CommitmentFee != policy.NoPrice
		}},
	{"budget_peak", "share",
		"The largest part of a quota that was used within the window of its budget: above 1 it was exceeded.", false,
		budgets(func(r *sim.BudgetResult, sum float64) float64 { return max(sum, r.Peak) })},
	{"budget_spent_min", "min", "Minutes for which a budget was spent, summed over budgets.", false,
		budgets(func(r *sim.BudgetResult, sum float64) float64 { return sum + float64(r.OverMinutes) })},
	{"gate_closed_min", "min", "Minutes for which the gate of a budget was closed, summed over budgets.", false,
		budgets(func(r *sim.BudgetResult, sum float64) float64 { return sum + float64(r.ClosedMinutes) })},
	{"budget_evictions", "count", "Pods evicted and jobs suspended for budgets.", false,
		budgets(func(r *sim.BudgetResult, sum float64) float64 { return sum + float64(r.Evictions+r.Pauses) })},
	{"kept_out_usd", "$", "The part of unserved_usd that was missing behind closed gates.", false,
		func(m *match) (float64, bool) { return m.run.KeptOut.Float(), len(m.run.Budgets) > 0 }},
	{"queue_wait_p95_s", "s",
		"95th percentile of the time that workloads wait for quota of Kueue, of the queue in which it is longest.", false,
		queues(func(r *sim.QueueResult, v float64) float64 { return max(v, r.WaitP95.Seconds()) })},
	{"queue_preemptions", "count", "How often a workload lost its quota of Kueue to another one.", false,
		queues(func(r *sim.QueueResult, v float64) float64 { return v + float64(r.Preempted) })},
	{"queue_pending", "count", "Workloads that waited for quota of Kueue at the end.", false,
		queues(func(r *sim.QueueResult, v float64) float64 { return v + float64(r.Pending) })},
	{MetricSavedToday, "%",
		"What the bill is below the cost of the cluster as it is today, in percent of that; only where it is known.", true, savedToday},
}

// budgets returns a function that aggregates the GPU budgets of a run, with an unknown value if it
// has none.
func budgets(add func(r *sim.BudgetResult, sum float64) float64) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) {
		sum := 0.0
		for i := range m.run.Budgets {
			sum = add(&m.run.Budgets[i], sum)
		}
		return sum, len(m.run.Budgets) > 0
	}
}

// queues makes a figure of Kueue's queues in a run, unknown without one.
func queues(add func(r *sim.QueueResult, v float64) float64) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) {
		v := 0.0
		for i := range m.run.Queues {
			v = add(&m.run.Queues[i], v)
		}
		return v, len(m.run.Queues) > 0
	}
}

// comparisons are the metrics that are relative to the baseline by definition. Other metrics are
// compared by their difference.
var comparisons = []string{"net_savings_delta_pct", "net_profit_improvement_pct", "improvement_floored",
	"outage_delta", "outage_spot_delta"}

// A Value is a number that may be unknown, because it is relative to a missing run or its
// denominator is 0. Unknown values are null in JSON, or omitted.
type Value struct {
	V     float64
	Known bool
}

// IsZero reports whether v is unknown.
func (v Value) IsZero() bool { return !v.Known }

// MarshalJSON encodes a number or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Known {
		return []byte("null"), nil
	}
	return json.Marshal(v.V)
}

// UnmarshalJSON decodes a number or null.
func (v *Value) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = Value{}
		return nil
	}
	v.Known = true
	return json.Unmarshal(text, &v.V)
}

func improvement(m *match) (float64, bool) {
	if m.onDemand == nil || m.baseline == nil {
		return 0, false
	}
	denominator := max(absolute(m.baseSavings), m.onDemand.Bill.Times(improvementFloor))
	if denominator <= 0 {
		return 0, false
	}
	return float64(m.savings-m.baseSavings) / float64(denominator) * 100, true
}

// committed returns a function that computes the net savings relative to on-demand nodes under a
// commitment, which saves the fraction discount of their price. The value is unknown outside a
// comparison, which defines the discounts.
func committed(discount func(*Config) float64, unit func(*match, policy.Money) (float64, bool)) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) {
		if m.onDemand == nil || m.config == nil {
			return 0, false
		}
		od := m.onDemand
		return unit(m, billing.Committed(od.Bill-od.Fees.Total(), discount(m.config))+od.Fees.Total()+od.OutageCost-cost(m.run))
	}
}

func inDollars(_ *match, amount policy.Money) (float64, bool) { return amount.Float(), true }

// bounded returns a function that is value with an unknown result if the bound is open.
func bounded(value func(*match) (float64, bool)) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) {
		if m.bound == nil {
			return 0, false
		}
		return value(m)
	}
}

// regret returns a function that computes the cost above a bound, as a fraction of the on-demand
// bill.
func regret(of func(*oracle.Bound) policy.Money) func(*match) (float64, bool) {
	return bounded(func(m *match) (float64, bool) {
		v, ok := m.percentOfBill(cost(m.run) - of(m.bound))
		return v / 100, ok
	})
}

// attainable returns a function that computes the realized fraction of the largest possible
// savings. The value is unknown if no savings are possible.
func attainable(of func(*oracle.Bound) policy.Money) func(*match) (float64, bool) {
	return bounded(func(m *match) (float64, bool) {
		if m.onDemand == nil || cost(m.onDemand) <= of(m.bound) {
			return 0, false
		}
		return float64(m.savings) / float64(cost(m.onDemand)-of(m.bound)), true
	})
}

func onDemand(m *match, amount func(*sim.Result) policy.Money) (float64, bool) {
	if m.onDemand == nil {
		return 0, false
	}
	return amount(m.onDemand).Float(), true
}

func count(of func(*sim.Result) int64) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) { return float64(of(m.run)), true }
}

// minutesOver returns a function that computes the difference of outage minutes to the baseline.
func minutesOver(of func(*sim.Outages) int64) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) {
		if m.baseline == nil {
			return 0, false
		}
		return float64(of(&m.run.Outages) - of(&m.baseline.Outages)), true
	}
}

// perPodDay returns a function that divides a count by pod-days. The value is unknown if no pod
// ran.
func perPodDay(of func(*sim.Result) int64) func(*match) (float64, bool) {
	return func(m *match) (float64, bool) {
		if m.run.PodDays <= 0 {
			return 0, false
		}
		return float64(of(m.run)) / m.run.PodDays, true
	}
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func absolute(m policy.Money) policy.Money { return max(m, -m) }

// metricIndex returns the index of the metric called name, or -1.
func metricIndex(name string) int {
	for i := range metrics {
		if metrics[i].Name == name {
			return i
		}
	}
	return -1
}

// mustMetric returns the index of the metric called name. It panics if there is no such metric.
func mustMetric(name string) int {
	i := metricIndex(name)
	if i < 0 {
		panic("eval: there is no metric " + name)
	}
	return i
}

// MetricNames returns the names of the metrics, in the order of the reports.
func MetricNames() []string {
	names := make([]string, len(metrics))
	for i := range metrics {
		names[i] = metrics[i].Name
	}
	return names
}
