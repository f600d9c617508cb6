package replan

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/share"
)

// Moves plans moves of pods off the nodes of one pool. A policy proposes nodes and decides
// which moves are worth it. The steps in between are the same for all: Leaving finds the pods
// that have to leave a node, Lift takes them off, placement.BindFirstFit and
// Purchasing.Buy find them places on running and on new nodes, After is what the pool holds
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

	// Left is how many more nodes the disruption budgets of the pool let leave.
	Left int
}

// NewMoves returns no moves of pool beyond those of plan. Space is left to the caller, since
// to make one takes longer than all the rest.
func NewMoves(s *policy.Snapshot, pool policy.PoolID, plan *policy.Plan) Moves {
	m := Moves{
		S: s, Pool: &s.Pools[pool], Plan: plan, At: placement.BalanceOf(s, pool), Headroom: placement.HeadroomOf(s, pool),
		Cover: billing.CoverageOf(s),
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

// Leaving returns the pods that have to leave n, and whether one of them may only move to a
// node that is ready. Where one of them must stay it returns why.
func (m *Moves) Leaving(n policy.NodeID) (pods []policy.Pod, careful bool, why policy.Why) {
	for _, id := range m.Space.Pods(n) {
		p := &m.S.Pods[id]
		t := &m.S.Templates[p.Template]
		switch {
		case t.DaemonSet || p.Phase == policy.PodTerminating:
			continue
		case p.DoNotDisrupt || t.NotSafeToEvict || m.S.Bare(t):
			return nil, false, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod on the node must not be evicted"}
		}
		careful = careful || t.Critical || t.GracefulOnly
		q := *p
		q.Node = n // where the moves planned so far have it
		pods = append(pods, q)
	}
	return pods, careful, policy.Why{}
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

// Saved returns what is saved per hour when nodes go one by one, and Added what
// the first markets of bought cost, both with their fees and beyond commitments.
func (m *Moves) Saved(nodes ...policy.NodeID) (total policy.Money) {
	for _, n := range nodes {
		total += placement.Saved(m.Cover, m.S, &m.S.Nodes[n])
	}
	return total
}

// Added returns what one more node of the first markets of each of bought costs per hour.
func (m *Moves) Added(bought [][]policy.MarketID) (total policy.Money) {
	for _, markets := range bought {
		total += placement.Added(m.Cover, m.S, m.Pool.ID, markets[0])
	}
	return total
}

// Launches reports whether a plan may launch nodes in the pool. Where it may not, a drain
// makes the provisioner launch them.
func (m *Moves) Launches() bool {
	return m.Pool.Levers.Launch || m.Pool.Provisioner == policy.ProvisionerNone
}

// Launch plans the nodes of bought in place of nodes, and returns their tokens. Tokens of one
// instant differ by key.
func (m *Moves) Launch(key string, nodes []policy.NodeID, bought [][]policy.MarketID, why policy.Why) []string {
	tokens := make([]string, len(bought))
	for i, markets := range bought {
		l := Launch(m.S, m.Pool, key, i, markets, nodes[min(i, len(nodes)-1)], why)
		l.Markets = placement.Named(m.S, m.Cover, markets)
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

// Hold adds to the plan why a node, or with None the pool, stays as it is.
func (m *Moves) Hold(n policy.NodeID, why policy.Why) {
	m.Plan.Holds = append(m.Plan.Holds, policy.Hold{Pool: m.Pool.ID, Node: n, Why: why})
}

// Threshold returns the least part of the cost of nodes of p that must be saved for them to be
// replaced: that of the pool, or 15 % where it states none. Both nodes are paid while the
// new one starts, and every pod moves.
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
func (m *Moves) Regroup(pods []policy.Pod, targets []policy.NodeID, buy func([]policy.Pod) (Purchase, bool)) (p Purchase, ok bool) {
	m.Lift(pods)
	rest, at := placement.BindFirstFit(m.Space, pods, targets)
	if len(rest) > 0 {
		p, ok = buy(rest)
	}
	placement.UnbindAll(m.Space, at)
	m.SetDown(pods)
	return p, ok
}

// DrainTime bounds how long the pods of a node may take to be evicted: a drain is given up
// after a quarter of an hour. StartupUsual is assumed where a pod does not state how long it
// takes to start.
const (
	DrainTime    = 10 * time.Minute
	StartupUsual = time.Minute
)

// EvictsInTime reports whether the last of need pods of t can be evicted within DrainTime by
// a disruption budget that allows that many evictions at a time.
func EvictsInTime(t *policy.Template, need, allowed int32) bool {
	restart := t.Grace + max(t.Startup, StartupUsual)
	return allowed > 0 && time.Duration((need-1)/allowed)*restart <= DrainTime
}
