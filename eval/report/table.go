package report

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A table is one of the page.
type table struct {
	Caption string
	Note    string
	Head    []heading
	Rows    [][]cell

	// Sortable says that its order means nothing.
	Sortable bool
}

// A heading is that of a column.
type heading struct {
	Text, Unit string

	// Words says that the column has no numbers.
	Words bool
}

// A cell is one of a table. The first of a row is its heading.
type cell struct {
	Text, Sub string

	// Sort is what rows are ordered by; empty means Text.
	Sort string

	// Class is how it looks: "good", "bad", "best" or "words", or in the first cell of a row
	// "winner".
	Class string

	// Command is one that can be copied, below the text.
	Command string

	// Week, in the first cell of a row, is the number of the run that the row is
	// about and that can be opened; else 0.
	Week int
}

// A column is one figure of the comparison of a group.
type column struct {
	heading
	cell func(r *eval.Report, g *eval.Group, p int) cell
}

// columns answer, from left to right: who saves how much, is it better than the
// baseline, at what outage, and how. They are as many as a screen of 1,280 pixels shows; the
// table of outages has more of these.
var columns = []column{
	{heading{Text: "Bill", Unit: "$ a month, median"}, billAMonth},
	{heading{Text: "Saved", Unit: "$ a month, median"}, savedAMonth},
	{heading{Text: "Saved", Unit: "% of on-demand bill"}, interval("net_savings_pct", oneDecimal)},
	{heading{Text: "Over baseline", Unit: "$ a month"}, overBaselineCell},
	{heading{Text: "Change on baseline", Unit: "points"}, change},
	{heading{Text: "Outage minutes", Unit: "median / most"}, medianAndMost("outage_minutes")},
	{heading{Text: "Against baseline", Unit: "most, minutes"}, against},
	{heading{Text: "Outage cost", Unit: "mean"}, outageCost},
	{heading{Text: "Available", Unit: "median"}, median("availability", availability)},
	{heading{Text: "Spot share", Unit: "median"}, median("spot_share", share)},
	{heading{Text: "Moved", Unit: "per pod-day"}, median("voluntary_evictions_per_pod_day", rate)},
	{heading{Text: "Lost", Unit: "per pod-day"}, median("reclaim_evictions_per_pod_day", rate)},
	{heading{Text: "Of the attainable", Unit: "median"}, median("attainable_share", share)},
	{heading{Text: "Regret", Unit: "median"}, median("regret", share)},
	{heading{Text: "Runs", Unit: "with a result"}, runs},
}

func oneDecimal(x float64) string { return figures.Number(x, 1) }

// columnsOf returns the columns of r. Where it is known what the cluster costs today, savings
// are measured against that, and against nothing else.
func columnsOf(r *eval.Report) []column {
	if r.Config.Today == nil {
		return columns
	}
	const comparing = 5 // columns with the bill and savings against on-demand and the baseline
	own := []column{
		{heading{Text: "A month", Unit: "$, median"}, billAMonth},
		{heading{Text: "Saved", Unit: "% of " + r.Config.Today.Name}, interval(eval.MetricSavedToday, oneDecimal)},
	}
	own = append(own, columns[comparing:]...)
	return slices.DeleteFunc(own, func(c column) bool { return c.Text == "Of the attainable" })
}

// monthsOf returns what a dollar in a window of g is in dollars a month.
func monthsOf(r *eval.Report, g *eval.Group) float64 {
	window := r.Config.Cases[g.Cases[0]].Bound.Duration
	if t := r.Config.Today; t != nil {
		return t.PerMonth(window)
	}
	return eval.MonthHours / window.Hours()
}

func billAMonth(r *eval.Report, g *eval.Group, p int) cell {
	s, months := g.Policies[p].Summary("bill_usd"), monthsOf(r, g)
	if s.N == 0 {
		return unknown()
	}
	c := number(s.Median*months, figures.Dollars(s.Median*months))
	if r.Config.Today != nil {
		c.Sub = intervalOf(s, func(x float64) string { return figures.Dollars(x * months) })
	}
	return c
}

func savedAMonth(r *eval.Report, g *eval.Group, p int) cell {
	if x := &g.Policies[p]; x.Summary("net_savings_usd").N > 0 {
		month := perMonth(r, g, x)
		return number(month, figures.Dollars(month))
	}
	return unknown()
}

