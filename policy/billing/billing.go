// Package billing is the meter: it integrates prices over time exactly. The simulator, the
// evaluation and the live controller all bill with it.
//
// Amounts are summed as integers, in micro-dollars per hour × milliseconds, and divided once per
// node. A bill therefore depends neither on the order of its terms nor on how often the meter was
// read.
package billing

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// MinimumBilled is the shortest time that a node is charged for. (AWS bills Linux instances by the
// second, with a minimum of one minute.)
const MinimumBilled = time.Minute

// msPerHour is the number of milliseconds in an hour; prices are per hour.
const msPerHour = 3_600_000

// A Curve is the price of a market over time: price[i] holds from at[i] until at[i+1]. at is
// ascending; before at[0] the first price holds. While the market is not offered the previous price
// stays in force, since a node that still runs is still charged.
type Curve struct {
	at    []policy.Time
	price []policy.Money

	// sum[i] is the integral of the price from at[0] to at[i].
	sum []int64
}

// NewCurve returns the curve whose price is price[i] from at[i] on. The slices must have the same
// length, and at least one entry must be a price. An entry of policy.NoPrice takes the price before
// it, or, at the start, the first price after it.
func NewCurve(at []policy.Time, price []policy.Money) *Curve {
	c := &Curve{at: at, price: slices.Clone(price), sum: make([]int64, len(at))}
	last := policy.NoPrice
	for _, p := range price {
		if p != policy.NoPrice {
			last = p
			break
		}
	}
	for i := range c.price {
		if c.price[i] == policy.NoPrice {
			c.price[i] = last
		}
		last = c.price[i]
		if i > 0 {
			c.sum[i] = c.sum[i-1] + int64(c.price[i-1])*int64(at[i]-at[i-1])
		}
	}
	return c
}

// At returns the price at t.
func (c *Curve) At(t policy.Time) policy.Money { return c.price[c.index(t)] }

func (c *Curve) index(t policy.Time) int {
	i, found := slices.BinarySearch(c.at, t)
	if !found {
		i--
	}
	return max(i, 0)
}

// integral returns the integral of the price from at[0] to t, which is negative if t is before
// at[0].
func (c *Curve) integral(t policy.Time) int64 {
	i := c.index(t)
	return c.sum[i] + int64(c.price[i])*int64(t-c.at[i])
}

// A Span is a half-open time interval: it includes From and excludes To.
type Span struct{ From, To policy.Time }

// Clip returns the part of s inside window; it is empty if they do not overlap.
func (s Span) Clip(window Span) Span {
	from, to := max(s.From, window.From), min(s.To, window.To)
	return Span{from, max(from, to)}
}

// Length returns the duration of s.
func (s Span) Length() time.Duration { return s.To.Sub(s.From) }

// Bill returns the cost of a node on c within window for the given life. A node is billed by the
// millisecond. A life shorter than MinimumBilled is extended to MinimumBilled from its launch
// before it is clipped to window. The cost is rounded once, half up to a micro-dollar.
func (c *Curve) Bill(life, window Span) policy.Money {
	life.To = max(life.To, life.From.Add(MinimumBilled))
	return c.accrued(life, window)
}

// accrued is Bill without the minimum of MinimumBilled.
func (c *Curve) accrued(life, window Span) policy.Money {
	in := life.Clip(window)
	if in.To <= in.From {
		return 0
	}
	return round(c.integral(in.To) - c.integral(in.From))
}

// BillAtMost is Bill for a node that never pays more than most per hour, such as its bid in an
// auction.
func (c *Curve) BillAtMost(life, window Span, most policy.Money) policy.Money {
	life.To = max(life.To, life.From.Add(MinimumBilled))
	in := life.Clip(window)
	sum := int64(0)
	for i, from := c.index(in.From), in.From; from < in.To; i++ {
		to := in.To
		if i+1 < len(c.at) {
			to = min(to, c.at[i+1])
		}
		sum += int64(min(c.price[i], most)) * int64(to-from)
		from = to
	}
	return round(sum)
}

// Flat returns the cost of a node at a constant price within window for the given life, with the
// minimum and the rounding of Curve.Bill.
func Flat(price policy.Money, life, window Span) policy.Money {
	life.To = max(life.To, life.From.Add(MinimumBilled))
	in := life.Clip(window)
	return round(int64(price) * int64(in.To-in.From))
}

// Fees returns the fees that a node is charged within window for the given life in addition to its
// price. Each of the hourly fees is billed as by Flat.
func Fees(hourly policy.NodeFees, life, window Span) policy.NodeFees {
	return policy.NodeFees{Fee: Flat(hourly.Fee, life, window), Volumes: Flat(hourly.Volumes, life, window)}
}

// Committed returns amount less the share of it that a commitment saves. discount is that share, in
// [0, 1].
func Committed(amount policy.Money, discount float64) policy.Money {
	return amount - amount.Times(discount)
}

func round(x int64) policy.Money { return policy.Money((x + msPerHour/2) / msPerHour) }
