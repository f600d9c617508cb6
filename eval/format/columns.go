package format

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A column is one figure of the comparison as tables show it.
type column struct {
	// top and under are the two lines of its heading.
	top, under string

	// rank says what goes first when the terminal is narrow: the greatest. 0
	// stays always.
	rank int

	cell func(*eval.Report, *eval.PolicyReport) string

	// short says that the table has it without being asked for all, about is what its legend says,
	// and worse reports whether a cell is worse than the baseline's; nil where that is not asked.
	short bool
	about string
	worse func(*eval.Report, *eval.PolicyReport) bool
}

// columns answer, from left to right: who saves how much, is it better than
// the baseline, at what outage, and how.
var columns = []column{
	{top: "POLICY", cell: label, short: true},
	{top: "BILL", under: "$", cell: median("bill_usd", figures.Amount), short: true},
	{top: "SAVED", under: "$", cell: median("net_savings_usd", figures.Amount)},
	{top: "SAVED", under: "%", cell: median("net_savings_pct", percent), short: true, about: "SAVED is in percent of the on-demand bill, outages deducted"},
	{top: "CHANGE ON *", under: "% [interval]", cell: change, short: true, worse: changeWorse, about: "CHANGE ON * is SAVED less the baseline's, run by run"},
	{top: "OUTAGE MIN", under: "med / max", cell: medianAndMax("outage_minutes"), short: true},
	{top: "INCIDENTS", under: "med / max", rank: 1, cell: medianAndMax("outage_incidents")},
	{top: "LONGEST", under: "max", rank: 2, cell: figureOf("outage_longest_s", func(s *eval.Summary) string { return figures.Duration(time.Duration(s.Max * float64(time.Second))) })},
	{top: "VS *", under: "max", rank: 1, cell: figureOf("outage_delta", func(s *eval.Summary) string { return figures.Signed(s.Max, 0) }), short: true, worse: outageWorse,
		about: "VS * is the outage minutes beyond the baseline's, in the worst run"},
	{top: "MOVED", under: "/pod-day", rank: 4, cell: median("voluntary_evictions_per_pod_day", rate), about: "MOVED are pods evicted by drains and consolidation"},
	{top: "LOST", under: "/pod-day", rank: 5, cell: median("reclaim_evictions_per_pod_day", rate), about: "LOST are pods that went down with reclaimed nodes"},
	{top: "SPOT", under: "%", rank: 2, cell: median("spot_share", share)},
	{top: "REGRET", under: "%", rank: 3, cell: median("regret", share), about: "REGRET is how far the bound of the " + eval.OracleName + " is, in percent of the on-demand bill"},
}

// changeWorse reports whether p saves less than the baseline, beyond what chance explains where
// that is known.
func changeWorse(r *eval.Report, p *eval.PolicyReport) bool {
	s := p.Summary("net_savings_delta_pct")
	if i := s.MedianInterval; i != nil {
		return i.High < 0
	}
	return s.N > 0 && s.Median < 0 && p.Policy != r.Config.Baseline
}

// outageWorse reports whether a run of p has more outage minutes than the baseline's.
func outageWorse(_ *eval.Report, p *eval.PolicyReport) bool {
	s := p.Summary("outage_delta")
	return s.N > 0 && s.Max > 0
}

// figureOf makes a cell of the summary of a metric.
func figureOf(metric string, format func(*eval.Summary) string) func(*eval.Report, *eval.PolicyReport) string {
	return func(_ *eval.Report, p *eval.PolicyReport) string {
		s := p.Summary(metric)
		if s.N == 0 {
			return figures.Unknown
		}
		return format(s)
	}
}

// median makes a cell of the median of a metric.
func median(metric string, format func(float64) string) func(*eval.Report, *eval.PolicyReport) string {
	return figureOf(metric, func(s *eval.Summary) string { return format(s.Median) })
}

// medianAndMax makes a cell of the median and the greatest of a metric.
func medianAndMax(metric string) func(*eval.Report, *eval.PolicyReport) string {
	return figureOf(metric, func(s *eval.Summary) string { return figures.Whole(s.Median) + " / " + figures.Whole(s.Max) })
}

func change(r *eval.Report, p *eval.PolicyReport) string {
	s := p.Summary("net_savings_delta_pct")
	switch {
	case s.N == 0:
		return figures.Unknown
	case p.Policy == r.Config.Baseline:
		return "baseline"
	case s.Need > 0:
		return points(s.Median) + " (" + NeedWords(s.Need, s.Over) + ")"
	case s.MedianInterval == nil:
		return points(s.Median)
	}
	return figures.Interval(s.Median, s.MedianInterval.Low, s.MedianInterval.High, points)
}

