package timeline

import (
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A Timeline holds one run. It is filled by one goroutine, through Watch, and
// read by any number of others meanwhile.
type Timeline struct {
	// What does not change once the timeline is made.
	about     About
	pools     []string
	markets   []MarketInfo
	workloads []WorkloadInfo
	budgets   []BudgetInfo
	warmup    policy.Time
	from, to  policy.Time

	// What follows grows; the lock of store guards it.
	*store
	result *sim.Result
	err    error
	ended  bool

	// nodes are by slot, which other nodes may take later; the rest are by place
	// in the tables above.
	nodes   []history[nodeState]
	prices  []history[policy.Money]
	hazards []history[hazard]
	work    []history[Workload]
	ledgers []history[Budget]
	losses  history[LossBudget]

	// usedUp says which pools are on demand because their loss budgets are used up, as of the last
	// value of losses.
	usedUp []bool

	costLog
	eventLog
	decisionLog
}

// An About says which run a timeline holds.
type About struct {
	Scenario, Policy string
	Seed             uint64

	// Trace says where the prices come from. It is empty for a recording, which
	// does not know.
	Trace scenarios.TraceInfo

	// Recorded says that the timeline was read from a recording: what happened is
	// then known only at the steps. Note is the recording's own, the command line
	// of a simulation.
	Recorded bool
	Note     string
}

// A MarketInfo is what does not change of a market.
type MarketInfo struct {
	Name, Zone, Type string
	Spot             bool

	// OnDemand is the on-demand price per node-hour of the same type, and Counterpart the place of
	// its on-demand market in the same zone, -1 without one.
	OnDemand    policy.Money
	Counterpart int32
}

// A WorkloadInfo is what does not change of a workload.
type WorkloadInfo struct {
	Name string
	Kind policy.WorkloadKind

	// PodValue is what a pod is worth per hour; 0 where that is not known.
	PodValue policy.Money
}

// A BudgetInfo is what does not change of a budget.
type BudgetInfo struct {
	Name   string
	Action policy.BudgetAction

	// GPUHours and Dollars are the quotas within Window, where the Has fields say
	// that they are set.
	GPUHours    float64
	Dollars     policy.Money
	HasGPUHours bool
	HasDollars  bool
	Window      time.Duration
}

// A store is what the logs of a timeline share.
type store struct {
	mu    sync.RWMutex
	until policy.Time // the instant up to which everything is there
	names *names
}

// newTimeline returns an empty timeline of a run.
func newTimeline(about About) *Timeline {
	s := &store{names: newNames()}
	return &Timeline{about: about, store: s, eventLog: eventLog{store: s}, decisionLog: decisionLog{store: s}}
}

// About returns which run t holds.
func (t *Timeline) About() About { return t.about }

// Pools returns the names of the pools. Like the other tables it is not to be
// written.
func (t *Timeline) Pools() []string { return t.pools }

// Markets returns the markets, ascending by name. In a recording those that were added later are
// last.
func (t *Timeline) Markets() []MarketInfo { return t.markets }

// Workloads returns the workloads, DaemonSets too; likewise.
func (t *Timeline) Workloads() []WorkloadInfo { return t.workloads }

// Budgets returns the budgets, ascending by name; likewise.
func (t *Timeline) Budgets() []BudgetInfo { return t.budgets }

// Span returns the start of the warm-up, and the start and end of metering. A recording does not
// distinguish warm-up and metering: it starts with its first step, and ends with its last one.
func (t *Timeline) Span() (warmup, from, to policy.Time) { return t.warmup, t.from, t.to }

// Until returns the instant up to which everything is there. What At shows of
// instants up to it never changes.
func (t *Timeline) Until() policy.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.until
}

// Ended returns what the run came to, and whether it has ended. The result of a
// recording, and of a run that failed, is nil.
func (t *Timeline) Ended() (result *sim.Result, err error, done bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.result, t.err, t.ended
}

// addMarkets adds those of markets that come after the ones that are there.
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
