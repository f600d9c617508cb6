package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A marketOffers holds what can be bought in place of nodes. sorts holds only markets that
// are believed to have a node more, and of which limits and quotas allow one. They are
// priced at what they cost with the risk of concentration. All hold as the pool stands with
// the moves that are planned.
type marketOffers struct {
	*poolContext
	prices        *prices
	ledger        *ledger
	concentration *concentration
	headroom      placement.Headroom // besides what the round buys
	sorts         [2]sort            // on demand, and spot
	floors        [2]floor           // of their offers, as far as they were asked for
}

// A sort is what the pool can buy on demand, or on spot.
type sort struct {
	offers []placement.Offer
	value  resourceValue
}

// of returns the place of spot and of everything else in marketOffers.sorts.
func of(spot bool) int {
	if spot {
		return 1
	}
	return 0
}

// evaluate finds what resources are worth that are bought.
func (m *marketOffers) evaluate() {
	for _, spot := range [...]bool{false, true} {
		m.sorts[of(spot)].value = m.prices.evaluate(spot)
	}
}

// read finds what can be bought, before any move is planned.
func (m *marketOffers) read() {
	m.sorts[of(false)].offers = m.offersOf(policy.OnDemand)
	m.sorts[of(true)].offers = m.offersOf(policy.Spot)
}

// valueFor returns the value to the pool of resources that are bought on spot, or not.
func (m *marketOffers) valueFor(spot bool) *resourceValue {
	return &m.sorts[of(spot)].value
}

// offersOf returns the best offers of a capacity type, of which the pool's limits
// and the provider's quotas allow one node more. A quarter of them at least has room for
// half of what runs on a node of the pool, so that a few take the place of one.
func (m *marketOffers) offersOf(capacity policy.CapacityType) []placement.Offer {
	s := m.s
	markets := make([]policy.MarketID, 0, len(m.prices.ranked))
	for _, r := range m.prices.ranked {
		if id := r.market; r.capacity == capacity && r.unit != 0 && !m.ledger.outpriced(id) && m.ledger.depthLeft(id) > 0 && m.headroom.Has(id) {
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
	slices.SortFunc(markets, func(a, b policy.MarketID) int { return cmp.Or(cmp.Compare(prices[a], prices[b]), cmp.Compare(a, b)) })
	offers := m.e.offersIn(s, m.pool.ID, markets)
	for i := range offers {
		offers[i].Price = prices[offers[i].Market]
	}
	return offers
}

// price returns what an offer in a market costs as the pool stands now: what it costs and the
// risk of concentration.
func (m *marketOffers) price(id policy.MarketID) policy.Money {
	return policy.Dollars(m.prices.buying(id) * m.concentration.factor(id))
}

// usedPerNode returns the CPU that pods of the pool ask for, by node of it.
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

// beside returns what limits and quotas leave when the first market of each of bins is
// bought in, and whether they suffice for that.
func (m *marketOffers) beside(t *trial, bins []placement.Bin) (left placement.Headroom, suffices bool) {
	left, suffices = m.headroom.Clone(), true
	for i := range bins {
		first := t.offers[bins[i].Offers[0]].Market
		suffices = suffices && left.Has(first)
		left.Take([]policy.MarketID{first})
	}
	return left, suffices
}

// reprice gives the offers the prices that they have as the pool stands now, and takes out
// those of which none is left.
func (m *marketOffers) reprice() {
	for k := range m.sorts {
		offers := slices.DeleteFunc(m.sorts[k].offers, func(o placement.Offer) bool {
			return m.ledger.depthLeft(o.Market) <= 0 || !m.headroom.Has(o.Market)
		})
		m.sorts[k].offers = offers
		for i := range offers {
			offers[i].Price = m.price(offers[i].Market)
		}
		slices.SortStableFunc(offers, func(a, b placement.Offer) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Market, b.Market))
		})
	}
}

// paidFor returns the offers on demand that were paid for in advance, cheapest
// first.
func (m *marketOffers) paidFor() []placement.Offer {
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

// count adds nodes of a market to what the pool holds.
func (m *marketOffers) count(id policy.MarketID, n int) {
	m.concentration.add(id, float64(n))
	m.e.cover.Add(id, n)
	if n > 0 {
		m.ledger.held[id] += n
	}
	m.floors = [2]floor{}
}
