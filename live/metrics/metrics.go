package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/live/steady"
	"github.com/spotter-dev/spotter/policy"
)

// Metrics are the metrics of one controller. Its methods are safe for concurrent use, and do
// nothing on a nil *Metrics.
type Metrics struct {
	stepSeconds, phaseSeconds       *prometheus.HistogramVec
	steps, wakes                    *prometheus.CounterVec
	entries, drains, evictions      *prometheus.CounterVec
	drainSeconds                    *prometheus.HistogramVec
	notifications                   *prometheus.CounterVec
	panics                          prometheus.Counter
	leader, stopped, active         prometheus.Gauge
	unreadable                      prometheus.Gauge
	pool                            poolGauges
	price, hazard, marketNodes, age *prometheus.GaugeVec
	budgetUsed, budgetQuota, gate   *prometheus.GaugeVec
	draining                        *prometheus.GaugeVec

	// pools are the pools for which entries, drains and evictions were counted.
	pools counted

	compat []compatible
}

// poolGauges are the gauges with a pool label.
type poolGauges struct {
	mode, share, nodes, perHour, paid, onDemand     *prometheus.GaugeVec
	saved, savedNamespace, shadowSaved, shadowMoves *prometheus.GaugeVec
	lossLeft, lossUsedUp                            *prometheus.GaugeVec
}

// A Config selects the metrics.
type Config struct {
	// Compat are the systems under whose metric names the values are also reported; see [Systems].
	Compat []string

	// Writes returns the counts of writes to the API server; if it is nil, they are not reported.
	Writes func() []limit.Count

	// Clock returns the state of the clocks; if it is nil, it is not reported.
	Clock func() steady.State
}

// stepBuckets are in seconds. They are finest around the quarter of a second that a step may take.
var stepBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// drainBuckets are in seconds, up to an hour.
var drainBuckets = []float64{5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600}

// New creates and registers the metrics.
func New(r prometheus.Registerer, cfg Config) (*Metrics, error) {
	m := &Metrics{}
	b := builder{r: r}
	m.stepSeconds = b.histogram("spotter_step_duration_seconds",
		"Duration of one step, from observing to publishing its plan, without carrying it out.", stepBuckets)
	m.phaseSeconds = b.histogram("spotter_step_phase_duration_seconds", "Duration of a part of a step.", stepBuckets,
		"phase")
	m.steps = b.counter("spotter_decisions_total", "Steps taken, by result.", "result")
	m.wakes = b.counter("spotter_wakes_total", "Reasons for which steps were taken.", "reason")
	m.entries = b.counter("spotter_plan_entries_total", "Entries of plans, by result.", "pool", "kind", "outcome")
	m.drains = b.counter("spotter_drains_total", "Drains that entered a phase.", "pool", "phase")
	m.drainSeconds = b.histogram("spotter_drain_duration_seconds", "Time from the order of a drain to its end.",
		drainBuckets, "pool", "outcome")
	m.evictions = b.counter("spotter_evictions_total", "Evictions requested, by response.", "pool", "answer")
	m.pools.labels = func(name string) prometheus.Labels { return prometheus.Labels{"pool": name} }
	m.pools.vecs = append(m.pools.vecs, m.entries, m.drains, m.drainSeconds, m.evictions)
	m.draining = b.gauge("spotter_nodes_draining", "Nodes that Spotter is draining.", "pool", "phase")
	m.panics = b.counter("spotter_policy_panics_total", "Decisions on which the policy panicked.").WithLabelValues()
	m.notifications = b.counter("spotter_notifications_total",
		"Notifications, by what became of them: sent, or why they were dropped.", "outcome")
	m.leader = b.gauge("spotter_leader", "1 on the replica that leads.").WithLabelValues()
	m.stopped = b.gauge("spotter_stopped", "1 while the kill switch is on.").WithLabelValues()
	m.unreadable = b.gauge("spotter_kill_switch_unreadable",
		"1 while the kill switch cannot be read, so that nothing is changed.").WithLabelValues()
	m.active = b.gauge("spotter_active", "1 if the controller may change anything, 0 in shadow mode.").WithLabelValues()
	m.pool.register(&b)
	m.price = b.gauge("spotter_market_price_dollars", "Price of one node for one hour in a market in use.", "market")
	m.hazard = b.gauge("spotter_market_hazard", "Reclaims per node-hour expected in a market in use.", "market")
	m.marketNodes = b.gauge("spotter_market_nodes", "Nodes in a market.", "market")
	m.age = b.gauge("spotter_source_age_seconds", "Age of the newest datum of a source.", "source")
	m.budgetUsed = b.gauge("spotter_budget_used_gpu_hours", "Device-hours used within the window of a budget.", "budget")
	m.budgetQuota = b.gauge("spotter_budget_quota_gpu_hours", "Device-hours that a budget allows within its window.",
		"budget")
	m.gate = b.gauge("spotter_budget_gate_closed", "1 while the gate of a budget is closed.", "budget")
	if cfg.Writes != nil {
		b.add(writes{cfg.Writes}, "spotter_api_writes_total")
	}
	if cfg.Clock != nil {
		b.add(clocks{cfg.Clock}, "spotter_clock_jumps_total")
	}
	for _, name := range cfg.Compat {
		c, err := newCompatible(name, &b)
		if err != nil {
			return nil, err
		}
		if c != nil {
			m.compat = append(m.compat, c)
		}
	}
	return m, errors.Join(b.errs...)
}

