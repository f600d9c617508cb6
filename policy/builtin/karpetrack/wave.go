package karpetrack

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// The most nodes that one wave replaces, more than may go at once: they go one
// after the other. It is what a small pool needs to come from many small
// machines to a large one.
const (
	waveMin = 4
	waveMax = 16
)

// waveEnd is how long after its nodes may be drained a wave is given up, with
// what was not drained left as it is. So is one whose last nodes no longer can
// be: the scheduler spreads pods, and what was packed tightly on paper may not
// fit. After either the pool is not packed anew for waveRest.
const (
	waveEnd  = 2 * time.Hour
	waveRest = 6 * time.Hour
)

// A group is what a wave would do: the nodes that go, and what is bought.
type group struct {
	nodes  []policy.NodeID
	before policy.Money
	buy    purchase
	after  placement.Balance
}

// beginWave packs the pool anew on paper and, where that saves the threshold,
// plans to launch the machines of a first group. The nodes that they replace are
// drained later. It reports whether a wave begins.
func (b *board) beginWave() (policy.Wave, bool) {
	for _, c := range [...]policy.CapacityType{policy.Spot, policy.OnDemand} {
		nodes := b.groupOf(c)
		if len(nodes) < 2 {
			continue
		}
		if !b.paysOnPaper(nodes, c) {
			continue
		}
		g, ok := b.bestGroup(nodes, c)
		if !ok {
			continue
		}
		return b.open(g)
	}
	return policy.Wave{}, false
}

