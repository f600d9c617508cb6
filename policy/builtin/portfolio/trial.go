package portfolio

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/share"
)

// A trial is the attempt to empty one node.
type trial struct {
	node   *policy.Node
	pods   []policy.Pod
	at     []policy.NodeID // where each of pods goes; None for those in bins
	rest   []policy.Pod    // of pods those that need new nodes, at index in pods
	index  []int
	bins   []placement.Bin
	to     []policy.MarketID // by pod, where it goes
	moving float64           // what it costs in dollars that pods are missed meanwhile
	began  int               // how many pods had a new place on paper before

	// before and after are what the nodes cost an hour, and risk by how much more is
	// expected to be lost with markets and zones.
	before, after, risk policy.Money
}

// try plans to empty n if that pays.
func (m *rebalance) try(n *policy.Node) {
	t := trial{node: n, before: policy.Dollars(m.prices.keeping(n))}
	switch {
	case m.cannotPay(&t):
	case !m.place(&t):
	case m.settle(&t):
		m.carryOut(&t)
	default:
		m.unplace(&t)
	}
}

// place takes the pods off the node and lets those stand elsewhere that have a place,
// and says what is offered to the others. It reports false, and changes nothing, when
// pods are to come to the node.
func (m *rebalance) place(t *trial) bool {
	n := t.node
	if !m.unload(t) {
		return false
	}
	t.moving, t.began = m.moving(t.pods), len(m.e.moved)
	for i := range t.pods {
		to := m.target(&t.pods[i], n.ID)
		t.at = append(t.at, to)
		if to < 0 {
			t.rest, t.index = append(t.rest, t.pods[i]), append(t.index, i)
			continue
		}
		m.sp.Bind(&t.pods[i], to)
		m.e.move(m.podMove(t, i, m.marketOf(to)))
	}
	m.offers = m.sorts[of(m.spotFor(n))].offers
	if free := m.paidFor(); m.spotFor(n) && len(free) > 0 {
		m.offers = append(free, m.offers...)
	}
	return true
}

// unplace takes back what place did.
func (m *rebalance) unplace(t *trial) {
	m.e.undo(t.began)
	for i := range t.pods {
		if t.at[i] >= 0 {
			m.sp.Unbind(&t.pods[i], t.at[i])
		}
		m.sp.Bind(&t.pods[i], t.node.ID)
	}
}

// podMove returns the move of the i-th pod of t to market to.
func (m *rebalance) podMove(t *trial, i int, to policy.MarketID) podMove {
	return podMove{m.s.Templates[t.pods[i].Template].Workload, t.node.ID, to}
}

// groupsLeft is how many markets or zones are left out, one after the other, while
// nodes are sought where less is at risk.
const groupsLeft = 4

// settle finds the best nodes to buy with which t pays, what is put at risk counted in,
// and moves the pods there on paper. It reports whether there are any.
func (m *rebalance) settle(t *trial) bool {
	if m.hopeless(t) {
		return false
	}
	placed := len(m.e.moved)
	for range groupsLeft {
		if !m.buy(t) || !m.keepsShare(t) || !m.pays(t) {
			return false
		}
		for _, i := range t.index {
			m.e.move(m.podMove(t, i, t.to[i]))
		}
		added := m.risk.since(t.began)
		if t.risk = policy.Dollars(added.sum); m.pays(t) {
			return true
		}
		m.e.undo(placed)
		if added.workload < 0 {
			return false
		}
		m.refusals.add(t.node.ID, added.workload, added.group)
		m.offers = slices.DeleteFunc(slices.Clone(m.offers), func(o placement.Offer) bool { return inGroup(m.s, added.group, o.Market) })
	}
	return false
}

// paidFor returns the offers on demand that were paid for in advance, cheapest
// first.
func (m *rebalance) paidFor() []placement.Offer {
	var free []placement.Offer
	if len(m.s.Commitments) == 0 {
		return free
	}
	for _, o := range m.sorts[of(false)].offers {
		if m.e.cover.Covers(o.Market) && m.e.cover.Marginal(o.Market) == 0 {
			free = append(free, o)
		}
	}
	return free
}

// unload takes the pods off the node, largest first. It reports false when pods
// of other nodes are to come here.
func (m *rebalance) unload(t *trial) bool {
	s := m.s
	for _, id := range m.space().Pods(t.node.ID) {
		p := &s.Pods[id]
		if s.Templates[p.Template].DaemonSet || p.Phase == policy.PodTerminating {
			continue
		}
		if p.Node != t.node.ID {
			return false
		}
		t.pods = append(t.pods, *p)
	}
	largestFirst(s, t.pods)
	for i := range t.pods {
		m.sp.Unbind(&t.pods[i], t.node.ID)
	}
	return true
}

func largestFirst(s *policy.Snapshot, pods []policy.Pod) {
	slices.SortFunc(pods, func(a, b policy.Pod) int {
		x, y := &s.Templates[a.Template].Requests, &s.Templates[b.Template].Requests
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(a.ID, b.ID))
	})
}