// label is the name of p with the marks of tables: * is the baseline, ! does not
// keep the manifests.
func label(r *eval.Report, p *eval.PolicyReport) string {
	name := p.Policy
	if name == r.Config.Baseline {
		name += " *"
	}
	if p.Marked() {
		name += " !"
	}
	return name
}

// groupTables return heading and rows of what else there is to say of one scenario;
// no rows where there is nothing.
var groupTables = []func(*eval.Report, *eval.Group) ([]string, [][]string){windowTable, weeksTable, frontierTable}

// windowTable returns heading and rows of the medians of each window, for the
// change on the baseline, in percent; none where there are many, and where there is
// but one.
func windowTable(r *eval.Report, g *eval.Group) (heading []string, rows [][]string) {
	if g.Many() || len(g.Cases) < 2 {
		return nil, nil
	}
	heading = []string{"CHANGE ON *, %"}
	for _, k := range g.Cases {
		heading = append(heading, Instant(r.Config.Cases[k].Bound.Start))
	}
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Policy == r.Config.Baseline {
			continue
		}
		row := []string{label(r, p)}
		for _, w := range p.Windows {
			row = append(row, textOf(w.Median("net_savings_delta_pct"), points))
		}
		rows = append(rows, row)
	}
	return heading, rows
}

// weeksTable returns heading and rows of what g comes to window by window, with
// the worst of them; none with so few windows that each is listed.
func weeksTable(r *eval.Report, g *eval.Group) (heading []string, rows [][]string) {
	if !g.Many() {
		return nil, nil
	}
	heading = []string{fmt.Sprintf("MEDIAN / WORST OF %d WINDOWS", len(g.Cases)), "SAVED %", "CHANGE ON *", "ABOVE 0 IN %", "ATTAINABLE %", "REGRET %", "AVAILABLE %"}
	for i := range g.Policies {
		p := &g.Policies[i]
		row := []string{label(r, p), pair(p, "net_savings_pct", percent, false)}
		if p.Policy == r.Config.Baseline {
			row = append(row, "baseline", "")
		} else {
			row = append(row, pair(p, "net_savings_delta_pct", points, false), figures.Unknown)
			if s := p.Summary("net_savings_delta_pct"); s.N > 0 {
				row[3] = share(s.Windows.Positive)
			}
		}
		three := func(x float64) string { return figures.Number(x*100, 3) }
		row = append(row, pair(p, "attainable_share", share, false), pair(p, "regret", share, true), pair(p, "availability", three, false))
		rows = append(rows, row)
	}
	return heading, rows
}

// pair formats the median of the windows' values and the worst of them: the
// greatest where more is worse, else the least.
func pair(p *eval.PolicyReport, metric string, format func(float64) string, moreIsWorse bool) string {
	s := p.Summary(metric)
	if s.N == 0 {
		return figures.Unknown
	}
	worst := s.Windows.Min
	if moreIsWorse {
		worst = s.Windows.Max
	}
	return format(s.Windows.Median) + " / " + format(worst)
}

// frontierTable returns heading and rows of the frontier of g and of every
// other policy with it; none where there is no frontier.
func frontierTable(r *eval.Report, g *eval.Group) (heading []string, rows [][]string) {
	mixes, best, ok := r.Frontier(g)
	if !ok {
		return nil, nil
	}
	heading = []string{"FRONTIER OF static", "SAVED %", "OUTAGE COST % (mean)", "OUTAGE MIN (max)", "OVER BEST, %", "(worst window)"}
	for _, p := range mixes {
		rows = append(rows, frontierRow(r, g, p, best))
	}
	for p := range r.Config.Policies {
		if !slices.Contains(mixes, p) {
			rows = append(rows, frontierRow(r, g, p, best))
		}
	}
	return heading, rows
}

// frontierRow returns the row of policy p compared with the best fixed mix.
func frontierRow(r *eval.Report, g *eval.Group, p, best int) []string {
	x := &g.Policies[p]
	row := []string{label(r, x), figures.Unknown, figures.Unknown, figures.Unknown, figures.Unknown, figures.Unknown}
	saved, bill, outage := x.Summary("net_savings_pct"), x.Summary("on_demand_bill_usd"), x.Summary("outage_cost_usd")
	if saved.N == 0 {
		return row
	}
	row[1] = percent(saved.Median)
	if bill.Mean > 0 {
		row[2] = figures.Number(outage.Mean/bill.Mean*100, 2)
	}
	row[3] = figures.Whole(x.Summary("outage_minutes").Max)
	if p == best {
		row[4], row[5] = "best", ""
		return row
	}
	gate := eval.Gate{Policy: x.Policy, Versus: r.Config.Policies[best], Metric: "net_savings_delta_pct"}
	gate.Statistic = eval.Median
	row[4] = textOf(gate.Measure(r, g, p).Actual, points)
	gate.Statistic = eval.WindowMin
	row[5] = textOf(gate.Measure(r, g, p).Actual, points)
	return row
}
