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

// nanoHoursOf returns d in billionths of an hour, rounded half up.
func nanoHoursOf(d time.Duration) int64 {
	return mulDiv(nanoHours, int64(d/time.Millisecond), int64(time.Hour/time.Millisecond))
}

// mulDiv returns x × a/b, rounded half up; 0 if b is 0. No argument may be negative. It panics if the
// result exceeds 64 bits.
func mulDiv(x, a, b int64) int64 {
	if b == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(x), uint64(a))
	low, carry := bits.Add64(low, uint64(b)/2, 0)
	q, _ := bits.Div64(high+carry, low, uint64(b))
	return int64(q)
}

// commitmentOf returns the index of the commitment that covers nodes of a market, -1 if none does. It
// returns an error if several do, because the meter does not know what each of them pays.
func (u *Usage) commitmentOf(market policy.MarketID) (int, error) {
	m, found := &u.Markets[market], -1
	for i := range u.Commitments {
		if u.Commitments[i].Takes(m, &u.Types[m.Type], u.Zones[m.Zone]) == 0 {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("%w: commitments: both %s and %s cover nodes of %s; CommitmentDiscountId needs one",
				ErrUnknown, u.Commitments[found].Name, u.Commitments[i].Name, m.Name)
		}
		found = i
	}
	return found, nil
}

// fee returns the cost of a commitment in a period. The fees of all periods sum to the fee of the
// window, to the micro-dollar.
func (u *Usage) fee(c *policy.Commitment, p billing.Span) policy.Money {
	feeUntil := func(t policy.Time) policy.Money {
		in := billing.Span{From: u.Window.From, To: max(u.Window.From, min(t, u.Window.To))}
		return billing.Flat(c.Fee, in, in) // life = window: a fee has no minimum time
	}
	return feeUntil(p.To) - feeUntil(p.From)
}

// unitsUsed returns how much of commitment c the covered part of a charge uses, in billionths of the
// commitment's unit times hours.
func (u *Usage) unitsUsed(c *policy.Commitment, charge *Charge) int64 {
	m := &u.Markets[u.Nodes[charge.Node].Market]
	takes := c.Takes(m, &u.Types[m.Type], u.Zones[m.Zone])
	covered := mulDiv(nanoHoursOf(charge.Time), int64(charge.Spared), int64(charge.Spared+charge.Billed))
	return mulDiv(covered, takes, scaleOf(c))
}

// scaleOf returns the divisor that converts the amount of a commitment to its unit: a million for
// dollars, otherwise 1.
func scaleOf(c *policy.Commitment) int64 {
	if c.Unit == policy.CoverDollars {
		return int64(policy.Dollar)
	}
	return 1
}
