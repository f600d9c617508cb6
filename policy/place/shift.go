package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// ShiftOptions say where a pool is to be moved and how fast.
type ShiftOptions struct {
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

// roomyMax is the utilization up to which displaced pods may rely on the room
// of other nodes. Above it a replacement is bought even where they would fit:
// the guardrails would hold the drain otherwise.
const roomyMax = 0.85

// offersAtOnce is how many markets are tried together for a replacement, and
// offersMax how many of the cheapest are tried at all.
const (
	offersAtOnce = 32
	offersMax    = 256
)

// A Standing is where a pool is on its way to a spot share, with the moves
// that are under way counted as done.
type Standing struct {
	// Spot and Total are in units of the share.
	Spot, Total int64

	// Nodes is the number of nodes that Total counts and that are initialized.
	Nodes int

	// Moving is the number of moves under way of which only the node that we
	// bought can be seen, since no node is marked as waiting for it.
	Moving int
}

// Balance returns where pool stands.
func Balance(s *policy.Snapshot, pool policy.PoolID) Standing {
	h := s.Holding(pool)
	spot := h.Spot + h.Arriving[policy.Spot]
	fixed := h.Fixed + h.Arriving[policy.OnDemand] + h.Arriving[policy.Reserved]
	// A node that we bought stands for one that will go. Where that one is not
	// yet marked as waiting, it is taken off here.
	unmarked := h.ArrivingOurs[policy.Spot] + h.ArrivingOurs[policy.OnDemand] -
		h.Waiting[policy.Spot] - h.Waiting[policy.OnDemand] - h.Waiting[policy.Reserved]
	if unmarked > 0 {
		fixed -= min(fixed, unmarked, h.ArrivingOurs[policy.Spot])
		spot -= min(spot, unmarked, h.ArrivingOurs[policy.OnDemand])
	}
	return Standing{Spot: spot, Total: spot + fixed, Nodes: h.Nodes, Moving: max(0, h.ArrivingNodes-h.WaitingNodes)}
}

// Off reports whether the pool is away from share by at least one of its nodes
// of mean size. A pool that is nearer is left alone, so that it comes to rest: but
// for a share of nothing or all, which no move passes.
func (b Standing) Off(share float64) bool {
	if share == 0 || share == 1 {
		return b.Nodes > 0 && b.away(share) > 0
	}
	return b.Nodes > 0 && b.away(share)*float64(b.Nodes) >= float64(b.Total)
}

// away returns the distance to share in units of it.
func (b Standing) away(share float64) float64 { return math.Abs(b.missing(share)) }

// missing returns how much spot capacity is wanted, negative if too much.
func (b Standing) missing(share float64) float64 {
	return float64(share*float64(b.Total)) - float64(b.Spot)
}

// Shift plans moves of pool towards a spot share: the emptiest nodes of the
// capacity type in excess are drained, each once the pods that have to leave
// it can run elsewhere. Where they fit on nodes of the other type nothing is
// bought; else the cheapest single node of the other type that holds them
// comes first. The share is never passed by more than half a node.
//
// It changes sp by the moves that it plans, so that a second call on the same
// space does not use the same room twice. With nil it builds a space when it
// needs one.
func Shift(s *policy.Snapshot, sp *Space, o ShiftOptions) ([]policy.Launch, []policy.Drain, []policy.Hold) {
	m := mover{s: s, sp: sp, o: o, pool: &s.Pools[o.Pool], at: Balance(s, o.Pool)}
	left := o.DrainsMax - m.at.Moving
	missing := m.at.missing(o.Share)
	if missing == 0 || m.at.Total == 0 {
		return nil, nil, nil
	}
	if left <= 0 {
		return nil, nil, []policy.Hold{m.hold(policy.None, policy.ReasonInProgress, "as many nodes as may move at once are moving")}
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
		return cmp.Compare(m.paidFor(a), m.paidFor(b)) // what was paid for goes last: it saves nothing
	})
	// A node that cannot be moved is passed over, but not without end: what is
	// tried is counted, so that a stuck pool costs little.
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

// A mover plans the moves of one pool.
type mover struct {
	s    *policy.Snapshot
	sp   *Space
	o    ShiftOptions
	pool *policy.Pool

	// from is the capacity type in excess, to the other.
	from, to policy.CapacityType

	// at is where the pool stands after the moves planned so far.
	at Standing

	room    Room
	cover   *policy.Coverage  // of the nodes that are there
	markets []policy.MarketID // to buy in, cheapest first
	offers  []Offer           // of the first of markets; made when first needed
	targets []policy.NodeID   // running nodes of the other type

	// requested and allocatable are of the pool's usable nodes. tight says that
	// no room is left free in them.
	requested, allocatable policy.Resources
	tight                  bool

	launches []policy.Launch
	drains   []policy.Drain
	holds    []policy.Hold
}

// sources returns the nodes that may be moved.
func (m *mover) sources() []policy.NodeID {
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

// prepare collects what every move looks at.
func (m *mover) prepare() {
	if m.sp == nil {
		m.sp = FromSnapshot(m.s)
	}
	m.room, m.cover = RoomOf(m.s, m.o.Pool), m.s.Coverage()
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

// paidFor is 1 for a node that saves nothing when it goes, since it was paid for in
// advance, else 0.
func (m *mover) paidFor(n policy.NodeID) int {
	if at := m.s.Nodes[n].Market; m.cover.Covers(at) && m.cover.Saving(at) == 0 {
		return 1
	}
	return 0
}

func (m *mover) size(n *policy.Node) int64 { return m.s.ShareUnits(m.o.Pool, n.Market) }

// move plans the move of n and reports whether it did.
func (m *mover) move(n *policy.Node) bool {
	pods, careful, ok := m.movable(n)
	if !ok {
		m.holds = append(m.holds, m.hold(n.ID, policy.ReasonGuardrail, "a pod of the node must not be evicted"))
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
	if !careful && m.roomWithout(n) && !m.overshoots(after, n) && m.displace(pods) {
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

// movable returns the pods that have to leave n, and whether one of them is
// only moved to a node that stands ready. It reports false when one must stay.
func (m *mover) movable(n *policy.Node) (pods []policy.Pod, careful, ok bool) {
	for _, id := range m.sp.Pods(n.ID) {
		p := &m.s.Pods[id]
		t := &m.s.Templates[p.Template]
		if t.DaemonSet || p.Phase == policy.PodTerminating {
			continue
		}
		if p.DoNotDisrupt || t.NotSafeToEvict || bare(m.s, p) {
			return nil, false, false
		}
		careful = careful || t.Critical || t.GracefulOnly
		pods = append(pods, *p)
	}
	return pods, careful, true
}

// roomWithout reports whether the pool stays roomy when n goes and its pods
// stay in the pool.
func (m *mover) roomWithout(n *policy.Node) bool {
	return m.tight || m.roomy(m.allocatable.Minus(n.Allocatable))
}

// roomy reports whether what the pool's pods ask for leaves room in nodes that have
// this for pods.
func (m *mover) roomy(left policy.Resources) bool {
	for _, c := range [...][2]int64{
		{m.requested.CPU, left.CPU}, {m.requested.Memory, left.Memory}, {m.requested.GPU, left.GPU},
	} {
		if c[0] > 0 && float64(c[0]) > float64(roomyMax*float64(c[1])) {
			return false
		}
	}
	return true
}

// overshoots reports whether the pool would stand beyond the share by more than
// half of n. Every move goes towards the share, and none begins within half a
// node of it: so one that does not overshoot ends nearer.
func (m *mover) overshoots(after Standing, n *policy.Node) bool {
	now, then := m.at.missing(m.o.Share), after.missing(m.o.Share)
	return (now < 0) != (then < 0) && math.Abs(then) > float64(m.size(n))/2
}

// displace binds pods, which are bound nowhere, to running nodes of the other
// type. It binds all or none.
func (m *mover) displace(pods []policy.Pod) bool {
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

func (m *mover) target(p *policy.Pod) (policy.NodeID, bool) {
	for _, n := range m.targets {
		if m.sp.Check(p, n) == OK {
			return n, true
		}
	}
	return policy.None, false
}

// replace plans to buy a node for pods, which are bound nowhere, and to drain
// n once it is there. Where only the provisioner can buy, it is left to it.
func (m *mover) replace(n *policy.Node, pods []policy.Pod, after Standing) bool {
	launches := m.pool.Levers.Launch || m.pool.Provisioner == policy.ProvisionerNone
	if len(pods) == 0 {
		if m.overshoots(after, n) {
			return false
		}
		m.drain(n, nil, policy.None)
		m.at = after
		return true
	}
	bought := m.replacements(pods, launches)
	if len(bought) == 0 {
		m.holds = append(m.holds, m.hold(n.ID, policy.ReasonInfeasible, "no node of the other capacity type that is offered holds its pods"))
		return false
	}
	for _, markets := range bought {
		size := m.s.ShareUnits(m.o.Pool, markets[0])
		after.Total += size
		if m.to == policy.Spot {
			after.Spot += size
		}
	}
	if m.overshoots(after, n) {
		return false
	}
	m.at = after
	if !launches {
		m.drain(n, nil, bought[0][0])
		return true
	}
	m.launch(n, bought)
	return true
}

// splitMax is the most nodes that replace one.
const splitMax = 4

// replacements returns, for each node to be bought for pods, the markets in which
// it may be, cheapest first. It is one node where one will do; in a pool that we
// serve ourselves several where they cost less together, as where an auction
// asks far less for a small machine than for a large one.
func (m *mover) replacements(pods []policy.Pod, launches bool) [][]policy.MarketID {
	single := m.holding(pods, launches)
	if !selfServed(*m.pool) {
		if len(single) == 0 {
			return nil
		}
		return [][]policy.MarketID{single}
	}
	offers := make([]Offer, 0, offersAtOnce)
	for i := 0; i < len(m.markets) && len(offers) < offersAtOnce; i++ {
		if m.room.Has(m.markets[i]) {
			offers = append(offers, m.offer(i))
		}
	}
	bins, unplaced, total := m.sp.Pack(pods, offers)
	several := len(bins) > 0 && len(bins) <= splitMax && len(unplaced) == 0
	switch {
	case several && (len(single) == 0 || total < offered(m.cover, m.s, single[0])):
	case len(single) == 0:
		return nil
	default:
		return [][]policy.MarketID{single}
	}
	all := make([][]policy.MarketID, len(bins))
	left := m.room.Clone()
	for i := range bins {
		for _, o := range bins[i].Offers {
			if len(all[i]) < marketsMax && left.Has(offers[o].Market) {
				all[i] = append(all[i], offers[o].Market)
			}
		}
		if len(all[i]) == 0 {
			return nil // the limits leave room for the first of them only
		}
		left.Take(all[i])
	}
	return all
}

// holding returns up to marketsMax markets of the other type, cheapest first,
// in which one node holds all of pods; with several nodes allowed, the
// cheapest market of the first of them.
func (m *mover) holding(pods []policy.Pod, oneNode bool) []policy.MarketID {
	var need policy.Resources
	for i := range pods {
		need = need.Plus(m.s.Templates[pods[i].Template].Requests)
	}
	var offers []Offer
	for next := 0; next < len(m.markets); {
		offers = offers[:0]
		for ; next < len(m.markets) && len(offers) < offersAtOnce; next++ {
			id := m.markets[next]
			fits := !oneNode || need.Within(m.s.Types[m.s.Markets[id].Type].Allocatable)
			if fits && m.room.Has(id) {
				offers = append(offers, m.offer(next))
			}
		}
		if len(offers) == 0 {
			continue
		}
		bins, unplaced := m.sp.Provision(pods, offers)
		if len(unplaced) > 0 || len(bins) == 0 || oneNode && len(bins) > 1 {
			continue
		}
		markets := make([]policy.MarketID, 0, marketsMax)
		for _, i := range bins[0].Offers {
			if len(markets) < marketsMax {
				markets = append(markets, offers[i].Market)
			}
		}
		return markets
	}
	return nil
}

// offer returns the offer of the i-th market, made once.
func (m *mover) offer(i int) Offer {
	if m.offers == nil {
		m.offers = make([]Offer, len(m.markets))
	}
	if m.offers[i].Labels == nil {
		m.offers[i] = offerOf(m.s, m.cover, m.o.Pool, m.markets[i])
	}
	return m.offers[i]
}

// launch plans the nodes of bought, each in one of its markets, and the drain of
// n that waits for them. The tokens come from the node replaced: it is replaced
// once per plan.
func (m *mover) launch(n *policy.Node, bought [][]policy.MarketID) {
	tokens := make([]string, len(bought))
	cost := policy.Money(0)
	for i, markets := range bought {
		why := m.why(n, markets[0], m.runnerUp(markets))
		markets = named(m.s, m.cover, markets)
		m.room.Take(markets)
		tokens[i] = policy.Token(m.s.Now, m.pool.Name, n.Name, i)
		m.launches = append(m.launches, policy.Launch{
			Token: tokens[i], Pool: m.o.Pool, Markets: markets, Replaces: n.ID, Bid: bidOf(&m.s.Markets[markets[0]]), Why: why,
		})
		cost += m.cover.Marginal(markets[0])
	}
	m.drain(n, tokens, bought[0][0])
	m.drains[len(m.drains)-1].Why.After = cost
}

func (m *mover) runnerUp(markets []policy.MarketID) string {
	if len(markets) < 2 {
		return ""
	}
	return m.s.Markets[markets[1]].Name
}

func (m *mover) drain(n *policy.Node, after []string, market policy.MarketID) {
	m.drains = append(m.drains, policy.Drain{Node: n.ID, After: after, Why: m.why(n, market, "")})
}

// why accounts for the move of n, with market in its place if any.
func (m *mover) why(n *policy.Node, market policy.MarketID, runnerUp string) policy.Why {
	w := policy.Why{Reason: m.o.Reason, Text: m.o.Text, Before: m.cover.Saving(n.Market), RunnerUp: runnerUp}
	if market != policy.None {
		w.After = m.cover.Marginal(market)
	}
	return w
}

func (m *mover) hold(node policy.NodeID, reason policy.Reason, text string) policy.Hold {
	return policy.Hold{Pool: m.o.Pool, Node: node, Why: policy.Why{Reason: reason, Text: text}}
}
