package weather

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// Prices returns the Spot prices of one market under t. Prices[i] applies from at[i] on and is
// [policy.NoPrice] while the market is not offered. The mean is taken over the time in [from, to)
// for which the market is offered. The arguments are not modified, and are returned if t does not
// change them.
//
// The volatility preserves the mean of the logarithm. It raises no price above onDemand unless that
// price was already above it: Spot at AWS is never more expensive than on-demand, but auctions can
// be.
func (t *Truth) Prices(at []policy.Time, prices []policy.Money, onDemand policy.Money, from,
	to policy.Time) ([]policy.Time, []policy.Money) {
	if t.Volatility == 0 && !t.Flat {
		return at, prices
	}
	value := policy.Money.Float
	if !t.Flat {
		value = func(p policy.Money) float64 { return portable.Log(p.Float()) }
	}
	mean, ok := meanPrice(at, prices, from, to, value)
	if !ok {
		return at, prices
	}
	most := max(onDemand, slices.Max(prices))
	var changes []policy.Time
	var out []policy.Money
	for i, p := range prices {
		switch {
		case p <= 0: // not offered
		case t.Flat:
			p = max(1, policy.Dollars(mean))
		default:
			p = min(most, max(1, policy.Dollars(portable.Exp(mean+float64(t.Volatility*(value(p)-mean))))))
		}
		if k := len(out) - 1; k >= 0 && out[k] == p {
			continue
		}
		changes, out = append(changes, at[i]), append(out, p)
	}
	return changes, out
}

// meanPrice returns the mean of a function of the price over the time in [from, to) for which the
// market is offered. It reports false if it is never offered.
func meanPrice(at []policy.Time, prices []policy.Money, from, to policy.Time,
	value func(policy.Money) float64) (mean float64, ok bool) {
	sum, hours := 0.0, 0.0
	for i, p := range prices {
		until := to
		if i+1 < len(at) {
			until = min(to, at[i+1])
		}
		if h := until.Sub(max(from, at[i])).Hours(); p > 0 && h > 0 {
			sum += float64(value(p) * h)
			hours += h
		}
	}
	if hours == 0 {
		return 0, false
	}
	return sum / hours, true
}
