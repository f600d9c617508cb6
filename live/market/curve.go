package market

import (
	"slices"
	"sort"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The grid on which snapshots hold the history of prices.
const (
	gridStep    = policy.Time(10 * time.Minute / time.Millisecond)
	historySize = 24

	// unknownPrice is used in the grid for an instant at which nothing is known. It never leaves
	// this package.
	unknownPrice policy.Money = -2
)

// A point is a price that was reported of an instant.
type point struct {
	At    policy.Time  `json:"t"`
	Price policy.Money `json:"p"`
}

// A curve is the course of a price over the last hours. Points that repeat the price before them
// are kept: a point that is reported late may be between them.
type curve struct {
	points []point // ascending by At

	// always says that the first price held before it was first reported, as that of a
	// price list does.
	always bool

	// grid holds the prices at the instants of the grid up to end. What was handed
	// out of it is never written again.
	grid []policy.Money
	end  policy.Time
}

// put takes in that a price came into force at an instant, and reports whether
// that was new. Of two prices at one instant the greater stays, whichever was reported
// first.
func (c *curve) put(at policy.Time, price policy.Money) bool {
	i := sort.Search(len(c.points), func(i int) bool { return c.points[i].At >= at })
	switch {
	case i < len(c.points) && c.points[i].At == at:
		if c.points[i].Price >= price {
			return false
		}
		c.points[i].Price = price
	case i == 0 && len(c.points) > 0 && c.points[0].At <= c.end-(historySize+1)*gridStep:
		return false // before all that is ever looked at
	default:
		c.points = slices.Insert(c.points, i, point{at, price})
	}
	if at <= c.end {
		c.grid = nil
	}
	return true
}

// at returns the price in force at an instant and since when it was, and whether
// one is known.
func (c *curve) at(t policy.Time) (price policy.Money, since policy.Time, ok bool) {
	i := len(c.points) - 1
	for i >= 0 && c.points[i].At > t {
		i--
	}
	if i < 0 {
		if !c.always || len(c.points) == 0 {
			return 0, 0, false
		}
		return c.points[0].Price, 0, true
	}
	price = c.points[i].Price
	for i > 0 && c.points[i-1].Price == price {
		i--
	}
	return price, c.points[i].At, true
}

// lastOffered returns the newest price up to an instant at which the market sold
// something, 0 if there was none.
func (c *curve) lastOffered(t policy.Time) policy.Money {
	for i := len(c.points) - 1; i >= 0; i-- {
		if p := c.points[i]; p.At <= t && p.Price > 0 {
			return p.Price
		}
	}
	return 0
}

// history returns the prices at the last instants of the grid up to now, the
// oldest first. Those of which nothing is known are left out at its begin.
func (c *curve) history(now policy.Time) []policy.Money {
	to := now - now%gridStep
	if c.grid == nil || to < c.end || to-c.end >= historySize*gridStep {
		c.grid, c.end = make([]policy.Money, 0, 2*historySize), to-historySize*gridStep
	}
	for c.end < to {
		if len(c.grid) == cap(c.grid) {
			grown := make([]policy.Money, 0, 2*historySize)
			c.grid = append(grown, c.grid[len(c.grid)-historySize+1:]...)
		}
		c.end += gridStep
		price, _, ok := c.at(c.end)
		if !ok {
			price = unknownPrice
		}
		c.grid = append(c.grid, price)
	}
	known := c.grid[len(c.grid)-historySize:]
	for len(known) > 0 && known[0] == unknownPrice {
		known = known[1:]
	}
	return slices.Clip(known)
}

// prune removes what is too long before now to be used again. The price that was in force then is
// kept, as of when it came into force.
func (c *curve) prune(now policy.Time) {
	cut := now - now%gridStep - (historySize+1)*gridStep
	n := 0
	for n+1 < len(c.points) && c.points[n+1].At <= cut {
		n++
	}
	if n == 0 {
		return
	}
	_, since, _ := c.at(c.points[n].At)
	keep := c.points[n]
	for k := n - 1; keep.Price <= 0 && k >= 0; k-- {
		if c.points[k].Price > 0 { // the last price stays for the accounts
			c.points = append(c.points[:0], append([]point{c.points[k], keep}, c.points[n+1:]...)...)
			return
		}
	}
	keep.At = since
	c.points = append(c.points[:0], c.points[n:]...)
	c.points[0] = keep
}
