package replan

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
)

// RebalanceOptions specify the target of a rebalance and its speed.
type RebalanceOptions struct {
	Pool policy.PoolID

	// Share is the target Spot share.
	Share float64

	// DrainsMax is the maximum number of nodes that may start to move now, for example
	// Snapshot.Disruptable, which already excludes nodes that wait for their drain.
	DrainsMax int

	// Reason and Text are those of every entry of the plan.
	Reason policy.Reason
	Text   string

	// Backoff reports whether a node must not be tried; nil means that all may be tried.
	Backoff func(node string) bool
}

// utilizationMax is the utilization of a pool up to which displaced pods may use the free capacity
// of other nodes. Above it a replacement is bought even if the pods would fit, since the guardrails
// would otherwise hold the drain.
const utilizationMax = policy.UtilizationTight

// Rebalance plans moves of a pool towards a Spot share. It drains the emptiest nodes of the
// capacity type in excess, each after its pods can run elsewhere. If the pods fit on nodes of the
// other type, no node is bought. Otherwise the cheapest single node of the other type that can run
// them is bought first. The share is never overshot by more than half a node.
//
// It applies its planned moves to sp, so that a second call with the same space does not use the
// same free capacity twice. If sp is nil, it builds a space when needed.
func Rebalance(s *policy.Snapshot, sp *placement.Space, o RebalanceOptions) ([]policy.Launch, []policy.Drain,
	[]policy.Hold) {
	var plan policy.Plan
	m := newRebalance(s, sp, o, &plan)
	m.towardsShare()
	return plan.Launches, plan.Drains, plan.Holds
}

// ReplaceNode plans to buy one node for the pods of n in the cheapest of the given markets that can
// run them, and to drain n once the new node is ready. Markets that are not open are skipped. If no
// node can be bought, it plans nothing, or adds a hold with the reason. The arguments reason and
// text are those of every entry.
//
// It calls space only if some markets are open, and applies its planned moves to the space, as
// [Rebalance] does.
func ReplaceNode(s *policy.Snapshot, space func() *placement.Space, n policy.NodeID, markets []policy.MarketID,
	reason policy.Reason, text string) ([]policy.Launch, []policy.Drain, []policy.Hold) {
	var plan policy.Plan
	m := newRebalance(s, nil, RebalanceOptions{Pool: s.Nodes[n].Pool, Reason: reason, Text: text}, &plan)
	m.Cover = billing.CoverageOf(s)
	m.sell(markets, func(policy.MarketID) bool { return true })
	if len(m.markets) == 0 {
		return nil, nil, nil
	}
	m.Space = space()
	if pods, _, hold := m.Leaving(n); hold.Reason != "" {
		m.Hold(n, hold)
	} else {
		m.Lift(pods)
		if bought, ok := m.replacement(n, pods); ok {
			m.order([]policy.NodeID{n}, bought)
		}
		m.SetDown(pods)
	}
	return plan.Launches, plan.Drains, plan.Holds
}

// A rebalance plans the moves of one pool, with new nodes in some of its markets.
type rebalance struct {
	Moves
	o RebalanceOptions

	markets []policy.MarketID // markets to buy in, cheapest first
	offers  []placement.Offer // by index in markets; built on demand
	tried   []placement.Offer // scratch of holding
	targets []policy.NodeID   // running nodes for the pods that leave

	// requested and allocatable are totals over the pool's usable nodes. tight reports whether
	// these may be filled completely.
	requested, allocatable policy.Resources
	tight                  bool
}

func newRebalance(s *policy.Snapshot, sp *placement.Space, o RebalanceOptions, plan *policy.Plan) rebalance {
	m := rebalance{Moves: NewMoves(s, o.Pool, plan), o: o}
	m.Space = sp
	return m
}

// towardsShare plans the moves of Rebalance.
func (m *rebalance) towardsShare() {
	m.Left = m.o.DrainsMax - m.At.Moving
	missing := m.At.Missing(m.o.Share)
	if missing == 0 || m.At.Total == 0 {
		return
	}
	if m.Left <= 0 {
		m.Hold(policy.None, policy.Why{Reason: policy.ReasonInProgress,
			Text: "the limit of nodes that move at once is reached"})
		return
	}
	from, to := policy.OnDemand, policy.Spot
	if missing < 0 {
		from, to = policy.Spot, policy.OnDemand
	}
	sources := m.sources(from)
	if len(sources) == 0 {
		return
	}
	m.prepare(to)
	if len(m.markets)+len(m.targets) == 0 {
		m.Hold(policy.None, policy.Why{Reason: policy.ReasonInfeasible,
			Text: "no market of the other capacity type is open to the pool"})
		return
	}
	placement.EmptiestFirst(m.S, m.Space, sources)
	slices.SortStableFunc(sources, func(a, b policy.NodeID) int {
		return cmp.Compare(m.paidFor(a), m.paidFor(b)) // draining a node that commitments pay for saves nothing
	})
	// A node that cannot be moved is skipped. The number of tries is limited, so that a pool in
	// which no node can move costs little time.
	for tries := 4*m.Left + 8; len(sources) > 0 && tries > 0 && m.Left > 0; sources = sources[1:] {
		if m.At.Away(m.o.Share) > m.half(sources[0]) {
			tries--
			m.move(sources[0])
		}
	}
}

