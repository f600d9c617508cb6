package scenarios

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// Under returns w under truth t: the same scenario except for Truth, which determines the weather
// of a run, and the Spot prices if t changes them. The initial nodes and the markets of the pools
// stay the same. The mean of a price is taken from the start of the warm-up to the end. The result
// shares the rest of its memory with w, which is not changed.
func (w *BoundScenario) Under(t weather.Truth) *BoundScenario {
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
		c := &under.Prices[i]
		c.At, c.Price = t.Prices(c.At, c.Price, m.OnDemand, begin, end)
		m.Price = max(0, c.Price[0])
	}
	return &under
}
