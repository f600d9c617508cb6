package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A supply is the nodes of one kind in one market with slots.
type supply struct {
	kind   int
	market policy.MarketID
	charge scenarios.PriceCurve
	slots  *slotCurve
}

// A slotCurve is the maximum number of nodes of a market over time: count[i] from at[i] on.
type slotCurve struct {
	at    []policy.Time
	count []int32
}

// slotGrid is the length of the pieces in which the best prices and slots of each market are used.
// Long windows have slotPieces longer pieces instead.
const (
	slotGrid   = 15 * time.Minute
	slotPieces = 700
)

// slottedFleet returns the kinds of all markets in a weather, with the slots of Spot markets.
func (o *Oracle) slottedFleet(drawn *weather.Weather) *fleet {
	f := &fleet{}
	of, kindOf := o.kindsOf(anyMarket)
	all, endless := make([][]scenarios.PriceCurve, len(of)), make([][]scenarios.PriceCurve, len(of))
	slots := make([]*slotCurve, len(o.scenario.Markets))
	for i, k := range kindOf {
		m := o.sites[i].market
		charge := o.charges(m, drawn)
		all[k] = append(all[k], charge)
		if o.scenario.Markets[m].Capacity != policy.Spot {
			endless[k] = append(endless[k], charge)
			continue
		}
		if slots[m] == nil {
			slots[m] = o.slotsOf(m, drawn)
		}
		f.supplies = append(f.supplies, supply{k, m, charge, slots[m]})
	}
	// The kinds in a market share its slots, so they must be adjacent.
	slices.SortStableFunc(f.supplies, func(a, b supply) int { return cmp.Compare(a.market, b.market) })
	for k, s := range of {
		f.kinds = append(f.kinds, o.newKind(s))
		f.kinds[k].at, f.kinds[k].price = o.least(endless[k])
		cuts, _ := o.least(all[k])
		f.cuts = append(f.cuts, cuts...)
	}
	if len(f.supplies) > 0 {
		step := max(policy.Time(slotGrid.Milliseconds()), (o.window.To-o.window.From)/slotPieces)
		for t := o.window.From + step; t < o.window.To; t += step {
			f.cuts = append(f.cuts, t)
		}
	}
	f.order(o, of)
	f.own(o, kindOf)
	return f
}

// supplyOver sets the supply and the slots of pieces, which must ascend by time: the lowest price
// in each piece, and the highest number of slots.
func (f *fleet) supplyOver(pieces []piece) {
	price, slot := make([]int, len(f.supplies)), make([]int, len(f.supplies))
	for i := range pieces {
		p := &pieces[i]
		p.supply, p.slots = make([]policy.Money, len(f.supplies)), make([]int32, len(f.supplies))
		for k := range f.supplies {
			s := &f.supplies[k]
			p.supply[k] = extreme(s.charge.At, s.charge.Price, p, &price[k],
				func(a, b policy.Money) policy.Money { return min(a, b) })
			if p.supply[k] != closed {
				p.slots[k] = extreme(s.slots.at, s.slots.count, p, &slot[k], func(a, b int32) int32 { return max(a, b) })
			}
		}
	}
}

// extreme returns the best value of a curve in a piece. cursor keeps the position in the curve
// between pieces.
func extreme[T any](at []policy.Time, value []T, p *piece, cursor *int, better func(a, b T) T) T {
	for *cursor+1 < len(at) && at[*cursor+1] <= p.span.From {
		*cursor++
	}
	best := value[*cursor]
	for i := *cursor + 1; i < len(at) && at[i] < p.span.To; i++ {
		best = better(best, value[i])
	}
	return best
}

// addRents adds the assumed value of the slots of all markets in a piece to owned.
func (f *fleet) addRents(p *piece, owned *sum) {
	for i := 0; i < len(f.supplies); {
		rent, slots, first := int64(0), p.slots[i], i
		for ; i < len(f.supplies) && f.supplies[i].market == f.supplies[first].market; i++ {
			if slots > 0 {
				rent = max(rent, p.limits[f.supplies[i].kind]-int64(p.supply[i])*perMicroDollar)
			}
		}
		if rent > 0 {
			owned.add(rent, int64(slots)*p.milliseconds())
		}
	}
}

// slotsOf returns the maximum number of nodes of Spot market m over time: the number of slots in
// which a node can be alive. In each slot, a node can be alive from the first instant at which the
// market is deep enough until the next reclaim of the slot, and then again.
func (o *Oracle) slotsOf(m policy.MarketID, drawn *weather.Weather) *slotCurve {
	begin := o.scenario.Start.Add(-o.scenario.WarmUp)
	d := o.depthsOf(m, drawn)
	seeded := slices.ContainsFunc(o.scenario.Seeds, func(s scenarios.NodeSeed) bool { return s.Market == m })
	var begins, ends []policy.Time
	for slot := range drawn.Slots(int(m)) {
		from, ok := begin, true
		if !seeded {
			from, ok = d.deeper(slot, begin)
		}
		for ok && from < o.window.To {
			begins = append(begins, from)
			lost, found := drawn.Reclaim(int(m), slot, from)
			for found {
				if from, ok = d.deeper(slot, lost.At); !ok || from > lost.At {
					break
				}
				lost, found = drawn.Reclaim(int(m), slot, from) // another node follows immediately
			}
			if !found {
				break
			}
			ends = append(ends, lost.At)
		}
	}
	slices.Sort(begins)
	slices.Sort(ends)
	c := &slotCurve{at: []policy.Time{0}, count: []int32{0}}
	for i, k := 0, 0; i < len(begins); {
		t, change := begins[i], int32(1)
		if k < len(ends) && ends[k] <= t {
			t, change = ends[k], -1
			k++
		} else {
			i++
		}
		c.add(t, change)
		if i == len(begins) {
			for ; k < len(ends); k++ {
				c.add(ends[k], -1)
			}
		}
	}
	return c
}

// add changes the count from t on. t must not be before the last change.
func (c *slotCurve) add(t policy.Time, change int32) {
	last := len(c.at) - 1
	if c.at[last] != t {
		c.at, c.count = append(c.at, t), append(c.count, c.count[last])
		last++
	}
	c.count[last] += change
}

// A depthCurve is the depth of a market over time: count[i] from at[i] on.
type depthCurve struct {
	at    []policy.Time
	count []int
}

// depthsOf returns the depth of market m from the start of the run.
func (o *Oracle) depthsOf(m policy.MarketID, drawn *weather.Weather) *depthCurve {
	at := []policy.Time{o.scenario.Start.Add(-o.scenario.WarmUp)}
	for _, s := range drawn.Shortages(int(m)) {
		at = append(at, s.From, s.Until)
	}
	for _, s := range drawn.Steps(int(m)) {
		at = append(at, s.From)
	}
	slices.Sort(at)
	d := &depthCurve{at: slices.Compact(at)}
	for _, t := range d.at {
		d.count = append(d.count, drawn.Depth(int(m), t))
	}
	return d
}

// deeper returns the first instant from t on at which the market is deeper than nodes. It returns
// false if there is no such instant.
func (d *depthCurve) deeper(nodes int, t policy.Time) (policy.Time, bool) {
	i, found := slices.BinarySearch(d.at, t)
	if !found {
		i--
	}
	for ; i < len(d.at); i++ {
		if d.count[i] > nodes {
			return max(t, d.at[i]), true
		}
	}
	return 0, false
}
