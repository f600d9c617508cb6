package replan

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// Moves plans moves of pods away from nodes of one pool. A policy proposes nodes and decides which
// moves are worth it. The other steps are the same for all policies: Leaving returns the pods that
// must leave a node, Lift unbinds them, placement.BindFirstFit and Offering.Buy place them on
// running and on new nodes, After returns the resulting balance of the pool, and Launch and Drain
// plan the move.
type Moves struct {
	S    *policy.Snapshot
	Pool *policy.Pool
	Plan *policy.Plan

	// Space, At and Headroom include the moves planned so far. Pods that wait for new nodes count
	// on their current nodes.
	Space    *placement.Space
	At       placement.Balance
	Headroom placement.Headroom

	// Cover is the coverage of the existing nodes by commitments.
	Cover *billing.Coverage

	// Allowed is the number of evictions per PodDisruptionBudget that remain after the moves
	// planned so far. If it is nil, PodDisruptionBudgets are ignored.
	Allowed []int32
	need    []int32 // scratch: evictions by PodDisruptionBudget

	// MayLose reports whether pods that no controller would recreate may leave. They are lost.
	MayLose bool

	// Left is the number of nodes that may still leave according to the disruption budgets of the
	// pool.
	Left int
}

// NewMoves returns the Moves of pool, given the entries already in plan. The caller must set Space,
// Cover and Allowed, which are expensive to compute.
func NewMoves(s *policy.Snapshot, pool policy.PoolID, plan *policy.Plan) Moves {
	m := Moves{
		S: s, Pool: &s.Pools[pool], Plan: plan, At: placement.BalanceOf(s, pool), Headroom: placement.HeadroomOf(s, pool),
	}
	m.Left = m.Disruptable(policy.Underutilized)
	return m
}

// MayLeave reports whether n accepts pods, no controller is draining it, and it may be disrupted.
func MayLeave(n *policy.Node) bool {
	return n.Usable() && n.ActedBy == policy.ActorNone && !n.DoNotDisrupt
}

// Disruptable returns how many more nodes may leave for reason according to the pool's budgets,
// minus the drains of the plan and the moves in progress.
func (m *Moves) Disruptable(reason policy.DisruptionReason) int {
	left := m.S.Disruptable(m.Pool.ID, reason) - m.At.Moving
	for i := range m.Plan.Drains {
		if n := &m.S.Nodes[m.Plan.Drains[i].Node]; n.Pool == m.Pool.ID && n.ReclaimAt == 0 {
			left--
		}
	}
	return left
}

// Targets returns the nodes of the pool that accept pods, that no controller is draining, and that
// satisfy may.
func (m *Moves) Targets(may func(*policy.Node) bool) []policy.NodeID {
	return usable(m.S, func(n *policy.Node) bool { return n.Pool == m.Pool.ID && may(n) })
}

// Usage returns the total requests on the usable nodes of the pool, and their total allocatable
// resources.
func (m *Moves) Usage() (requested, allocatable policy.Resources) {
	for _, id := range m.Targets(func(*policy.Node) bool { return true }) {
		requested = requested.Plus(m.Space.Requested(id))
		allocatable = allocatable.Plus(m.S.Nodes[id].Allocatable)
	}
	return requested, allocatable
}

// Evictions returns the number of evictions that each PodDisruptionBudget of s allows.
func Evictions(s *policy.Snapshot) []int32 {
	allowed := make([]int32, len(s.PDBs))
	for i := range s.PDBs {
		allowed[i] = s.PDBs[i].Allowed
	}
	return allowed
}

// Leaving returns the pods that must leave n. The result careful reports whether one of them may
// only move to a node that is ready. If a pod must stay or cannot be evicted in time, why contains
// the reason.
func (m *Moves) Leaving(n policy.NodeID) (pods []policy.Pod, careful bool, why policy.Why) {
	for _, id := range m.Space.Pods(n) {
		p := &m.S.Pods[id]
		t := &m.S.Templates[p.Template]
		if t.DaemonSet || p.Phase == policy.PodTerminating {
			continue
		}
		if text := m.mustStay(p, t); text != "" {
			return nil, false, policy.Why{Reason: policy.ReasonGuardrail, Text: text}
		}
		careful = careful || t.Critical || t.GracefulOnly
		q := *p
		q.Node = n // the node according to the moves planned so far
		pods = append(pods, q)
	}
	if m.Allowed != nil {
		why = m.evictable(pods)
	}
	return pods, careful, why
}

