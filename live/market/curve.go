package market

import (
	"slices"
	"sort"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The grid on which snapshots contain the history of prices, in milliseconds and in steps.
const (
	gridStep    = policy.Time(10 * time.Minute / time.Millisecond)
	historySize = 24

	// unknownPrice marks an instant of the grid at which the price is unknown. It is used only in
	// this package.
	unknownPrice policy.Money = -2
)

// A point is the start of a price.
type point struct {
	At    policy.Time  `json:"t"`
	Price policy.Money `json:"p"`
}

// A curve is the course of a price in the last hours. Points that repeat the previous price are
// kept, because a point between them may still be reported late.
type curve struct {
	points []point // ascending by At

	// always reports whether the first price also applied before it was first reported, as it does
	// for a price list.
	always bool

	// grid contains the prices at the instants of the grid up to end. Elements that were returned
	// to a caller are never modified.
	grid []policy.Money
	end  policy.Time
}

// put adds the start of a price and reports whether it changed the curve. Of two prices at the same
// instant, the higher one is kept, regardless of their order.
func (c *curve) put(at policy.Time, price policy.Money) bool {
	i := sort.Search(len(c.points), func(i int) bool { return c.points[i].At >= at })
	switch {
	case i < len(c.points) && c.points[i].At == at:
		if c.points[i].Price >= price {
			return false
		}
		c.points[i].Price = price
	case i == 0 && len(c.points) > 0 && c.points[0].At <= c.end-(historySize+1)*gridStep:
		return false // before the time for which any price is needed
	default:
		c.points = slices.Insert(c.points, i, point{at, price})
	}
	if at <= c.end {
		c.grid = nil
	}
	return true
}

// at returns the price in force at t and since when it is in force. ok reports whether a price is
// known.
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

// lastOffered returns the latest price up to t at which the market was offered, or 0 if it never
// was.
func (c *curve) lastOffered(t policy.Time) policy.Money {
	for i := len(c.points) - 1; i >= 0; i-- {
		if p := c.points[i]; p.At <= t && p.Price > 0 {
			return p.Price
		}
	}
	return 0
}

// history returns the prices at the last instants of the grid up to now, the oldest first. It omits
// the instants before the first known price.
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

// prune removes the points that are too old to be used again. It keeps the price that was in force
// at the cut, with the time at which it came into force.
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
		if c.points[k].Price > 0 { // accounting needs the last price
			c.points = append(c.points[:0], append([]point{c.points[k], keep}, c.points[n+1:]...)...)
			return
		}
	}
	keep.At = since
	c.points = append(c.points[:0], c.points[n:]...)
	c.points[0] = keep
}
