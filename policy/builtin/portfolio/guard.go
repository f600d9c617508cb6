package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A guard checks moves that other code planned for a pool: whether the pods can be placed elsewhere
// without adding a risk that costs more than the node. Each pod in slots is bound in the space and
// is among the tentative moves.
type guard struct {
	*poolContext
	prices   *prices
	steering *steering
	refusals *refusals
	share    float64
	places   places
	costs    moveCosts
	risk     moveRisk
	slots    []slot
}

// A slot is the tentative place of a pod.
type slot struct {
	podMove
	pod *policy.Pod
	at  policy.NodeID
}

// within returns the launches and drains that add no more risk than they can save, and the nodes
// that must stay for that reason. Nodes that wait for the same launches move together or not at
// all. The remaining moves are checked again, since a pod may have been placed on a node whose
// launch was removed.
func (d *planState) within(launches []policy.Launch, drains []policy.Drain) ([]policy.Launch, []policy.Drain,
	[]policy.NodeID) {
	var stay []policy.NodeID
	if d.e.cfg.Fixed {
		return launches, drains, stay
	}
	defer func() { d.sp = nil }() // the space contains the tentative placements
	for began := len(d.e.moved); len(drains) > 0; d.e.undo(began) {
		d.sp = nil
		g := d.newGuard(launches, drains)
		found := len(stay)
		for i := range drains {
			if n := &d.s.Nodes[drains[i].Node]; n.ReclaimAt == 0 && !g.empties(n) {
				stay = append(stay, n.ID)
			}
		}
		if len(stay) == found {
			return g.narrow(launches), drains, stay
		}
		launches, drains, stay = without(launches, drains, stay)
	}
	return launches, drains, stay
}

// without returns the launches and drains that remain if the nodes in stay are not drained, and
// stay extended by the nodes that waited for the same launches.
func without(launches []policy.Launch, drains []policy.Drain, stay []policy.NodeID) ([]policy.Launch, []policy.Drain,
	[]policy.NodeID) {
	awaited := func(token string) bool {
		return slices.ContainsFunc(drains, func(x policy.Drain) bool {
			return slices.Contains(stay, x.Node) && slices.Contains(x.After, token)
		})
	}
	for more := true; more; {
		more = false
		for i := range drains {
			if x := &drains[i]; !slices.Contains(stay, x.Node) && slices.ContainsFunc(x.After, awaited) {
				stay, more = append(stay, x.Node), true
			}
		}
	}
	launches = slices.DeleteFunc(slices.Clone(launches), func(l policy.Launch) bool { return awaited(l.Token) })
	drains = slices.DeleteFunc(slices.Clone(drains), func(x policy.Drain) bool { return slices.Contains(stay, x.Node) })
	return launches, drains, stay
}

// newGuard returns a guard without tentative moves that knows where the pods of drains may be
// placed.
func (d *planState) newGuard(launches []policy.Launch, drains []policy.Drain) *guard {
	g := &guard{
		poolContext: d.poolContext, prices: d.prices, steering: d.steering, refusals: d.refusals, share: d.choice.share,
		places: places{poolContext: d.poolContext}, costs: moveCostsOf(d.s, d.e, d.perPod),
	}
	g.risk = moveRisk{d.poolContext, d.reclaims, &g.costs}
	s := g.s
	goes := func(n policy.NodeID) bool {
		return slices.ContainsFunc(drains, func(x policy.Drain) bool { return x.Node == n })
	}
	for _, id := range g.e.roomy.nodes {
		if g.e.nodes.all[id].pool == g.pool.ID && !goes(id) && !g.leaves(id) {
			g.places.available = append(g.places.available, id)
		}
	}
	if len(launches) == 0 {
		return g
	}
	sold := slices.Concat(placement.OpenMarkets(s, g.pool.ID, policy.Spot),
		placement.OpenMarkets(s, g.pool.ID, policy.OnDemand))
	for i := range launches {
		if m := launches[i].Markets[0]; slices.Contains(sold, m) {
			g.space()
			g.places.addNode(&g.e.offersIn(s, g.pool.ID, []policy.MarketID{m})[0], launches[i].Token)
		}
	}
	return g
}

// empties moves the pods of n tentatively. If that adds more risk per hour than n costs, which is
// the maximum that removing it saves, it undoes the moves and reports false.
func (g *guard) empties(n *policy.Node) bool {
	t := trial{node: n}
	var alone bool
	if t.pods, alone = g.places.unload(n.ID); !alone {
		return true // pods move here, so that the other nodes decide
	}
	began, placed := len(g.e.moved), len(g.slots)
	for i := range t.pods {
		p := &t.pods[i]
		if to := g.places.target(p, n.ID); to >= 0 {
			g.sp.Bind(p, to)
			x := t.podMove(g.s, i, g.places.marketOf(to))
			g.e.move(x)
			g.slots = append(g.slots, slot{x, p, to})
		} else if id := g.elsewhere(p, n); id >= 0 {
			g.e.move(t.podMove(g.s, i, id))
		}
	}
	added := g.risk.since(began)
	if n.Market < 0 || added.workload < 0 || added.sum <= g.prices.keeping(n) {
		return true
	}
	g.refusals.add(n.ID, added.workload, added.group)
	g.e.undo(began)
	for _, x := range g.slots[placed:] {
		g.sp.Unbind(x.pod, x.at)
	}
	g.slots = g.slots[:placed]
	for k := range t.pods {
		g.sp.Bind(&t.pods[k], n.ID)
	}
	return false
}

// elsewhere returns the market in which p is expected to run if it fits no node: the first market
// the provisioner may buy in that adds nothing to the loss with one group, else the last. It is
// None if the market cannot be predicted.
func (g *guard) elsewhere(p *policy.Pod, n *policy.Node) policy.MarketID {
	id, w := policy.MarketID(policy.None), g.s.Templates[p.Template].Workload
	for _, m := range g.steering.selected() {
		if spot := g.s.Markets[m].Capacity == policy.Spot; spot && g.share <= 0 || !spot && g.share >= 1 {
			continue
		}
		if id = m; g.e.exposure.ChangeOf(w, 1, n.ID, m) <= 0 {
			break
		}
	}
	return id
}

// narrow removes from launches the markets, except the first, in which the pods that move there add
// more risk per hour than a node there costs.
func (g *guard) narrow(launches []policy.Launch) []policy.Launch {
	launches = slices.Clone(launches)
	for i := range launches {
		l := &launches[i]
		k := slices.Index(g.places.tokens, l.Token)
		if k < 0 {
			continue
		}
		var there []podMove
		for _, x := range g.slots {
			if int(x.at) == len(g.s.Nodes)+k {
				there = append(there, x.podMove)
			}
		}
		first := l.Markets[0]
		l.Markets = slices.DeleteFunc(slices.Clone(l.Markets), func(id policy.MarketID) bool {
			return id != first && g.risk.instead(there, id) > g.prices.buying(id)
		})
	}
	return launches
}