// groupOf returns the nodes that machines of capacity type c may replace: all of
// them where the pool is to be spot alone, else those of that type.
func (b *board) groupOf(c policy.CapacityType) []policy.NodeID {
	all := c == policy.Spot && b.share == 1 && !b.pool.Share.Exact
	var nodes []policy.NodeID
	for _, id := range b.nodes {
		if !all && b.s.Markets[b.s.Nodes[id].Market].Capacity != c {
			continue
		}
		if pods, why := b.leavers(&b.s.Nodes[id]); why.Reason == "" && len(pods) > 0 {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

// paysOnPaper reports whether the pods of nodes, packed anew, cost less by the
// threshold, and says in the plan what they would cost where they do not.
func (b *board) paysOnPaper(nodes []policy.NodeID, c policy.CapacityType) bool {
	offers := b.offersOf(c)
	if len(offers) == 0 {
		return false
	}
	before := b.prices(nodes)
	pods := b.lift(nodes)
	packing := placement.PackProven(b.space(), pods, offers)
	b.setDown(pods)
	switch {
	case len(packing.Unplaced) > 0:
		return false
	case packing.Total <= b.limit(before):
		return true
	}
	b.plan.Holds = append(b.plan.Holds, policy.Hold{Pool: b.pool.ID, Node: policy.None, Why: policy.Why{
		Reason: policy.ReasonNoEdge, Before: before, After: packing.Total,
		Text: fmt.Sprintf("packed anew on %v, its pods would cost %s an hour and cost %s now: less than %.0f %% is saved; %s",
			c, packing.Total.Short(), before.Short(), 100*b.pool.SavingsThreshold, packing.Quality()),
	}})
	return false
}

func (b *board) prices(nodes []policy.NodeID) policy.Money {
	total := policy.Money(0)
	for _, id := range nodes {
		total += b.price(&b.s.Nodes[id])
	}
	return total
}

// lift takes the pods that may leave off nodes and returns them; setDown puts
// them back.
func (b *board) lift(nodes []policy.NodeID) []policy.Pod {
	var all []policy.Pod
	for _, id := range nodes {
		pods, _ := b.leavers(&b.s.Nodes[id])
		for i := range pods {
			b.space().Unbind(&pods[i], id)
		}
		all = append(all, pods...)
	}
	return all
}

func (b *board) setDown(pods []policy.Pod) {
	for i := range pods {
		b.space().Bind(&pods[i], pods[i].Node)
	}
}

// bestGroup returns the group of the nodes that waste most whose replacement
// saves the most dollars, and at least the threshold.
func (b *board) bestGroup(nodes []policy.NodeID, c policy.CapacityType) (best group, found bool) {
	floor := placement.FloorOf(b.offersOf(c))
	placement.WastefulFirst(b.s, b.space(), nodes, floor, b.price)
	most := min(len(nodes), waveMax, max(b.left, waveMin))
	for n := 2; n <= most; n++ {
		g, ok := b.tryGroup(nodes[:n], c)
		if ok && (!found || g.before-g.buy.cost > best.before-best.buy.cost) {
			best, found = g, true
		}
	}
	return best, found
}

// tryGroup works out what it costs to do without nodes: their pods go where the
// other nodes of the pool have room, and what is left on new machines.
func (b *board) tryGroup(nodes []policy.NodeID, c policy.CapacityType) (group, bool) {
	g := group{nodes: slices.Clone(nodes), before: b.prices(nodes)}
	sp := b.space()
	pods := b.lift(nodes)
	rest, at := b.displace(pods, func(n *policy.Node) bool { return !slices.Contains(nodes, n.ID) })
	ok := true
	if len(rest) > 0 {
		g.buy, ok = b.purchase(c, rest, len(nodes), b.limit(g.before))
	}
	placement.UnbindAll(sp, at)
	b.setDown(pods)
	if !ok || len(rest) == 0 {
		return g, false // what needs nothing new is consolidation, which needs no wave
	}
	g.after = b.at
	for i, id := range nodes {
		p := purchase{}
		if i == 0 {
			p = g.buy
		}
		was := b.at
		b.at = g.after
		g.after = b.moved(&b.s.Nodes[id], p)
		b.at = was
	}
	return g, b.keeps(g.after)
}

// displace binds pods to the usable nodes of the pool for which may holds, and
// returns those that find no place there and where the others are.
func (b *board) displace(pods []policy.Pod, may func(*policy.Node) bool) (rest []policy.Pod, at []placement.Binding) {
	var targets []policy.NodeID
	for i := range b.s.Nodes {
		n := &b.s.Nodes[i]
		if n.Pool == b.pool.ID && n.Usable() && n.ActedBy == policy.ActorNone && may(n) {
			targets = append(targets, n.ID)
		}
	}
	return placement.BindFirstFit(b.space(), pods, targets)
}

// open plans the launches of g and returns the wave that they begin.
func (b *board) open(g group) (policy.Wave, bool) {
	why := policy.Why{
		Reason: ReasonWave, Before: g.before, After: g.buy.cost,
		Text: fmt.Sprintf("the pods of %d nodes cost %s an hour together and %s on %s; %s",
			len(g.nodes), g.before.Short(), g.buy.cost.Short(), machines(len(g.buy.nodes)), g.buy.quality),
	}
	w := policy.Wave{Since: b.s.Now, Tokens: b.launch("wave", g.nodes, g.buy, why)}
	for _, id := range g.nodes {
		w.Nodes = append(w.Nodes, b.s.Nodes[id].Name)
	}
	slices.Sort(w.Nodes)
	return w, true
}

// endWave plans to drain nodes of the wave under way once those in their place
// have stood for the removal delay, and returns the memory with the wave over
// where nothing is left to do.
func (b *board) endWave(pm policy.PoolMemory) policy.PoolMemory {
	w := pm.Wave
	fresh, arriving := b.fresh(&w)
	old, leaving := b.old(&w)
	due := w.Since.Add(b.e.cfg.RemovalDelay)
	switch {
	case len(old)+leaving == 0:
		return b.over(pm, 0)
	case len(fresh)+arriving == 0 && b.s.Now > w.Since, b.s.Now >= due.Add(waveEnd):
		return b.over(pm, waveRest)
	case b.s.Now < due:
		b.plan.Wake = min(b.plan.Wake, due)
		return pm
	case arriving > 0 || leaving > 0 || b.unsettled():
		return pm
	}
	b.survey()
	if pm.Moved != 0 && b.s.Now.Sub(pm.Moved) < b.cooldown() {
		b.plan.Wake = min(b.plan.Wake, pm.Moved.Add(b.cooldown()))
		return pm
	}
	switch drained, stuck := b.empty(&w, old, fresh); {
	case drained:
		pm.Moved, b.changed = b.s.Now, true
	case stuck:
		return b.over(pm, waveRest)
	}
	return pm
}

// over returns pm without its wave, and lets the pool rest.
func (b *board) over(pm policy.PoolMemory, rest time.Duration) policy.PoolMemory {
	pm.Wave, b.changed = policy.Wave{}, true
	if rest > 0 {
		pm.Packed = b.s.Now.Add(rest - b.e.cfg.PeriodicInterval)
	}
	return pm
}

// fresh returns the nodes of w's launches that stand ready, and how many are on
// their way.
func (b *board) fresh(w *policy.Wave) (ready []policy.NodeID, arriving int) {
	for i := range b.s.Nodes {
		n := &b.s.Nodes[i]
		switch {
		case !n.Live() || n.Token == "" || n.ReclaimAt != 0 || n.Pool != b.pool.ID || !slices.Contains(w.Tokens, n.Token):
		case n.Phase < policy.NodeInitialized:
			arriving++
		case n.Usable() && n.ActedBy == policy.ActorNone && n.Market != policy.None:
			ready = append(ready, n.ID)
		}
	}
	return ready, arriving
}

// old returns the nodes of w that are still to be drained, and how many are on
// their way out.
func (b *board) old(w *policy.Wave) (nodes []policy.NodeID, leaving int) {
	for i := range b.s.Nodes {
		n := &b.s.Nodes[i]
		switch {
		case !n.Live() || n.Pool != b.pool.ID || !slices.Contains(w.Nodes, n.Name):
		case n.Usable() && n.ActedBy == policy.ActorNone:
			nodes = append(nodes, n.ID)
		default:
			leaving++
		}
	}
	return nodes, leaving
}

// empty plans to drain nodes of w whose pods have a place, the dearest first, as
// many as may go, and reports whether it did; or else whether none of them ever
// will. It names the launches in their place again, whose machines are there:
// calls are told by their tokens, so nothing is bought twice, and no drain begins
// if such a machine is lost before it does.
func (b *board) empty(w *policy.Wave, old, fresh []policy.NodeID) (drained, stuck bool) {
	slices.SortFunc(old, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(b.price(&b.s.Nodes[y]), b.price(&b.s.Nodes[x])), cmp.Compare(b.s.Nodes[x].Name, b.s.Nodes[y].Name))
	})
	why := policy.Why{
		Reason: ReasonWave, Before: b.prices(old) + b.prices(fresh), After: b.prices(fresh),
		Text: fmt.Sprintf("the machines in place of %d nodes have stood for %v", len(w.Nodes), b.s.Now.Sub(w.Since)),
	}
	var after []string
	again := b.again(fresh, why)
	for i := range again {
		after = append(after, again[i].Token)
	}
	stuck = b.left > 0
	for _, id := range old {
		if b.left <= 0 {
			break
		}
		n := &b.s.Nodes[id]
		if !slices.Contains(b.nodes, id) {
			continue // somebody said that it is to stay, or its drain did not end
		}
		pods, hold := b.leavers(n)
		switch {
		case hold.Reason != "":
			stuck = false // a disruption budget may allow it later
		case !b.fits(n, pods, w):
			hold = policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on the nodes that stay", Before: b.price(n)}
		}
		if hold.Reason != "" {
			b.plan.Holds = append(b.plan.Holds, policy.Hold{Pool: b.pool.ID, Node: id, Why: hold})
			continue
		}
		b.charge(pods)
		if !drained {
			for i := range again {
				again[i].Replaces = id
			}
			b.plan.Launches = append(b.plan.Launches, again...)
		}
		b.drain(n, after, why)
		drained = true
	}
	return drained, stuck
}

// again returns the launches of the nodes fresh once more, as far as a plan can
// name them.
func (b *board) again(fresh []policy.NodeID, why policy.Why) []policy.Launch {
	var list []policy.Launch
	for _, id := range fresh {
		n := &b.s.Nodes[id]
		m := &b.s.Markets[n.Market]
		if !m.Offered || !slices.Contains(b.pool.Markets, m.ID) || !replan.Trusted(m) {
			continue
		}
		list = append(list, policy.Launch{Token: n.Token, Pool: b.pool.ID, Markets: []policy.MarketID{m.ID}, Replaces: policy.None, Why: why})
	}
	return list
}

// fits moves pods from n, a node of w, to nodes of the pool that stay, and reports
// whether all of them found a place; else all are where they were.
func (b *board) fits(n *policy.Node, pods []policy.Pod, w *policy.Wave) bool {
	sp := b.space()
	for i := range pods {
		sp.Unbind(&pods[i], n.ID)
	}
	rest, at := b.displace(pods, func(x *policy.Node) bool { return !slices.Contains(w.Nodes, x.Name) })
	if len(rest) == 0 {
		return true
	}
	placement.UnbindAll(sp, at)
	b.setDown(pods)
	return false
}
