package format

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A policyRow is the row of a policy in one scenario of a report.
type policyRow struct {
	r *eval.Report
	*eval.PolicyReport
}

// rowsOf returns a row for each policy of g, in the order of Config.Policies.
func rowsOf(r *eval.Report, g *eval.Group) (rows []policyRow) {
	for p := range g.Policies {
		rows = append(rows, policyRow{r, &g.Policies[p]})
	}
	return rows
}

// columns shows, from left to right, how much a policy saves, whether it is better than the
// baseline, its outages, and how it saves.
var columns = []column[policyRow]{
	{Heading: Heading{Top: "POLICY"}, cell: policyRow.label},
	{Heading: Heading{Top: "BILL", Under: "$"}, cell: median("bill_usd", figures.Amount)},
	{Heading: Heading{Top: "SAVED", Under: "$", Wide: true}, cell: median("net_savings_usd", figures.Amount)},
	{Heading: Heading{Top: "SAVED", Under: "%", About: "SAVED is in percent of the on-demand bill, outages deducted."},
		cell: median("net_savings_pct", percent)},
	{Heading: Heading{Top: "CHANGE ON *", Under: "% [interval]",
		About: "CHANGE ON * is SAVED less the baseline's, run by run."},
		cell: policyRow.change, tone: policyRow.changeTone},
	{Heading: Heading{Top: "OUTAGE MIN", Under: "med / max"}, cell: medianAndMax("outage_minutes")},
	{Heading: Heading{Top: "FROM SPOT", Under: "med / max", Rank: 1,
		About: "FROM SPOT is the part of the outage minutes that would not be without Spot."},
		cell: medianAndMax("outage_spot_minutes")},
	{Heading: Heading{Top: "INCIDENTS", Under: "med / max", Wide: true, Rank: 1}, cell: medianAndMax("outage_incidents")},
	{Heading: Heading{Top: "LONGEST", Under: "max", Wide: true, Rank: 2}, cell: figureOf("outage_longest_s",
		func(s *eval.Summary) string {
			return figures.Duration(time.Duration(s.Max * float64(time.Second)))
		})},
	{Heading: Heading{Top: "VS *", Under: "max", Rank: 2,
		About: "VS * is the outage minutes beyond the baseline's, in the worst run."},
		cell: signedMax("outage_delta"), tone: policyRow.outageTone},
	{Heading: Heading{Top: "SPOT VS *", Under: "max", Wide: true, Rank: 4,
		About: "SPOT VS * is the same of outage minutes from Spot."}, cell: signedMax("outage_spot_delta")},
	{Heading: Heading{Top: "MOVED", Under: "/pod-day", Wide: true, Rank: 4,
		About: "MOVED are pods evicted by drains and consolidation."},
		cell: median("voluntary_evictions_per_pod_day", rate)},
	{Heading: Heading{Top: "LOST", Under: "/pod-day", Wide: true, Rank: 5,
		About: "LOST are pods that went down with reclaimed nodes."},
		cell: median("reclaim_evictions_per_pod_day", rate)},
	{Heading: Heading{Top: "SPOT", Under: "%", Wide: true, Rank: 2}, cell: median("spot_share", share)},
	{Heading: Heading{Top: "REGRET", Under: "%", Wide: true, Rank: 3,
		About: "REGRET is how far the bound of the " + eval.OracleName + " is, in percent of the on-demand bill."},
		cell: median("regret", share)},
}

// changeTone returns Bad if p saves less than the baseline. If there is an interval, all of it must
// be below 0.
func (p policyRow) changeTone() Tone {
	s := p.Summary("net_savings_delta_pct")
	if i := s.MedianInterval; i != nil && i.High < 0 ||
		i == nil && s.N > 0 && s.Median < 0 && p.Policy != p.r.Config.Baseline {
		return Bad
	}
	return Plain
}

// outageTone returns Bad if a run of p has more outage minutes than the baseline.
func (p policyRow) outageTone() Tone {
	if s := p.Summary("outage_delta"); s.N > 0 && s.Max > 0 {
		return Bad
	}
	return Plain
}

// figureOf returns a cell that formats the summary of a metric.
func figureOf(metric string, format func(*eval.Summary) string) func(policyRow) string {
	return func(p policyRow) string {
		s := p.Summary(metric)
		if s.N == 0 {
			return figures.Unknown
		}
		return format(s)
	}
}

// median returns a cell with the median of a metric.
func median(metric string, format func(float64) string) func(policyRow) string {
	return figureOf(metric, func(s *eval.Summary) string { return format(s.Median) })
}

// signedMax returns a cell with the signed maximum of a metric.
func signedMax(metric string) func(policyRow) string {
	return figureOf(metric, func(s *eval.Summary) string { return figures.Signed(s.Max, 0) })
}

// medianAndMax returns a cell with the median and the maximum of a metric.
func medianAndMax(metric string) func(policyRow) string { return figureOf(metric, medianMax) }

func medianMax(s *eval.Summary) string { return figures.Whole(s.Median) + " / " + figures.Whole(s.Max) }

func (p policyRow) change() string {
	s := p.Summary("net_savings_delta_pct")
	switch {
	case s.N == 0:
		return figures.Unknown
	case p.Policy == p.r.Config.Baseline:
		return "baseline"
	}
	return withInterval(s, points)
}

