package screen

import (
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// chartedMax is how many markets a chart shows, chartPoints how many points of
// each: two for every column of the widest chart.
const (
	chartedMax  = 5
	chartPoints = 400
)

// chart makes the charts of the spot markets in which most nodes are, and of the
// one that is selected. Prices are read again only when others are shown or more
// of the run is there.
func (s *show) chart(now policy.Time, selected string) {
	s.prices.Now, s.hazards.Now = now, now
	charted := s.charts(selected)
	if slices.Equal(charted, s.charted) && s.until == s.chartedUntil {
		return
	}
	s.charted, s.chartedUntil = charted, s.until
	empty := "no spot market to show"
	if s.until <= s.from {
		empty = "simulating the warm-up…"
	}
	price := draw.Chart{From: s.from, To: s.to, Now: now, Until: s.until, Unit: draw.UnitPrice, Log: true, Empty: empty}
	hazard := draw.Chart{From: s.from, To: s.to, Now: now, Until: s.until, Unit: draw.UnitPercent, Zero: true, Empty: "no forecast"}
	for i, id := range charted {
		m := &s.markets[id]
		line := draw.Series{Name: m.Type + " " + s.shortZone(m.Zone), Short: shortType(m.Type) + " " + s.shortZone(m.Zone), Key: letter(i), Ink: draw.SeriesInk(i)}
		at, prices := s.Timeline.Prices(int(id), s.from, s.until, chartPoints)
		line.At, line.Value = at, make([]float64, len(prices))
		for k, p := range prices {
			line.Value[k] = math.NaN()
			if p != policy.NoPrice {
				line.Value[k] = p.Float()
			}
		}
		price.Series = append(price.Series, line)
		line.At, line.Value = s.Timeline.Hazards(int(id), s.from, s.until, chartPoints)
		line.Value = slices.Clone(line.Value)
		for k := range line.Value {
			line.Value[k] = draw.PerMonth(line.Value[k])
		}
		hazard.Series = append(hazard.Series, line)
		price.Marks = append(price.Marks, s.reclaimsOf(id, i)...)
	}
	if len(charted) > 0 {
		m := &s.markets[charted[0]]
		price.Levels = []draw.Level{{Name: "on-demand " + m.Type, Short: "on-demand", Value: m.OnDemand.Float(), Ink: draw.OnDemand}}
	}
	s.prices, s.hazards = price, hazard
}

// shortType is the name of an instance type where there is little room.
func shortType(name string) string { return strings.Replace(name, "xlarge", "xl", 1) }

// charts are the places of the markets to be charted: what is selected, the spot
// markets in use, and where none is those that sell what is.
func (s *show) charts(selected string) []int32 {
	var all []int32
	if id := s.market(selected); id >= 0 {
		all = append(all, id)
	}
	for _, id := range s.marketIDs {
		if len(all) < chartedMax && s.markets[id].Spot && s.inUse[id] > 0 && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	if len(all) > 0 || len(s.marketIDs) == 0 {
		return all
	}
	used := s.markets[s.marketIDs[0]].Type
	for _, id := range s.marketIDs {
		if len(all) < chartedMax && s.markets[id].Spot && s.markets[id].Type == used {
			all = append(all, id)
		}
	}
	return all
}

// reclaimsOf are the marks of the nodes taken in a market.
func (s *show) reclaimsOf(market int32, series int) []draw.Mark {
	var all []draw.Mark
	for _, r := range s.reclaims {
		if r.market == market && r.at >= s.from {
			all = append(all, draw.Mark{At: r.at, Glyph: '×', Ink: draw.SeriesInk(series)})
		}
	}
	return all
}

// A line is what one run has come to, beside the baseline where there is one.
type line struct {
	name string
	show *show
	draw.Series
}

// measure makes the lines of all runs: net savings against the baseline, or what
// each has cost where there is none.
func (m *Model) measure() {
	m.savings = m.savings[:0]
	for i, s := range m.shows {
		if s == m.baseline && len(m.shows) > 1 {
			continue
		}
		l := line{name: s.Name, show: s, Series: draw.Series{Name: s.Name, Key: letter(i), Ink: draw.SeriesInk(i), Straight: true}}
		for _, p := range s.costs {
			base, ok := policy.Money(0), true
			if m.baseline != nil {
				base, ok = spentAt(m.baseline.costs, p.At)
			}
			if !ok {
				break // the baseline has not come that far
			}
			value := (base - spent(&p.Costs)).Float()
			if m.baseline == nil {
				value = -value
			}
			l.At, l.Value = append(l.At, p.At), append(l.Value, value)
		}
		m.savings = append(m.savings, l)
	}
}

// spent is bill and outage cost together.
func spent(c *timeline.Costs) policy.Money { return c.Bill + c.OutageCost }

// spentAt returns what a run had spent at an instant, on the straight line
// between the points around it, and false for one that it has not reached.
func spentAt(points []timeline.CostPoint, at policy.Time) (policy.Money, bool) {
	i, found := slices.BinarySearchFunc(points, at, func(p timeline.CostPoint, at policy.Time) int {
		return int(min(max(p.At-at, -1), 1))
	})
	switch {
	case found:
		return spent(&points[i].Costs), true
	case i == 0 || i == len(points):
		return 0, false
	}
	a, b := &points[i-1], &points[i]
	part := float64(at-a.At) / float64(b.At-a.At)
	return spent(&a.Costs) + (spent(&b.Costs) - spent(&a.Costs)).Times(part), true
}

// saved returns the net savings of a run at the shown time; false where there is
// no baseline or it has not come that far.
func (m *Model) saved(s *show) (policy.Money, bool) {
	if m.baseline == nil || m.baseline == s || m.at() > min(m.baseline.until, s.until) {
		return 0, false
	}
	return spent(&m.baseline.frame.Costs) - spent(&s.frame.Costs), true
}

// savingsChart is the chart of all lines, with the end value of the oracle where
// it is known.
func (m *Model) savingsChart() draw.Chart {
	s, now := m.shown(), m.at()
	c := draw.Chart{From: s.from, To: s.to, Now: now, Unit: draw.UnitDollars, Zero: true, Empty: "simulating…"}
	for i := range m.savings {
		l := m.savings[i].Series
		if saved, ok := m.saved(m.savings[i].show); ok {
			l = through(l, now, saved.Float())
		} else if s := m.savings[i].show; m.baseline == nil && now <= s.until {
			l = through(l, now, spent(&s.frame.Costs).Float())
		}
		c.Series = append(c.Series, l)
	}
	if saved, _, ok := m.attainable(); ok {
		c.Levels = []draw.Level{{Name: "oracle", Value: saved.Float(), Ink: draw.Good, End: true}}
	}
	return c
}

// through returns a line that goes through a value at an instant too, so that a
// chart says the same as the figures beside it.
func through(l draw.Series, at policy.Time, value float64) draw.Series {
	i, found := slices.BinarySearch(l.At, at)
	if !found {
		l.At = slices.Insert(slices.Clip(l.At), i, at)
		l.Value = slices.Insert(slices.Clip(l.Value), i, value)
	}
	return l
}

// letter is the key of the i-th line of a chart.
func letter(i int) rune { return 'A' + rune(i%26) }