// overBaselineCell has what a policy saves a month more than the baseline.
func overBaselineCell(r *eval.Report, g *eval.Group, p int) cell {
	s := r.OverBaseline(g, p)
	return versus(r, g, p, &s, figures.DollarChange)
}

// versus makes a cell of a comparison with the baseline, coloured where its interval leaves out 0.
func versus(r *eval.Report, g *eval.Group, p int, s *eval.Summary, write func(float64) string) cell {
	switch {
	case g.Policies[p].Policy == r.Config.Baseline:
		return cell{Text: "baseline", Sort: "0"}
	case s.N == 0:
		return unknown()
	}
	c := number(s.Median, write(s.Median))
	c.Sub = intervalOf(s, write)
	if i := s.MedianInterval; i != nil && i.Low > 0 {
		c.Class = "good"
	} else if i != nil && i.High < 0 {
		c.Class = "bad"
	}
	return c
}

// todayRow is the row of what the cluster costs today, of which nothing is simulated.
func todayRow(t *eval.Today, columns []column) []cell {
	row := []cell{{Text: t.Name, Sub: figures.Count(t.Nodes, "node") + ", not simulated"}}
	for _, c := range columns {
		switch c.Text {
		case "A month":
			row = append(row, number(t.Month, figures.Dollars(t.Month)))
		case "Saved":
			row = append(row, cell{Text: "reference", Sort: "0"})
		case "Spot share":
			row = append(row, number(t.SpotShare, share(t.SpotShare)))
		case "Outage minutes":
			row = append(row, cell{Text: "not measured", Sort: "-1e300"})
		default:
			row = append(row, unknown())
		}
	}
	return row
}

// median makes a cell of the median of a metric.
func median(metric string, format func(float64) string) func(*eval.Report, *eval.Group, int) cell {
	return func(_ *eval.Report, g *eval.Group, p int) cell {
		s := g.Policies[p].Summary(metric)
		if s.N == 0 {
			return unknown()
		}
		return number(s.Median, format(s.Median))
	}
}

// interval makes a cell of the median of a metric with its interval below.
func interval(metric string, format func(float64) string) func(*eval.Report, *eval.Group, int) cell {
	return func(_ *eval.Report, g *eval.Group, p int) cell {
		s := g.Policies[p].Summary(metric)
		if s.N == 0 {
			return unknown()
		}
		c := number(s.Median, format(s.Median))
		c.Sub = intervalOf(s, format)
		return c
	}
}

// intervalOf writes the interval of a median, or what it needs.
func intervalOf(s *eval.Summary, write func(float64) string) string {
	if s.MedianInterval == nil {
		return format.NeedWords(s.Need, s.Over)
	}
	return between(s.MedianInterval, write)
}

// between writes an interval, nothing where there is none.
func between(i *stats.Interval, format func(float64) string) string {
	if i == nil {
		return ""
	}
	return format(i.Low) + " to " + format(i.High)
}

// unknown is the cell of a figure that no run has.
func unknown() cell { return cell{Text: figures.Unknown, Sort: "-1e300"} }

// number is a cell of a value.
func number(v float64, text string) cell { return cell{Text: text, Sort: sortOf(v, text)} }

func change(r *eval.Report, g *eval.Group, p int) cell {
	return versus(r, g, p, g.Policies[p].Summary("net_savings_delta_pct"), func(x float64) string { return figures.Signed(x, 1) })
}

// medianAndMost makes a cell of the median and the greatest of a metric.
func medianAndMost(metric string) func(*eval.Report, *eval.Group, int) cell {
	return func(_ *eval.Report, g *eval.Group, p int) cell {
		s := g.Policies[p].Summary(metric)
		if s.N == 0 {
			return unknown()
		}
		return number(s.Max, figures.Whole(s.Median)+" / "+figures.Whole(s.Max))
	}
}

// sources says what the outages of all runs come of.
func sources(o *eval.OutageReport) cell {
	if o.Incidents == 0 {
		return cell{Text: figures.Unknown, Class: "words"}
	}
	return cell{Text: o.Sources(), Class: "words prose"}
}

func longestOf(o *eval.OutageReport) cell {
	if o.Incidents == 0 {
		return cell{Text: figures.Unknown}
	}
	x := &o.Longest
	c := number(x.Outage.Seconds(), x.Outage.Round(time.Second).String())
	c.Sub = x.Workload + ", " + x.Cause.String()
	return c
}

