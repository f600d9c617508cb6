package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// A ratio is how much of the nodes that are kept is spot, where an exact share is
// to be held, and what there is to choose from.
type ratio struct {
	s                 *policy.Snapshot
	pool              *policy.Pool
	spot, total       int64  // units of the share that are kept
	remaining         [2]int // nodes to choose from, on demand and on spot
	size              [2]int64
	wanted, unlimited bool
}

// ratioBeside returns the ratio of the nodes of the pool that stay whatever goes:
// those that are not in runs.
func (o *deletionOrder) ratioBeside(runs []run) *ratio {
	x := &ratio{s: o.s, pool: o.pool, unlimited: !o.pool.Share.Exact}
	if x.unlimited {
		return x
	}
	h := share.Of(o.s, o.pool.ID)
	x.spot, x.total = h.Spot, h.Spot+h.Fixed
	for i := range runs {
		spot, size := x.of(runs[i].market)
		n := len(runs[i].nodes)
		size *= int64(n)
		x.remaining[spot] += n
		x.size[spot] += size
		x.total -= size
		x.spot -= size * int64(spot)
	}
	x.next()
	return x
}

// of returns 1 for a market of spot, else 0, and the units of the share of a node.
func (x *ratio) of(m policy.MarketID) (spot int, size int64) {
	if x.s.Markets[m].Capacity == policy.Spot {
		spot = 1
	}
	return spot, share.Units(x.s, x.pool.ID, m)
}

// next finds out of which capacity type the next node is to be: of that which
// brings the share nearer, a node of mean size, as long as there is one.
func (x *ratio) next() {
	x.wanted = x.remaining[1] > 0
	if x.remaining[0] > 0 && x.remaining[1] > 0 {
		size := float64(x.size[1]) / float64(x.remaining[1])
		x.wanted = float64(x.spot)+size/2 <= float64(x.pool.Share.Target*(float64(x.total)+size))
	}
}

// wants reports whether a node of market m may come next.
func (x *ratio) wants(m policy.MarketID) bool {
	return x.unlimited || (x.s.Markets[m].Capacity == policy.Spot) == x.wanted
}

// add counts a node of market m as kept.
func (x *ratio) add(m policy.MarketID) {
	if x.unlimited {
		return
	}
	spot, size := x.of(m)
	x.spot += size * int64(spot)
	x.total += size
	x.remaining[spot]--
	x.size[spot] -= size
	x.next()
}
