package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// A figure is a picture with its caption.
type figure struct {
	ID, Title, Note string
	SVG             trusted
	Hover           *hover

	// Policies are the policies of each series in the picture, as indexes of Config.Policies; nil
	// if series do not represent policies.
	Policies [][]int
}

const (
	pictureWidth  = 392
	pictureHeight = 280

	// rowHeight is the height of a row in pixels, in pictures with rows.
	rowHeight = 26

	// dotsMax is the maximum number of runs of a policy in a picture.
	dotsMax = 200
)

// An artist draws the pictures of one group.
type artist struct {
	r  *eval.Report
	g  *eval.Group
	id string

	// metric is the metric of savings, of what they are relative to, and saved the label of their
	// axis.
	metric, of, saved string

	// weeks are the runs that can be opened.
	weeks *weekList

	// shown are the policies with lines: all except fixed mixes, of which only the best is shown.
	shown []int

	// colours are the indexes of the colours of all policies.
	colours []int

	figures []figure
	err     error
}

// pictures draws the pictures of g.
func pictures(r *eval.Report, g *eval.Group, id string, weeks *weekList) ([]figure, error) {
	a := &artist{r: r, g: g, id: id, weeks: weeks, colours: colours(r)}
	a.metric, a.of = r.Config.Savings()
	if a.saved = "net savings, % of " + a.of; r.Config.Today != nil {
		a.saved = "savings, % of " + a.of
	}
	mixes, best, ok := r.Frontier(g)
	for p := range r.Config.Policies {
		if !ok || p == best || !slices.Contains(mixes, p) {
			a.shown = append(a.shown, p)
		}
	}
	a.scatter()
	a.distribution()
	a.costs()
	a.spotShare()
	a.parts()
	a.reclaims()
	return a.figures, a.err
}

// frame returns the frame of the next picture.
func (a *artist) frame(title, x, y string, rows int) chart.Frame {
	height := pictureHeight
	if rows > 0 {
		height = max(200, 110+rows*rowHeight)
	}
	return chart.Frame{
		Title: title, X: chart.Axis{Label: x}, Y: chart.Axis{Label: y}, Theme: chart.Page,
		ID: fmt.Sprintf("%s-%d", a.id, len(a.figures)+1), Width: pictureWidth, Height: height,
	}
}

// add draws p and adds it with its caption. policies are those of the series of p. detail is a
// description for screen readers.
func (a *artist) add(p chart.Picture, f *chart.Frame, h *hover, policies [][]int, note string, detail []string) {
	if a.err != nil {
		return
	}
	f.Detail = strings.Join(detail, " ")
	var b bytes.Buffer
	if err := chart.Write(&b, chart.SVG, p); err != nil {
		a.err = fmt.Errorf("drawing: %w", err)
		return
	}
	a.figures = append(a.figures, figure{f.ID, f.Title, note, trusted(b.String()), h, policies}) // chart escapes all text
}

// colours returns the indexes of the colours of the policies, which are the same in every scenario.
// All fixed mixes have the same colour.
func colours(r *eval.Report) []int {
	var mixes []int
	for i := range r.Groups {
		if found, _, ok := r.Frontier(&r.Groups[i]); ok {
			mixes = found
			break
		}
	}
	out := make([]int, len(r.Config.Policies))
	next := 1
	for p := range out {
		if !slices.Contains(mixes, p) {
			out[p] = next
			next++
		}
	}
	for _, p := range mixes {
		out[p] = next
	}
	return out
}

// colour returns the index of the colour of policy p.
func (a *artist) colour(p int) int { return a.colours[p] }

// name returns the name of policy p in pictures.
func (a *artist) name(p int) string { return short(a.r.Config.Policies[p]) }

// scatter shows the savings of each policy over the cost of its outages. Fixed mixes are joined by
// a line.
func (a *artist) scatter() {
	pic := &chart.Points{Frame: a.frame("Savings and the cost of outages", "outage cost, % of "+a.of+" (mean)",
		a.saved+" (median)", 0)}
	var detail []string
	h := &hover{Kind: "points"}
	mixes, best, ok := a.r.Frontier(a.g)
	var series [][]int
	if ok {
		pic.Series, series = append(pic.Series, a.frontier(mixes, h)), append(series, mixes)
		detail = append(detail, fmt.Sprintf("The best fixed mix is %s.", a.r.Config.Policies[best]))
	}
	for p := range a.g.Policies {
		if ok && slices.Contains(mixes, p) {
			continue
		}
		c, drawn := a.cloud(p, h)
		if !drawn {
			continue
		}
		pic.Series, series = append(pic.Series, c), append(series, []int{p})
		detail = append(detail, savesWith(a.r.Config.Policies[p], &c))
	}
	if len(pic.Series) < 2 { // nothing to compare
		return
	}
	note := "Up and to the left is better. Bars are intervals of the median savings, dots single runs."
	if ok {
		note += " The line joins the fixed mixes: what choosing only the Spot share can achieve."
	}
	a.add(pic, &pic.Frame, h, series, note, detail)
}

