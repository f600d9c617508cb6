package forecaster

import (
	"math"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// slotsMost is how many of a market's slots labels are counted over at most.
const slotsMost = 64

// unknown is the label where nothing is held: there is no share of nothing.
var unknown = float32(math.NaN())

// runtime returns the share of the slots of market m held at t that are taken
// within each horizon. Somebody holds every slot but those that the interval which
// keeps the market closed has taken.
func (w *realisation) runtime(m int, t policy.Time, into []float32) {
	begun, closed := w.closedSince(m, t)
	var all int
	lost := make([]int, len(Horizons))
	for slot := range min(w.weather.Slots(m), slotsMost) {
		if closed {
			if r, ok := w.weather.Reclaim(m, slot, begun-1); ok && r.At <= t {
				continue
			}
		}
		all++
		r, ok := w.weather.Reclaim(m, slot, t)
		for k, h := range Horizons {
			if ok && r.At <= t.Add(h) {
				lost[k]++
			}
		}
	}
	for k := range Horizons {
		into[k] = unknown
		if all > 0 {
			into[k] = float32(lost[k]) / float32(all)
		}
	}
}

// closedSince returns the start of the interval without capacity that contains t, and
// whether there is such an interval. Shortages that overlap or touch are one interval.
func (w *realisation) closedSince(m int, t policy.Time) (policy.Time, bool) {
	var from, until policy.Time
	for _, s := range w.weather.Shortages(m) {
		if s.From > t {
			break
		}
		if s.From > until {
			from, until = s.From, s.Until
		}
		until = max(until, s.Until)
	}
	return from, until > t
}

// refused returns the share of (t, t+h] in which market m sells nothing.
func (w *realisation) refused(m int, t policy.Time, h time.Duration) float32 {
	end, at, sum := t.Add(h), t, policy.Time(0)
	for _, s := range w.weather.Shortages(m) {
		if s.From >= end {
			break
		}
		from, until := max(s.From, at), min(s.Until, end)
		if until > from {
			sum += until - from
			at = until
		}
	}
	return float32(sum) / float32(h.Milliseconds())
}
