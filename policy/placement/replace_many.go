package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// replaceManyMax is the most nodes that are replaced together, and replaceManyEvery
// the least time between two such replacements in a pool: each moves many pods, and
// demand may rise again within hours.
const (
	replaceManyMax   = 8
	replaceManyEvery = time.Hour
)

// A drain is given up after a quarter of an hour. Nodes are drained together only if
// disruption budgets let all of their pods go within DrainTime. StartupUsual is
// assumed where a pod does not state how long it takes to start.
const (
	DrainTime    = 10 * time.Minute
	StartupUsual = time.Minute
)

// A Floor is the least that one CPU, one byte of memory and one accelerator cost, in
// dollars an hour; 0 where none is sold. Nothing that holds pods costs less than
// what they ask for at these prices.
type Floor [3]float64

// FloorOf returns the floor of what can be bought.
func FloorOf(offers []Offer) (f Floor) {
	for i := range offers {
		o := &offers[i]
		for r, have := range [...]int64{o.Allocatable.CPU, o.Allocatable.Memory, o.Allocatable.GPU} {
			if have <= 0 {
				continue
			}
			if unit := o.Price.Float() / float64(have); f[r] == 0 || unit < f[r] {
				f[r] = unit
			}
		}
	}
	return f
}

// Cost returns the least that need costs, in dollars an hour; far more than any
// price where a part of it is not sold.
func (f Floor) Cost(need policy.Resources) float64 {
	least := 0.0
	for r, want := range [...]int64{need.CPU, need.Memory, need.GPU} {
		switch {
		case want == 0:
		case f[r] == 0:
			return 1e9
		default:
			least = max(least, float64(want)*f[r])
		}
	}
	return least
}

// A manyReplacement replaces several nodes of one capacity type together.
type manyReplacement struct {
	nodes  []policy.NodeID
	bought [][]policy.MarketID // for each new node its markets, cheapest first
	before policy.Money
	cost   policy.Money
}

// replaceMany plans to replace the nodes that waste most by fewer or cheaper ones
// of their capacity type, as many together as saves most, and reports whether there
// are any. The pods use the free capacity of other nodes first.
func (c *consolidator) replaceMany(m *rebalancer, nodes []policy.NodeID, left int) bool {
	var best manyReplacement
	for _, capacity := range [...]policy.CapacityType{policy.OnDemand, policy.Spot} {
		group := slices.DeleteFunc(slices.Clone(nodes), func(n policy.NodeID) bool {
			return c.s.Markets[c.s.Nodes[n].Market].Capacity != capacity
		})
		if len(group) < 2 {
			continue
		}
		m.sell(capacity, policy.Money(1<<62))
		c.wastefulFirst(m, group)
		for n := 2; n <= min(len(group), left, replaceManyMax); n++ {
			x, ok := c.tryReplacing(m, group[:n])
			if ok && x.before-x.cost > best.before-best.cost {
				best = x
			}
		}
	}
	if len(best.nodes) == 0 {
		return false
	}
	m.o.Text = "its pods and those of other nodes fit on cheaper nodes"
	m.launch(&c.s.Nodes[best.nodes[0]], best.bought)
	first := m.drains[len(m.drains)-1]
	m.drains[len(m.drains)-1].Why.Before, m.drains[len(m.drains)-1].Why.After = best.before, best.cost
	for _, id := range best.nodes[1:] {
		m.drain(&c.s.Nodes[id], first.After, policy.None)
		m.drains[len(m.drains)-1].Why.Before, m.drains[len(m.drains)-1].Why.After = best.before, best.cost
	}
	return true
}

// sell makes m buy in the pool's open markets of a capacity type that cost at most
// the given price.
func (m *rebalancer) sell(capacity policy.CapacityType, most policy.Money) {
	m.from, m.to, m.markets, m.offers = capacity, capacity, m.markets[:0], nil
	for _, id := range m.pool.Markets {
		if x := &m.s.Markets[id]; x.Capacity == capacity && open(m.s, id) && m.added(id) <= most {
			m.markets = append(m.markets, id)
		}
	}
	byPrice(m.cover, m.markets)
	m.markets = m.markets[:min(len(m.markets), offersMax)]
}

// wastefulFirst sorts nodes by their cost above the least cost of their requests in
// the markets of m.
func (c *consolidator) wastefulFirst(m *rebalancer, nodes []policy.NodeID) {
	offers := make([]Offer, len(m.markets))
	for i := range m.markets {
		offers[i] = m.offer(i)
	}
	WastefulFirst(c.s, m.sp, nodes, FloorOf(offers), m.saved)
}

