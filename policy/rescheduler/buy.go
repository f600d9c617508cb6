package rescheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// offersMax is how many of the cheapest spot markets of a pool are looked at,
// marketsMax how many one launch names, and nodesMax how many nodes are bought in
// place of one.
const (
	offersMax  = 96
	marketsMax = 15
	nodesMax   = 4
)

// cheaperBy is the least part of a node's price that must be saved for spot to be
// bought in its place, where the pool states no threshold: both are paid while
// the new one starts, and every pod is moved.
const cheaperBy = 0.15

// trustedAt is the least confidence of a forecast for which its market is bought:
// the guardrails would hold the launch, and the round would be lost on it.
const trustedAt = 0.5

// A market is what can be bought for a pool.
type market struct {
	made   bool
	offers []place.Offer // cheapest first
}

// replace plans to buy spot nodes for pods, which have no place, and to drain n
// once they are there. What else ran on n is where it was put.
func (b *board) replace(n *policy.Node, pods []*policy.Pod) policy.Why {
	full := policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on the spot nodes that are there"}
	if !b.e.cfg.ScaleUp || n.Market == policy.None || !b.s.Markets[n.Market].Offered {
		return full
	}
	before := b.cover.Saving(n.Market)
	most := before - before.Times(threshold(&b.s.Pools[n.Pool]))
	bought, cost := b.nodesFor(n.Pool, pods, most)
	switch {
	case len(bought) == 0 && cost > 0:
		return policy.Why{
			Reason: policy.ReasonNoEdge, Text: "its pods do not all fit on the spot nodes that are there, and new ones would not save enough",
			Before: before, After: cost,
		}
	case len(bought) == 0:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on the spot nodes that are there, nor on any that can be bought"}
	}
	first := make([]policy.MarketID, len(bought))
	for i := range bought {
		first[i] = bought[i][0]
	}
	after, ok := b.without(n, first...)
	if !ok {
		return policy.Why{Reason: policy.ReasonConfigured, Text: "the pool would have more spot than it is to have"}
	}
	b.pools[n.Pool].at = after
	for _, p := range pods {
		b.put(p, n.ID, true) // until the new nodes are there they count where they are
	}
	b.order(n, bought, before, cost)
	return policy.Why{}
}

// threshold returns the least relative saving for which nodes of p are replaced.
func threshold(p *policy.Pool) float64 {
	if p.SavingsThreshold > 0 {
		return min(p.SavingsThreshold, 1)
	}
	return cheaperBy
}

// nodesFor returns, for each node to be bought for pods, the markets in which it
// may be, cheapest first, and what the cheapest cost together. Where they cost
// more than most it returns the cost alone, and nothing where none will do.
func (b *board) nodesFor(pool policy.PoolID, pods []*policy.Pod, most policy.Money) ([][]policy.MarketID, policy.Money) {
	offers := b.offers(pool)
	wanted := make([]policy.Pod, 0, len(pods))
	for _, p := range pods {
		wanted = append(wanted, *p)
	}
	bins, unplaced, total := b.sp.Pack(wanted, offers)
	if len(bins) == 0 || len(unplaced) > 0 || len(bins) > nodesMax {
		return nil, 0
	}
	if total > most {
		return nil, total
	}
	// The provider chooses among the markets of a launch, so each node may be
	// dearer than the cheapest by its part of what is left to the limit.
	spare := (most - total) / policy.Money(len(bins))
	bought := make([][]policy.MarketID, len(bins))
	left := b.rooms[pool].Clone()
	for i := range bins {
		for _, o := range bins[i].Offers {
			x := &offers[o]
			if len(bought[i]) < marketsMax && x.Price <= offers[bins[i].Offers[0]].Price+spare && left.Has(x.Market) {
				bought[i] = append(bought[i], x.Market)
			}
		}
		if len(bought[i]) == 0 {
			return nil, 0 // limits or quotas leave room for a part of them only
		}
		if b.s.Markets[bought[i][0]].Auction() {
			bought[i] = bought[i][:1] // a bid is for one class of machine
		}
		left.Take(bought[i])
	}
	return bought, total
}

// offers returns what spot can be bought for pool, cheapest first.
func (b *board) offers(pool policy.PoolID) []place.Offer {
	m := &b.pools[pool].market
	if !m.made {
		m.made = true
		m.offers = slices.DeleteFunc(place.Offers(b.s, pool, policy.Spot), func(o place.Offer) bool {
			f := &b.s.Markets[o.Market].Forecast
			return f.Source != policy.SourceNone && f.Confidence < trustedAt || !b.rooms[pool].Has(o.Market)
		})
		slices.SortStableFunc(m.offers, func(x, y place.Offer) int {
			return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.Market, y.Market))
		})
		m.offers = m.offers[:min(len(m.offers), offersMax)]
	}
	return m.offers
}

// order plans the nodes of bought and the drain of n that waits for them. Where
// only the provisioner buys, the drain makes it.
func (b *board) order(n *policy.Node, bought [][]policy.MarketID, before, cost policy.Money) {
	p := &b.s.Pools[n.Pool]
	why := policy.Why{
		Reason: policy.ReasonCheaper, Text: fmt.Sprintf("its pods fit on %s that would cost less", nodes(len(bought))),
		Before: before, After: cost,
	}
	drain := policy.Drain{Node: n.ID, Why: why}
	for i, markets := range bought {
		b.rooms[p.ID].Take(markets)
		if !p.Levers.Launch && p.Provisioner != policy.ProvisionerNone {
			continue
		}
		x := &b.s.Markets[markets[0]]
		l := policy.Launch{
			Token: policy.Token(b.s.Now, p.Name, n.Name, i), Pool: p.ID, Markets: markets, Replaces: n.ID, Why: why,
		}
		if x.Auction() {
			l.Bid = policy.Bid(max(x.OnDemand, x.Charge())) // charged is the market's price: the bid is what the node is worth
		}
		if len(markets) > 1 {
			l.Why.RunnerUp = b.s.Markets[markets[1]].Name
		}
		b.launches = append(b.launches, l)
		drain.After = append(drain.After, l.Token)
	}
	b.drains = append(b.drains, drain)
}

func nodes(n int) string {
	if n == 1 {
		return "a new spot node"
	}
	return fmt.Sprintf("%d new spot nodes", n)
}
