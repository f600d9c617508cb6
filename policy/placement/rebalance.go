package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/share"
)

// RebalanceOptions say where a pool is to be moved and how fast.
type RebalanceOptions struct {
	Pool policy.PoolID

	// Share is the wanted spot share.
	Share float64

	// DrainsMax is the most nodes to begin to move now, such as
	// Snapshot.Disruptable allows: nodes whose drain waits are off it already.
	DrainsMax int

	// Reason and Text stand in every entry of the plan.
	Reason policy.Reason
	Text   string

	// Backoff reports nodes that are not to be tried; nil means none.
	Backoff func(node string) bool
}

// utilizationMax is the utilization of a pool up to which displaced pods may use the
// free capacity of other nodes. Above it a replacement is bought even where they would
// fit, since the guardrails would hold the drain otherwise.
const utilizationMax = policy.UtilizationTight

// offersAtOnce is how many markets are tried together for a replacement, and
// offersMax how many of the cheapest are tried at all.
const (
	offersAtOnce = 32
	offersMax    = 256
)

// Rebalance plans moves of pool towards a spot share: the emptiest nodes of the
// capacity type in excess are drained, each once the pods that have to leave
// it can run elsewhere. Where they fit on nodes of the other type nothing is
// bought; else the cheapest single node of the other type that holds them
// comes first. The share is never passed by more than half a node.
//
// It changes sp by the moves that it plans, so that a second call on the same
// space does not use the same free capacity twice. With nil it builds a space when it
// needs one.
func Rebalance(s *policy.Snapshot, sp *Space, o RebalanceOptions) ([]policy.Launch, []policy.Drain, []policy.Hold) {
	m := rebalancer{s: s, sp: sp, o: o, pool: &s.Pools[o.Pool], at: BalanceOf(s, o.Pool)}
	left := o.DrainsMax - m.at.Moving
	missing := m.at.missing(o.Share)
	if missing == 0 || m.at.Total == 0 {
		return nil, nil, nil
	}
	if left <= 0 {
		return nil, nil, []policy.Hold{m.hold(policy.None, policy.ReasonInProgress, "the limit of nodes that move at once is reached")}
	}
	m.from, m.to = policy.OnDemand, policy.Spot
	if missing < 0 {
		m.from, m.to = policy.Spot, policy.OnDemand
	}
	sources := m.sources()
	if len(sources) == 0 {
		return nil, nil, nil
	}
	m.prepare()
	if len(m.markets)+len(m.targets) == 0 {
		return nil, nil, []policy.Hold{m.hold(policy.None, policy.ReasonInfeasible, "no market of the other capacity type is open to the pool")}
	}
	EmptiestFirst(s, m.sp, sources)
	slices.SortStableFunc(sources, func(a, b policy.NodeID) int {
		return cmp.Compare(m.paidFor(a), m.paidFor(b)) // a drain of a committed node saves nothing
	})
	// A node that cannot be moved is skipped. The number of tries is bounded, so that a
	// pool in which nothing moves costs little.
	for tries := 4*left + 8; len(sources) > 0 && tries > 0 && left > 0; sources = sources[1:] {
		n := &s.Nodes[sources[0]]
		if m.at.away(o.Share) <= float64(m.size(n))/2 {
			continue
		}
		tries--
		if m.move(n) {
			left--
		}
	}
	return m.launches, m.drains, m.holds
}

// A rebalancer plans the moves of one pool.
type rebalancer struct {
	s    *policy.Snapshot
	sp   *Space
	o    RebalanceOptions
	pool *policy.Pool

	// from is the capacity type in excess, to the other.
	from, to policy.CapacityType

	// at is the balance of the pool after the moves planned so far.
	at Balance

	headroom Headroom
	cover    *billing.Coverage // of the nodes that are there
	markets  []policy.MarketID // to buy in, cheapest first
	offers   []Offer           // of the first of markets; made when first needed
	tried    []Offer           // scratch of holding
	targets  []policy.NodeID   // running nodes of the other type

	// requested and allocatable are of the pool's usable nodes. tight says that they
	// may be filled up.
	requested, allocatable policy.Resources
	tight                  bool

	launches []policy.Launch
	drains   []policy.Drain
	holds    []policy.Hold
}

