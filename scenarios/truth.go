package scenarios

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// Under returns w under truth t: the same world but for Truth, which the weather of
// a run is drawn by, and the spot prices, where t changes them. Nodes that are
// there at the begin and the markets of the pools stay. The result shares the rest
// of its memory with w, which stays as it is.
//
// The mean of a price is over the time for which it is offered from the begin of
// warm-up to the end. The volatility keeps the mean of the logarithm, and lets no
// price above that on demand unless one was: Spot at AWS is never dearer than on
// demand, auctions are.
func (w *World) Under(t weather.Truth) *World {
	if t == w.Truth {
		return w
	}
	under := *w
	under.Truth = t
	if t.Volatility == 0 && !t.Flat {
		return &under
	}
	under.Markets, under.Prices = slices.Clone(w.Markets), slices.Clone(w.Prices)
	begin, end := w.Start.Add(-w.WarmUp), w.Start.Add(w.Duration)
	for i := range under.Markets {
		m := &under.Markets[i]
		if m.Capacity != policy.Spot {
			continue
		}
		under.Prices[i] = w.Prices[i].under(t, m.OnDemand, begin, end)
		m.Price = max(0, under.Prices[i].Price[0])
	}
	return &under
}

// under returns the curve as t has it, for a market of this price on demand.
func (c PriceCurve) under(t weather.Truth, onDemand policy.Money, begin, end policy.Time) PriceCurve {
	value := func(p policy.Money) float64 { return p.Float() }
	if !t.Flat {
		value = func(p policy.Money) float64 { return portable.Log(p.Float()) }
	}
	mean, ok := c.mean(begin, end, value)
	if !ok {
		return c
	}
	most := max(onDemand, slices.Max(c.Price))
	out := PriceCurve{}
	for i, p := range c.Price {
		switch {
		case p <= 0: // not offered
		case t.Flat:
			p = max(1, policy.Dollars(mean))
		default:
			p = min(most, max(1, policy.Dollars(portable.Exp(mean+float64(t.Volatility*(value(p)-mean))))))
		}
		if k := len(out.Price) - 1; k >= 0 && out.Price[k] == p {
			continue
		}
		out.At, out.Price = append(out.At, c.At[i]), append(out.Price, p)
	}
	return out
}

// mean returns the mean of a value of the price over the time in [begin, end) for
// which it is offered; false if that is never.
func (c PriceCurve) mean(begin, end policy.Time, value func(policy.Money) float64) (mean float64, ok bool) {
	sum, hours := 0.0, 0.0
	for i, p := range c.Price {
		until := end
		if i+1 < len(c.At) {
			until = min(end, c.At[i+1])
		}
		if h := until.Sub(max(begin, c.At[i])).Hours(); p > 0 && h > 0 {
			sum += float64(value(p) * h)
			hours += h
		}
	}
	if hours == 0 {
		return 0, false
	}
	return sum / hours, true
}
