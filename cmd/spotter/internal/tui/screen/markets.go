package screen

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
)

// A marketsPane shows the prices of a run's markets and the run's nodes in them.
type marketsPane struct {
	tablePane

	// ids are the indexes of the markets in the rows.
	ids []int32

	// charted are the indexes of the markets in the charts, in order; the charts contain the run
	// until chartedUntil.
	charted         []int32
	prices, hazards draw.Chart
	chartedUntil    policy.Time
}

// list lists the markets in descending order of their nodes.
func (p *marketsPane) list(now policy.Time, sel *selection) {
	s := p.run
	p.ids = p.ids[:0]
	for i := range s.markets {
		if matches(sel.filters[Markets], s.markets[i].Name) {
			p.ids = append(p.ids, int32(i))
		}
	}
	slices.SortStableFunc(p.ids, func(a, b int32) int { return cmp.Compare(s.inUse[b], s.inUse[a]) })
	p.chart(now, sel.chosen[Markets])
	var names []string
	t := marketTable
	for _, id := range p.ids {
		t.Rows = append(t.Rows, p.row(id, slices.Index(p.charted, id), s.reclaimed(id, now)))
		names = append(names, s.markets[id].Name)
	}
	p.show(t, names, len(s.markets), sel)
	inUse := 0
	for _, n := range s.inUse {
		if n > 0 {
			inUse++
		}
	}
	p.status += fmt.Sprintf(" · %d in use", inUse)
}

// chartedMax is the maximum number of markets in a chart, and chartPoints the number of points of
// each: two for every column of the widest chart.
const (
	chartedMax  = 5
	chartPoints = 400
)

// chart creates the charts of the Spot markets with the most nodes and of the selected market.
// Prices are read again only when other markets are shown or more of the run is available.
func (p *marketsPane) chart(now policy.Time, selected string) {
	s := p.run
	p.prices.Now, p.hazards.Now = now, now
	charted := p.charts(selected)
	if slices.Equal(charted, p.charted) && s.until == p.chartedUntil {
		return
	}
	p.charted, p.chartedUntil = charted, s.until
	empty := "no Spot market to show"
	if s.until <= s.from {
		empty = "simulating the warm-up…"
	}
	price := draw.Chart{From: s.from, To: s.to, Now: now, Until: s.until, Unit: draw.UnitPrice, Log: true, Empty: empty}
	hazard := draw.Chart{From: s.from, To: s.to, Now: now, Until: s.until, Unit: draw.UnitPercent, Zero: true,
		Empty: "no forecast"}
	for i, id := range charted {
		m := &s.markets[id]
		line := draw.Series{Name: m.Type + " " + s.shortZone(m.Zone), Short: shortType(m.Type) + " " + s.shortZone(m.Zone),
			Key: letter(i), Ink: draw.SeriesInk(i)}
		at, prices := s.Timeline.Prices(int(id), s.from, s.until, chartPoints)
		line.At, line.Value = at, make([]float64, len(prices))
		for k, price := range prices {
			line.Value[k] = math.NaN()
			if price != policy.NoPrice {
				line.Value[k] = price.Float()
			}
		}
		price.Series = append(price.Series, line)
		line.At, line.Value = s.Timeline.Hazards(int(id), s.from, s.until, chartPoints)
		line.Value = slices.Clone(line.Value)
		for k := range line.Value {
			line.Value[k] = perMonth(line.Value[k])
		}
		hazard.Series = append(hazard.Series, line)
		price.Marks = append(price.Marks, p.reclaimsOf(id, i)...)
	}
	if len(charted) > 0 {
		m := &s.markets[charted[0]]
		price.Levels = []draw.Level{{Name: "on-demand " + m.Type, Short: "on-demand", Value: m.OnDemand.Float(),
			Ink: draw.OnDemand}}
	}
	p.prices, p.hazards = price, hazard
}

// shortType returns a short name of an instance type.
func shortType(name string) string { return strings.Replace(name, "xlarge", "xl", 1) }

// charts returns the indexes of the markets to chart: the selected market and the Spot markets in
// use. Without these it returns the Spot markets of the first listed instance type.
func (p *marketsPane) charts(selected string) []int32 {
	s := p.run
	var all []int32
	if id := s.market(selected); id >= 0 {
		all = append(all, id)
	}
	for _, id := range p.ids {
		if len(all) < chartedMax && s.markets[id].Spot && s.inUse[id] > 0 && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	if len(all) > 0 || len(p.ids) == 0 {
		return all
	}
	used := s.markets[p.ids[0]].Type
	for _, id := range p.ids {
		if len(all) < chartedMax && s.markets[id].Spot && s.markets[id].Type == used {
			all = append(all, id)
		}
	}
	return all
}

// reclaimsOf returns the marks of the nodes reclaimed in a market.
func (p *marketsPane) reclaimsOf(market int32, series int) []draw.Mark {
	var all []draw.Mark
	for _, r := range p.run.reclaims {
		if r.market == market && r.at >= p.run.from {
			all = append(all, draw.Mark{At: r.at, Glyph: '×', Ink: draw.SeriesInk(series)})
		}
	}
	return all
}

// letter returns the key of the i-th line of a chart.
func letter(i int) rune { return 'A' + rune(i%26) }

// parts divides the pane into its charts and its table.
func (p *marketsPane) parts(in rect) (charts, table rect) {
	if in.h < 9 {
		return rect{}, in
	}
	return in.cut(in.h - max(3, min(in.h*2/5, 14)))
}

func (p *marketsPane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	b.Right = sel.status(Markets, p.status)
	in := b.Frame(c)
	charts, table := p.parts(rect{0, 0, in.Width(), in.Height()})
	p.drawCharts(on(in, charts))
	p.table.Draw(on(in, table))
}

// bothCharts is the height from which both prices and hazard are drawn.
const bothCharts = 16

// drawCharts draws prices, and the hazard below them if there is space for both.
func (p *marketsPane) drawCharts(c draw.Canvas) {
	if c.Height() < bothCharts {
		p.prices.Draw(c)
		return
	}
	price, hazard := c.Cut(c.Height() * 3 / 5)
	title, price := price.Cut(1)
	title.Text(1, 0, "Price per node-hour, × a reclaim", draw.Style{Ink: draw.Muted})
	p.prices.Draw(price)
	title, hazard = hazard.Cut(1)
	title.Text(1, 0, "Forecast hazard: part of the nodes taken within a month", draw.Style{Ink: draw.Muted})
	p.hazards.Draw(hazard)
}

func (p *marketsPane) pick(size rect, x, y int, sel *selection) hit {
	charts, table := p.parts(size)
	if !table.holds(x, y) {
		return pickTime(p.prices, charts, x, y)
	}
	return p.tablePane.pick(table, x, y-table.y, sel)
}
