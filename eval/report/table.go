package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A table is a table of the page.
type table struct {
	Caption string
	Note    string
	Head    []heading
	Rows    [][]cell

	// Sortable reports whether readers may sort the rows.
	Sortable bool
}

// A heading is the heading of a column. Words reports whether the column contains words instead of
// numbers.
type heading struct {
	Text, Unit string
	Words      bool
}

// headings parses headings of the form "text
//
// unit", which start with ' for columns of words.
func headings(all ...string) (out []heading) {
	for _, s := range all {
		text, words := strings.CutPrefix(s, "'")
		text, unit, _ := strings.Cut(text, "|")
		out = append(out, heading{text, unit, words})
	}
	return out
}

// A cell is a cell of a table. The first cell of a row is its heading.
type cell struct {
	Text, Sub string

	// Class is the CSS class: "good", "bad", "best" or "prose", or "winner" in the first cell of a
	// row.
	Class string

	// Command is a command that can be copied, shown below the text.
	Command string

	// Week, in the first cell of a row, is the number of the run that the row opens, from 1; 0 if
	// it opens no run.
	Week int
}

// unknown is the cell of an unknown value.
var unknown = cell{Text: figures.Unknown}

// texts returns cells with the given texts.
func texts(all ...string) (out []cell) {
	for _, s := range all {
		out = append(out, cell{Text: s})
	}
	return out
}

// badIf returns a cell that is highlighted if bad is true.
func badIf(bad bool, text string) cell {
	if bad {
		return cell{Text: text, Class: "bad"}
	}
	return cell{Text: text}
}

// A policyRow is the row of a policy in one scenario.
type policyRow struct {
	*eval.PolicyReport
	r *eval.Report
	g *eval.Group
	p int
}

// policyRows returns a row for each policy of g, those with the highest savings first.
func policyRows(r *eval.Report, g *eval.Group) (rows []policyRow) {
	for _, p := range r.Order(g) {
		rows = append(rows, policyRow{&g.Policies[p], r, g, p})
	}
	return rows
}

// A column is a column of the comparison of policies.
type column struct {
	heading string
	cell    func(policyRow) cell
}

// columns shows, from left to right, how much a policy saves, whether it is better than the
// baseline, its outages, and how it saves. More columns would not fit on a screen of 1,280 pixels;
// the table of outages has further values.
var columns = []column{
	{"Bill|$ a month, median", policyRow.bill},
	{"Saved|$ a month, median", policyRow.savedAMonth},
	{"Saved|% of on-demand bill", interval("net_savings_pct", oneDecimal)},
	{"Over baseline|$ a month", func(x policyRow) cell {
		s := x.r.OverBaseline(x.g, x.p)
		return x.versus(&s, figures.DollarChange)
	}},
	{"Change on baseline|points", func(x policyRow) cell {
		return x.versus(x.Summary("net_savings_delta_pct"), func(v float64) string { return figures.Signed(v, 1) })
	}},
	{"Outage minutes|median / most", medianAndMost("outage_minutes")},
	{"From Spot|minutes, median / most", medianAndMost("outage_spot_minutes")},
	{"Against baseline|most, minutes", policyRow.against},
	{"Outage cost|mean",
		summaryCell("outage_cost_usd", func(s *eval.Summary) cell { return cell{Text: figures.Dollars(s.Mean)} })},
	{"Available|median", median("availability", availability)},
	{"Spot share|median", median("spot_share", share)},
	{"Moved|per pod-day", median("voluntary_evictions_per_pod_day", rate)},
	{"Lost|per pod-day", median("reclaim_evictions_per_pod_day", rate)},
	{"Of the attainable|median", median("attainable_share", share)},
	{"Regret|median", median("regret", share)},
}

// columnsOf returns the columns for r. If the current cost of the cluster is known, savings are
// only relative to that.
func columnsOf(r *eval.Report) []column {
	if r.Config.Today == nil {
		return columns
	}
	const comparing = 5 // number of columns with the bill and with savings relative to on-demand and the baseline
	own := []column{{"A month|$, median", policyRow.bill}, {"Saved|% of " + r.Config.Today.Name,
		interval(eval.MetricSavedToday, oneDecimal)}}
	own = append(own, columns[comparing:]...)
	return slices.DeleteFunc(own, func(c column) bool { return strings.HasPrefix(c.heading, "Of the attainable") })
}

func oneDecimal(x float64) string { return figures.Number(x, 1) }

// summaryCell returns a function that formats the summary of a metric.
func summaryCell(metric string, write func(*eval.Summary) cell) func(policyRow) cell {
	return func(x policyRow) cell {
		if s := x.Summary(metric); s.N > 0 {
			return write(s)
		}
		return unknown
	}
}

// median returns a function that formats the median of a metric.
func median(metric string, write func(float64) string) func(policyRow) cell {
	return summaryCell(metric, func(s *eval.Summary) cell { return cell{Text: write(s.Median)} })
}

