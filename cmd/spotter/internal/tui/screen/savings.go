package screen

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A savingsPane shows the costs and savings of the runs of a comparison.
type savingsPane struct {
	*comparison
	focused *show // the run whose window the chart shows
}

// chart returns the chart of all lines, with the final value of the oracle if it is known.
func (p *savingsPane) chart() draw.Chart {
	now := p.now
	c := draw.Chart{From: p.focused.from, To: p.focused.to, Now: now, Unit: draw.UnitDollars, Zero: true,
		Empty: "simulating…"}
	for i := range p.savings {
		l := p.savings[i].Series
		if saved, ok := p.saved(p.savings[i].show); ok {
			l = through(l, now, saved.Float())
		} else if s := p.savings[i].show; p.baseline == nil && now <= s.until {
			l = through(l, now, spent(&s.frame.Costs).Float())
		}
		c.Series = append(c.Series, l)
	}
	if saved, _, ok := p.attainable(); ok {
		c.Levels = []draw.Level{{Name: "oracle", Value: saved.Float(), Ink: draw.Good, End: true}}
	}
	return c
}

// through returns a line with an additional point, so that the chart agrees with the figures next
// to it.
func through(l draw.Series, at policy.Time, value float64) draw.Series {
	i, found := slices.BinarySearch(l.At, at)
	if !found {
		l.At = slices.Insert(slices.Clip(l.At), i, at)
		l.Value = slices.Insert(slices.Clip(l.Value), i, value)
	}
	return l
}

// policyMin is the width below which a figure is omitted instead of shortening the name of a policy
// further.
const policyMin = 24

// savedColumn is the index of the first column about savings.
const savedColumn = 5

// table returns the results of each run at the time shown.
func (p *savingsPane) table(sel *selection) draw.Table {
	t := draw.Table{Selected: sel.row(Savings, p.names()), Columns: []draw.Column{{Title: "policy", Min: policyMin,
		Middle: true}, {Title: "bill", Right: true, Rank: 1},
		{Title: "outage", Right: true, Rank: 2}, {Title: "notices", Right: true, Rank: 5}, {Title: "reclaims", Right: true,
			Rank: 4},
		{Title: "net savings", Right: true}, {Title: "%", Right: true, Rank: 3}}}
	for i, s := range p.shows {
		t.Rows = append(t.Rows, p.row(s, i))
	}
	if b := p.baseline; b != nil && !p.isShown(b) {
		t.Rows = append(t.Rows, p.row(b, -1))
	}
	if p.baseline == nil { // without a baseline there are no savings
		t.Columns = t.Columns[:savedColumn]
	}
	t.Empty = sel.empty(Savings, "")
	return t
}

// row returns the row of one run. series is the index of its line in the chart, or -1.
func (p *savingsPane) row(s *show, series int) []draw.Field {
	k := &s.frame.Costs
	name := draw.Field{Text: "  " + s.Name, Ink: draw.Muted}
	if series >= 0 {
		name = draw.Field{Text: string(letter(series)) + " " + s.Name, Ink: draw.SeriesInk(series)}
	}
	row := []draw.Field{name, {Text: figures.Dollars(k.Bill.Float())}, {Text: figures.Dollars(k.OutageCost.Float())},
		{Text: figures.Integer(k.Notices)}, {Text: figures.Integer(k.Reclaims)}, {Text: figures.Unknown}, {Text: figures.Unknown}}
	if s.about.Recorded {
		row[2].Text = figures.Unknown
	}
	if p.now > s.until {
		return []draw.Field{name, {Text: "simulating…", Ink: draw.Accent}}
	}
	if saved, ok := p.saved(s); ok {
		row[savedColumn] = draw.Field{Text: figures.DollarChange(saved.Float()), Ink: gain(saved)}
		row[savedColumn+1] = draw.Field{Text: partOf(saved, p.baseline.frame.Costs.Bill), Ink: gain(saved)}
	}
	return row
}

// statuses return the reference of savings, their upper bound, and what is left of the loss budget
// of the focused run, the longest text first. The last text has only the loss budget, since the
// chart marks the oracle.
func (p *savingsPane) statuses() []string {
	against, short := p.against()
	loss := lossBudget(p.focused)
	if loss == "" {
		return []string{against, short}
	}
	return []string{against + " · " + loss, short + " · " + loss, loss}
}

// against returns the reference of savings or their upper bound, in a long and a short form.
func (p *savingsPane) against() (text, short string) {
	if p.baseline == nil {
		text = "no on-demand run to compare with"
		return text, text
	}
	switch saved, bill, ok := p.attainable(); {
	case ok:
		short = "oracle ≤ " + figures.DollarChange(saved.Float())
		return short + share(saved, bill), short
	case len(p.baseline.gpuBudgets) > 0:
		text = "no oracle under budgets"
		return text, text
	}
	text = "against on-demand"
	return text, text
}

// lossBudget describes what is left of the loss budget of a run at the time shown. It is empty if
// the policy has no loss budget.
func lossBudget(s *show) string {
	b := &s.frame.LossBudget
	switch {
	case b.Pools == 0:
		return ""
	case b.UsedUp == 0:
		return "loss budget " + figures.Dollars(b.Left.Float()) + " left"
	case b.UsedUp < b.Pools:
		return fmt.Sprintf("loss budget used up in %d of %d pools", b.UsedUp, b.Pools)
	}
	return "loss budget used up"
}

// names returns the names of the rows.
func (p *savingsPane) names() []string {
	var names []string
	for _, s := range p.all() {
		names = append(names, s.Name)
	}
	return names
}

// parts divides the pane into its chart and its table.
func (p *savingsPane) parts(in rect) (chart, table rect) {
	rows := len(p.all()) + 1
	if in.h < rows+4 {
		return rect{}, in
	}
	table, chart = in.cut(rows)
	return chart, table
}

func (p *savingsPane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	for _, text := range p.statuses() {
		if b.Right = sel.status(Savings, text); draw.Width(b.Right) <= b.StatusMax(c) {
			break
		}
	}
	in := b.Frame(c)
	chart, table := p.parts(rect{0, 0, in.Width(), in.Height()})
	p.chart().Draw(on(in, chart))
	p.table(sel).Draw(on(in, table))
}

func (p *savingsPane) move(_ rect, dx, dy int, sel *selection) { sel.move(Savings, dx+dy, p.names()) }

func (p *savingsPane) pick(size rect, x, y int, sel *selection) hit {
	chart, table := p.parts(size)
	if !table.holds(x, y) {
		return pickTime(p.chart(), chart, x, y)
	}
	return sel.pick(Savings, p.table(sel), table.h, y-table.y, p.names())
}
