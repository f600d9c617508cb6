package oracle

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim"
)

// closed is the price of a market in which no node can be alive. It is higher than all other
// prices.
const closed policy.Money = math.MaxInt64

// charges returns the price of a node of market m over time, including the lowest fees of any pool,
// and closed while no node can be alive there.
func (o *Oracle) charges(m policy.MarketID, drawn *weather.Weather) scenarios.PriceCurve {
	curve := o.prepared.Charges(m)
	out := scenarios.PriceCurve{At: slices.Clone(curve.At), Price: carriedForward(curve.Price)}
	seeded := slices.ContainsFunc(o.scenario.Seeds, func(s scenarios.NodeSeed) bool { return s.Market == m })
	if !seeded {
		for i := 0; i < len(curve.Price) && curve.Price[i] == policy.NoPrice; i++ {
			out.Price[i] = closed // the market was not yet offered
		}
	}
	if o.scenario.Markets[m].Auction() {
		out = leastWithin(out, policy.Time(sim.DefaultDelays().RackspaceNotice.Milliseconds())+1)
	}
	for i, price := range out.Price {
		if price != closed {
			out.Price[i] = price + o.fees[m] // each node pays all fees, so a fraction of a node pays a fraction of them
		}
	}
	shut := o.closedAlways(m, seeded)
	if drawn != nil && o.scenario.Markets[m].Capacity == policy.Spot {
		shut = append(shut, o.closedUnder(m, seeded, drawn)...)
	}
	for _, s := range shut {
		out = without(out, s.from, s.to)
	}
	return out
}

// carriedForward replaces policy.NoPrice by the last known price, or if no price is known yet, by
// the first one. A node is charged this price while it runs in a market that is not offered.
func carriedForward(prices []policy.Money) []policy.Money {
	out, last := make([]policy.Money, len(prices)), closed
	if first := slices.IndexFunc(prices, func(p policy.Money) bool { return p != policy.NoPrice }); first >= 0 {
		last = prices[first]
	}
	for i, p := range prices {
		if p != policy.NoPrice {
			last = p
		}
		out[i] = last
	}
	return out
}

// leastWithin returns the minimum of c over the interval of length before that ends at each
// instant. An outbid node pays its bid until it is reclaimed, and the bid was at least the price
// immediately before.
func leastWithin(c scenarios.PriceCurve, before policy.Time) scenarios.PriceCurve {
	cuts := slices.Clone(c.At)
	for _, at := range c.At {
		cuts = append(cuts, at+before)
	}
	slices.Sort(cuts)
	var out scenarios.PriceCurve
	first := 0
	for _, at := range slices.Compact(cuts) {
		for first+1 < len(c.At) && c.At[first+1] <= at-before {
			first++
		}
		least := c.Price[first]
		for i := first + 1; i < len(c.At) && c.At[i] <= at; i++ {
			least = min(least, c.Price[i])
		}
		out.At, out.Price = append(out.At, at), append(out.Price, least)
	}
	return out
}

// A stretch is an interval of time, without to.
type stretch struct{ from, to policy.Time }

// closedAlways returns the intervals in which no node of market m can be alive with any seed: those
// of shortages that take every slot, from the time at which all are taken, and the time before a
// market of recorded availability is first available. Other shortages may spare a slot.
func (o *Oracle) closedAlways(m policy.MarketID, seeded bool) []stretch {
	w, x := o.scenario, &o.scenario.Markets[m]
	var out []stretch
	taken := weather.DefaultParams().TakeWindow
	for i := range w.Faults {
		f := &w.Faults[i]
		all := f.Kind == scenarios.FaultZoneOutage ||
			f.Kind == scenarios.FaultCapacityShortage && f.Share >= 1 && x.Capacity == policy.Spot
		if all && (f.Zone == "" || f.Zone == w.Zones[x.Zone]) && (f.Type == "" || f.Type == w.Types[x.Type].Name) {
			out = append(out, stretch{f.At.Add(taken), f.At.Add(f.Duration)})
		}
	}
	if x.Capacity != policy.Spot || seeded || w.Available == nil || len(w.Available[m].At) == 0 ||
		w.Available[m].Available[0] {
		return out
	}
	a := &w.Available[m]
	until := policy.Time(math.MaxInt64)
	if up := slices.Index(a.Available, true); up >= 0 {
		until = a.At[up]
		if a.Gap != nil {
			until = max(a.At[up]-a.Gap[up], a.At[up-1])
		}
	}
	return append(out, stretch{0, until})
}

// closedUnder returns the intervals in which no node of Spot market m can be alive in a weather:
// while the market refuses launches, from the loss of the last node that may have been launched
// before.
func (o *Oracle) closedUnder(m policy.MarketID, seeded bool, drawn *weather.Weather) []stretch {
	var refuses []stretch
	for _, s := range drawn.Shortages(int(m)) {
		if last := len(refuses) - 1; last >= 0 && s.From <= refuses[last].to {
			refuses[last].to = max(refuses[last].to, s.Until)
			continue
		}
		refuses = append(refuses, stretch{s.From, s.Until})
	}
	begin := o.scenario.Start.Add(-o.scenario.WarmUp)
	var out []stretch
	for _, s := range refuses {
		if s.to <= o.window.From || s.from >= o.window.To {
			continue
		}
		if s.from > begin || seeded {
			s.from = lastLost(drawn, m, max(s.from, begin)-1)
		}
		if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// lastLost returns the time when the last slot of market m loses its node, if all slots have nodes
// since t or before.
func lastLost(drawn *weather.Weather, m policy.MarketID, t policy.Time) policy.Time {
	last := t + 1
	for slot := range drawn.Slots(int(m)) {
		r, ok := drawn.Reclaim(int(m), slot, t)
		if !ok {
			return math.MaxInt64
		}
		last = max(last, r.At)
	}
	return last
}

// without returns c with the price closed from from until to.
func without(c scenarios.PriceCurve, from, to policy.Time) scenarios.PriceCurve {
	cuts := append(slices.Clone(c.At), from, to)
	slices.Sort(cuts)
	var out scenarios.PriceCurve
	i := 0
	for _, t := range slices.Compact(cuts) {
		for i+1 < len(c.At) && c.At[i+1] <= t {
			i++
		}
		price := c.Price[i]
		if from <= t && t < to {
			price = closed
		}
		out.At, out.Price = append(out.At, t), append(out.Price, price)
	}
	return out
}

// least returns the minimum of the curves over time, from the start of the window.
func (o *Oracle) least(curves []scenarios.PriceCurve) (at []policy.Time, price []policy.Money) {
	cuts := []policy.Time{o.window.From}
	for i := range curves {
		for _, t := range curves[i].At {
			if t > o.window.From && t < o.window.To {
				cuts = append(cuts, t)
			}
		}
	}
	slices.Sort(cuts)
	cursor := make([]int, len(curves))
	for _, t := range slices.Compact(cuts) {
		lowest := closed
		for i := range curves {
			c := &curves[i]
			for cursor[i]+1 < len(c.At) && c.At[cursor[i]+1] <= t {
				cursor[i]++
			}
			lowest = min(lowest, c.Price[cursor[i]])
		}
		if last := len(price) - 1; last < 0 || price[last] != lowest {
			at, price = append(at, t), append(price, lowest)
		}
	}
	return at, price
}
