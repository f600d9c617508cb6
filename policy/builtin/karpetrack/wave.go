package karpetrack

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// The limits of the number of nodes that one wave replaces. A wave may exceed the number of nodes
// that may be disrupted at once, since its nodes are drained one after another. A small pool needs
// that to move from many small machines to a large one.
const (
	waveMin = 4
	waveMax = 16
)

// waveEnd is how long after its nodes may be drained a wave is abandoned; nodes that were not
// drained stay. A wave is also abandoned when its last nodes can no longer be drained: the
// scheduler spreads pods, and a tight tentative packing may not fit. In both cases the pool is not
// repacked for waveRest.
const (
	waveEnd  = 2 * time.Hour
	waveRest = 6 * time.Hour
)

// A repacking repacks the nodes of a pool onto machines of one capacity type.
type repacking struct {
	*renewal
	capacity policy.CapacityType
}

// candidates returns the nodes that machines of the capacity type may replace: all nodes if the
// pool should run only on Spot, otherwise the nodes of that capacity type.
func (r *repacking) candidates() []policy.NodeID {
	all := r.capacity == policy.Spot && r.share == 1 && !r.Pool.Share.Exact
	return slices.DeleteFunc(r.nodes(), func(id policy.NodeID) bool {
		if !all && r.S.Markets[r.S.Nodes[id].Market].Capacity != r.capacity {
			return true
		}
		pods, _, hold := r.Leaving(id)
		return hold.Reason != "" || len(pods) == 0
	})
}

// leaving returns the pods that must leave nodes.
func (r *repacking) leaving(nodes []policy.NodeID) (all []policy.Pod) {
	for _, id := range nodes {
		pods, _, _ := r.Leaving(id)
		all = append(all, pods...)
	}
	return all
}

// pays reports whether repacking the pods of nodes saves at least the threshold. If it does not, it
// adds a hold with the price of the repacked pods to the plan.
func (r *repacking) pays(nodes []policy.NodeID) bool {
	offers := r.offering(r.capacity).Offers()
	if len(offers) == 0 {
		return false
	}
	before, pods := r.prices(nodes), r.leaving(nodes)
	r.Lift(pods)
	packing := placement.Pack(r.Space, pods, offers)
	r.SetDown(pods)
	switch {
	case len(packing.Unplaced) > 0:
		return false
	case packing.Total <= r.limit(before):
		return true
	}
	r.Hold(policy.None, policy.Why{
		Reason: policy.ReasonNoEdge, Before: before, After: packing.Total,
		Text: fmt.Sprintf("repacked on %v nodes, its pods would cost %s an hour instead of %s: less than the required %s is saved; %s",
			r.capacity, packing.Total.Short(), before.Short(), figures.Share(r.Pool.SavingsThreshold,
				0), packing.Quality(r.Space, pods, offers)),
	})
	return false
}

// bestGroup returns the group of nodes whose replacement saves the most dollars, and at least the
// threshold. Groups are formed from the most wasteful nodes. The pods of a group move to other
// nodes of the pool that have room, and the rest to new machines.
func (r *repacking) bestGroup(nodes []policy.NodeID) (replan.Group, bool) {
	placement.WastefulFirst(r.S, r.Space, nodes, r.offering(r.capacity).Floor, r.price)
	return replan.BestGroup(nodes, min(waveMax, max(r.Left, waveMin)),
		func(nodes []policy.NodeID) (g replan.Group, ok bool) {
			g = replan.Group{Nodes: nodes, Before: r.prices(nodes)}
			others := r.Targets(func(n *policy.Node) bool { return !slices.Contains(nodes, n.ID) })
			g.Purchase, ok = r.Regroup(r.leaving(nodes), others, func(rest []policy.Pod) (replan.Purchase, bool) {
				return r.buy(r.capacity, rest, len(nodes), r.limit(g.Before))
			})
			return g, ok && r.keeps(r.After(nodes, g.Bought))
		})
}

// open plans the launches of g and returns the wave that they start.
func (r *repacking) open(g replan.Group) policy.Wave {
	why := policy.Why{
		Reason: ReasonWave, Before: g.Before, After: g.Cost,
		Text: fmt.Sprintf("the pods of %s cost %s an hour together and %s on %s; %s",
			figures.Count(len(g.Nodes), "node"), g.Before.Short(), g.Cost.Short(), machines(len(g.Bought)), g.Quality),
	}
	w := policy.Wave{Since: r.S.Now, Tokens: r.Launch("wave", g.Nodes, g.Bought, why)}
	for _, id := range g.Nodes {
		w.Nodes = append(w.Nodes, r.S.Nodes[id].Name)
	}
	slices.Sort(w.Nodes)
	return w
}

// A waveUnderWay is a wave whose machines have been bought.
type waveUnderWay struct {
	*renewal
	wave *policy.Wave
}

