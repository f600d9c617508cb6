package portfolio

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/share"
)

// A poolBalance is how far the pool is from its share. at counts what the pool has with
// the moves that are planned.
type poolBalance struct {
	*poolContext
	demand *demand
	share  float64
	at     placement.Balance
}

// spotFor reports whether a node in place of n is to be spot: whether the pool is
// then nearer to its share, and some of its pods may go there.
func (b *poolBalance) spotFor(n *policy.Node) bool {
	size := b.size(n)
	spot, total := float64(b.at.Spot), float64(b.at.Total)
	if b.isSpot(n) {
		spot -= size
	}
	if spot+size/2 > float64(b.share*total) || b.share <= 0 {
		return false
	}
	if b.isSpot(n) {
		return true
	}
	_, fixed := b.demand.fixedOn(n.ID)
	return !fixed && b.e.spread.mayLeave(n.ID, &b.e.pods)
}

func (b *poolBalance) isSpot(n *policy.Node) bool {
	return b.s.Markets[n.Market].Capacity == policy.Spot
}

func (b *poolBalance) size(n *policy.Node) float64 {
	return float64(share.Units(b.s, b.pool.ID, n.Market))
}

// keepsShare reports whether the pool is not further from its share with t by
// more than half of its node.
func (b *poolBalance) keepsShare(t *trial) bool {
	after := b.after(t)
	return b.away(after) <= max(b.away(b.at), b.size(t.node)/2)
}

// away returns the distance of a pool that stands at x from its share, in units.
func (b *poolBalance) away(x placement.Balance) float64 {
	if b.share >= 1 {
		return 0 // it is on its way there, by whatever moves pay
	}
	return math.Abs(float64(b.share*float64(x.Total)) - float64(x.Spot))
}

// after returns where the pool stands after t.
func (b *poolBalance) after(t *trial) placement.Balance {
	x := b.at
	x.Total -= int64(b.size(t.node))
	if b.isSpot(t.node) {
		x.Spot -= int64(b.size(t.node))
	}
	for i := range t.bins {
		id := t.offers[t.bins[i].Offers[0]].Market
		size := share.Units(b.s, b.pool.ID, id)
		x.Total += size
		if b.s.Markets[id].Capacity == policy.Spot {
			x.Spot += size
		}
	}
	return x
}