// savesWith describes the position of a policy.
func savesWith(policy string, c *chart.Cloud) string {
	return fmt.Sprintf("%s saves %s with outages of %s.", policy, percent(c.Y[0]), percent(c.X[0]))
}

// frontier returns the series of the fixed mixes, in the order of mixes.
func (a *artist) frontier(mixes []int, h *hover) chart.Cloud {
	c := chart.Cloud{Name: "fixed mixes (frontier)", Joined: true, Colour: a.colour(mixes[0])}
	for _, p := range mixes {
		if one, ok := a.cloud(p, h); ok {
			c.X, c.Y = append(c.X, one.X[0]), append(c.Y, one.Y[0])
		}
	}
	return c
}

// cloud returns the series of policy p and its runs, and adds their marks to h. It returns false if
// no run can be compared.
func (a *artist) cloud(p int, h *hover) (chart.Cloud, bool) {
	x := &a.g.Policies[p]
	saved, cost, bill := x.Summary(a.metric), x.Summary("outage_cost_usd"), x.Summary("on_demand_bill_usd").Mean
	if t := a.r.Config.Today; t != nil {
		bill = t.Month / t.PerMonth(a.r.Config.Cases[a.g.Cases[0]].Bound.Duration)
	}
	if saved.N == 0 || bill <= 0 {
		return chart.Cloud{}, false
	}
	c := chart.Cloud{Name: a.name(p), Colour: a.colour(p), X: []float64{cost.Mean / bill * 100},
		Y: []float64{saved.Median}}
	if i := saved.MedianInterval; i != nil {
		c.YLow, c.YHigh = []float64{i.Low}, []float64{i.High}
	}
	h.Marks = append(h.Marks, hoverMark{x: c.X[0], y: c.Y[0], text: savesWith(a.r.Config.Policies[p], &c)})
	runs := runsOf(a.r, a.g, p)
	for k := range min(len(runs), dotsMax) {
		i := runs[k*len(runs)/min(len(runs), dotsMax)]
		run := &a.r.Runs[i]
		y, cost, bill := run.Value(a.metric), run.Value("outage_cost_usd"), run.Value("on_demand_bill_usd")
		if t := a.r.Config.Today; t != nil {
			bill = eval.Value{V: t.Month / t.PerMonth(run.Bound.Duration), Known: true}
		}
		if y.Known && bill.Known && bill.V > 0 {
			c.SmallX, c.SmallY = append(c.SmallX, cost.V/bill.V*100), append(c.SmallY, y.V)
			if w := a.weeks.of(i); w > 0 {
				h.Marks = append(h.Marks, hoverMark{x: cost.V / bill.V * 100, y: y.V, week: w})
			}
		}
	}
	return c, true
}

// distribution shows the savings in all runs of each policy.
func (a *artist) distribution() {
	pic := &chart.Boxes{Frame: a.frame("Net savings over seeds", a.saved, "", len(a.g.Policies))}
	thinned := false
	var detail []string
	var series [][]int
	h := &hover{Kind: "rows"}
	for p := range a.g.Policies {
		x := &a.g.Policies[p]
		s := x.Summary(a.metric)
		if s.N == 0 || x.Policy == eval.OnDemand && a.r.Config.Today == nil {
			continue
		}
		box := chart.Box{Name: a.name(p), Colour: a.colour(p), Least: s.Min, Q1: s.P25, Median: s.Median, Q3: s.P75,
			Greatest: s.Max}
		all := values(a.r, a.g, p, a.metric)
		slices.Sort(all)
		n := min(len(all), dotsMax)
		thinned = thinned || n < len(all)
		for k := range n {
			box.Dots = append(box.Dots, all[k*len(all)/n])
		}
		pic.Rows, series = append(pic.Rows, box), append(series, []int{p})
		detail = append(detail, fmt.Sprintf("%s: from %s to %s, median %s, the middle half from %s to %s.", x.Policy,
			percent(s.Min), percent(s.Max), percent(s.Median), percent(s.P25), percent(s.P75)))
	}
	if len(pic.Rows) == 0 {
		return
	}
	h.rows(detail)
	note := "A dot is a run, the box holds the middle half of them, the bar in it is the median, and lines reach to the least and the greatest."
	if thinned {
		note += fmt.Sprintf(" Of a policy's runs %d are drawn, evenly over their order.", dotsMax)
	}
	a.add(pic, &pic.Frame, h, series, note, detail)
}

// axis returns the label of the time axis and the number of hours in its unit.
func (a *artist) axis() (label string, scale float64) {
	if a.r.Config.Cases[a.g.Cases[0]].Bound.Duration > 72*time.Hour {
		return "days since the window began", 24
	}
	return "hours since the window began", 1
}