func (p *poolGauges) register(b *builder) {
	p.mode = b.gauge("spotter_pool_active", "1 if decisions for a pool are carried out, 0 if not.", "pool")
	p.share = b.gauge("spotter_pool_spot_share", "Fraction of a pool's capacity on Spot, 0 to 1.", "pool")
	p.nodes = b.gauge("spotter_pool_nodes", "Nodes of a pool.", "pool", "capacity_type")
	p.perHour = b.gauge("spotter_pool_savings_dollars_per_hour",
		"Savings of a pool per hour against the same nodes on demand.", "pool")
	p.paid = b.gauge("spotter_pool_paid_dollars", "Cost of a pool's nodes since it was first observed.", "pool")
	p.onDemand = b.gauge("spotter_pool_on_demand_dollars", "Cost of the same nodes on demand.", "pool")
	p.saved = b.gauge("spotter_pool_saved_dollars",
		"Savings against the same nodes on demand and under commitments (modelled).", "pool", "against")
	p.savedNamespace = b.gauge("spotter_namespace_saved_dollars",
		"Savings on the nodes that a namespace uses, against the same nodes on demand.", "pool", "namespace")
	p.shadowSaved = b.gauge("spotter_pool_shadow_saved_dollars",
		"Savings that moves would have brought that were not made because the pool is not active.", "pool")
	p.shadowMoves = b.gauge("spotter_pool_shadow_moves", "Nodes that would have been moved and still exist.", "pool")
	p.lossLeft = b.gauge("spotter_pool_loss_budget_left_dollars",
		"What Spot may still cost a pool whose policy keeps a loss budget, below 0 where it has cost more.", "pool")
	p.lossUsedUp = b.gauge("spotter_pool_loss_budget_used_up",
		"1 while a pool is on demand because its loss budget is used up.", "pool")
}

// A builder creates and registers metrics and collects the errors.
type builder struct {
	r    prometheus.Registerer
	errs []error
}

func (b *builder) add(c prometheus.Collector, name string) {
	if err := b.r.Register(c); err != nil {
		b.errs = append(b.errs, fmt.Errorf("metric %s: %w", name, err))
	}
}

func (b *builder) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	b.add(v, name)
	return v
}

func (b *builder) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	b.add(v, name)
	return v
}

func (b *builder) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	b.add(v, name)
	return v
}

// A Pool contains the reported values of one pool.
type Pool struct {
	Name             string
	Active           bool
	Share            float64
	Spot, OnDemand   int
	SavingPerHour    policy.Money
	Paid, AtOnDemand policy.Money

	// Saved is the savings by the alternative that they are compared with: "on-demand",
	// "commitment-1y", and so on.
	Saved map[string]policy.Money

	// Namespaces is the savings by namespace.
	Namespaces map[string]policy.Money

	ShadowSaved policy.Money
	ShadowMoves int

	// LossLeft is the remaining loss budget in dollars, nil if the policy has no loss budget.
	// LossUsedUp reports whether the pool is on demand because the budget is used up.
	LossLeft   *float64
	LossUsedUp bool
}

