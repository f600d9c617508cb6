package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A marketOffers contains what can be bought to replace nodes. offers includes only markets that
// are believed to have one more node, and for which limits and quotas allow one. Their prices
// include the risk of concentration. Everything is as of the pool with the planned moves.
type marketOffers struct {
	*poolContext
	prices        *prices
	ledger        *ledger
	concentration *concentration
	headroom      placement.Headroom   // after the purchases of the round
	offers        [2][]placement.Offer // on-demand and Spot; set when known
	known         bool
	floors        [2]floor // lower bounds of offers; computed when first needed
}

// of returns the index of Spot (1) or on-demand (0) in arrays by capacity type.
func of(spot bool) int {
	if spot {
		return 1
	}
	return 0
}

// on returns the offers on Spot, or on-demand.
func (m *marketOffers) on(spot bool) []placement.Offer {
	if !m.known {
		m.offers = [2][]placement.Offer{m.offersOf(policy.OnDemand), m.offersOf(policy.Spot)}
		m.known = true
	}
	return m.offers[of(spot)]
}

// offersOf returns the best offers of a capacity type for which the pool's limits and the
// provider's quotas allow one more node. The last quarter of them fits at least half of what runs
// on a mean node of the pool, so that a few can replace one.
func (m *marketOffers) offersOf(capacity policy.CapacityType) []placement.Offer {
	s := m.s
	markets := make([]policy.MarketID, 0, len(m.prices.ranked))
	for _, r := range m.prices.ranked {
		id := r.market
		wanted := r.capacity == capacity && r.unit != 0 && !r.falling
		if wanted && !s.Markets[id].Outpriced() && m.ledger.depthLeft(id) > 0 && m.headroom.Has(id) {
			markets = append(markets, id)
		}
	}
	if len(markets) > offersMax {
		const free = offersMax * 3 / 4
		used := m.usedPerNode()
		rest := slices.DeleteFunc(slices.Clone(markets[free:]), func(id policy.MarketID) bool {
			return 2*s.Types[s.Markets[id].Type].Allocatable.CPU < used
		})
		markets = append(slices.Clip(markets[:free]), rest[:min(len(rest), offersMax-free)]...)
	}
	prices := make([]policy.Money, len(s.Markets))
	for _, id := range markets {
		prices[id] = m.price(id)
	}
	slices.SortFunc(markets, func(a, b policy.MarketID) int {
		return cmp.Or(cmp.Compare(prices[a], prices[b]),
			cmp.Compare(a, b))
	})
	offers := m.e.offersIn(s, m.pool.ID, markets)
	for i := range offers {
		offers[i].Price = prices[offers[i].Market]
	}
	return offers
}

// price returns the price of an offer in a market for the pool with the planned moves, including
// the risk of concentration.
func (m *marketOffers) price(id policy.MarketID) policy.Money {
	return policy.Dollars(m.prices.buying(id) * m.concentration.factor(id))
}

// usedPerNode returns the CPU that the pods of the pool request, divided by the number of its
// nodes, in thousandths of a core.
func (m *marketOffers) usedPerNode() int64 {
	nodes := int64(0)
	for _, n := range m.e.nodes.in(m.pool.ID) {
		nodes += int64(n)
	}
	for _, id := range m.e.nodes.odd {
		if m.e.nodes.all[id].pool == m.pool.ID {
			nodes++
		}
	}
	return m.prices.demand.total.CPU / max(nodes, 1)
}

// beside returns what limits and quotas leave after the first market of each of bins is bought, and
// reports whether they suffice for that.
func (m *marketOffers) beside(t *trial, bins []placement.Bin) (left placement.Headroom, suffices bool) {
	left, suffices = m.headroom.Clone(), true
	for i := range bins {
		first := t.offers[bins[i].Offers[0]].Market
		suffices = suffices && left.Has(first)
		left.Take([]policy.MarketID{first})
	}
	return left, suffices
}

// reprice sets the offers to their current prices in the pool, and removes offers without remaining
// capacity.
func (m *marketOffers) reprice() {
	for k := range m.offers {
		offers := slices.DeleteFunc(m.offers[k], func(o placement.Offer) bool {
			return m.ledger.depthLeft(o.Market) <= 0 || !m.headroom.Has(o.Market)
		})
		m.offers[k] = offers
		for i := range offers {
			offers[i].Price = m.price(offers[i].Market)
		}
		slices.SortStableFunc(offers, func(a, b placement.Offer) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Market, b.Market))
		})
	}
}

// paidFor returns the on-demand offers that commitments pay for, cheapest first.
func (m *marketOffers) paidFor() []placement.Offer {
	var free []placement.Offer
	if len(m.s.Commitments) == 0 {
		return free
	}
	for _, o := range m.on(false) {
		if m.e.cover.Covers(o.Market) && m.e.cover.Marginal(o.Market) == 0 {
			free = append(free, o)
		}
	}
	return free
}

// count adds n nodes of a market to the nodes of the pool; a negative n removes nodes.
func (m *marketOffers) count(id policy.MarketID, n int) {
	m.concentration.add(id, float64(n))
	m.e.cover.Add(id, n)
	if n > 0 {
		m.ledger.held[id] += n
	}
	m.floors = [2]floor{}
}

// A floor is the lowest price of resources in a list of offers: nodes for pods cost at least what
// their requests cost at any of these prices.
type floor struct {
	known bool
	cpu   [len(ratios)]float64 // of a thousandth of a core, by ratio in ratios
	gpu   float64
}

// cost returns a lower bound of the cost of need, in dollars per hour.
func (f *floor) cost(need *policy.Resources) float64 {
	least := float64(f.gpu * float64(need.GPU))
	for i, ratio := range ratios {
		size := float64(need.CPU) + float64(ratio*float64(need.Memory))/(1<<20)
		least = max(least, f.cpu[i]*size)
	}
	return least
}

// floorOf returns the floor of offers at the current costs of nodes.
func (m *marketOffers) floorOf(offers []placement.Offer) floor {
	list := m.e.nodeOffers[:0]
	for i := range offers {
		a := &offers[i].Allocatable
		list = addUndominated(list, nodeOffer{m.prices.buying(offers[i].Market), float64(a.CPU), float64(a.Memory),
			float64(a.GPU)})
	}
	m.e.nodeOffers = list
	f := floor{known: true, gpu: cheapest(list, func(x *nodeOffer) float64 { return x.gpu })}
	for i, ratio := range ratios {
		f.cpu[i] = cheapest(list, func(x *nodeOffer) float64 { return x.cpu + float64(ratio*x.memory)/(1<<20) })
	}
	return f
}

// least returns a lower bound of the cost of nodes for need on Spot, or on-demand.
func (m *marketOffers) least(spot bool, need *policy.Resources) policy.Money {
	f := &m.floors[of(spot)]
	if !f.known {
		*f = m.floorOf(m.on(spot))
	}
	return max(0, policy.Dollars(f.cost(need)*(1-floorPart))-splitMax)
}

// floorPart is far more than the relative rounding error of a floor. The cost of each node is also
// rounded, by less than a millionth of a dollar.
const floorPart = 1e-9