// end plans to drain nodes of the wave once their replacements have run for the removal delay. It
// returns pm, without the wave if the wave is finished or abandoned.
func (w *waveUnderWay) end(pm policy.PoolMemory) policy.PoolMemory {
	fresh, arriving := w.fresh()
	old, leaving := w.old()
	due := w.wave.Since.Add(w.e.cfg.RemovalDelay)
	switch {
	case len(old)+leaving == 0:
		return w.over(pm, 0)
	case len(fresh)+arriving == 0 && w.S.Now > w.wave.Since, w.S.Now >= due.Add(waveEnd):
		return w.over(pm, waveRest)
	case w.S.Now < due:
		w.Plan.Wake = min(w.Plan.Wake, due)
		return pm
	case arriving > 0 || leaving > 0 || w.unsettled():
		return pm
	}
	if pm.Moved != 0 && w.S.Now.Sub(pm.Moved) < w.cooldown() {
		w.Plan.Wake = min(w.Plan.Wake, pm.Moved.Add(w.cooldown()))
		return pm
	}
	w.load()
	switch drained, stuck := w.empty(old, fresh); {
	case drained:
		pm.Moved, w.changed = w.S.Now, true
	case stuck:
		return w.over(pm, waveRest)
	}
	return pm
}

// over returns pm without its wave. The pool is not repacked for rest, if rest is positive.
func (w *waveUnderWay) over(pm policy.PoolMemory, rest time.Duration) policy.PoolMemory {
	pm.Wave, w.changed = policy.Wave{}, true
	if rest > 0 {
		pm.Packed = w.S.Now.Add(rest - w.e.cfg.PeriodicInterval)
	}
	return pm
}

// fresh returns the ready nodes among the launches of the wave, and how many are still starting.
func (w *waveUnderWay) fresh() (ready []policy.NodeID, arriving int) {
	for i := range w.S.Nodes {
		n := &w.S.Nodes[i]
		switch {
		case !n.Live() || n.Token == "" || n.ReclaimAt != 0 || n.Pool != w.Pool.ID || !slices.Contains(w.wave.Tokens, n.Token):
		case n.Phase < policy.NodeInitialized:
			arriving++
		case n.Usable() && n.ActedBy == policy.ActorNone && n.Market != policy.None:
			ready = append(ready, n.ID)
		}
	}
	return ready, arriving
}

// old returns the nodes of the wave that must still be drained, and how many are already leaving.
func (w *waveUnderWay) old() (nodes []policy.NodeID, leaving int) {
	for i := range w.S.Nodes {
		n := &w.S.Nodes[i]
		switch {
		case !n.Live() || n.Pool != w.Pool.ID || !slices.Contains(w.wave.Nodes, n.Name):
		case n.Usable() && n.ActedBy == policy.ActorNone:
			nodes = append(nodes, n.ID)
		default:
			leaving++
		}
	}
	return nodes, leaving
}

// empty plans to drain nodes of the wave whose pods fit elsewhere, the most expensive first, up to
// the number allowed. It reports whether it drains any, and otherwise whether none of them can ever
// be drained. It repeats the launches of their replacements, whose machines already run: a repeated
// launch has the same token, so nothing is bought twice, and no drain starts if such a machine is
// lost before.
func (w *waveUnderWay) empty(old, fresh []policy.NodeID) (drained, stuck bool) {
	slices.SortFunc(old, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(w.price(&w.S.Nodes[y]), w.price(&w.S.Nodes[x])),
			cmp.Compare(w.S.Nodes[x].Name, w.S.Nodes[y].Name))
	})
	why := policy.Why{
		Reason: ReasonWave, Before: w.prices(old) + w.prices(fresh), After: w.prices(fresh),
		Text: fmt.Sprintf("the replacements of %s have run for %v", figures.Count(len(w.wave.Nodes), "node"),
			w.S.Now.Sub(w.wave.Since)),
	}
	var after []string
	again := w.again(fresh, why)
	for i := range again {
		after = append(after, again[i].Token)
	}
	stuck = w.Left > 0
	for _, id := range old {
		if w.Left <= 0 {
			break
		}
		n := &w.S.Nodes[id]
		if !movable(w.S, n) || w.backedOff(id) {
			continue // another controller keeps the node, or its drain did not complete
		}
		pods, _, hold := w.Leaving(id)
		switch {
		case hold.Reason != "":
			stuck = false // a disruption budget may allow it later
		case !w.fits(pods):
			hold = policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on the remaining nodes",
				Before: w.price(n)}
		}
		if hold.Reason != "" {
			w.Hold(id, hold)
			continue
		}
		w.Charge(pods)
		if !drained {
			for i := range again {
				again[i].Replaces = id
			}
			w.Plan.Launches = append(w.Plan.Launches, again...)
		}
		w.Drain(id, after, why)
		drained = true
	}
	return drained, stuck
}

// again repeats the launches of the nodes in fresh whose markets a plan may still name.
func (w *waveUnderWay) again(fresh []policy.NodeID, why policy.Why) []policy.Launch {
	var list []policy.Launch
	for _, id := range fresh {
		n := &w.S.Nodes[id]
		m := &w.S.Markets[n.Market]
		if !m.Offered || !slices.Contains(w.Pool.Markets, m.ID) || !replan.Trusted(m) {
			continue
		}
		list = append(list, policy.Launch{Token: n.Token, Pool: w.Pool.ID, Markets: []policy.MarketID{m.ID},
			Replaces: policy.None, Why: why})
	}
	return list
}

// fits moves pods, which run on a node of the wave, to nodes of the pool that stay, and reports
// whether all of them fit. If not, it moves none of them.
func (w *waveUnderWay) fits(pods []policy.Pod) bool {
	w.Lift(pods)
	stay := w.Targets(func(n *policy.Node) bool { return !slices.Contains(w.wave.Nodes, n.Name) })
	if placement.BindAll(w.Space, pods, stay) {
		return true
	}
	w.SetDown(pods)
	return false
}
