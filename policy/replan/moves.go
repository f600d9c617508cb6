package replan

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// Moves plans moves of pods off the nodes of one pool. A policy proposes nodes and decides
// which moves are worth it. The steps in between are the same for all: Leaving finds the pods
// that have to leave a node, Lift takes them off, placement.BindFirstFit and
// Offering.Buy find them places on running and on new nodes, After is what the pool holds
// then, and Launch and Drain plan the move.
type Moves struct {
	S    *policy.Snapshot
	Pool *policy.Pool
	Plan *policy.Plan

	// Space, At and Headroom are as the moves planned so far leave them. Pods whose new nodes
	// are still to be launched count where they are.
	Space    *placement.Space
	At       placement.Balance
	Headroom placement.Headroom

	// Cover is of the nodes that there are.
	Cover *billing.Coverage

	// Allowed is by disruption budget the evictions that the moves planned so far leave. With
	// nil they are not looked at.
	Allowed []int32
	need    []int32 // scratch: evictions by disruption budget

	// MayLose reports that pods which no controller would recreate may leave: they are lost.
	MayLose bool

	// Left is how many more nodes the disruption budgets of the pool let leave.
	Left int
}

// NewMoves returns no moves of pool beyond those of plan. Space, Cover and Allowed are left to
// the caller, since they take longer to make than all the rest.
func NewMoves(s *policy.Snapshot, pool policy.PoolID, plan *policy.Plan) Moves {
	m := Moves{
		S: s, Pool: &s.Pools[pool], Plan: plan, At: placement.BalanceOf(s, pool), Headroom: placement.HeadroomOf(s, pool),
	}
	m.Left = m.Disruptable(policy.Underutilized)
	return m
}

// MayLeave reports whether n takes pods, no controller empties it, and it may be disrupted.
func MayLeave(n *policy.Node) bool {
	return n.Usable() && n.ActedBy == policy.ActorNone && !n.DoNotDisrupt
}

// Disruptable returns how many more nodes the pool's budgets let leave for reason, after
// the drains of the plan and the moves under way.
func (m *Moves) Disruptable(reason policy.DisruptionReason) int {
	left := m.S.Disruptable(m.Pool.ID, reason) - m.At.Moving
	for i := range m.Plan.Drains {
		if n := &m.S.Nodes[m.Plan.Drains[i].Node]; n.Pool == m.Pool.ID && n.ReclaimAt == 0 {
			left--
		}
	}
	return left
}

// Targets returns the nodes of the pool that take pods, that no controller empties, and for
// which may holds.
func (m *Moves) Targets(may func(*policy.Node) bool) []policy.NodeID {
	return usable(m.S, func(n *policy.Node) bool { return n.Pool == m.Pool.ID && may(n) })
}

// Usage returns what pods request of the usable nodes of the pool, and what these have.
func (m *Moves) Usage() (requested, allocatable policy.Resources) {
	for _, id := range m.Targets(func(*policy.Node) bool { return true }) {
		requested = requested.Plus(m.Space.Requested(id))
		allocatable = allocatable.Plus(m.S.Nodes[id].Allocatable)
	}
	return requested, allocatable
}

// Evictions returns what the disruption budgets of s allow.
func Evictions(s *policy.Snapshot) []int32 {
	allowed := make([]int32, len(s.PDBs))
	for i := range s.PDBs {
		allowed[i] = s.PDBs[i].Allowed
	}
	return allowed
}

// Leaving returns the pods that have to leave n, and whether one of them may only move to a
// node that is ready. Where one of them must stay, or cannot be evicted in time, it returns
// why.
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
		q.Node = n // where the moves planned so far have it
		pods = append(pods, q)
	}
	if m.Allowed != nil {
		why = m.evictable(pods)
	}
	return pods, careful, why
}

// mustStay returns why p, of template t, must not be evicted by choice; empty where it may.
func (m *Moves) mustStay(p *policy.Pod, t *policy.Template) string {
	switch {
	case p.DoNotDisrupt || t.NotSafeToEvict:
		return "a pod on the node must not be evicted"
	case m.S.Bare(t) && !t.SafeToEvict && !m.MayLose:
		return "a pod on the node has no controller that would recreate it"
	}
	return ""
}

