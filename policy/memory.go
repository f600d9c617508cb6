package policy

import (
	"cmp"
	"slices"
	"time"
)

// Memory is what a policy carries from one decision to the next. It is saved
// before a plan is carried out. The zero Memory is that of a new cluster.
//
// It names things by name, since ids belong to one Snapshot.
type Memory struct {
	// Decisions counts the decisions taken.
	Decisions uint64

	// Pools are ascending by Name.
	Pools []PoolMemory

	// Budgets are ascending by Name.
	Budgets []BudgetMemory
}

// A PoolMemory is what is remembered of one pool.
type PoolMemory struct {
	Name string

	// Target is the wanted Spot share; HasTarget says that it was set.
	Target    float64
	HasTarget bool

	// Moved is when nodes of the pool were last drained by choice, Steered when its steer last
	// changed.
	Moved, Steered Time

	// Below is since when the pool has been calm enough to grow on spot; zero
	// while it is not. It gives a policy its hysteresis.
	Below Time

	// Selected are the names of the markets that a policy which ranks markets last chose,
	// ascending. Kept are the other markets that it steered to, because nodes of the pool live
	// there, ascending.
	Selected, Kept []string

	// Consolidates says that the pool's provisioner was last steered to empty nodes
	// that are used too little, and not only to remove empty ones.
	Consolidates bool `json:",omitempty"`

	// SpotOnly says that the last steer of the pool forbade on-demand when Spot is refused, since
	// there are Spot markets that were not tried.
	SpotOnly bool

	// Batched is when a batch of pending pods was last closed and bought for.
	Batched Time

	// Packed is when the pool was last repacked tentatively, and Wave the replacement of several of
	// its nodes together that resulted.
	Packed Time
	Wave   Wave

	// Backoff are nodes whose drain was given up, ascending by Node.
	Backoff []Backoff

	// Shocks are the losses of many Spot nodes at once.
	Shocks Shocks

	// Loss is what the pool may lose to Spot.
	Loss LossBudget `json:",omitzero"`

	// Depths are what refusals say of how many nodes markets hold, ascending by
	// Market.
	Depths []Depth `json:",omitempty"`

	// Peak is the most that pods that may run in the pool requested at once within a day.
	Peak Peak `json:",omitzero"`

	// Idle are the nodes on which nothing runs, ascending by Node. It is kept
	// for pools that no provisioner consolidates.
	Idle []Idle
}

// A Wave replaces several nodes together: their replacements were launched at Since, and they are
// drained once these have run for a while. The zero Wave means no replacement.
type Wave struct {
	Since Time

	// Nodes are the nodes that go, ascending. Tokens are those of the launches
	// in their place.
	Nodes, Tokens []string
}

// Shocks counts how often a pool lost many of its Spot nodes together. The zero Shocks has observed
// no such loss.
type Shocks struct {
	// Count is the number of shocks so far, each counting less the longer ago it was, and Depth the
	// part of the Spot nodes that one took, as of At, the time of the last.
	Count, Depth float64
	At           Time

	// Since is the start of the span in which losses are counted now, with Nodes Spot nodes and
	// Reclaims that the pool's markets had observed before. Lost is the part of the nodes that were
	// lost in the span before.
	Since    Time
	Nodes    int
	Reclaims float64
	Lost     float64

	// Spans is in how many spans a pool with gangs lost Spot nodes, and Taken how many nodes it
	// lost in these.
	Spans, Taken float64 `json:",omitempty"`
}

// A LossBudget accounts for what Spot saved a pool and what it cost it. The zero LossBudget is
// that of a new pool.
type LossBudget struct {
	// At is the time up to which it accounts; zero before the first account.
	At Time

	// Left is what Spot may still cost, in dollars; it is below zero where Spot has cost more.
	Left float64

	// Bounded is set when the budget is used up for the first time. From then on the pool holds
	// no more Spot than it may lose at once.
	Bounded bool `json:",omitempty"`

	// Away is set while the pool is on demand because the budget is used up. Until is then the
	// earliest time of its return, and afterwards the end of a calm period.
	Away  bool `json:",omitempty"`
	Until Time `json:",omitzero"`

	// Exhausted counts how often the budget was used up, less one for each calm period since.
	Exhausted int `json:",omitempty"`

	// Outages are ascending by Workload.
	Outages []SpotOutage `json:",omitempty"`
}