// withInterval formats a median with its interval, or with the number of units that an interval
// requires.
func withInterval(s *eval.Summary, number func(float64) string) string {
	switch i := s.MedianInterval; {
	case i != nil:
		return figures.Interval(s.Median, i.Low, i.High, number)
	case s.Need > 0:
		return number(s.Median) + " (" + NeedWords(s.Need, s.Over) + ")"
	}
	return number(s.Median)
}

// label returns the name of p with its marks.
func (p policyRow) label() string { return labelOf(p.r, p.Policy, p.Marked()) }

// labelOf returns the name of a policy with the marks of tables: * for the baseline, ! for a
// violation of the manifests.
func labelOf(r *eval.Report, name string, marked bool) string {
	if name == r.Config.Baseline {
		name += " *"
	}
	if marked {
		name += " !"
	}
	return name
}

// windowTable returns the median change relative to the baseline in each window, in percent. It is
// empty if there is one window or if there are many.
func windowTable(r *eval.Report, g *eval.Group) (t Grid) {
	if g.Many() || len(g.Cases) < 2 {
		return t
	}
	t.Headings = Headings("CHANGE ON *, %")
	for _, k := range g.Cases {
		t.Headings = append(t.Headings, Heading{Top: Instant(r.Config.Cases[k].Bound.Start)})
	}
	for _, p := range rowsOf(r, g) {
		if p.Policy == r.Config.Baseline {
			continue
		}
		row := Cells(p.label())
		for _, w := range p.Windows {
			row.Cells = append(row.Cells, Cell{Text: textOf(w.Median("net_savings_delta_pct"), points)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// weeksTable returns the median and the worst of the windows of g. It is empty if there are few
// windows, which are then listed individually.
func weeksTable(r *eval.Report, g *eval.Group) Grid {
	if !g.Many() {
		return Grid{}
	}
	of := func(top string, cell func(policyRow) string) column[policyRow] {
		return column[policyRow]{Heading: Heading{Top: top}, cell: cell}
	}
	against := func(other string, cell func(policyRow) string) func(policyRow) string {
		return func(p policyRow) string {
			if p.Policy == r.Config.Baseline {
				return other
			}
			return cell(p)
		}
	}
	return gridOf([]column[policyRow]{
		of(fmt.Sprintf("MEDIAN / WORST OF %d WINDOWS", len(g.Cases)), policyRow.label),
		of("SAVED %", pair("net_savings_pct", percent, false)),
		of("CHANGE ON *", against("baseline", pair("net_savings_delta_pct", points, false))),
		of("ABOVE 0 IN %", against("", figureOf("net_savings_delta_pct",
			func(s *eval.Summary) string { return share(s.Windows.Positive) }))),
		of("ATTAINABLE %", pair("attainable_share", share, false)),
		of("REGRET %", pair("regret", share, true)),
		of("AVAILABLE %", pair("availability", func(x float64) string { return figures.Number(x*100, 3) }, false)),
	}, rowsOf(r, g), nil)
}

// pair returns a cell with the median and the worst of the windows' values. The worst is the
// maximum if moreIsWorse, else the minimum.
func pair(metric string, format func(float64) string, moreIsWorse bool) func(policyRow) string {
	return figureOf(metric, func(s *eval.Summary) string {
		worst := s.Windows.Min
		if moreIsWorse {
			worst = s.Windows.Max
		}
		return format(s.Windows.Median) + " / " + format(worst)
	})
}

// frontierTable returns the frontier of g, followed by all other policies. It is empty if there is
// no frontier.
func frontierTable(r *eval.Report, g *eval.Group) Grid {
	mixes, best, ok := r.Frontier(g)
	if !ok {
		return Grid{}
	}
	t := Grid{Headings: Headings("FRONTIER OF static", "SAVED %", "OUTAGE COST % (mean)", "OUTAGE MIN (max)",
		"FROM SPOT (max)",
		"OVER BEST, %", "(worst window)")}
	for p := range r.Config.Policies {
		if !slices.Contains(mixes, p) {
			mixes = append(mixes, p)
		}
	}
	for _, p := range mixes {
		t.Rows = append(t.Rows, Cells(frontierRow(r, g, p, best)...))
	}
	return t
}

// frontierRow returns the row of policy p, compared with the best fixed mix.
func frontierRow(r *eval.Report, g *eval.Group, p, best int) []string {
	x := policyRow{r, &g.Policies[p]}
	row := append([]string{x.label()}, slices.Repeat([]string{figures.Unknown}, 6)...)
	saved, bill, outage := x.Summary("net_savings_pct"), x.Summary("on_demand_bill_usd"), x.Summary("outage_cost_usd")
	if saved.N == 0 {
		return row
	}
	row[1] = percent(saved.Median)
	if bill.Mean > 0 {
		row[2] = figures.Number(outage.Mean/bill.Mean*100, 2)
	}
	row[3], row[4] = figures.Whole(x.Summary("outage_minutes").Max), figures.Whole(x.Summary("outage_spot_minutes").Max)
	if p == best {
		row[5], row[6] = "best", ""
		return row
	}
	gate := eval.Gate{Policy: x.Policy, Versus: r.Config.Policies[best], Metric: "net_savings_delta_pct"}
	for i, statistic := range []eval.Statistic{eval.Median, eval.WindowMin} {
		gate.Statistic = statistic
		row[5+i] = textOf(gate.Measure(r, g, p).Actual, points)
	}
	return row
}