// WastefulFirst sorts nodes by their price above the least cost of their requests, the
// greatest first, then by name.
func WastefulFirst(s *policy.Snapshot, sp *Space, nodes []policy.NodeID, floor Floor, price func(*policy.Node) policy.Money) {
	waste := make([]policy.Money, len(s.Nodes))
	for _, id := range nodes {
		waste[id] = price(&s.Nodes[id]) - policy.Dollars(min(floor.Cost(sp.Requested(id)), 1e6))
	}
	slices.SortFunc(nodes, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(waste[y], waste[x]), cmp.Compare(s.Nodes[x].Name, s.Nodes[y].Name))
	})
}

// tryReplacing returns how nodes would be replaced, and reports whether that saves
// enough. The space is left as it was.
func (c *consolidator) tryReplacing(m *rebalancer, nodes []policy.NodeID) (manyReplacement, bool) {
	x := manyReplacement{nodes: nodes}
	var pods []policy.Pod
	for _, id := range nodes {
		mine, _, ok := m.movable(&c.s.Nodes[id])
		if !ok {
			return x, false
		}
		x.before += m.saved(&c.s.Nodes[id])
		pods = append(pods, mine...)
	}
	if !c.endsInTime(pods) {
		return x, false
	}
	for i := range pods {
		m.sp.Unbind(&pods[i], pods[i].Node)
	}
	others := slices.DeleteFunc(slices.Clone(m.targets), func(n policy.NodeID) bool { return slices.Contains(nodes, n) })
	rest, at := BindFirstFit(m.sp, pods, others)
	if len(rest) > 0 {
		x.bought = m.replacements(rest, true)
	}
	UnbindAll(m.sp, at)
	for i := range pods {
		m.sp.Bind(&pods[i], pods[i].Node)
	}
	if len(x.bought) == 0 {
		return x, false // nodes that need no replacement are drained one by one
	}
	for _, markets := range x.bought {
		x.cost += m.added(markets[0])
	}
	return x, c.pays(m, &x) && c.keepsShare(m, &x) && m.enoughFreeAfter(&x)
}

// pays reports whether x saves at least the threshold of the on-demand price of its
// nodes: the cost of moving pods does not depend on the price of their nodes.
func (c *consolidator) pays(m *rebalancer, x *manyReplacement) bool {
	onDemand := policy.Money(0)
	for _, id := range x.nodes {
		n := &c.s.Nodes[id]
		onDemand += max(c.s.Markets[n.Market].OnDemand, m.saved(n))
	}
	return x.before-x.cost >= onDemand.Times(c.threshold())
}

// enoughFreeAfter reports whether the pool is within utilizationMax after x.
func (m *rebalancer) enoughFreeAfter(x *manyReplacement) bool {
	left := m.allocatable
	for _, id := range x.nodes {
		left = left.Minus(m.s.Nodes[id].Allocatable)
	}
	for _, markets := range x.bought {
		left = left.Plus(m.s.Types[m.s.Markets[markets[0]].Type].Allocatable)
	}
	return m.tight || m.enoughFree(left)
}

// threshold returns the least part of its price for which a node of the pool is
// replaced.
func (c *consolidator) threshold() float64 {
	if c.pool.SavingsThreshold > 0 {
		return c.pool.SavingsThreshold
	}
	return cheaperBy
}

// keepsShare reports whether the pool stays as near to its share as it is, or
// within half of the largest node that goes.
func (c *consolidator) keepsShare(m *rebalancer, x *manyReplacement) bool {
	after, largest := m.at, int64(0)
	spot := int64(0)
	for _, id := range x.nodes {
		size := m.size(&c.s.Nodes[id])
		after.Total, spot, largest = after.Total-size, spot-size, max(largest, size)
	}
	for _, markets := range x.bought {
		size := share.Units(c.s, c.pool.ID, markets[0])
		after.Total, spot = after.Total+size, spot+size
	}
	if c.s.Markets[c.s.Nodes[x.nodes[0]].Market].Capacity == policy.Spot {
		after.Spot += spot
	}
	return after.away(m.o.Share) <= max(m.at.away(m.o.Share), float64(largest)/2)
}

// endsInTime reports whether the disruption budgets let pods go before their drains
// would be undone.
func (c *consolidator) endsInTime(pods []policy.Pod) bool {
	need := make([]int32, len(c.s.PDBs))
	for i := range pods {
		t := &c.s.Templates[pods[i].Template]
		for _, id := range t.PDBs {
			need[id]++
			if !EvictsInTime(t, need[id], c.s.PDBs[id].Allowed) {
				return false
			}
		}
	}
	return true
}

// EvictsInTime reports whether the last of need pods of t can be evicted within
// DrainTime by a disruption budget that allows that many evictions at a time.
func EvictsInTime(t *policy.Template, need, allowed int32) bool {
	restart := t.Grace + max(t.Startup, StartupUsual)
	return allowed > 0 && time.Duration((need-1)/allowed)*restart <= DrainTime
}
