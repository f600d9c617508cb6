package screen

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// A nodesPane shows the nodes of a run as a grid or a table.
type nodesPane struct {
	run  *run
	grid draw.Grid

	// order is the order of the table, and names are the names of its rows.
	order nodeOrder
	names []string
}

// A nodeOrder is the presentation of nodes: a grid by pool and market, or a sorted table.
type nodeOrder int

// inGrid is the index of the grid in nodeOrders.
const inGrid nodeOrder = 0

// nodeOrders are all orders; equal nodes are ascending by name. compare receives the prices of both
// nodes.
var nodeOrders = []struct {
	name, does string
	compare    func(a, b *timeline.Node, priceA, priceB policy.Money) int
}{
	{"grid", "by pool and market", nil},
	{"age", "by age, oldest first", func(a, b *timeline.Node, _, _ policy.Money) int {
		return cmp.Compare(a.Since,
			b.Since)
	}},
	{"use", "by use, fullest first", func(a, b *timeline.Node, _, _ policy.Money) int {
		return cmp.Compare(draw.Use(b),
			draw.Use(a))
	}},
	{"price", "by price, most expensive first", func(_, _ *timeline.Node, a,
		b policy.Money) int {
		return cmp.Compare(b, a)
	}},
}

// list selects the nodes that match the filter. The filter matches phases, and the words "notice"
// and "rebalance" for nodes in danger.
func (p *nodesPane) list(now policy.Time, sel *selection) {
	g, s, filter := &p.grid, p.run, sel.filters[Nodes]
	if len(g.Markets) != len(s.markets) {
		g.Pools, g.Markets = s.pools, make([]draw.GridMarket, len(s.markets))
		for i, m := range s.markets {
			g.Markets[i] = draw.GridMarket{Type: m.Type, Zone: m.Zone, Spot: m.Spot}
		}
	}
	for i := range s.frame.Markets {
		g.Markets[i].Price = s.frame.Markets[i].Price
	}
	g.Now, g.Selected, g.Empty = now, sel.chosen[Nodes], sel.empty(Nodes, "no nodes")
	p.order = sel.order
	if filter == "" && p.order == inGrid {
		g.Nodes = s.frame.Nodes
		return
	}
	g.Nodes = nil
	for i := range s.frame.Nodes {
		n := &s.frame.Nodes[i]
		if matches(filter, n.Name, s.poolName(n.Pool), s.marketName(n.Market), n.Phase.String(), capacity(n.Spot),
			dangerOf(n)) {
			g.Nodes = append(g.Nodes, *n)
		}
	}
	if p.order != inGrid {
		p.sort()
	}
}

// sort sorts the nodes of the table.
func (p *nodesPane) sort() {
	price := func(n *timeline.Node) policy.Money {
		if n.Market < 0 {
			return policy.NoPrice
		}
		return p.run.frame.Markets[n.Market].Price
	}
	slices.SortFunc(p.grid.Nodes, func(a, b timeline.Node) int {
		return cmp.Or(nodeOrders[p.order].compare(&a, &b, price(&a), price(&b)), cmp.Compare(a.Name, b.Name))
	})
	p.names = p.names[:0]
	for i := range p.grid.Nodes {
		p.names = append(p.names, p.grid.Nodes[i].Name)
	}
}

func (p *nodesPane) table(sel *selection) draw.Table {
	return p.grid.Table(nodeOrders[p.order].name, sel.row(Nodes, p.names))
}

func capacity(spot bool) string {
	if spot {
		return "spot"
	}
	return "on-demand"
}

func dangerOf(n *timeline.Node) string {
	switch {
	case n.Notice != 0:
		return "notice"
	case n.Recommended:
		return "rebalance recommended"
	}
	return ""
}

func (p *nodesPane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	b.Right = sel.status(Nodes, numbers(len(p.grid.Nodes), len(p.run.frame.Nodes)))
	if p.order != inGrid {
		p.table(sel).Draw(b.Frame(c))
		return
	}
	p.grid.Draw(b.Frame(c))
}

func (p *nodesPane) move(size rect, dx, dy int, sel *selection) {
	if p.order != inGrid {
		sel.move(Nodes, dx+dy, p.names)
		return
	}
	if i := p.grid.Move(size.w, size.h, dx, dy); i >= 0 && i < len(p.grid.Nodes) {
		sel.chosen[Nodes] = p.grid.Nodes[i].Name
	}
}

func (p *nodesPane) pick(size rect, x, y int, sel *selection) hit {
	if p.order != inGrid {
		return sel.pick(Nodes, p.table(sel), size.h, y, p.names)
	}
	i, ok := p.grid.NodeAt(size.w, size.h, x, y)
	if ok {
		sel.chosen[Nodes] = p.grid.Nodes[i].Name
	}
	return hit{selected: ok}
}