// A Step contains the reported values of one step.
type Step struct {
	Snapshot *policy.Snapshot
	Memory   *policy.Memory
	Plan     *policy.Plan
	Pools    []Pool // by PoolID
	Took     time.Duration
	Wakes    []string
	Active   bool

	// Stopped and Unreadable are the state of the kill switch.
	Stopped, Unreadable bool
}

// Step reports a completed step.
func (m *Metrics) Step(x *Step) {
	if m == nil {
		return
	}
	m.steps.WithLabelValues("done").Inc()
	m.stepSeconds.WithLabelValues().Observe(x.Took.Seconds())
	for _, w := range x.Wakes {
		m.wakes.WithLabelValues(w).Inc()
	}
	m.stopped.Set(one(x.Stopped))
	m.unreadable.Set(one(x.Unreadable))
	m.active.Set(one(x.Active))
	m.pool.set(x.Pools)
	m.pools.keep(func(name string) bool {
		return slices.ContainsFunc(x.Pools, func(p Pool) bool { return p.Name == name })
	})
	m.markets(x.Snapshot)
	m.budgets(x.Snapshot, x.Memory)
	m.age.Reset()
	for _, s := range x.Snapshot.Sources {
		if s.At != 0 {
			m.age.WithLabelValues(s.Name).Set(x.Snapshot.Now.Sub(s.At).Seconds())
		}
	}
	for _, c := range m.compat {
		c.step(x)
	}
}

// Failed reports a failed step.
func (m *Metrics) Failed() {
	if m != nil {
		m.steps.WithLabelValues("failed").Inc()
	}
}

// Phase reports the duration of a phase of a step.
func (m *Metrics) Phase(name string, took time.Duration) {
	if m != nil {
		m.phaseSeconds.WithLabelValues(name).Observe(took.Seconds())
	}
}

// Notified reports the result of a notification.
func (m *Metrics) Notified(outcome string) {
	if m != nil {
		m.notifications.WithLabelValues(outcome).Inc()
	}
}

// Entry reports the result of an entry of a plan.
func (m *Metrics) Entry(kind, pool, outcome string) {
	if m == nil {
		return
	}
	m.entries.WithLabelValues(m.pools.saw(pool), kind, outcome).Inc()
	for _, c := range m.compat {
		c.entry(kind, outcome)
	}
}

// Panicked reports that a policy panicked.
func (m *Metrics) Panicked() {
	if m != nil {
		m.panics.Inc()
	}
}

// Leads sets whether this replica leads.
func (m *Metrics) Leads(is bool) {
	if m != nil {
		m.leader.Set(one(is))
	}
}

// Entered reports that a drain has entered a phase.
func (m *Metrics) Entered(pool, phase string) {
	if m != nil {
		m.drains.WithLabelValues(m.pools.saw(pool), phase).Inc()
	}
}

// Evicted reports the response to an eviction.
func (m *Metrics) Evicted(pool, answer string) {
	if m == nil {
		return
	}
	m.evictions.WithLabelValues(m.pools.saw(pool), answer).Inc()
	for _, c := range m.compat {
		c.evicted(answer)
	}
}

// Drained reports the result and the duration of a drain.
func (m *Metrics) Drained(pool, node, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.drains.WithLabelValues(m.pools.saw(pool), outcome).Inc()
	m.drainSeconds.WithLabelValues(pool, outcome).Observe(took.Seconds())
	for _, c := range m.compat {
		c.drained(node, outcome)
	}
}

// A Draining is the number of nodes of a pool that are in a phase of a drain.
type Draining struct {
	Pool, Phase string
	Nodes       int
}

// Draining reports the nodes that are being drained.
func (m *Metrics) Draining(all []Draining) {
	if m == nil {
		return
	}
	m.draining.Reset()
	for _, d := range all {
		m.draining.WithLabelValues(d.Pool, d.Phase).Add(float64(d.Nodes))
	}
}

