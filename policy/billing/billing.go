// Package billing is the meter: price × time, exactly. The simulator, the
// evaluation and the live controller all bill with it.
//
// Amounts are summed in micro-dollar-milliseconds per hour, as integers, and
// divided once per node; so a bill depends neither on the order of its terms
// nor on how often the meter was read.
package billing

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// MinimumBilled is the least time that a node is charged for (AWS bills Linux
// instances by the second, with a minimum of one minute).
const MinimumBilled = time.Minute

// msPerHour is the number of milliseconds in the hour that prices are for.
const msPerHour = 3_600_000

// A Curve is the price of a market over time: Price[i] holds from At[i] until
// At[i+1]. At is ascending; before At[0] the first price holds. An instant at
// which the market is not offered keeps the price in force before it, since a
// node that still runs is still charged.
type Curve struct {
	at    []policy.Time
	price []policy.Money

	// sum[i] is the integral of the price from at[0] to at[i].
	sum []int64
}

// NewCurve returns the curve of the changes at and price, of equal length and
// at least one of them a price. An entry of policy.NoPrice keeps the price
// before it, or takes the first price after it.
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

// integral returns price × milliseconds from at[0] to t, negative before.
func (c *Curve) integral(t policy.Time) int64 {
	i := c.index(t)
	return c.sum[i] + int64(c.price[i])*int64(t-c.at[i])
}

// A Span is a half-open stretch of time.
type Span struct{ From, To policy.Time }

// Clip returns the part of s inside window, empty if they do not overlap.
func (s Span) Clip(window Span) Span {
	from, to := max(s.From, window.From), min(s.To, window.To)
	return Span{from, max(from, to)}
}

// Length returns the duration of s.
func (s Span) Length() time.Duration { return s.To.Sub(s.From) }

// Bill returns what a node on c costs inside window for a life: by the
// millisecond, a life under MinimumBilled as MinimumBilled from launch, cut at
// the window's edges. It is rounded half up to one micro-dollar, once.
func (c *Curve) Bill(life, window Span) policy.Money {
	life.To = max(life.To, life.From.Add(MinimumBilled))
	return c.accrued(life, window)
}

// accrued returns what Bill does without a least time that is billed.
func (c *Curve) accrued(life, window Span) policy.Money {
	in := life.Clip(window)
	if in.To <= in.From {
		return 0
	}
	return round(c.integral(in.To) - c.integral(in.From))
}

// BillAtMost returns what Bill does for a node that never pays more than most
// an hour, such as its bid in an auction.
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

// Flat returns what a node at one price costs inside window for a life, as
// Curve.Bill does.
func Flat(price policy.Money, life, window Span) policy.Money {
	life.To = max(life.To, life.From.Add(MinimumBilled))
	in := life.Clip(window)
	return round(int64(price) * int64(in.To-in.From))
}

// Fees returns what a node is charged inside window for a life on top of its price, of fees
// per hour, each as Flat does.
func Fees(hourly policy.NodeFees, life, window Span) policy.NodeFees {
	return policy.NodeFees{Fee: Flat(hourly.Fee, life, window), Volumes: Flat(hourly.Volumes, life, window)}
}

// Committed returns amount after a commitment that saves the given share of
// it, in [0, 1].
func Committed(amount policy.Money, discount float64) policy.Money {
	return amount - amount.Times(discount)
}

func round(x int64) policy.Money { return policy.Money((x + msPerHour/2) / msPerHour) }
