package screen

import (
	"math"
	"strconv"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// workloadTable is the table of workloads, without rows.
var workloadTable = draw.Table{Empty: "no workloads", Columns: []draw.Column{
	{Title: "Workload", Middle: true, Min: 10, Max: 44},
	{Title: "Kind", Rank: 5},
	{Title: "Ready of desired"},
	{Title: "Required", Right: true, Rank: 4},
	{Title: "On Spot", Right: true, Rank: 2},
	{Title: "Outage min", Right: true, Rank: 1},
	{Title: "State", Rank: 3},
}}

// workloadRow returns the row of a workload with a total number of outage minutes.
func workloadRow(w *timeline.WorkloadInfo, f *timeline.Workload, minutes int64) []draw.Field {
	desired := f.Desired
	if w.Kind == policy.KindDaemonSet {
		desired = max(desired, f.Ready) // it requires a pod on every node, whatever Desired is
	}
	out, state, tint := f.Ready < f.Required, "ok", draw.Good
	switch {
	case out:
		state, tint = "OUTAGE", draw.Bad
	case f.Ready < desired:
		state, tint = "short "+strconv.Itoa(int(desired-f.Ready)), draw.Warn
	case desired == 0 && f.Ready == 0:
		state, tint = "idle", draw.Muted
	}
	spot := figures.Unknown
	if f.Ready > 0 {
		spot = figures.RoughShare(float64(f.OnSpot) / float64(f.Ready))
	}
	outage := draw.Field{Text: figures.Integer(minutes)}
	if minutes > 0 {
		outage.Ink = draw.Bad
	}
	return []draw.Field{
		{Text: w.Name, Bold: out},
		{Text: w.Kind.String(), Ink: draw.Muted},
		{Text: strconv.Itoa(int(f.Ready)) + "/" + strconv.Itoa(int(desired)), Bar: &draw.Meter{
			Value: float64(f.Ready), Tick: float64(f.Required), Whole: float64(max(desired, f.Ready)), Ink: tint,
		}},
		{Text: strconv.Itoa(int(f.Required))},
		{Text: spot, Ink: draw.Spot},
		outage,
		{Text: state, Ink: tint, Bold: out},
	}
}

// marketTable is the table of markets, without rows. S means Spot and O on-demand, as in the grid
// of nodes.
var marketTable = draw.Table{Empty: "no markets", Columns: []draw.Column{
	{Title: ""},
	{Title: ""},
	{Title: "Market", Middle: true, Min: 12, Max: 24},
	{Title: "Zone", Middle: true, Min: 5, Max: 18},
	{Title: "$/h", Right: true},
	{Title: "of on-demand", Right: true, Rank: 3},
	{Title: "Hazard/month", Right: true, Rank: 2},
	{Title: "Nodes", Right: true, Rank: 1},
	{Title: "Reclaims", Right: true, Rank: 4},
}}

// row returns the row of a market, with the letter of its line in the chart if it has one.
func (p *marketsPane) row(id int32, line, reclaimed int) []draw.Field {
	m, f := &p.run.markets[id], &p.run.frame.Markets[id]
	key := draw.Field{Text: " "}
	if line >= 0 {
		key = draw.Field{Text: string(letter(line)), Ink: draw.SeriesInk(line), Bold: true}
	}
	buys := draw.Field{Text: "O", Ink: draw.OnDemand, Bold: true}
	hazard := draw.Field{Text: figures.Unknown, Ink: draw.Muted}
	if m.Spot {
		buys = draw.Field{Text: "S", Ink: draw.Spot, Bold: true}
		hazard = draw.Field{Text: figures.RoughShare(perMonth(f.Hazard)), Ink: hazardInk(perMonth(f.Hazard))}
	}
	price, share := draw.Field{Text: draw.Price(f.Price)}, draw.Field{Text: figures.Unknown, Ink: draw.Muted}
	switch {
	case f.Price < 0:
		price = draw.Field{Text: "no offer", Ink: draw.Muted}
	case m.OnDemand > 0:
		share = draw.Field{Text: figures.RoughShare(float64(f.Price) / float64(m.OnDemand))}
	}
	held := int(p.run.inUse[id])
	nodes := draw.Field{Text: figures.Integer(held), Bold: held > 0}
	if held == 0 {
		nodes.Ink = draw.Muted
	}
	reclaims := draw.Field{Text: figures.Integer(reclaimed), Ink: draw.Muted}
	if reclaimed > 0 {
		reclaims.Ink = draw.Bad
	}
	return []draw.Field{key, buys, {Text: m.Type}, {Text: p.run.shortZone(m.Zone)}, price, share, hazard, nodes, reclaims}
}

// perMonth returns the probability that a node is reclaimed within a month at hazard reclaims per
// node-hour, the figure that providers publish.
func perMonth(hazard float64) float64 { return 1 - math.Exp(-hazard*policy.HoursPerMonth) }

// hazardInk returns the ink for a monthly probability of a reclaim, by the bands that providers
// publish: below 10%, below 20%, and above.
func hazardInk(month float64) draw.Ink {
	switch {
	case month < 0.10:
		return draw.Good
	case month < 0.20:
		return draw.Warn
	default:
		return draw.Bad
	}
}

// gpuBudgetTable is the table of GPU budgets, without rows.
var gpuBudgetTable = draw.Table{Empty: "there are no budgets", Columns: []draw.Column{
	{Title: "Budget", Middle: true, Min: 10, Max: 40},
	{Title: "GPU hours used", Min: 17, Rank: 1},
	{Title: "Dollars used", Min: 18, Rank: 2},
	{Title: "Gate"},
}}

func gpuBudgetRow(b *timeline.BudgetInfo, f *timeline.Budget) []draw.Field {
	gate, tint := "open", draw.Good
	switch {
	case f.Closed:
		gate, tint = "CLOSED", draw.Bad
	case f.Spent:
		gate, tint = "spent", draw.Warn
	}
	hours := func(x float64) string { return figures.Number(x, 1) + " h" }
	return []draw.Field{
		{Text: b.Name},
		quota(f.GPUHours, b.GPUHours, b.HasGPUHours, hours),
		quota(f.Dollars.Float(), b.Dollars.Float(), b.HasDollars, figures.Dollars),
		{Text: gate, Ink: tint, Bold: f.Closed},
	}
}

// quota returns the used part of a quota, or a dash if no quota is stated.
func quota(used, quota float64, stated bool, unit func(float64) string) draw.Field {
	if !stated || quota <= 0 {
		return draw.Field{Text: figures.Unknown, Ink: draw.Muted}
	}
	tint := draw.Good
	switch part := used / quota; {
	case part >= 1:
		tint = draw.Bad
	case part >= 0.8:
		tint = draw.Warn
	}
	return draw.Field{Text: unit(used) + " of " + unit(quota), Bar: &draw.Meter{Value: used, Whole: quota, Ink: tint}}
}
