package timeline

import (
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A Timeline stores one run. One goroutine fills it through Watch, while any number of others may
// read it.
type Timeline struct {
	// The following fields do not change after the timeline is created, except for tables of a
	// recording.
	about     About
	pools     []string
	markets   []MarketInfo
	workloads []WorkloadInfo
	budgets   []BudgetInfo
	warmup    policy.Time
	from, to  policy.Time

	// The lock in store guards all following fields.
	*store
	result *sim.Result
	err    error
	ended  bool

	// nodes are indexed by slot, which other nodes may reuse later; the others like the tables
	// above.
	nodes   []history[nodeState]
	prices  []history[policy.Money]
	hazards []history[hazard]
	work    []history[Workload]
	ledgers []history[Budget]
	losses  history[LossBudget]

	// usedUp reports which pools only use on-demand nodes because their loss budgets are used up,
	// as of the last value of losses.
	usedUp []bool

	costLog
	eventLog
	decisionLog
}

// An About identifies the run of a timeline.
type About struct {
	Scenario, Policy string
	Seed             uint64

	// Trace describes the source of prices. It is empty for a recording, which does not contain it.
	Trace scenarios.TraceInfo

	// Recorded reports whether the timeline was read from a recording, which only contains the
	// states at its steps. Note is the note of the recording: for a simulation, its command line.
	Recorded bool
	Note     string
}

// A MarketInfo contains the constant properties of a market.
type MarketInfo struct {
	Name, Zone, Type string
	Spot             bool

	// OnDemand is the on-demand price per node-hour of the same type. Counterpart is the index of
	// the on-demand market of the same type and zone, -1 if there is no such market.
	OnDemand    policy.Money
	Counterpart int32
}

// A WorkloadInfo contains the constant properties of a workload.
type WorkloadInfo struct {
	Name string
	Kind policy.WorkloadKind

	// PodValue is the value of a pod per hour; 0 if unknown.
	PodValue policy.Money
}

// A BudgetInfo contains the constant properties of a GPU budget.
type BudgetInfo struct {
	Name   string
	Action policy.BudgetAction

	// GPUHours and Dollars are the quotas within Window. They are valid if HasGPUHours and
	// HasDollars are true.
	GPUHours    float64
	Dollars     policy.Money
	HasGPUHours bool
	HasDollars  bool
	Window      time.Duration
}

// A store contains what the logs of a timeline share.
type store struct {
	mu    sync.RWMutex
	until policy.Time // the last available instant
	names *names
}

// newTimeline returns an empty timeline of a run.
func newTimeline(about About) *Timeline {
	s := &store{names: newNames()}
	return &Timeline{about: about, store: s, eventLog: eventLog{store: s}, decisionLog: decisionLog{store: s}}
}

// About returns the identity of the run.
func (t *Timeline) About() About { return t.about }

// Pools returns the names of the pools. Like the other tables, it must not be modified.
func (t *Timeline) Pools() []string { return t.pools }

// Markets returns the markets, ascending by name. In a recording, markets that were added later are
// last.
func (t *Timeline) Markets() []MarketInfo { return t.markets }

// Workloads returns the workloads, including DaemonSets, in the same way.
func (t *Timeline) Workloads() []WorkloadInfo { return t.workloads }

// Budgets returns the GPU budgets, ascending by name, in the same way.
func (t *Timeline) Budgets() []BudgetInfo { return t.budgets }

// Span returns the start of the warm-up, and the start and end of metering. A recording does not
// distinguish warm-up and metering: it starts with its first step, and ends with its last one.
func (t *Timeline) Span() (warmup, from, to policy.Time) { return t.warmup, t.from, t.to }

// Until returns the last available instant. The results of At for instants up to it never change.
func (t *Timeline) Until() policy.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.until
}

// Ended returns the result of the run, and whether it has ended. The result is nil for a recording
// and for a run that failed.
func (t *Timeline) Ended() (result *sim.Result, err error, done bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.result, t.err, t.ended
}

// addMarkets appends markets to the table.
func (t *Timeline) addMarkets(types []policy.InstanceType, zones []string, markets []policy.Market) {
	type place struct {
		zone policy.ZoneID
		kind policy.TypeID
	}
	onDemand := map[place]int32{}
	begun := len(t.markets)
	for i := range markets {
		if m := &markets[i]; m.Capacity == policy.OnDemand {
			onDemand[place{m.Zone, m.Type}] = int32(begun + i)
		}
	}
	for i := range markets {
		m := &markets[i]
		info := MarketInfo{Name: m.Name, Zone: zones[m.Zone], Type: types[m.Type].Name, Spot: m.Capacity == policy.Spot,
			OnDemand: m.OnDemand, Counterpart: -1}
		if k, ok := onDemand[place{m.Zone, m.Type}]; ok {
			info.Counterpart = k
		}
		t.markets = append(t.markets, info)
		t.prices = append(t.prices, history[policy.Money]{})
		t.hazards = append(t.hazards, history[hazard]{})
	}
}

func (t *Timeline) addPool(p *policy.Pool) {
	t.pools, t.usedUp = append(t.pools, p.Name), append(t.usedUp, false)
}

func (t *Timeline) addWorkload(w *policy.Workload, value policy.Money) {
	t.workloads = append(t.workloads, WorkloadInfo{Name: w.Name, Kind: w.Kind, PodValue: value})
	t.work = append(t.work, history[Workload]{})
}

func (t *Timeline) addBudget(b *policy.Budget) {
	t.budgets = append(t.budgets, BudgetInfo{Name: b.Name, Action: b.Action, GPUHours: b.GPUHours, Dollars: b.Dollars,
		HasGPUHours: b.HasGPUHours, HasDollars: b.HasDollars, Window: b.Window})
	t.ledgers = append(t.ledgers, history[Budget]{})
}