// mustStay returns the reason why p, which is a pod of t, must not be evicted by choice; empty if
// it may be.
func (m *Moves) mustStay(p *policy.Pod, t *policy.Template) string {
	switch {
	case p.DoNotDisrupt || t.NotSafeToEvict:
		return "a pod on the node must not be evicted"
	case m.S.Bare(t) && !t.SafeToEvict && !m.MayLose:
		return "a pod on the node has no controller that would recreate it"
	}
	return ""
}

// drainTime is the time within which the pods of nodes must be evictable. A drain is abandoned
// after a quarter of an hour. startupUsual is the assumed startup time of a pod that does not state
// one.
const (
	drainTime    = 10 * time.Minute
	startupUsual = time.Minute
)

// evictable returns the reason why PodDisruptionBudgets do not allow pods to be evicted within
// drainTime; its Reason is empty if they do.
func (m *Moves) evictable(pods []policy.Pod) policy.Why {
	m.need = scratch.Zeroed(m.need, len(m.S.PDBs))
	for i := range pods {
		for _, id := range m.S.Templates[pods[i].Template].PDBs {
			if !m.S.PDBs[id].Uncounted(&pods[i]) {
				m.need[id]++
			}
		}
	}
	for i := range pods {
		t := &m.S.Templates[pods[i].Template]
		if len(t.PDBs) > 1 {
			// The eviction API returns an error for a pod with several PodDisruptionBudgets.
			return policy.Why{Reason: policy.ReasonGuardrail,
				Text: "PDB slack: a pod on the node has more than one disruption budget"}
		}
		for _, id := range t.PDBs {
			restart := t.Grace + max(t.Startup, startupUsual)
			switch need, allowed := m.need[id], m.Allowed[id]; {
			case need == 0:
			case allowed <= 0 || time.Duration((need-1)/allowed)*restart > drainTime:
				return policy.Why{Reason: policy.ReasonGuardrail,
					Text: "PDB slack: the disruption budget of a pod on the node allows too few evictions"}
			}
		}
	}
	return policy.Why{}
}

// Charge subtracts the evictions of pods from Allowed.
func (m *Moves) Charge(pods []policy.Pod) {
	for i := range pods {
		for _, id := range m.S.Templates[pods[i].Template].PDBs {
			m.Allowed[id] = max(0, m.Allowed[id]-1)
		}
	}
}

// Lift unbinds pods from their nodes in the space. SetDown binds them again.
func (m *Moves) Lift(pods []policy.Pod) {
	for i := range pods {
		m.Space.Unbind(&pods[i], pods[i].Node)
	}
}

// SetDown binds pods to their nodes.
func (m *Moves) SetDown(pods []policy.Pod) {
	for i := range pods {
		m.Space.Bind(&pods[i], pods[i].Node)
	}
}

// After returns the balance of the pool after nodes are removed and bought ones added, each in the
// first of its markets.
func (m *Moves) After(nodes []policy.NodeID, bought [][]policy.MarketID) placement.Balance {
	at := m.At
	for _, n := range nodes {
		m.count(&at, m.S.Nodes[n].Market, -1)
	}
	for _, markets := range bought {
		m.count(&at, markets[0], 1)
	}
	return at
}

// count adds n nodes of a market to at.
func (m *Moves) count(at *placement.Balance, id policy.MarketID, n int64) {
	if id == policy.None {
		return
	}
	at.Total += n * m.size(id)
	if m.S.Markets[id].Capacity == policy.Spot {
		at.Spot += n * m.size(id)
	}
}

// size returns the size of a node of a market in units of the pool's share.
func (m *Moves) size(id policy.MarketID) int64 { return share.Units(m.S, m.Pool.ID, id) }

// Saved returns the total savings per hour, including fees, if each of nodes is removed on its own.
func (m *Moves) Saved(nodes ...policy.NodeID) (total policy.Money) {
	for _, n := range nodes {
		total += placement.Saved(m.Cover, m.S, &m.S.Nodes[n])
	}
	return total
}

// Added returns the total cost per hour of the bought nodes in the first of their markets,
// including fees. Each is priced as one more node after commitments.
func (m *Moves) Added(bought [][]policy.MarketID) (total policy.Money) {
	for _, markets := range bought {
		total += placement.Added(m.Cover, m.S, m.Pool.ID, markets[0])
	}
	return total
}

