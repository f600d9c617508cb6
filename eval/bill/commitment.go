package bill

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// nanoHours is the number of units in an hour: quantities are counted in billionths of an hour, or
// of an hour times the unit of a commitment.
const nanoHours = 1_000_000_000

// hours returns d in billionths of an hour, rounded half up.
func hours(d time.Duration) int64 {
	return int64(part(nanoHours, int64(d/time.Millisecond), int64(time.Hour/time.Millisecond)))
}

// part returns amount × a/b, rounded half up; 0 if b is 0. No argument may be negative.
func part(amount policy.Money, a, b int64) policy.Money {
	if b == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), uint64(a))
	low, carry := bits.Add64(low, uint64(b)/2, 0)
	q, _ := bits.Div64(high+carry, low, uint64(b))
	return policy.Money(q)
}

// payer returns the index of the commitment that covers nodes of a market, -1 if none does. It
// returns an error if several do, because the meter does not know what each of them pays.
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

// fee returns the cost of a commitment in a period. The fees of all periods sum to the fee of the
// window, to the micro-dollar.
func (u *Usage) fee(c *policy.Commitment, p billing.Span) policy.Money {
	at := func(t policy.Time) policy.Money {
		in := billing.Span{From: u.Window.From, To: max(u.Window.From, min(t, u.Window.To))}
		return billing.Flat(c.Fee, in, in)
	}
	return at(p.To) - at(p.From)
}

// used returns how much of commitment c is used by the covered part of charge x, in billionths of
// the commitment's unit times hours.
func (u *Usage) used(c *policy.Commitment, x *Charge) int64 {
	m := &u.Markets[u.Nodes[x.Node].Market]
	takes := c.Takes(m, &u.Types[m.Type], u.Zones[m.Zone])
	covered := part(policy.Money(hours(x.Time)), int64(x.Spared), int64(x.Spared+x.Billed))
	return int64(part(covered, takes, scaleOf(c)))
}

// scaleOf returns the divisor that converts the amount of a commitment to its unit: a million for
// dollars, otherwise 1.
func scaleOf(c *policy.Commitment) int64 {
	if c.Unit == policy.CoverDollars {
		return int64(policy.Dollar)
	}
	return 1
}