// interval returns a function that formats the median of a metric with its interval below.
func interval(metric string, write func(float64) string) func(policyRow) cell {
	return summaryCell(metric, func(s *eval.Summary) cell {
		return cell{Text: write(s.Median),
			Sub: between(s.MedianInterval, write)}
	})
}

// between formats an interval; it is empty for nil.
func between(i *stats.Interval, write func(float64) string) string {
	if i == nil {
		return ""
	}
	return write(i.Low) + " to " + write(i.High)
}

// medianAndMost returns a function that formats the median and the maximum of a metric.
func medianAndMost(metric string) func(policyRow) cell {
	return summaryCell(metric, func(s *eval.Summary) cell {
		return cell{Text: figures.Whole(s.Median) + " / " +
			figures.Whole(s.Max)}
	})
}

// months returns the factor from dollars per window of g to dollars per month.
func months(r *eval.Report, g *eval.Group) float64 {
	window := r.Config.Cases[g.Cases[0]].Bound.Duration
	if t := r.Config.Today; t != nil {
		return t.PerMonth(window)
	}
	return eval.MonthHours / window.Hours()
}

func (x policyRow) bill() cell {
	write := func(v float64) string { return figures.Dollars(v * months(x.r, x.g)) }
	if x.r.Config.Today != nil {
		return interval("bill_usd", write)(x)
	}
	return median("bill_usd", write)(x)
}

func (x policyRow) savedAMonth() cell {
	return median("net_savings_usd", func(v float64) string { return figures.Dollars(v * months(x.r, x.g)) })(x)
}

// versus returns a cell of a comparison with the baseline, coloured if its interval does not
// contain 0.
func (x policyRow) versus(s *eval.Summary, write func(float64) string) cell {
	switch {
	case x.Policy == x.r.Config.Baseline:
		return cell{Text: "baseline"}
	case s.N == 0:
		return unknown
	}
	c := cell{Text: write(s.Median), Sub: between(s.MedianInterval, write)}
	if i := s.MedianInterval; i != nil && i.Low > 0 {
		c.Class = "good"
	} else if i != nil && i.High < 0 {
		c.Class = "bad"
	}
	return c
}

func (x policyRow) against() cell {
	if x.Policy == x.r.Config.Baseline {
		return cell{Text: "baseline"}
	}
	return summaryCell("outage_delta", func(s *eval.Summary) cell {
		c := badIf(s.Max > 0, figures.Signed(s.Max, 0))
		if spot := x.Summary("outage_spot_delta"); spot.N > 0 {
			c.Sub = figures.Signed(spot.Max, 0) + " from Spot"
		}
		return c
	})(x)
}

// name returns the first cell of x: its name, its role, missing runs and violations. The winner has
// a star.
func (x policyRow) name() cell {
	c, about := cell{Text: x.Policy}, []string{role(x.r, x.Policy)}
	if x.Marked() {
		c.Text += mark
		about = append(about, "manifests not kept")
	}
	if x.Missing > 0 {
		about = append(about, fmt.Sprintf("%d of %s missing", x.Missing, figures.Count(x.Runs, "run")))
	}
	if x.p == x.r.Best(x.g) {
		c.Text, c.Class = star+c.Text, "winner"
	}
	c.Sub = strings.TrimPrefix(strings.Join(about, ", "), ", ")
	return c
}

// star precedes the name or the value of the winner. mark follows the name of a policy that
// violates the manifests.
const star, mark = "★ ", " !"

// role returns the role of a reference or baseline policy, else "".
func role(r *eval.Report, p string) string {
	reference, baseline := p == eval.OnDemand && r.Config.Today == nil, p == r.Config.Baseline
	switch {
	case reference && baseline:
		return "reference and baseline"
	case reference:
		return "reference"
	case baseline:
		return "baseline"
	}
	return ""
}

