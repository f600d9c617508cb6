package screen

import (
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// A nodesPane shows the nodes of a run as a grid.
type nodesPane struct {
	run  *run
	grid draw.Grid
}

// list leaves those that the filter lets through. What is in danger can be
// filtered for by its phase and by "notice" and "rebalance".
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
	if filter == "" {
		g.Nodes = s.frame.Nodes
		return
	}
	g.Nodes = nil
	for i := range s.frame.Nodes {
		n := &s.frame.Nodes[i]
		if matches(filter, n.Name, s.poolName(n.Pool), s.marketName(n.Market), n.Phase.String(), capacity(n.Spot), dangerOf(n)) {
			g.Nodes = append(g.Nodes, *n)
		}
	}
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
	p.grid.Draw(b.Frame(c))
}

func (p *nodesPane) move(size rect, dx, dy int, sel *selection) {
	if i := p.grid.Move(size.w, size.h, dx, dy); i >= 0 && i < len(p.grid.Nodes) {
		sel.chosen[Nodes] = p.grid.Nodes[i].Name
	}
}

func (p *nodesPane) pick(size rect, x, y int, sel *selection) hit {
	i, ok := p.grid.NodeAt(size.w, size.h, x, y)
	if ok {
		sel.chosen[Nodes] = p.grid.Nodes[i].Name
	}
	return hit{selected: ok}
}
