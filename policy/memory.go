package policy

import (
	"cmp"
	"slices"
	"time"
)

// Memory is the state that a policy keeps from one decision to the next. It is saved before the
// plan is executed. The zero Memory belongs to a new cluster.
//
// It identifies objects by name, because IDs are valid in one Snapshot only.
type Memory struct {
	// Decisions is the number of decisions made.
	Decisions uint64

	// Pools are ascending by Name.
	Pools []PoolMemory

	// Budgets are ascending by Name.
	Budgets []BudgetMemory
}

// A PoolMemory is the part of Memory for one pool.
type PoolMemory struct {
	Name string

	// Target is the target Spot share in [0, 1]; HasTarget reports whether it was set.
	Target    float64
	HasTarget bool

	// Moved is the last time that nodes of the pool were drained by choice. Steered is the last
	// time that its steer changed.
	Moved, Steered Time

	// Below is the time since which the pool has been calm enough to buy more Spot; zero while it
	// is not. A policy uses it for hysteresis.
	Below Time

	// Selected are the names of the markets last chosen by a policy that ranks markets, ascending.
	// Kept are the other markets to which it steered because the pool has nodes there, ascending.
	Selected, Kept []string

	// Consolidates reports whether the pool's provisioner was last steered to drain underused nodes
	// in addition to removing empty ones.
	Consolidates bool `json:",omitempty"`

	// SpotOnly reports whether the last steer of the pool forbade on-demand nodes after a Spot
	// refusal, because some Spot markets had not been tried.
	SpotOnly bool

	// Batched is the last time that a batch of pending pods was closed and nodes were bought for
	// it.
	Batched Time

	// Packed is the last time that a repacking of the pool was simulated. Wave is the resulting
	// replacement of several of its nodes.
	Packed Time
	Wave   Wave

	// Backoff lists the nodes whose drain was abandoned, ascending by Node.
	Backoff []Backoff

	// Shocks records losses of many Spot nodes at once.
	Shocks Shocks

	// Loss is the budget for losses due to Spot.
	Loss LossBudget `json:",omitzero"`

	// Depths are estimates of how many nodes markets can provide, derived from refusals, ascending
	// by Market.
	Depths []Depth `json:",omitempty"`

	// Peak is the highest CPU demand, within a day, of pods that may run in the pool.
	Peak Peak `json:",omitzero"`

	// Idle lists the nodes that run no pods except those of DaemonSets, ascending by Node. It is
	// kept for pools that no provisioner consolidates.
	Idle []Idle
}

// A Wave replaces several nodes together: the replacements were launched at Since, and the old
// nodes are drained after the replacements have run for a while. The zero Wave means no
// replacement.
type Wave struct {
	Since Time

	// Nodes are the nodes to remove, ascending. Tokens are the tokens of the launches that replace
	// them.
	Nodes, Tokens []string
}

// Shocks estimates how often a pool loses many of its Spot nodes together. The zero Shocks has
// observed no such loss.
type Shocks struct {
	// Count is the number of shocks, weighted down with age, and Depth the fraction of the Spot
	// nodes that a shock took. Both are as of At, the time of the last shock.
	Count, Depth float64
	At           Time

	// Since is the start of the current span in which losses are counted. Nodes is the number of
	// Spot nodes and Reclaims the number of reclaims in the pool's markets at that start. Lost is
	// the fraction of the nodes that was lost in the previous span.
	Since    Time
	Nodes    int
	Reclaims float64
	Lost     float64

	// Spans is the number of spans in which a pool with gangs lost Spot nodes. Taken is the number
	// of nodes lost in these spans.
	Spans, Taken float64 `json:",omitempty"`
}

// A LossBudget compares the savings and the costs that a pool had from Spot. The zero LossBudget
// belongs to a new pool.
type LossBudget struct {
	// At is the time of the last account; zero before the first one.
	At Time

	// Left is the remaining budget in dollars. It is negative if Spot has cost more than allowed.
	Left float64

	// Bounded is set when the budget is used up for the first time. From then on the pool runs no
	// more Spot than it may lose at once.
	Bounded bool `json:",omitempty"`

	// Away is set while the pool is on demand because the budget is used up. Until is then the
	// earliest time at which it may return to Spot; afterwards Until is the end of a calm period.
	Away  bool `json:",omitempty"`
	Until Time `json:",omitzero"`

	// Exhausted is the number of times that the budget was used up, minus one for each calm period
	// since.
	Exhausted int `json:",omitempty"`

	// Outages are ascending by Workload.
	Outages []SpotOutage `json:",omitempty"`
}

