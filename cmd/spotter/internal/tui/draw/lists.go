package draw

import (
	"math"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// hoursPerMonth turns a rate per hour into one per month, as providers publish
// them.
const hoursPerMonth = 730

// A WorkloadRow is one workload.
type WorkloadRow struct {
	Name, Kind               string
	Ready, Required, Desired int32
	OnSpot                   int32 // of Ready

	// Out says that the workload is below what it requires now. Outage is its total outage in
	// minutes; -1 where it is unknown.
	Out    bool
	Outage int64
}

// Workloads returns the table of workloads.
func Workloads(rows []WorkloadRow, selected int) Table {
	t := Table{Selected: selected, Empty: "no workloads", Columns: []Column{
		{Title: "Workload", Middle: true, Min: 10, Max: 44},
		{Title: "Kind", Rank: 5},
		{Title: "Ready of desired"},
		{Title: "Required", Right: true, Rank: 4},
		{Title: "On Spot", Right: true, Rank: 2},
		{Title: "Outage min", Right: true, Rank: 1},
		{Title: "State", Rank: 3},
	}}
	for _, r := range rows {
		t.Rows = append(t.Rows, r.fields())
	}
	return t
}

func (r WorkloadRow) fields() []Field {
	state, tint := "ok", Good
	switch {
	case r.Out:
		state, tint = "OUTAGE", Bad
	case r.Ready < r.Desired:
		state, tint = "short "+strconv.Itoa(int(r.Desired-r.Ready)), Warn
	case r.Desired == 0 && r.Ready == 0:
		state, tint = "idle", Muted
	}
	spot := figures.Unknown
	if r.Ready > 0 {
		spot = figures.RoughShare(float64(r.OnSpot) / float64(r.Ready))
	}
	outage := Field{Text: figures.Unknown, Ink: Muted}
	if r.Outage >= 0 {
		outage = Field{Text: figures.Integer(r.Outage)}
	}
	if r.Outage > 0 {
		outage.Ink = Bad
	}
	return []Field{
		{Text: r.Name, Bold: r.Out},
		{Text: r.Kind, Ink: Muted},
		{Text: strconv.Itoa(int(r.Ready)) + "/" + strconv.Itoa(int(r.Desired)), Bar: &Meter{
			Value: float64(r.Ready), Tick: float64(r.Required), Whole: float64(max(r.Desired, r.Ready)), Ink: tint,
		}},
		{Text: strconv.Itoa(int(r.Required))},
		{Text: spot, Ink: Spot},
		outage,
		{Text: state, Ink: tint, Bold: r.Out},
	}
}

// A MarketRow is one market.
type MarketRow struct {
	Type, Zone string
	Spot       bool

	// Price is per node-hour, policy.NoPrice where nothing is offered; OnDemand
	// that of the same type on demand, 0 where it is unknown. Hazard is reclaims
	// per node-hour.
	Price, OnDemand policy.Money
	Hazard          float64
	Nodes, Reclaims int

	// Key is the letter of its line in the chart, 0 without one, Ink its colour.
	Key rune
	Ink Ink
}

// Markets returns the table of markets. S means Spot and O on-demand, as in the grid of nodes.
func Markets(rows []MarketRow, selected int) Table {
	t := Table{Selected: selected, Empty: "no markets", Columns: []Column{
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
	for _, r := range rows {
		t.Rows = append(t.Rows, r.fields())
	}
	return t
}

func (r MarketRow) fields() []Field {
	key := Field{Text: " "}
	if r.Key != 0 {
		key = Field{Text: string(r.Key), Ink: r.Ink, Bold: true}
	}
	buys := Field{Text: "O", Ink: OnDemand, Bold: true}
	hazard := Field{Text: figures.Unknown, Ink: Muted}
	if r.Spot {
		buys = Field{Text: "S", Ink: Spot, Bold: true}
		hazard = Field{Text: figures.RoughShare(PerMonth(r.Hazard)), Ink: hazardInk(PerMonth(r.Hazard))}
	}
	price, share := Field{Text: Price(r.Price)}, Field{Text: figures.Unknown, Ink: Muted}
	switch {
	case r.Price < 0:
		price = Field{Text: "no offer", Ink: Muted}
	case r.OnDemand > 0:
		share = Field{Text: figures.RoughShare(float64(r.Price) / float64(r.OnDemand))}
	}
	nodes := Field{Text: figures.Integer(r.Nodes), Bold: r.Nodes > 0}
	if r.Nodes == 0 {
		nodes.Ink = Muted
	}
	reclaims := Field{Text: figures.Integer(r.Reclaims), Ink: Muted}
	if r.Reclaims > 0 {
		reclaims.Ink = Bad
	}
	return []Field{key, buys, {Text: r.Type}, {Text: r.Zone}, price, share, hazard, nodes, reclaims}
}

// PerMonth returns the chance that a node is reclaimed within a month at hazard
// reclaims per node-hour: the figure that providers publish.
func PerMonth(hazard float64) float64 { return 1 - math.Exp(-hazard*hoursPerMonth) }

// hazardInk is by the bands in which providers publish the chance of a reclaim
// in a month: under a tenth, under a fifth, more.
func hazardInk(month float64) Ink {
	switch {
	case month < 0.10:
		return Good
	case month < 0.20:
		return Warn
	default:
		return Bad
	}
}

// A BudgetRow is one budget. A quota of 0 does not exist.
type BudgetRow struct {
	Name              string
	GPUHours, HourMax float64
	Dollars, MoneyMax policy.Money
	Spent, Closed     bool
}

// Budgets returns the table of budgets.
func Budgets(rows []BudgetRow, selected int) Table {
	t := Table{Selected: selected, Empty: "there are no budgets", Columns: []Column{
		{Title: "Budget", Middle: true, Min: 10, Max: 40},
		{Title: "GPU hours used", Min: 17, Rank: 1},
		{Title: "Dollars used", Min: 18, Rank: 2},
		{Title: "Gate"},
	}}
	for _, r := range rows {
		gate, tint := "open", Good
		switch {
		case r.Closed:
			gate, tint = "CLOSED", Bad
		case r.Spent:
			gate, tint = "spent", Warn
		}
		t.Rows = append(t.Rows, []Field{
			{Text: r.Name},
			quota(r.GPUHours, r.HourMax, hours),
			quota(r.Dollars.Float(), r.MoneyMax.Float(), figures.Dollars),
			{Text: gate, Ink: tint, Bold: r.Closed},
		})
	}
	return t
}

// quota returns what was used of a quota, which does not exist at 0.
func quota(used, quota float64, unit func(float64) string) Field {
	if quota <= 0 {
		return Field{Text: figures.Unknown, Ink: Muted}
	}
	tint := Good
	switch part := used / quota; {
	case part >= 1:
		tint = Bad
	case part >= 0.8:
		tint = Warn
	}
	return Field{Text: unit(used) + " of " + unit(quota), Bar: &Meter{Value: used, Whole: quota, Ink: tint}}
}

func hours(x float64) string { return figures.Number(x, 1) + " h" }
