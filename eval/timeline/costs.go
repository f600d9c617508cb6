package timeline

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// costStep is the interval between the instants at which costs are computed, in addition to the
// instants at which an outage starts or ends. Costs are interpolated linearly between them, because
// the cost of nodes and most of the outage cost are proportional to time.
const costStep = policy.Time(5 * time.Minute / time.Millisecond)

// A CostPoint contains the costs at an instant.
type CostPoint struct {
	At policy.Time
	Costs
}

// A costLog contains the costs of a run over time. Counts are exact at any instant; amounts of
// money are only computed at some.
type costLog struct {
	counts history[counts]
	costs  []CostPoint
}

// counts are the fields of Costs that change in steps.
type counts struct {
	notices, reclaims, evictions int64
	nodes, spotNodes             int32
	size, spotSize               int64
}

func countsOf(s *sim.Sample) counts {
	return counts{notices: s.Notices, reclaims: s.Reclaims, evictions: s.Evictions, nodes: int32(s.Nodes),
		spotNodes: int32(s.SpotNodes),
		size:      s.Size * 1000, spotSize: s.SpotSize * 1000}
}

func costsOf(s *sim.Sample) Costs {
	c := Costs{Bill: s.Bill, OutageCost: s.OutageCost, Outages: s.Outages}
	return c.with(countsOf(s))
}

func (c Costs) with(n counts) Costs {
	c.Notices, c.Reclaims, c.Evictions = n.notices, n.reclaims, n.evictions
	c.Nodes, c.SpotNodes, c.Size, c.SpotSize = n.nodes, n.spotNodes, n.size, n.spotSize
	return c
}

// addCosts adds the costs at an instant, which must not be before the last one.
func (l *costLog) addCosts(at policy.Time, c Costs) {
	if n := len(l.costs); n > 0 && l.costs[n-1].At == at {
		l.costs = l.costs[:n-1]
	}
	l.costs = append(l.costs, CostPoint{at, c})
}

// costsAt returns the costs at an instant.
func (l *costLog) costsAt(at policy.Time) Costs {
	n, _ := l.counts.value(at)
	last := lastAt(l.costs, at, func(p *CostPoint) policy.Time { return p.At })
	if last < 0 {
		return Costs{}.with(n)
	}
	a := &l.costs[last]
	c := a.Costs
	if last+1 < len(l.costs) {
		b := &l.costs[last+1]
		gone, all := policy.Money(at-a.At), policy.Money(b.At-a.At)
		c.Bill += (b.Bill - a.Bill) * gone / all
		c.OutageCost += (b.OutageCost - a.OutageCost) * gone / all
	}
	return c.with(n)
}

// Costs appends to into the accumulated costs at points instants (at least two), evenly spaced from
// the start to the end of the metered window. It stops at the last available instant.
func (t *Timeline) Costs(points int, into []CostPoint) []CostPoint {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.until < t.from {
		return into
	}
	points = max(points, 2)
	for i := range points {
		at := t.from + (t.to-t.from)*policy.Time(i)/policy.Time(points-1)
		if at > t.until {
			return append(into, CostPoint{t.until, t.costsAt(t.until)})
		}
		into = append(into, CostPoint{at, t.costsAt(at)})
	}
	return into
}

// Prices returns the prices of a market, each valid from its instant on: the price at from, and the
// available changes until to. If there are more than points, it returns the prices at points evenly
// spaced instants.
func (t *Timeline) Prices(market int, from, to policy.Time, points int) ([]policy.Time, []policy.Money) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return stretch(&t.prices[market], from, min(to, t.until), points, func(p policy.Money) policy.Money { return p })
}

// Hazards returns the forecast hazards of a market in the same way, in reclaims per node-hour.
func (t *Timeline) Hazards(market int, from, to policy.Time, points int) ([]policy.Time, []float64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return stretch(&t.hazards[market], from, min(to, t.until), points, hazard.perHour)
}

// stretch returns the values of h between two instants.
func stretch[T comparable, R any](h *history[T], from, to policy.Time, points int, of func(T) R) (at []policy.Time,
	what []R) {
	if from > to {
		return nil, nil
	}
	points = max(points, 2)
	first, last := max(h.find(from), 0), h.find(to)
	if last-first >= points {
		for i := range points {
			x := from + (to-from)*policy.Time(i)/policy.Time(points-1)
			if v, ok := h.value(x); ok {
				at, what = append(at, x), append(what, of(v))
			}
		}
		return at, what
	}
	for i := first; i <= last; i++ {
		at, what = append(at, max(from, h.at[i])), append(what, of(h.what[i]))
	}
	return at, what
}