// sources returns the nodes that may be moved.
func (m *rebalancer) sources() []policy.NodeID {
	var nodes []policy.NodeID
	for i := range m.s.Nodes {
		n := &m.s.Nodes[i]
		if n.Pool != m.o.Pool || !n.Usable() || n.ActedBy != policy.ActorNone || n.DoNotDisrupt || n.Market == policy.None {
			continue
		}
		if m.s.Markets[n.Market].Capacity != m.from || m.o.Backoff != nil && m.o.Backoff(n.Name) {
			continue
		}
		nodes = append(nodes, n.ID)
	}
	return nodes
}

// prepare collects what all moves need.
func (m *rebalancer) prepare() {
	if m.sp == nil {
		m.sp = FromSnapshot(m.s)
	}
	m.headroom, m.cover = HeadroomOf(m.s, m.o.Pool), billing.CoverageOf(m.s)
	for _, id := range m.pool.Markets {
		if m.s.Markets[id].Capacity == m.to && open(m.s, id) {
			m.markets = append(m.markets, id)
		}
	}
	byPrice(m.cover, m.markets)
	m.markets = m.markets[:min(len(m.markets), offersMax)]
	for i := range m.s.Nodes {
		n := &m.s.Nodes[i]
		if n.Pool != m.o.Pool || !n.Usable() || n.Market == policy.None || n.ActedBy != policy.ActorNone {
			continue
		}
		m.requested = m.requested.Plus(m.sp.Requested(n.ID))
		m.allocatable = m.allocatable.Plus(n.Allocatable)
		if m.s.Markets[n.Market].Capacity == m.to {
			m.targets = append(m.targets, n.ID)
		}
	}
}

// added returns what one more node in a market costs, and saved what is saved when n goes.
func (m *rebalancer) added(at policy.MarketID) policy.Money { return Added(m.cover, m.s, m.o.Pool, at) }
func (m *rebalancer) saved(n *policy.Node) policy.Money     { return Saved(m.cover, m.s, n) }

// paidFor is 1 for a node that commitments pay for, so that its drain saves nothing,
// else 0.
func (m *rebalancer) paidFor(n policy.NodeID) int {
	if at := m.s.Nodes[n].Market; m.cover.Covers(at) && m.cover.Saving(at) == 0 {
		return 1
	}
	return 0
}

// size returns what n counts in the share of its pool.
func (m *rebalancer) size(n *policy.Node) int64 { return share.Units(m.s, m.o.Pool, n.Market) }

// move plans the move of n and reports whether it did.
func (m *rebalancer) move(n *policy.Node) bool {
	pods, careful, ok := m.movable(n)
	if !ok {
		m.holds = append(m.holds, m.hold(n.ID, policy.ReasonGuardrail, "a pod on the node must not be evicted"))
		return false
	}
	after := m.at
	after.Total -= m.size(n)
	if m.from == policy.Spot {
		after.Spot -= m.size(n)
	}
	for i := range pods {
		m.sp.Unbind(&pods[i], n.ID)
	}
	if !careful && m.enoughFreeWithout(n) && !m.overshoots(after, n) && m.bindElsewhere(pods) {
		m.allocatable = m.allocatable.Minus(n.Allocatable)
		m.drain(n, nil, policy.None)
		m.at = after
		return true
	}
	moved := m.replace(n, pods, after)
	for i := range pods {
		m.sp.Bind(&pods[i], n.ID) // until the replacement is there they count where they are
	}
	return moved
}

// movable returns the pods that have to leave n, and whether one of them may move only
// to a node that is ready. It reports false when one must stay.
func (m *rebalancer) movable(n *policy.Node) (pods []policy.Pod, careful, ok bool) {
	for _, id := range m.sp.Pods(n.ID) {
		p := &m.s.Pods[id]
		t := &m.s.Templates[p.Template]
		if t.DaemonSet || p.Phase == policy.PodTerminating {
			continue
		}
		if p.DoNotDisrupt || t.NotSafeToEvict || m.s.Bare(t) {
			return nil, false, false
		}
		careful = careful || t.Critical || t.GracefulOnly
		pods = append(pods, *p)
	}
	return pods, careful, true
}

