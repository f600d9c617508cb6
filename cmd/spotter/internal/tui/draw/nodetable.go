package draw

import (
	"strconv"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Use returns the largest requested share of a node over its resources, in thousandths.
func Use(n *timeline.Node) int16 { return max(n.CPU, n.Memory, n.GPU, 0) }

// Table returns the nodes as a table in their order. by is the column by which they are sorted.
func (g Grid) Table(by string, selected int) Table {
	t := Table{Selected: selected, Empty: g.Empty, Columns: []Column{
		{Title: "Node", Middle: true, Min: 10, Max: 36},
		{Title: "Pool", Middle: true, Min: 7, Max: 20, Rank: 5},
		{Title: ""},
		{Title: "Market", Middle: true, Min: 11, Max: 20, Rank: 3},
		{Title: "Zone", Middle: true, Min: 10, Max: 16, Rank: 4},
		{Title: heading("$/h", by == "price"), Right: true},
		{Title: heading("Age", by == "age"), Right: true},
		{Title: heading("Use", by == "use")},
		{Title: "Pods", Right: true, Rank: 2},
		{Title: "State", Rank: 1},
	}}
	for i := range g.Nodes {
		t.Rows = append(t.Rows, g.fields(&g.Nodes[i]))
	}
	return t
}

// heading marks the column by which a table is sorted.
func heading(title string, sorted bool) string {
	if sorted {
		return title + " ▾"
	}
	return title
}

func (g Grid) fields(n *timeline.Node) []Field {
	m, state := g.market(n.Market), stateOf(*n)
	look := stateLooks[state]
	pool := figures.Unknown
	if n.Pool >= 0 && int(n.Pool) < len(g.Pools) {
		pool = g.Pools[n.Pool]
	}
	buys := Field{Text: "O", Ink: OnDemand, Bold: true}
	if n.Spot {
		buys = Field{Text: "S", Ink: Spot, Bold: true}
	}
	word := look.word
	if state == noticed {
		word = "taken in " + figures.Duration(max(n.Notice.Sub(g.Now), 0))
	}
	price := figures.Unknown
	if m.Price >= 0 {
		price = Price(m.Price)
	}
	age := g.Now.Sub(n.Since)
	return []Field{
		{Text: n.Name, Bold: state == noticed}, {Text: pool, Ink: Muted}, buys, {Text: m.Type}, {Text: m.Zone, Ink: Muted},
		{Text: price}, {Text: figures.Duration(age)},
		{Text: mille(Use(n)), Bar: &Meter{Value: float64(Use(n)) / 1000, Whole: 1, Ink: ageInk(n.Spot, age)}},
		{Text: strconv.Itoa(int(n.Pods))}, {Text: word, Ink: look.text, Bold: state == noticed},
	}
}