// buy finds the nodes to be bought for what has no place.
func (m *rebalance) buy(t *trial) bool {
	t.to, t.after, t.risk = t.to[:0], 0, 0
	var unplaced []int
	t.bins, unplaced, _ = placement.Pack(m.sp, t.rest, m.offers)
	for i := range t.at {
		to := policy.MarketID(policy.None)
		if t.at[i] >= 0 {
			to = m.marketOf(t.at[i])
		}
		t.to = append(t.to, to)
	}
	for i := range t.bins {
		for _, k := range t.bins[i].Pods {
			t.to[t.index[k]] = m.offers[t.bins[i].Offers[0]].Market
		}
		t.after += policy.Dollars(m.prices.buying(m.offers[t.bins[i].Offers[0]].Market))
	}
	return len(unplaced) == 0 && len(t.bins) <= splitMax
}

// keepsShare reports whether the pool is not further from its share with t by
// more than half of its node.
func (m *rebalance) keepsShare(t *trial) bool {
	after := m.balanceAfter(t)
	return m.away(after) <= max(m.away(m.at), m.size(t.node)/2)
}

// away returns the distance of a pool that stands at x from its share, in units.
func (m *rebalance) away(x placement.Balance) float64 {
	if m.choice.share >= 1 {
		return 0 // it is on its way there, by whatever moves pay
	}
	return math.Abs(float64(m.choice.share*float64(x.Total)) - float64(x.Spot))
}

// balanceAfter returns where the pool stands after t.
func (m *rebalance) balanceAfter(t *trial) placement.Balance {
	x := m.at
	x.Total -= int64(m.size(t.node))
	if m.isSpot(t.node) {
		x.Spot -= int64(m.size(t.node))
	}
	for i := range t.bins {
		id := m.offers[t.bins[i].Offers[0]].Market
		size := share.Units(m.s, m.pool.ID, id)
		x.Total += size
		if m.s.Markets[id].Capacity == policy.Spot {
			x.Spot += size
		}
	}
	return x
}

// pays reports whether the saving of t is worth its disturbance.
func (m *rebalance) pays(t *trial) bool {
	edge := m.e.cfg.Edge
	if m.pool.SavingsThreshold > 0 {
		edge = m.pool.SavingsThreshold
	}
	saving := t.before - t.after - t.risk
	if saving < t.before.Times(edge) && m.recommended(t.node, t.pods) == 0 {
		return false
	}
	cost := t.moving + t.after.Float()*overlapHours + m.jobs.redone(t.pods)
	return m.savings(t) > cost
}

// savings returns what t saves while the saving lasts, in dollars. What the
// node's market asks above the best one is saved for long, the rest until the
// demand is another.
func (m *rebalance) savings(t *trial) float64 {
	return m.lasts(t.node, (t.before-t.after-t.risk).Float()) + m.recommended(t.node, t.pods)
}

// lasts returns what a saving of so many dollars an hour at node n comes to while
// it lasts.
func (m *rebalance) lasts(n *policy.Node, saving float64) float64 {
	if saving < 0 {
		return float64(saving * m.e.cfg.Holding.Hours())
	}
	lasting := m.e.cfg.Lasting
	if !m.isSpot(n) && m.spotFor(n) {
		lasting = settled
	}
	premium := min(max(0, m.prices.keeping(n)-m.valueFor(n).of(n.Allocatable.Minus(m.demand.daemons))), saving)
	return float64(premium*lasting.Hours()) + float64((saving-premium)*m.e.cfg.Holding.Hours())
}

// settled is how long it lasts that spot costs less than on demand.
const settled = 72 * time.Hour

// overlapHours is how long a node and its replacement are paid for both.
const overlapHours = 0.05

// target returns the node other than from that takes p: the fullest of those where it
// adds nothing to what the loss of one group would take, else of all.
func (m *rebalance) target(p *policy.Pod, from policy.NodeID) policy.NodeID {
	best, free, adds := policy.NodeID(policy.None), int64(0), false
	t := &m.s.Templates[p.Template]
	for _, id := range m.roomy {
		f := m.sp.Free(id).CPU
		if f < t.Requests.CPU || best >= 0 && !adds && f >= free || id == from || m.sp.Check(p, id) != placement.OK {
			continue // the first two cost little, and leave few to be checked
		}
		more := from >= 0 && m.e.exposure.ChangeOf(t.Workload, 1, from, m.marketOf(id)) > 0
		if best < 0 || adds && !more || adds == more && f < free {
			best, free, adds = id, f, more
		}
	}
	return best
}

// marketOf returns the market of a node that is there, or that the round buys.
func (m *rebalance) marketOf(id policy.NodeID) policy.MarketID {
	if k := int(id) - len(m.s.Nodes); k >= 0 {
		return m.bought[k]
	}
	return m.s.Nodes[id].Market
}