// sources returns the nodes of a capacity type that may be moved.
func (m *rebalance) sources(from policy.CapacityType) []policy.NodeID {
	var nodes []policy.NodeID
	for i := range m.S.Nodes {
		n := &m.S.Nodes[i]
		if n.Pool != m.Pool.ID || !MayLeave(n) || n.Market == policy.None || m.S.Markets[n.Market].Capacity != from {
			continue
		}
		if m.o.Backoff == nil || !m.o.Backoff(n.Name) {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// read computes the inputs of all moves.
func (m *rebalance) read() {
	m.Cover = billing.CoverageOf(m.S)
	m.requested, m.allocatable = m.Usage()
}

// prepare computes the inputs of all moves to a capacity type.
func (m *rebalance) prepare(to policy.CapacityType) {
	if m.Space == nil {
		m.Space = placement.FromSnapshot(m.S)
	}
	m.read()
	m.sell(m.Pool.Markets, func(id policy.MarketID) bool { return m.S.Markets[id].Capacity == to })
	m.targets = m.Targets(func(n *policy.Node) bool {
		return n.Market != policy.None &&
			m.S.Markets[n.Market].Capacity == to
	})
}

// usable returns the nodes of all pools that accept pods, that no controller is draining, and that
// satisfy may.
func usable(s *policy.Snapshot, may func(*policy.Node) bool) []policy.NodeID {
	var nodes []policy.NodeID
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Usable() && n.ActedBy == policy.ActorNone && may(n) {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// paidFor returns 1 for a node that commitments pay for, so that draining it saves nothing, and 0
// otherwise.
func (m *rebalance) paidFor(n policy.NodeID) int {
	if at := m.S.Nodes[n].Market; m.Cover.Covers(at) && m.Cover.Saving(at) == 0 {
		return 1
	}
	return 0
}

// half returns half of the size of n in units of its pool's share.
func (m *rebalance) half(n policy.NodeID) float64 { return float64(m.size(m.S.Nodes[n].Market)) / 2 }

// move plans to move n if possible.
func (m *rebalance) move(n policy.NodeID) {
	pods, careful, hold := m.Leaving(n)
	if hold.Reason != "" {
		m.Hold(n, hold)
		return
	}
	nodes := []policy.NodeID{n}
	m.Lift(pods)
	if !careful && m.enoughFree(nodes, nil) && !m.overshoots(m.After(nodes, nil), n) && m.displace(n, pods, m.targets) {
		return
	}
	if bought, ok := m.replacement(n, pods); ok && !m.overshoots(m.After(nodes, bought), n) {
		m.order(nodes, bought)
	}
	m.SetDown(pods) // pods stay bound to n until the replacement is ready
}

// displace plans to drain n if targets accept all of pods, which must have been unbound from n. It
// reports whether it did; the pods are then bound to targets.
func (m *rebalance) displace(n policy.NodeID, pods []policy.Pod, targets []policy.NodeID) bool {
	if !placement.BindAll(m.Space, pods, targets) {
		return false
	}
	m.allocatable = m.allocatable.Minus(m.S.Nodes[n].Allocatable)
	m.order([]policy.NodeID{n}, nil)
	return true
}

// enoughFree reports whether the pool's requests are within utilizationMax of the allocatable
// resources after nodes are removed and bought ones added.
func (m *rebalance) enoughFree(nodes []policy.NodeID, bought [][]policy.MarketID) bool {
	left := m.allocatable
	for _, n := range nodes {
		left = left.Minus(m.S.Nodes[n].Allocatable)
	}
	for _, markets := range bought {
		left = left.Plus(m.S.Types[m.S.Markets[markets[0]].Type].Allocatable)
	}
	for _, c := range [...][2]int64{
		{m.requested.CPU, left.CPU}, {m.requested.Memory, left.Memory}, {m.requested.GPU, left.GPU},
	} {
		if !m.tight && c[0] > 0 && float64(c[0]) > float64(utilizationMax*float64(c[1])) {
			return false
		}
	}
	return true
}

// overshoots reports whether the pool would overshoot the share by more than half of n. Every move
// is towards the share, and none starts within half a node of it, so a move that does not overshoot
// ends closer.
func (m *rebalance) overshoots(after placement.Balance, n policy.NodeID) bool {
	now, then := m.At.Missing(m.o.Share), after.Missing(m.o.Share)
	return (now < 0) != (then < 0) && math.Abs(then) > m.half(n)
}

// replacement returns the nodes to buy for pods, which were unbound from n: nothing if there are no
// pods. It returns false, and adds a hold to the plan, if no node can run them.
func (m *rebalance) replacement(n policy.NodeID, pods []policy.Pod) (bought [][]policy.MarketID, ok bool) {
	if len(pods) == 0 {
		return nil, true
	}
	if bought = m.replacements(pods, m.launches()); len(bought) == 0 {
		m.Hold(n,
			policy.Why{Reason: policy.ReasonInfeasible, Text: "no offered node of the other capacity type fits its pods"})
	}
	return bought, len(bought) > 0
}

// order calls Order with the reason of m. The first node is the key of the tokens: it is replaced
// once per plan.
func (m *rebalance) order(nodes []policy.NodeID, bought [][]policy.MarketID) {
	m.Order(m.S.Nodes[nodes[0]].Name, nodes, bought, policy.Why{Reason: m.o.Reason, Text: m.o.Text,
		Before: m.Saved(nodes...), After: m.Added(bought)})
}