// comparison returns the table of the policies of g.
func comparison(r *eval.Report, g *eval.Group) *table {
	t := &table{Caption: "Policies over " + g.Scenario, Sortable: true, Note: format.IntervalNote(r, g),
		Head: headings("'Policy")}
	metric, _ := r.Config.Savings()
	if slices.ContainsFunc(g.Policies, func(p eval.PolicyReport) bool { return p.Summary(metric).MedianInterval != nil }) {
		t.Note += " Intervals are below their figures."
		if r.Config.Today == nil {
			t.Note += " A change that is certain at that level is coloured and in bold."
		}
	}
	shown := columnsOf(r)
	for _, c := range shown {
		t.Head = append(t.Head, headings(c.heading)...)
	}
	if today := r.Config.Today; today != nil {
		t.Rows = append(t.Rows, todayRow(today, t.Head))
	}
	for _, x := range policyRows(r, g) {
		row := []cell{x.name()}
		for _, c := range shown {
			row = append(row, c.cell(x))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// todayRow returns the row of the cluster's current cost, which is not simulated.
func todayRow(t *eval.Today, head []heading) []cell {
	known := map[string]cell{"Policy": {Text: t.Name, Sub: figures.Count(t.Nodes, "node") + ", not simulated"},
		"A month": {Text: figures.Dollars(t.Month)},
		"Saved":   {Text: "reference"}, "Spot share": {Text: share(t.SpotShare)}, "Outage minutes": {Text: "not measured"}}
	var row []cell
	for _, h := range head {
		if c, ok := known[h.Text]; ok {
			row = append(row, c)
		} else {
			row = append(row, unknown)
		}
	}
	return row
}

// matrix returns a table with a row for each scenario and a column for each policy.
func matrix(r *eval.Report) *table {
	metric, of := r.Config.Savings()
	t := &table{
		Caption: "Net savings by scenario and policy, in percent of " + of, Sortable: true,
		Note: "Medians over runs, after what outages cost, with their intervals. The best of each row that keeps the manifests is in bold with a star; what does not has an exclamation mark. Below it are the most outage minutes of a run (from Spot).",
		Head: headings("'Scenario"),
	}
	for _, p := range r.Config.Policies {
		t.Head = append(t.Head, heading{Text: p, Unit: role(r, p)})
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		row, first := texts(g.Scenario), r.First(g)
		for p := range g.Policies {
			x := policyRow{&g.Policies[p], r, g, p}
			c := interval(metric, oneDecimal)(x)
			if most := x.Summary("outage_minutes"); most.N > 0 && most.Max > 0 {
				c.Sub = strings.TrimSpace(fmt.Sprintf("%s %s\u00a0min\u00a0out (%s)", c.Sub, figures.Whole(most.Max),
					figures.Whole(x.Summary("outage_spot_minutes").Max)))
			}
			switch {
			case slices.Contains(first, p):
				c.Text, c.Class = star+c.Text, "best"
			case x.Marked():
				c.Text += mark
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// windows returns the table of the change relative to the baseline in each window of g; nil if
// there is only one window.
func windows(r *eval.Report, g *eval.Group) *table {
	if len(g.Cases) < 2 {
		return nil
	}
	t := &table{
		Caption: "Change on the baseline by window, in points of the on-demand bill", Sortable: true,
		Note: "Medians over the seeds of a window.", Head: headings("'Window from"),
	}
	metric := slices.IndexFunc(eval.Metrics(), func(m eval.Metric) bool { return m.Name == "net_savings_delta_pct" })
	for i, k := range g.Cases {
		row := texts(format.Instant(r.Config.Cases[k].Bound.Start))
		for p := range g.Policies {
			x := &g.Policies[p]
			if x.Policy == r.Config.Baseline {
				continue
			}
			if i == 0 {
				t.Head = append(t.Head, heading{Text: x.Policy})
			}
			c := unknown
			if v := x.Windows[i].Medians[metric]; v.Known {
				c = badIf(v.V < 0, figures.Signed(v.V, 1))
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// workloads returns the table of the results of each workload with each policy of g.
func workloads(g *eval.Group) *table {
	t := &table{
		Caption: "Workloads", Sortable: true, Note: "Means over runs, and the outage minutes of the worst.",
		Head: headings("'Workload", "'Policy", "Outage minutes|mean", "Outage minutes|most", "Incidents|mean",
			"Longest incident", "'Causes of outage|all runs",
			"Outage cost|mean", "Available|mean", "Spot share|mean", "Pod value|$ per hour"),
	}
	most := 0
	for p := range g.Policies {
		most = max(most, len(g.Policies[p].Workloads))
	}
	for i := range most {
		for p := range g.Policies {
			if of := g.Policies[p].Workloads; i < len(of) {
				w := &of[i]
				t.Rows = append(t.Rows, []cell{
					{Text: w.Name, Sub: w.Kind}, {Text: g.Policies[p].Policy}, {Text: oneDecimal(w.OutageMinutes)},
					badIf(w.OutageMax > 0, figures.Integer(w.OutageMax)),
					{Text: figures.Number(w.Incidents, 2)}, longest(&w.Outage, w.Outage.Longest.Cause.String()), sources(&w.Outage),
					{Text: figures.Dollars(w.OutageCost)},
					{Text: availability(w.Availability)}, {Text: share(w.SpotShare)}, {Text: figures.Number(w.PodValue, 4)},
				})
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// sources returns a cell with the causes of the outages in all runs.
func sources(o *eval.OutageReport) cell {
	if o.Incidents == 0 {
		return unknown
	}
	return cell{Text: o.Sources(), Class: "prose"}
}

// longest returns a cell with the duration of the longest incident of o and a text about it.
func longest(o *eval.OutageReport, about string) cell {
	if o.Incidents == 0 {
		return unknown
	}
	return cell{Text: o.Longest.Outage.Round(time.Second).String(), Sub: about}
}
