package bill

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// nanoHours are the units in which quantities are counted: billionths of an hour, or of
// an hour of what a commitment counts.
const nanoHours = 1_000_000_000

// hours returns d in billionths of an hour, rounded half up.
func hours(d time.Duration) int64 {
	return int64(part(nanoHours, int64(d/time.Millisecond), int64(time.Hour/time.Millisecond)))
}

// part returns amount × a/b, rounded half up, of what is not negative; 0 where b is 0.
func part(amount policy.Money, a, b int64) policy.Money {
	if b == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), uint64(a))
	low, carry := bits.Add64(low, uint64(b)/2, 0)
	q, _ := bits.Div64(high+carry, low, uint64(b))
	return policy.Money(q)
}

// payer returns which commitment pays for nodes of a market. The meter knows what all of
// them pay together, so that it must be one.
func (u *Usage) payer(market policy.MarketID) (int, error) {
	m, payer := &u.Markets[market], -1
	for i := range u.Commitments {
		if u.Commitments[i].Takes(m, &u.Types[m.Type], u.Zones[m.Zone]) == 0 {
			continue
		}
		if payer >= 0 {
			return 0,
				fmt.Errorf("%w: commitments: both %s and %s cover nodes of %s, and the meter does not divide what they pay; CommitmentDiscountId needs one",
					ErrUnknown, u.Commitments[payer].Name, u.Commitments[i].Name, m.Name)
		}
		payer = i
	}
	return payer, nil
}

// fee returns what a commitment costs in a period: over all of them what it costs in the
// window, to the micro-dollar.
func (u *Usage) fee(c *policy.Commitment, p billing.Span) policy.Money {
	at := func(t policy.Time) policy.Money {
		in := billing.Span{From: u.Window.From, To: max(u.Window.From, min(t, u.Window.To))}
		return billing.Flat(c.Fee, in, in)
	}
	return at(p.To) - at(p.From)
}

// used returns how much of a commitment the covered part of a charge takes, in billionths
// of its unit × hours.
func (u *Usage) used(c *policy.Commitment, x *Charge) int64 {
	m := &u.Markets[u.Nodes[x.Node].Market]
	takes := c.Takes(m, &u.Types[m.Type], u.Zones[m.Zone])
	covered := part(policy.Money(hours(x.Time)), int64(x.Spared), int64(x.Spared+x.Billed))
	return int64(part(covered, takes, scaleOf(c)))
}

// scaleOf is what the amount of a commitment is divided by to be in units: a dollar is
// a million.
func scaleOf(c *policy.Commitment) int64 {
	if c.Unit == policy.CoverDollars {
		return int64(policy.Dollar)
	}
	return 1
}