func (p *poolGauges) set(pools []Pool) {
	reset(p.mode, p.share, p.nodes, p.perHour, p.paid, p.onDemand, p.saved, p.savedNamespace, p.shadowSaved, p.shadowMoves,
		p.lossLeft, p.lossUsedUp)
	for i := range pools {
		x := &pools[i]
		p.mode.WithLabelValues(x.Name).Set(one(x.Active))
		p.share.WithLabelValues(x.Name).Set(x.Share)
		p.nodes.WithLabelValues(x.Name, policy.Spot.String()).Set(float64(x.Spot))
		p.nodes.WithLabelValues(x.Name, policy.OnDemand.String()).Set(float64(x.OnDemand))
		p.perHour.WithLabelValues(x.Name).Set(x.SavingPerHour.Float())
		p.paid.WithLabelValues(x.Name).Set(x.Paid.Float())
		p.onDemand.WithLabelValues(x.Name).Set(x.AtOnDemand.Float())
		for against, amount := range x.Saved {
			p.saved.WithLabelValues(x.Name, against).Set(amount.Float())
		}
		for namespace, amount := range x.Namespaces {
			p.savedNamespace.WithLabelValues(x.Name, namespace).Set(amount.Float())
		}
		p.shadowSaved.WithLabelValues(x.Name).Set(x.ShadowSaved.Float())
		p.shadowMoves.WithLabelValues(x.Name).Set(float64(x.ShadowMoves))
		if x.LossLeft != nil {
			p.lossLeft.WithLabelValues(x.Name).Set(*x.LossLeft)
			p.lossUsedUp.WithLabelValues(x.Name).Set(one(x.LossUsedUp))
		}
	}
}

// marketsMax is the maximum number of reported markets.
const marketsMax = 100

// markets reports the markets in use, those with the most nodes first.
func (m *Metrics) markets(s *policy.Snapshot) {
	reset(m.price, m.hazard, m.marketNodes)
	count := make(map[policy.MarketID]int)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && n.Market >= 0 {
			count[n.Market]++
		}
	}
	used := slices.SortedFunc(maps.Keys(count), func(a, b policy.MarketID) int {
		return cmp.Or(count[b]-count[a], strings.Compare(s.Markets[a].Name, s.Markets[b].Name))
	})
	for _, id := range used[:min(len(used), marketsMax)] {
		x := &s.Markets[id]
		m.marketNodes.WithLabelValues(x.Name).Set(float64(count[id]))
		m.hazard.WithLabelValues(x.Name).Set(x.Forecast.Hazard)
		if x.Offered {
			m.price.WithLabelValues(x.Name).Set(x.Charge().Float())
		}
	}
}

// budgetsMax is the maximum number of reported budgets, the first ones by name: any user who may
// edit a namespace can create many.
const budgetsMax = 1000

// reportedBudgets returns the budgets that are reported.
func reportedBudgets(s *policy.Snapshot) []policy.Budget {
	return s.Budgets[:min(len(s.Budgets), budgetsMax)]
}

// budgets reports the usage, the quota and the gate of budgets.
func (m *Metrics) budgets(s *policy.Snapshot, mem *policy.Memory) {
	reset(m.budgetUsed, m.budgetQuota, m.gate)
	reported := reportedBudgets(s)
	for i := range reported {
		b := &reported[i]
		m.gate.WithLabelValues(b.Name).Set(one(b.Closed))
		if b.HasGPUHours {
			m.budgetQuota.WithLabelValues(b.Name).Set(b.GPUHours)
		}
		if x := mem.Budget(b.Name); x != nil {
			m.budgetUsed.WithLabelValues(b.Name).Set(DeviceHours(x.Used))
		}
	}
}

// DeviceHours converts the unit of a budget's ledger, thousandths of a device × milliseconds, to
// device-hours.
func DeviceHours(used int64) float64 {
	return float64(used) / 1000 / float64(time.Hour/time.Millisecond)
}

// reset removes all series, so that deleted objects leave none.
func reset(all ...*prometheus.GaugeVec) {
	for _, v := range all {
		v.Reset()
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