// costs shows the accumulated bill and outage cost.
func (a *artist) costs() {
	a.course("Bill and outage cost so far", "$ since the window began (median of runs)", false,
		func(s sim.Sample) (float64, bool) { return (s.Bill + s.OutageCost).Float(), true },
		"ends at", figures.Dollars, "What the nodes cost and what outages cost, from the start of the window.")
}

// spotShare shows the fraction of the fleet that is on Spot.
func (a *artist) spotShare() {
	a.course("Spot share", "of the vCPUs (or GPUs) that run, median of runs", true,
		func(s sim.Sample) (float64, bool) { return float64(s.SpotSize) / float64(max(1, s.Size)), s.Size > 0 },
		"ends at", share, "The part of the fleet that is on Spot.")
}

// course draws a value over time for each policy in a.shown.
func (a *artist) course(title, y string, shares bool, of func(sim.Sample) (float64, bool), ends string,
	format func(float64) string, note string) {
	label, scale := a.axis()
	h := &hover{Kind: "lines", Unit: "$", Time: "hour"}
	if scale > 1 {
		h.Time = "day"
	}
	pic := &chart.Lines{Frame: a.frame(title, label, y, 0), Distinct: true}
	if shares {
		pic.Y.From, pic.Y.To, pic.Y.Percent = 0, 1, true
		h.Unit = "%"
	}
	var detail []string
	var series [][]int
	for _, p := range a.shown {
		c := medianCourse(a.r, a.g, p, of)
		if len(c.x) == 0 {
			continue
		}
		for i := range c.x {
			c.x[i] /= scale
		}
		pic.Series = append(pic.Series, chart.Line{Name: a.name(p), Colour: a.colour(p), X: c.x, Y: c.y})
		h.Series, series = append(h.Series, a.name(p)), append(series, []int{p})
		detail = append(detail, fmt.Sprintf("%s %s %s.", a.r.Config.Policies[p], ends, format(c.y[len(c.y)-1])))
	}
	if len(pic.Series) == 0 {
		return
	}
	if len(a.shown) < len(a.r.Config.Policies) {
		note += " Of the fixed mixes only the best is shown."
	}
	a.add(pic, &pic.Frame, h, series, note, detail)
}

// parts shows the components of the cost of each policy.
func (a *artist) parts() {
	pic := &chart.Bars{Frame: a.frame("What the money goes to", "$ in a window (mean of runs)", "", len(a.g.Policies))}
	pic.Series = []chart.Bar{{Name: "on-demand nodes"}, {Name: "spot nodes"}, {Name: "outages"}}
	var detail []string
	var series [][]int
	for p := range a.g.Policies {
		runs := runsOf(a.r, a.g, p)
		if len(runs) == 0 {
			continue
		}
		sums := make([]float64, len(pic.Series))
		for _, i := range runs {
			res := a.r.Runs[i].Result
			for k, m := range [...]float64{res.OnDemandBill.Float(), res.SpotBill.Float(), res.OutageCost.Float()} {
				sums[k] += m / float64(len(runs))
			}
		}
		pic.Classes, series = append(pic.Classes, a.name(p)), append(series, []int{p})
		for k := range sums {
			pic.Series[k].Y = append(pic.Series[k].Y, sums[k])
		}
		detail = append(detail, fmt.Sprintf("%s: on-demand nodes %s, Spot nodes %s, outages %s.", a.r.Config.Policies[p],
			figures.Dollars(sums[0]), figures.Dollars(sums[1]), figures.Dollars(sums[2])))
	}
	if len(pic.Classes) == 0 {
		return
	}
	h := &hover{Kind: "rows"}
	h.rows(detail)
	a.add(pic, &pic.Frame, h, series, "The shorter the bar, the less it all costs.", detail)
}

// reclaims shows when and in which markets the provider reclaimed nodes.
func (a *artist) reclaims() {
	m := reclaims(a.r, a.g)
	if m.total == 0 {
		return
	}
	pic := &chart.Grid{Frame: a.frame("Reclaims by market and time", "", "", len(m.rows)), Rows: m.rows, Edges: m.edges,
		Values: m.values}
	pic.X.Time = true
	var detail []string
	for i, name := range m.rows {
		sum := 0
		for _, v := range m.values[i] {
			sum += v
		}
		detail = append(detail, fmt.Sprintf("%s: %s.", name, figures.Count(sum, "node")))
	}
	hours := (m.edges[1] - m.edges[0]) / 3600
	h := &hover{Kind: "grid", Names: m.rows, Edges: m.edges, Cells: m.values}
	a.add(pic, &pic.Frame, h, nil,
		fmt.Sprintf("Nodes taken within %.3g h, all runs of all policies together: %s in %s. Where nothing ran nothing could be taken.",
			hours, figures.Count(m.total, "node"), figures.Count(m.runs, "run")), detail)
}