func against(r *eval.Report, g *eval.Group, p int) cell {
	s := g.Policies[p].Summary("outage_delta")
	switch {
	case g.Policies[p].Policy == r.Config.Baseline:
		return cell{Text: "baseline", Sort: "0"}
	case s.N == 0:
		return unknown()
	}
	c := number(s.Max, figures.Signed(s.Max, 0))
	if s.Max > 0 {
		c.Class = "bad"
	}
	return c
}

func outageCost(_ *eval.Report, g *eval.Group, p int) cell {
	s := g.Policies[p].Summary("outage_cost_usd")
	if s.N == 0 {
		return unknown()
	}
	return number(s.Mean, figures.Dollars(s.Mean))
}

func runs(_ *eval.Report, g *eval.Group, at int) cell {
	p := &g.Policies[at]
	c := number(float64(p.Runs-p.Missing), figures.Number(float64(p.Runs-p.Missing), 0))
	if p.Missing > 0 {
		c.Sub, c.Class = figures.Count(p.Missing, "run")+" missing", "bad"
	}
	return c
}

// comparison is the table of the policies of g.
func comparison(r *eval.Report, g *eval.Group) *table {
	t := &table{
		Caption: "Policies over " + g.Scenario, Sortable: true,
		Note: intervalNote(r, g), Head: []heading{{Text: "Policy", Words: true}},
	}
	shown := columnsOf(r)
	for _, c := range shown {
		t.Head = append(t.Head, c.heading)
	}
	if r.Config.Today != nil {
		t.Rows = append(t.Rows, todayRow(r.Config.Today, shown))
	}
	order, winner := ranked(r, g)
	for _, p := range order {
		row := []cell{policyCell(r, &g.Policies[p])}
		if p == winner {
			row[0].Text, row[0].Class = "★ "+row[0].Text, "winner"
		}
		for _, c := range shown {
			row = append(row, c.cell(r, g, p))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ranked returns the policies of g with the one that saves most first and those without a result
// last. The winner, the first of those that fail no gate and keep the manifests, comes before all;
// it is -1 where there is none.
func ranked(r *eval.Report, g *eval.Group) (order []int, winner int) {
	metric, _ := r.Config.Savings()
	saved := func(p int) float64 {
		if s := g.Policies[p].Summary(metric); s.N > 0 {
			return s.Median
		}
		return math.Inf(-1)
	}
	for p := range g.Policies {
		order = append(order, p)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(saved(b), saved(a)) })
	at := slices.IndexFunc(order, func(p int) bool { return !math.IsInf(saved(p), -1) && !fails(r, p) })
	if at < 0 {
		return order, -1
	}
	winner = order[at]
	return slices.Insert(slices.Delete(order, at, at+1), 0, winner), winner
}

// policyCell is the first cell of the row of p: its part and, where it does not keep
// the manifests, that. The warnings say what it did not keep.
func policyCell(r *eval.Report, p *eval.PolicyReport) cell {
	c := cell{Text: p.Policy, Sub: role(r, p.Policy)}
	if p.Marked() {
		c.Text += mark
		c.Sub = strings.TrimPrefix(c.Sub+", manifests not kept", ", ")
	}
	return c
}

// mark follows the name or the figure of a policy that does not keep the
// manifests.
const mark = " !"

// role says what part a policy has, nothing where it is compared.
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

// intervalNote says what the intervals of g are, and how they are shown.
func intervalNote(r *eval.Report, g *eval.Group) string {
	given := slices.ContainsFunc(g.Policies, func(p eval.PolicyReport) bool {
		metric, _ := r.Config.Savings()
		return p.Summary(metric).MedianInterval != nil
	})
	if !given {
		return format.IntervalNote(r, g)
	}
	return format.IntervalNote(r, g) + " They are below their figures. A change that is certain at that level is coloured and in bold."
}

// matrix has a row for each scenario and a column for each policy.
func matrix(r *eval.Report) *table {
	t := &table{
		Caption: "Net savings by scenario and policy, in percent of the on-demand bill", Sortable: true,
		Note: "Medians over runs, after what outages cost, with their intervals. The best of each row that keeps the manifests is in bold with a star; what does not has an exclamation mark. Below it are the outage minutes of the worst run.",
		Head: []heading{{Text: "Scenario", Words: true}},
	}
	for _, p := range r.Config.Policies {
		t.Head = append(t.Head, heading{Text: p, Unit: role(r, p)})
	}
	for i := range r.Groups {
		t.Rows = append(t.Rows, matrixRow(r, &r.Groups[i]))
	}
	return t
}

func matrixRow(r *eval.Report, g *eval.Group) []cell {
	row := []cell{{Text: g.Scenario}}
	best := r.Best(g)
	for p := range g.Policies {
		s := g.Policies[p].Summary("net_savings_pct")
		if s.N == 0 {
			row = append(row, unknown())
			continue
		}
		c := number(s.Median, figures.Number(s.Median, 1))
		var below []string
		if i := s.MedianInterval; i == nil || i.Low < i.High {
			below = append(below, intervalOf(s, func(x float64) string { return figures.Number(x, 1) }))
		}
		if most := g.Policies[p].Summary("outage_minutes").Max; most > 0 {
			below = append(below, figures.Whole(most)+"\u00a0min\u00a0out")
		}
		c.Sub = strings.Join(below, " ")
		switch {
		case p == best:
			c.Text, c.Class = "★ "+c.Text, "best"
		case g.Policies[p].Marked():
			c.Text += mark
		}
		row = append(row, c)
	}
	return row
}

// windows has the change on the baseline of each window of g; nothing with one.
func windows(r *eval.Report, g *eval.Group) *table {
	if len(g.Cases) < 2 {
		return nil
	}
	t := &table{
		Caption: "Change on the baseline by window, in points of the on-demand bill", Sortable: true,
		Note: "Medians over the seeds of a window.", Head: []heading{{Text: "Window from", Words: true}},
	}
	metric := slices.IndexFunc(eval.Metrics(), func(m eval.Metric) bool { return m.Name == "net_savings_delta_pct" })
	for p := range g.Policies {
		if name := g.Policies[p].Policy; name != r.Config.Baseline {
			t.Head = append(t.Head, heading{Text: name})
		}
	}
	for i, k := range g.Cases {
		row := []cell{{Text: format.Instant(r.Config.Cases[k].Bound.Start)}}
		for p := range g.Policies {
			if g.Policies[p].Policy == r.Config.Baseline {
				continue
			}
			c := unknown()
			if v := g.Policies[p].Windows[i].Medians[metric]; v.Known {
				if c = number(v.V, figures.Signed(v.V, 1)); v.V < 0 {
					c.Class = "bad"
				}
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// workloads has what became of each workload under each policy of g.
func workloads(g *eval.Group) *table {
	t := &table{
		Caption: "Workloads", Sortable: true, Note: "Means over runs, and the outage minutes of the worst.",
		Head: []heading{{Text: "Workload", Words: true}, {Text: "Policy", Words: true}, {Text: "Kind", Words: true}, {Text: "Outage minutes", Unit: "mean"}, {Text: "Outage minutes", Unit: "most"},
			{Text: "Incidents", Unit: "mean"}, {Text: "Longest incident"}, {Text: "Outage comes of", Unit: "all runs", Words: true}, {Text: "Outage cost", Unit: "mean"}, {Text: "Available", Unit: "mean"}, {Text: "Spot share", Unit: "mean"}, {Text: "Pod value", Unit: "$ per hour"}},
	}
	most := 0
	for p := range g.Policies {
		most = max(most, len(g.Policies[p].Workloads))
	}
	for w := range most {
		for p := range g.Policies {
			if of := g.Policies[p].Workloads; w < len(of) {
				t.Rows = append(t.Rows, workloadRow(&of[w], g.Policies[p].Policy))
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func workloadRow(w *eval.WorkloadReport, policy string) []cell {
	row := []cell{
		{Text: w.Name}, {Text: policy, Class: "words"}, {Text: w.Kind, Class: "words"},
		number(w.OutageMinutes, figures.Number(w.OutageMinutes, 1)), number(float64(w.OutageMax), figures.Number(float64(w.OutageMax), 0)),
		number(w.Incidents, figures.Number(w.Incidents, 2)), longestOf(&w.Outage), sources(&w.Outage), number(w.OutageCost, figures.Dollars(w.OutageCost)),
		number(w.Availability, availability(w.Availability)), number(w.SpotShare, share(w.SpotShare)),
		number(w.PodValue, figures.Number(w.PodValue, 4)),
	}
	if w.OutageMax > 0 {
		row[4].Class = "bad"
	}
	return row
}
