package replan

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// triedAtOnce is the number of markets that are tried together for a replacement, and triedMax the
// maximum number of markets that are tried, cheapest first. splitMax is the maximum number of nodes
// that replace one.
const (
	triedAtOnce = 32
	triedMax    = 256
	splitMax    = 4
)

// sell sets the markets of m to the open ones among markets that satisfy may.
func (m *rebalance) sell(markets []policy.MarketID, may func(policy.MarketID) bool) {
	m.markets, m.offers = m.markets[:0], nil
	for _, id := range markets {
		if placement.Open(m.S, id) && may(id) {
			m.markets = append(m.markets, id)
		}
	}
	slices.SortFunc(m.markets, func(a, b policy.MarketID) int {
		return cmp.Or(cmp.Compare(m.Cover.Marginal(a), m.Cover.Marginal(b)), cmp.Compare(a, b))
	})
	m.markets = m.markets[:min(len(m.markets), triedMax)]
}

// offer returns the offer of the i-th market. It is built once.
func (m *rebalance) offer(i int) placement.Offer {
	if m.offers == nil {
		m.offers = make([]placement.Offer, len(m.markets))
	}
	if m.offers[i].Labels == nil {
		m.offers[i] = placement.OfferOf(m.S, m.Cover, m.Pool.ID, m.markets[i])
	}
	return m.offers[i]
}

// replacements returns, for each node to buy for pods, the acceptable markets, cheapest first. It
// is one node. In a pool without a provisioner it can also be several nodes if they cost less
// together, for example in auctions in which small machines are far cheaper than large ones.
func (m *rebalance) replacements(pods []policy.Pod, launches bool) [][]policy.MarketID {
	single, price := m.holding(pods, launches)
	if m.Pool.SelfProvisioned() {
		offers := make([]placement.Offer, 0, triedAtOnce)
		for i := 0; i < len(m.markets) && len(offers) < triedAtOnce; i++ {
			if m.Headroom.Has(m.markets[i]) {
				offers = append(offers, m.offer(i))
			}
		}
		packing := placement.Pack(m.Space, pods, offers)
		several := len(packing.Bins) > 0 && len(packing.Bins) <= splitMax && len(packing.Unplaced) == 0
		if several && (len(single) == 0 || packing.Total < price) {
			all, _ := Markets(m.S, m.Headroom, offers, packing.Bins, 1<<61)
			return all // nil if limits or quotas do not allow all of them
		}
	}
	if len(single) == 0 {
		return nil
	}
	return [][]policy.MarketID{single}
}

// holding returns the markets in which one node can run all of pods, cheapest first, and the price
// of the first. If oneNode is false and several nodes are needed, the markets are those of the
// first node.
func (m *rebalance) holding(pods []policy.Pod, oneNode bool) (markets []policy.MarketID, price policy.Money) {
	var need policy.Resources
	for i := range pods {
		need = need.Plus(m.S.Templates[pods[i].Template].Requests)
	}
	for next := 0; next < len(m.markets); {
		offers := m.tried[:0]
		for ; next < len(m.markets) && len(offers) < triedAtOnce; next++ {
			id := m.markets[next]
			fits := !oneNode || need.Within(m.S.Types[m.S.Markets[id].Type].Allocatable)
			if fits && m.Headroom.Has(id) {
				offers = append(offers, m.offer(next))
			}
		}
		m.tried = offers
		if len(offers) == 0 {
			continue
		}
		x := placement.Provision(m.Space, pods, offers)
		if len(x.Unplaced) > 0 || len(x.Bins) == 0 || oneNode && len(x.Bins) > 1 {
			continue
		}
		for _, i := range x.Bins[0].Offers[:min(len(x.Bins[0].Offers), placement.MarketsMax)] {
			markets = append(markets, offers[i].Market)
		}
		return markets, offers[x.Bins[0].Offers[0]].Price
	}
	return nil, 0
}