// enoughFreeWithout reports whether the pool stays within utilizationMax when n is
// drained and its pods stay in the pool.
func (m *rebalancer) enoughFreeWithout(n *policy.Node) bool {
	return m.tight || m.enoughFree(m.allocatable.Minus(n.Allocatable))
}

// enoughFree reports whether the pool's requests are within utilizationMax of left.
func (m *rebalancer) enoughFree(left policy.Resources) bool {
	for _, c := range [...][2]int64{
		{m.requested.CPU, left.CPU}, {m.requested.Memory, left.Memory}, {m.requested.GPU, left.GPU},
	} {
		if c[0] > 0 && float64(c[0]) > float64(utilizationMax*float64(c[1])) {
			return false
		}
	}
	return true
}

// overshoots reports whether the pool would be beyond the share by more than half of
// n. Every move goes towards the share, and none begins within half a node of it, so
// that one that does not overshoot ends nearer.
func (m *rebalancer) overshoots(after Balance, n *policy.Node) bool {
	now, then := m.at.missing(m.o.Share), after.missing(m.o.Share)
	return (now < 0) != (then < 0) && math.Abs(then) > float64(m.size(n))/2
}

// bindElsewhere binds pods, which are bound nowhere, to running nodes of the other
// type. It binds all or none.
func (m *rebalancer) bindElsewhere(pods []policy.Pod) bool {
	at := make([]policy.NodeID, 0, len(pods))
	for i := range pods {
		target, ok := m.target(&pods[i])
		if !ok {
			for k := range at {
				m.sp.Unbind(&pods[k], at[k])
			}
			return false
		}
		m.sp.Bind(&pods[i], target)
		at = append(at, target)
	}
	return true
}

// target returns the first target that takes p.
func (m *rebalancer) target(p *policy.Pod) (policy.NodeID, bool) {
	for _, n := range m.targets {
		if m.sp.Check(p, n) == OK {
			return n, true
		}
	}
	return policy.None, false
}

// launch plans the nodes of bought, each in one of its markets, and the drain of
// n that waits for them. The tokens come from the node replaced: it is replaced
// once per plan.
func (m *rebalancer) launch(n *policy.Node, bought [][]policy.MarketID) {
	tokens := make([]string, len(bought))
	cost := policy.Money(0)
	for i, markets := range bought {
		why := m.why(n, markets[0], m.runnerUp(markets))
		markets = named(m.s, m.cover, markets)
		m.headroom.Take(markets)
		tokens[i] = policy.Token(m.s.Now, m.pool.Name, n.Name, i)
		m.launches = append(m.launches, policy.Launch{
			Token: tokens[i], Pool: m.o.Pool, Markets: markets, Replaces: n.ID, Bid: BidIn(&m.s.Markets[markets[0]]), Why: why,
		})
		cost += m.added(markets[0])
	}
	m.drain(n, tokens, bought[0][0])
	m.drains[len(m.drains)-1].Why.After = cost
}

// runnerUp returns the name of the second market, if there is one.
func (m *rebalancer) runnerUp(markets []policy.MarketID) string {
	if len(markets) < 2 {
		return ""
	}
	return m.s.Markets[markets[1]].Name
}

// drain plans the drain of n, with market in its place if any.
func (m *rebalancer) drain(n *policy.Node, after []string, market policy.MarketID) {
	m.drains = append(m.drains, policy.Drain{Node: n.ID, After: after, Why: m.why(n, market, "")})
}

// why explains the move of n, with market in its place if any.
func (m *rebalancer) why(n *policy.Node, market policy.MarketID, runnerUp string) policy.Why {
	w := policy.Why{Reason: m.o.Reason, Text: m.o.Text, Before: m.saved(n), RunnerUp: runnerUp}
	if market != policy.None {
		w.After = m.added(market)
	}
	return w
}

// hold says that node, or with None the pool, stays as it is.
func (m *rebalancer) hold(node policy.NodeID, reason policy.Reason, text string) policy.Hold {
	return policy.Hold{Pool: m.o.Pool, Node: node, Why: policy.Why{Reason: reason, Text: text}}
}
