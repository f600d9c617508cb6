// Package karpetrack is the policy that keeps a pool on the cheapest set of machines that fits its
// pods: it packs pending pods, replaces nodes that have become expensive, repacks whole pools
// periodically, and releases empty nodes.
//
// It is a complete implementation of Karpetrack. Nodes are bought once for each batch of pods, in
// one pool, and nodes that are starting count. The fit of a pod is checked with every filter of the
// scheduler and with the allocatable capacity of a node. A node is removed only when its
// replacements are ready, its pods are evicted within their disruption budgets, and no more nodes
// are removed at once than the pool allows. Bids follow the percentiles that the market publishes
// and the losses of Spotter's own nodes there.
package karpetrack

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// The reasons that only this policy uses.
const (
	// ReasonBatch is the reason of a hold while the policy waits for more pending pods.
	ReasonBatch policy.Reason = "batch"

	// ReasonExpired is the reason for replacing a node that reached the pool's expireAfter.
	ReasonExpired policy.Reason = "expired"

	// ReasonWave is the reason for launches and drains that replace several nodes together.
	ReasonWave policy.Reason = "wave"
)

// A Policy keeps pools on the cheapest machines that fit their pods. It reuses its own memory, so
// only one goroutine may use it at a time.
type Policy struct {
	cfg   Config
	name  string
	space placement.Space // kept to reuse its memory
	nodes nodeIndex
}

// New returns the policy, or an error that names the first parameter out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Policy{cfg: cfg, name: cfg.name()}, nil
}

// Name returns "karpetrack" followed by the parameters that differ from the default.
func (e *Policy) Name() string { return e.name }

// Decide buys for pending pods, replaces nodes that have become expensive, and releases nodes that
// are not needed.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	s = e.view(s.WithoutFees()) // Karpetrack considers only the prices of instances
	wanted := func(p policy.PoolID) float64 { return replan.Wanted(&s.Pools[p]) }
	plan := policy.Plan{
		Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep),
		Steers: replan.Steers(s, wanted, "Spot up to the pool's target share, since it costs least"),
	}
	m = e.buy(s, m, &plan, wanted)
	e.nodes.read(s)
	for i := range s.Pools {
		if s.Pools[i].Mode != policy.ModeOff {
			m = e.renew(s, m, &plan, policy.PoolID(i))
		}
	}
	m.Decisions++
	plan, m = replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: wanted, UsedBelow: e.cfg.Underutilized,
		Keep: true})
	e.bids(s, &plan)
	return plan, m
}

// view returns s with the configuration applied to its pools: Spot markets above MaxPrice are
// removed, and values that a pool does not set are filled in.
func (e *Policy) view(s *policy.Snapshot) *policy.Snapshot {
	v := *s
	v.Pools = slices.Clone(s.Pools)
	for i := range v.Pools {
		p := &v.Pools[i]
		if p.ConsolidateAfter == 0 {
			p.ConsolidateAfter = e.cfg.EmptyGrace
		}
		if p.SavingsThreshold == 0 {
			p.SavingsThreshold = e.cfg.Threshold
		}
		if e.cfg.MaxPrice > 0 {
			p.Markets = slices.DeleteFunc(slices.Clone(p.Markets), func(id policy.MarketID) bool {
				m := &s.Markets[id]
				return m.Capacity == policy.Spot && m.Offered && m.Charge() > e.cfg.MaxPrice
			})
		}
	}
	return &v
}

// buy plans the nodes that pending pods need in pools without a provisioner. It waits for pods that
// arrive one after another, so that all of them are packed together, unless a node is about to be
// reclaimed.
func (e *Policy) buy(s *policy.Snapshot, m policy.Memory, plan *policy.Plan,
	wanted func(policy.PoolID) float64) policy.Memory {
	first, fresh := e.batch(s, &m)
	if due := first.Add(e.cfg.BatchWindow); fresh && due > s.Now && len(plan.Drains) == 0 {
		plan.Wake = min(plan.Wake, due)
		plan.Holds = append(plan.Holds, policy.Hold{Pool: policy.None, Node: policy.None, Why: policy.Why{
			Reason: ReasonBatch, Text: "waiting for more pending pods, to buy for all of them together",
		}})
		return m
	}
	launches, holds := placement.Shortages(s, wanted)
	plan.Launches, plan.Holds = append(plan.Launches, launches...), append(plan.Holds, holds...)
	for i := range s.Pools {
		if fresh && s.Pools[i].SelfProvisioned() {
			p := m.Pool(s.Pools[i].Name)
			p.Batched = s.Now
			m = m.With(p)
		}
	}
	return m
}

// batch returns the creation time of the oldest pending pod that no batch has included yet, and
// whether there is such a pod.
func (e *Policy) batch(s *policy.Snapshot, m *policy.Memory) (first policy.Time, fresh bool) {
	served, closed := false, policy.Time(0)
	for i := range s.Pools {
		if s.Pools[i].SelfProvisioned() {
			p := m.Pool(s.Pools[i].Name)
			served, closed = true, max(closed, p.Batched)
		}
	}
	if !served {
		return 0, false
	}
	for p := range s.Pending() {
		if p.Gated || p.Nominated != policy.None || p.Created <= closed || s.Templates[p.Template].DaemonSet {
			continue
		}
		if !fresh || p.Created < first {
			first, fresh = p.Created, true
		}
	}
	return first, fresh
}