// LossAccountEvery is the longest time between two accounts of a policy that maintains a budget: it
// accounts in the first decision after this time has passed.
const LossAccountEvery = 10 * time.Minute

// Kept reports whether the policy that decides at now maintains the budget. An older account was
// left by another policy or by a previous version of the spec.
func (b *LossBudget) Kept(now Time) bool { return b.At != 0 && now.Sub(b.At) < LossAccountEvery }

// UsedUp reports whether the pool is on demand from the decision at now on because the budget is
// used up.
func (b *LossBudget) UsedUp(now Time) bool { return b.Kept(now) && b.Away }

// A SpotOutage is a workload that lacks pods because of Spot.
type SpotOutage struct {
	Workload string

	// Taken is the number of pods that Spot took or refused, Missing is how many of them were
	// missing at the last account, and Short is the largest shortfall below the required level in
	// this incident, in pods.
	Taken, Missing, Short int32

	// Below reports whether the workload was below its required level at the last account. Last is
	// the last time that it was below, or the time when Spot took the first pod. The incident ends
	// after [IncidentGap].
	Below bool
	Last  Time
}

// IncidentGap is the time for which a workload must be back at its required level before an
// incident ends. Shorter recoveries do not separate incidents.
const IncidentGap = 5 * time.Minute

// A Depth is an estimate of the capacity of a market that refused a launch.
type Depth struct {
	Market string

	// Nodes is the number of nodes that the cluster had in the market when it last refused: the
	// market is assumed to provide no more. Zero means that it refused while the cluster had no
	// node there.
	Nodes int

	// Refused is the time of the last refusal. Until is the time at which the market is tried again
	// although it is assumed to be full. Probes is the number of refusals with the same number of
	// nodes.
	Refused, Until Time
	Probes         int
}

// A Peak is a CPU demand in milli-CPU and the time at which it was last observed.
type Peak struct {
	CPU int64
	At  Time
}

// An Idle records the time since which a node has run no pods except those of DaemonSets.
type Idle struct {
	Node  string
	Since Time
}

// A Backoff delays the next attempt to drain a node that could not be drained.
type Backoff struct {
	Node  string
	Until Time
	Tries int
}

// Pool returns the memory of the pool called name, or a zero PoolMemory with that name if there is
// no entry.
func (m *Memory) Pool(name string) PoolMemory {
	if i, ok := m.find(name); ok {
		return m.Pools[i]
	}
	return PoolMemory{Name: name}
}

// With returns a copy of m in which p replaces the entry of the same name. It does not change m or
// its slices.
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

// FindBackoff returns the position of node in list, or the position at which to insert it, and
// reports whether it was found.
func FindBackoff(list []Backoff, node string) (int, bool) {
	return slices.BinarySearchFunc(list, node, func(b Backoff, name string) int { return cmp.Compare(b.Node, name) })
}

// BackedOff reports whether the drain of node must not be tried again at now.
func (m *PoolMemory) BackedOff(node string, now Time) bool {
	i, ok := FindBackoff(m.Backoff, node)
	return ok && now < m.Backoff[i].Until
}

// A BackoffFilter is a Bloom filter over the ends of the node names in a list of Backoff entries.
// Callers that look up many nodes, most of them not in the list, check it first.
type BackoffFilter [1 << 12]bool

// Filter returns the filter of the nodes whose drain must not be tried again at now.
func (m *PoolMemory) Filter(now Time) *BackoffFilter {
	var x BackoffFilter
	for i := range m.Backoff {
		if now < m.Backoff[i].Until {
			x[nameEnd(m.Backoff[i].Node)] = true
		}
	}
	return &x
}

// May reports whether node may be in the list. If it returns false, node is not in the list.
func (x *BackoffFilter) May(node string) bool { return x[nameEnd(node)] }

// nameEnd returns a hash of the last four bytes of a name.
func nameEnd(name string) (x uint32) {
	for i := max(0, len(name)-4); i < len(name); i++ {
		x = x*13 + uint32(name[i])
	}
	return x % uint32(len(BackoffFilter{}))
}
