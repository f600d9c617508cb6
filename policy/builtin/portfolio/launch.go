package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// launch plans the i-th node of t, and adds it with its pods to the space.
func (m *rebalance) launch(t *trial, i int, why policy.Why) policy.Launch {
	s, b := m.s, &t.bins[i]
	l := policy.Launch{Pool: m.pool.ID, Replaces: t.node.ID, Why: why, Token: policy.Token(s.Now, m.pool.Name, t.node.Name, i)}
	first := &t.offers[b.Offers[0]]
	left, _ := m.offers.beside(t, t.bins[i+1:])
	for _, o := range b.Offers {
		x := &t.offers[o]
		if s.Markets[x.Market].Capacity != s.Markets[first.Market].Capacity {
			continue
		}
		if o == b.Offers[0] || left.Has(x.Market) && m.paysIn(t, b, x.Market) {
			l.Markets = append(l.Markets, x.Market)
		} else if l.Why.RunnerUp == "" {
			l.Why.RunnerUp = s.Markets[x.Market].Name
		}
	}
	m.offers.headroom.Take(l.Markets)
	id := m.places.addNode(first, l.Token)
	for _, k := range b.Pods {
		m.sp.Bind(&t.rest[k], id)
	}
	return l
}

// alike is how many times as much as the best a node may cost where no refusal is to be
// expected: on demand, and on spot until a market of the pool has refused. The provider
// may choose any market that is named, and of many leaves out those that it reclaims
// most, so that it may take the dearest.
const alike = 1.05

// paysIn reports whether at least half of what t saves remains if each node that it buys
// costs as much more as one of market id costs more than one of the first market of b, and
// b puts at risk what it would there. A refusal loses all of the saving, and the provider
// may choose any market that is named. What replaces a node under notice is bought wherever
// it is to be had.
func (m *rebalance) paysIn(t *trial, b *placement.Bin, id policy.MarketID) bool {
	first := t.offers[b.Offers[0]].Market
	more := m.prices.buying(id) - m.prices.buying(first)
	alikeOnly := m.s.Markets[first].Capacity != policy.Spot || len(m.memory.Depths) == 0
	switch {
	case t.node.Recommended != 0 && id == t.node.Market:
		return false // it is the market that is advised against
	case alikeOnly && more > m.prices.buying(first)*(alike-1):
		return false
	case t.before == 0:
		return true
	case alikeOnly:
		more = 0
	}
	return m.payoff.pays(t.with(float64(2*more*float64(len(t.bins))) + m.riskThere(t, b, id)))
}

// riskThere returns what is put at risk more if b stands in market id.
func (m *rebalance) riskThere(t *trial, b *placement.Bin, id policy.MarketID) float64 {
	if t.began == len(m.e.moved) {
		return 0 // nothing has moved: the pods of nodes under notice
	}
	there := make([]podMove, 0, len(b.Pods))
	for _, k := range b.Pods {
		there = append(there, t.podMove(m.s, t.index[k], t.to[t.index[k]]))
	}
	return m.risk.instead(there, id)
}
