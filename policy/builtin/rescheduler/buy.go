package rescheduler

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// nodesMax is the most nodes that are bought in place of one.
const nodesMax = 4

// cheaperBy is the least part of a node's price that must be saved for spot to be
// bought in its place, where the pool states no threshold: both are paid while
// the new one starts, and every pod is moved.
const cheaperBy = 0.15

// A market is what can be bought for a pool.
type market struct {
	made   bool
	offers []placement.Offer // cheapest first
}

// nothingFits says that no spot can be bought that would hold the pods of a node.
const nothingFits = "its pods do not all fit on existing Spot nodes, nor on any that can be bought"

// buys returns why nothing can be bought in place of n, whatever its pods ask for. It has
// no reason where something can.
func (b *board) buys(n *policy.Node) policy.Why {
	switch {
	case !b.e.cfg.ScaleUp || n.Market == policy.None || !b.s.Markets[n.Market].Offered:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on existing Spot nodes"}
	case len(b.offers(n.Pool)) == 0:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: nothingFits}
	}
	return policy.Why{}
}

// replace plans to buy spot nodes for pods, which have no place, and to drain n
// once they are there. What else ran on n is where it was put.
func (b *board) replace(n *policy.Node, pods []*policy.Pod) policy.Why {
	if hold := b.buys(n); hold.Reason != "" {
		return hold
	}
	before := b.cover.Saving(n.Market)
	most := before - before.Times(threshold(&b.s.Pools[n.Pool]))
	bought, cost := b.nodesFor(n.Pool, pods, most)
	switch {
	case len(bought) == 0 && cost > 0:
		return policy.Why{
			Reason: policy.ReasonNoEdge, Text: "its pods do not all fit on existing Spot nodes, and new ones would not save enough",
			Before: before, After: cost,
		}
	case len(bought) == 0:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: nothingFits}
	}
	first := make([]policy.MarketID, len(bought))
	for i := range bought {
		first[i] = bought[i][0]
	}
	after, ok := b.without(n, first...)
	if !ok {
		return policy.Why{Reason: policy.ReasonConfigured, Text: "the pool would exceed its target Spot share"}
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
	packing := placement.Pack(b.sp, wanted, offers)
	bins, total := packing.Bins, packing.Total
	if len(bins) == 0 || len(packing.Unplaced) > 0 || len(bins) > nodesMax {
		return nil, 0
	}
	if total > most {
		return nil, total
	}
	bought, ok := replan.Markets(b.s, b.headrooms[pool], offers, bins, (most-total)/policy.Money(len(bins)))
	if !ok {
		return nil, 0
	}
	return bought, total
}

// offers returns what spot can be bought for pool, cheapest first.
func (b *board) offers(pool policy.PoolID) []placement.Offer {
	m := &b.pools[pool].market
	if !m.made {
		m.made = true
		m.offers = replan.Offers(b.s, pool, policy.Spot, func(x *policy.Market) bool { return replan.Trusted(x) && b.headrooms[pool].Has(x.ID) })
	}
	return m.offers
}

// order plans the nodes of bought and the drain of n that waits for them. Where
// only the provisioner buys, the drain makes it.
func (b *board) order(n *policy.Node, bought [][]policy.MarketID, before, cost policy.Money) {
	p := &b.s.Pools[n.Pool]
	why := policy.Why{
		Reason: policy.ReasonCheaper, Text: fmt.Sprintf("its pods fit on %s that would cost less", figures.Count(len(bought), "new Spot node")),
		Before: before, After: cost,
	}
	drain := policy.Drain{Node: n.ID, Why: why}
	for i, markets := range bought {
		b.headrooms[p.ID].Take(markets)
		if !p.Levers.Launch && p.Provisioner != policy.ProvisionerNone {
			continue
		}
		l := replan.Launch(b.s, p, n.Name, i, markets, n.ID, why)
		b.launches = append(b.launches, l)
		drain.After = append(drain.After, l.Token)
	}
	b.drains = append(b.drains, drain)
}
