package rescheduler

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/replan"
)

// nodesMax is the maximum number of nodes that are bought to replace one.
const nodesMax = 4

// nothingFits is the text for a node whose pods fit on no Spot nodes that can be bought.
const nothingFits = "its pods do not all fit on existing Spot nodes, nor on any that can be bought"

// buys returns the reason why nothing can be bought to replace n, whatever its pods request. The
// reason is empty if something can.
func (b *board) buys(n *policy.Node) policy.Why {
	switch {
	case !b.e.cfg.ScaleUp || n.Market == policy.None || !b.s.Markets[n.Market].Offered:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on existing Spot nodes"}
	case len(b.pools[n.Pool].offers().Offers()) == 0:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: nothingFits}
	}
	return policy.Why{}
}

// offers returns the Spot nodes that can be bought for the pool.
func (p *pool) offers() *replan.Offering {
	if p.offering == nil {
		p.offering = replan.NewOffering(p.S, p.Pool.ID, policy.Spot,
			func(m *policy.Market) bool { return replan.Trusted(m) && p.Headroom.Has(m.ID) })
	}
	return p.offering
}

// replace plans to buy Spot nodes for pods, which must not be bound, and to drain n once they are
// ready. The other pods of n stay where they were placed.
func (b *board) replace(n *policy.Node, pods []policy.Pod) policy.Why {
	if hold := b.buys(n); hold.Reason != "" {
		return hold
	}
	p := &b.pools[n.Pool]
	before := b.cover.Saving(n.Market)
	buy, ok := p.offers().Buy(&p.Moves, pods, nodesMax, before-before.Times(replan.Threshold(p.Pool)))
	switch {
	case !ok && buy.Cost > 0:
		return policy.Why{
			Reason: policy.ReasonNoEdge, Text: "its pods do not all fit on existing Spot nodes, and new ones would not save enough",
			Before: before, After: buy.Cost,
		}
	case !ok:
		return policy.Why{Reason: policy.ReasonInfeasible, Text: nothingFits}
	case !p.keepsShare(n.ID, buy.Bought):
		return policy.Why{Reason: policy.ReasonConfigured, Text: "the pool would exceed its target Spot share"}
	}
	p.SetDown(pods) // until the new nodes exist, the pods count on their present nodes
	p.Order(n.Name, []policy.NodeID{n.ID}, buy.Bought, policy.Why{
		Reason: policy.ReasonCheaper, Text: fmt.Sprintf("its pods fit on %s that would cost less",
			figures.Count(len(buy.Bought), "new Spot node")),
		Before: before, After: buy.Cost,
	})
	return policy.Why{}
}