// launches reports whether a plan may launch nodes in the pool. Otherwise a drain causes the
// provisioner to launch them.
func (m *Moves) launches() bool {
	return m.Pool.Levers.Launch || m.Pool.Provisioner == policy.ProvisionerNone
}

// Launch plans the launches of bought as replacements of nodes, and returns their tokens. The key
// distinguishes tokens of the same time.
func (m *Moves) Launch(key string, nodes []policy.NodeID, bought [][]policy.MarketID, why policy.Why) []string {
	tokens := make([]string, len(bought))
	for i, markets := range bought {
		l := policy.Launch{
			Token: policy.Token(m.S.Now, m.Pool.Name, key, i), Pool: m.Pool.ID, Markets: placement.Named(m.S, m.Cover, markets),
			Replaces: nodes[min(i, len(nodes)-1)], Bid: placement.BidIn(&m.S.Markets[markets[0]]), Why: why,
		}
		if len(markets) > 1 {
			l.Why.RunnerUp = m.S.Markets[markets[1]].Name
		}
		m.Headroom.Take(l.Markets)
		m.Plan.Launches, tokens[i] = append(m.Plan.Launches, l), l.Token
	}
	return tokens
}

// Drain plans to drain n after the launches with the given tokens.
func (m *Moves) Drain(n policy.NodeID, after []string, why policy.Why) {
	m.Plan.Drains = append(m.Plan.Drains, policy.Drain{Node: n, After: after, Why: why})
	m.Left--
}

// Order plans the launches of bought as replacements of nodes, and the drains of nodes after these
// launches. If only the provisioner can launch nodes, it plans the drains, which cause the
// launches.
func (m *Moves) Order(key string, nodes []policy.NodeID, bought [][]policy.MarketID, why policy.Why) {
	m.At = m.After(nodes, bought)
	var after []string
	if len(bought) > 0 && m.launches() {
		after = m.Launch(key, nodes[:1], bought, why)
	} else {
		for _, markets := range bought {
			m.Headroom.Take(markets)
		}
	}
	for _, n := range nodes {
		m.Drain(n, after, why)
	}
}

// Hold adds a hold to the plan for node n, or for the pool if n is None.
func (m *Moves) Hold(n policy.NodeID, why policy.Why) {
	m.Plan.Holds = append(m.Plan.Holds, policy.Hold{Pool: m.Pool.ID, Node: n, Why: why})
}

// Threshold returns the minimum relative saving for which nodes of p are replaced: the
// SavingsThreshold of the pool, or 15% if it has none. Both nodes are paid for while the new one
// starts, and every pod moves.
func Threshold(p *policy.Pool) float64 {
	if p.SavingsThreshold > 0 {
		return p.SavingsThreshold
	}
	return 0.15
}

// A Group is a set of nodes of a pool that are replaced together.
type Group struct {
	Nodes  []policy.NodeID
	Before policy.Money // savings per hour from removing the nodes
	Purchase
}

// saves returns the net savings per hour.
func (g *Group) saves() policy.Money { return g.Before - g.Cost }

// BestGroup returns the group with the largest savings among those for which try succeeds. It tries
// the first n of nodes for each n from 2 to most.
func BestGroup(nodes []policy.NodeID, most int, try func([]policy.NodeID) (Group, bool)) (best Group, found bool) {
	for n := 2; n <= min(len(nodes), most); n++ {
		if g, ok := try(nodes[:n]); ok && (!found || g.saves() > best.saves()) {
			best, found = g, true
		}
	}
	return best, found
}

// Regroup places pods of nodes that are removed together: on targets, and for the remaining pods on
// new nodes that buy returns. It returns false if buy fails, and also if no new node is needed,
// because the nodes can then be removed one by one. It restores the space.
func (m *Moves) Regroup(pods []policy.Pod, targets []policy.NodeID,
	buy func([]policy.Pod) (Purchase, bool)) (p Purchase, ok bool) {
	m.Lift(pods)
	rest, at := placement.BindFirstFit(m.Space, pods, targets)
	if len(rest) > 0 {
		p, ok = buy(rest)
	}
	placement.UnbindAll(m.Space, at)
	m.SetDown(pods)
	return p, ok
}