// LossAccountEvery is how often a policy accounts for a budget at least: in the first decision
// after this time has passed.
const LossAccountEvery = 10 * time.Minute

// Kept reports whether a policy kept the budget when it decided at now: an older account was left
// by another policy, or by a spec that has changed.
func (b *LossBudget) Kept(now Time) bool { return b.At != 0 && now.Sub(b.At) < LossAccountEvery }

// UsedUp reports whether the pool was on demand, because the budget is used up, from the decision
// at now on.
func (b *LossBudget) UsedUp(now Time) bool { return b.Kept(now) && b.Away }

// A SpotOutage is a workload that misses pods because of Spot.
type SpotOutage struct {
	Workload string

	// Taken is how many pods Spot took or refused, Missing how many of them were missing at the
	// last account, and Short the greatest number below the required level in this incident.
	Taken, Missing, Short int32

	// Below reports whether the workload was below its required level at the last account. Last
	// is when it was last, or when Spot took the first pod. After [IncidentGap] the incident is over.
	Below bool
	Last  Time
}

// IncidentGap is the time for which a workload has to be back at its required level before an
// incident is over; shorter recoveries join two incidents.
const IncidentGap = 5 * time.Minute

// A Depth is what is believed of a market that refused.
type Depth struct {
	Market string

	// Nodes is how many nodes of the cluster stood there when it last refused: it
	// holds no more. Zero says that it refused while none stood there.
	Nodes int

	// Refused is when it last refused, Until when it is asked again though it is
	// believed to be full, and Probes how often it refused with as many nodes.
	Refused, Until Time
	Probes         int
}

// A Peak is a demand for CPU, in thousandths of a core, and when it was last noted.
type Peak struct {
	CPU int64
	At  Time
}

// An Idle says since when a node has run no pod but those of DaemonSets.
type Idle struct {
	Node  string
	Since Time
}

// A Backoff keeps a node that could not be drained from being tried again.
type Backoff struct {
	Node  string
	Until Time
	Tries int
}

// Pool returns what is remembered of the pool called name; the zero value with
// that name if nothing is.
func (m *Memory) Pool(name string) PoolMemory {
	if i, ok := m.find(name); ok {
		return m.Pools[i]
	}
	return PoolMemory{Name: name}
}

// With returns a copy of m in which p replaces the pool of its name. m and its slices are not
// changed.
func (m Memory) With(p PoolMemory) Memory {
	i, ok := m.find(p.Name)
	pools := slices.Clone(m.Pools)
	if ok {
		pools[i] = p
	} else {
		pools = slices.Insert(pools, i, p)
	}
	m.Pools = pools
	return m
}

func (m *Memory) find(name string) (int, bool) {
	for i := range m.Pools {
		if m.Pools[i].Name >= name {
			return i, m.Pools[i].Name == name
		}
	}
	return len(m.Pools), false
}

// FindBackoff returns where node is in list, or belongs, and whether it is there.
func FindBackoff(list []Backoff, node string) (int, bool) {
	return slices.BinarySearchFunc(list, node, func(b Backoff, name string) int { return cmp.Compare(b.Node, name) })
}

// BackedOff reports whether the drain of node is not to be tried again at now.
func (m *PoolMemory) BackedOff(node string, now Time) bool {
	i, ok := FindBackoff(m.Backoff, node)
	return ok && now < m.Backoff[i].Until
}

// A BackoffFilter knows the ends of the names in a list of Backoff. Who looks up many nodes
// of which few are there asks it first.
type BackoffFilter [1 << 12]bool

// Filter returns the filter of the nodes that are not to be tried again at now.
func (m *PoolMemory) Filter(now Time) *BackoffFilter {
	var x BackoffFilter
	for i := range m.Backoff {
		if now < m.Backoff[i].Until {
			x[nameEnd(m.Backoff[i].Node)] = true
		}
	}
	return &x
}

// May reports whether a node of this name may be there: it is not where May says no.
func (x *BackoffFilter) May(node string) bool { return x[nameEnd(node)] }

// nameEnd returns a hash of the end of a name.
func nameEnd(name string) (x uint32) {
	for i := max(0, len(name)-4); i < len(name); i++ {
		x = x*13 + uint32(name[i])
	}
	return x % uint32(len(BackoffFilter{}))
}