// drainTime bounds how long the pods of nodes may take to be evicted: a drain is given up
// after a quarter of an hour. startupUsual is assumed where a pod does not state how long it
// takes to start.
const (
	drainTime    = 10 * time.Minute
	startupUsual = time.Minute
)

// evictable returns why the disruption budgets do not let pods go within drainTime.
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
			// The eviction API knows no answer for a pod with two budgets.
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

// Charge takes the evictions of pods off what their disruption budgets allow.
func (m *Moves) Charge(pods []policy.Pod) {
	for i := range pods {
		for _, id := range m.S.Templates[pods[i].Template].PDBs {
			m.Allowed[id] = max(0, m.Allowed[id]-1)
		}
	}
}

// Lift takes pods off their nodes in the space, and SetDown binds them there again.
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

// After returns what the pool holds once nodes are gone and bought ones have come, each in
// the first of its markets.
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

// count counts n more nodes of a market in at.
func (m *Moves) count(at *placement.Balance, id policy.MarketID, n int64) {
	if id == policy.None {
		return
	}
	at.Total += n * m.size(id)
	if m.S.Markets[id].Capacity == policy.Spot {
		at.Spot += n * m.size(id)
	}
}

// size returns what a node of a market counts in the share of the pool.
func (m *Moves) size(id policy.MarketID) int64 { return share.Units(m.S, m.Pool.ID, id) }

// Saved returns what is saved per hour when each of nodes goes by itself, with its fees.
func (m *Moves) Saved(nodes ...policy.NodeID) (total policy.Money) {
	for _, n := range nodes {
		total += placement.Saved(m.Cover, m.S, &m.S.Nodes[n])
	}
	return total
}

// Added returns what bought nodes cost per hour in the first of their markets, with their fees
// and beyond what commitments pay of one more node.
func (m *Moves) Added(bought [][]policy.MarketID) (total policy.Money) {
	for _, markets := range bought {
		total += placement.Added(m.Cover, m.S, m.Pool.ID, markets[0])
	}
	return total
}

// launches reports whether a plan may launch nodes in the pool. Where it may not, a drain
// makes the provisioner launch them.
func (m *Moves) launches() bool {
	return m.Pool.Levers.Launch || m.Pool.Provisioner == policy.ProvisionerNone
}

// Launch plans the nodes of bought in place of nodes, and returns their tokens. Tokens of one
// instant differ by key.
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

// Drain plans to drain n after the launches of tokens.
func (m *Moves) Drain(n policy.NodeID, after []string, why policy.Why) {
	m.Plan.Drains = append(m.Plan.Drains, policy.Drain{Node: n, After: after, Why: why})
	m.Left--
}

// Order plans the nodes of bought in place of nodes, and the drains of nodes that wait for them.
// Where only the provisioner buys, the drains make it.
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

// Hold adds to the plan why a node, or with None the pool, stays as it is.
func (m *Moves) Hold(n policy.NodeID, why policy.Why) {
	m.Plan.Holds = append(m.Plan.Holds, policy.Hold{Pool: m.Pool.ID, Node: n, Why: why})
}

// Threshold returns the least part of the cost of nodes of p that must be saved for them to be
// replaced: that of the pool, or 15% if it states none. Both nodes are paid while the new one
// starts, and every pod moves.
func Threshold(p *policy.Pool) float64 {
	if p.SavingsThreshold > 0 {
		return p.SavingsThreshold
	}
	return 0.15
}

// A Group is nodes of a pool that are replaced together.
type Group struct {
	Nodes  []policy.NodeID
	Before policy.Money // what is saved per hour when they go
	Purchase
}

// saves returns what is saved per hour.
func (g *Group) saves() policy.Money { return g.Before - g.Cost }

// BestGroup returns that of the groups of the first of nodes, from two to most, that try
// finds and that saves most.
func BestGroup(nodes []policy.NodeID, most int, try func([]policy.NodeID) (Group, bool)) (best Group, found bool) {
	for n := 2; n <= min(len(nodes), most); n++ {
		if g, ok := try(nodes[:n]); ok && (!found || g.saves() > best.saves()) {
			best, found = g, true
		}
	}
	return best, found
}

// Regroup finds places for pods, which run on nodes that go together: on targets, and on new
// nodes where buy finds them. It reports false where it finds none or needs none, since nodes
// that need no replacement can go one by one. The space is left as it was.
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
