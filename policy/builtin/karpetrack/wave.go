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

// A repacking packs the nodes of a pool anew, on machines of one capacity type.
type repacking struct {
	*renewal
	capacity policy.CapacityType
}

// group returns the nodes that its machines may replace: all of
// them where the pool is to be spot alone, else those of that type.
func (r *repacking) group() []policy.NodeID {
	all := r.capacity == policy.Spot && r.share == 1 && !r.pool.Share.Exact
	var nodes []policy.NodeID
	for _, id := range r.nodes() {
		if !all && r.s.Markets[r.s.Nodes[id].Market].Capacity != r.capacity {
			continue
		}
		if pods, why := r.pods.leavers(&r.s.Nodes[id]); why.Reason == "" && len(pods) > 0 {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

// paysOnPaper reports whether the pods of nodes, packed anew, cost less by the
// threshold, and says in the plan what they would cost where they do not.
func (r *repacking) paysOnPaper(nodes []policy.NodeID) bool {
	offers := r.market.offersOf(r.capacity)
	if len(offers) == 0 {
		return false
	}
	before := r.prices(nodes)
	pods := r.pods.lift(nodes)
	packing := placement.Pack(r.pods.space(), pods, offers)
	r.pods.setDown(pods)
	switch {
	case len(packing.Unplaced) > 0:
		return false
	case packing.Total <= r.limit(before):
		return true
	}
	r.plan.Holds = append(r.plan.Holds, policy.Hold{Pool: r.pool.ID, Node: policy.None, Why: policy.Why{
		Reason: policy.ReasonNoEdge, Before: before, After: packing.Total,
		Text: fmt.Sprintf("repacked on %v nodes, its pods would cost %s an hour instead of %s: less than the required %s is saved; %s",
			r.capacity, packing.Total.Short(), before.Short(), figures.Share(r.pool.SavingsThreshold, 0),
			packing.Quality(r.pods.space(), pods, offers)),
	}})
	return false
}

// bestGroup returns the group of the nodes that waste most whose replacement
// saves the most dollars, and at least the threshold.
func (r *repacking) bestGroup(nodes []policy.NodeID) (best group, found bool) {
	floor := r.market.floorOf(r.capacity)
	placement.WastefulFirst(r.s, r.pods.space(), nodes, floor, r.price)
	most := min(len(nodes), waveMax, max(r.left, waveMin))
	for n := 2; n <= most; n++ {
		g, ok := r.tryGroup(nodes[:n])
		if ok && (!found || g.before-g.buy.cost > best.before-best.buy.cost) {
			best, found = g, true
		}
	}
	return best, found
}

// tryGroup works out what it costs to do without nodes: their pods go where the
// other nodes of the pool have room, and what is left on new machines.
func (r *repacking) tryGroup(nodes []policy.NodeID) (group, bool) {
	g := group{nodes: slices.Clone(nodes), before: r.prices(nodes)}
	sp := r.pods.space()
	pods := r.pods.lift(nodes)
	rest, at := r.pods.displace(pods, func(n *policy.Node) bool { return !slices.Contains(nodes, n.ID) })
	ok := true
	if len(rest) > 0 {
		g.buy, ok = r.market.purchase(r.capacity, rest, len(nodes), r.limit(g.before))
	}
	placement.UnbindAll(sp, at)
	r.pods.setDown(pods)
	if !ok || len(rest) == 0 {
		return g, false // what needs nothing new is consolidation, which needs no wave
	}
	g.after = r.at
	for i, id := range nodes {
		p := purchase{}
		if i == 0 {
			p = g.buy
		}
		was := r.at
		r.at = g.after
		g.after = r.moved(&r.s.Nodes[id], p)
		r.at = was
	}
	return g, r.keeps(g.after)
}

// open plans the launches of g and returns the wave that they begin.
func (r *repacking) open(g group) policy.Wave {
	why := policy.Why{
		Reason: ReasonWave, Before: g.before, After: g.buy.cost,
		Text: fmt.Sprintf("the pods of %s cost %s an hour together and %s on %s; %s",
			figures.Count(len(g.nodes), "node"), g.before.Short(), g.buy.cost.Short(), machines(len(g.buy.nodes)), g.buy.quality),
	}
	w := policy.Wave{Since: r.s.Now, Tokens: r.launch("wave", g.nodes, g.buy, why)}
	for _, id := range g.nodes {
		w.Nodes = append(w.Nodes, r.s.Nodes[id].Name)
	}
	slices.Sort(w.Nodes)
	return w
}

// A waveUnderWay is a wave whose machines were bought.
type waveUnderWay struct {
	*renewal
	wave *policy.Wave
}

// end plans to drain nodes of the wave under way once those in their place
// have stood for the removal delay, and returns the memory with the wave over
// where nothing is left to do.
func (w *waveUnderWay) end(pm policy.PoolMemory) policy.PoolMemory {
	fresh, arriving := w.fresh()
	old, leaving := w.old()
	due := w.wave.Since.Add(w.e.cfg.RemovalDelay)
	switch {
	case len(old)+leaving == 0:
		return w.over(pm, 0)
	case len(fresh)+arriving == 0 && w.s.Now > w.wave.Since, w.s.Now >= due.Add(waveEnd):
		return w.over(pm, waveRest)
	case w.s.Now < due:
		w.plan.Wake = min(w.plan.Wake, due)
		return pm
	case arriving > 0 || leaving > 0 || w.unsettled():
		return pm
	}
	w.survey()
	if pm.Moved != 0 && w.s.Now.Sub(pm.Moved) < w.cooldown() {
		w.plan.Wake = min(w.plan.Wake, pm.Moved.Add(w.cooldown()))
		return pm
	}
	switch drained, stuck := w.empty(old, fresh); {
	case drained:
		pm.Moved, w.changed = w.s.Now, true
	case stuck:
		return w.over(pm, waveRest)
	}
	return pm
}

// over returns pm without its wave, and lets the pool rest.
func (w *waveUnderWay) over(pm policy.PoolMemory, rest time.Duration) policy.PoolMemory {
	pm.Wave, w.changed = policy.Wave{}, true
	if rest > 0 {
		pm.Packed = w.s.Now.Add(rest - w.e.cfg.PeriodicInterval)
	}
	return pm
}

// fresh returns the nodes of its launches that stand ready, and how many are on
// their way.
func (w *waveUnderWay) fresh() (ready []policy.NodeID, arriving int) {
	for i := range w.s.Nodes {
		n := &w.s.Nodes[i]
		switch {
		case !n.Live() || n.Token == "" || n.ReclaimAt != 0 || n.Pool != w.pool.ID || !slices.Contains(w.wave.Tokens, n.Token):
		case n.Phase < policy.NodeInitialized:
			arriving++
		case n.Usable() && n.ActedBy == policy.ActorNone && n.Market != policy.None:
			ready = append(ready, n.ID)
		}
	}
	return ready, arriving
}

// old returns its nodes that are still to be drained, and how many are on
// their way out.
func (w *waveUnderWay) old() (nodes []policy.NodeID, leaving int) {
	for i := range w.s.Nodes {
		n := &w.s.Nodes[i]
		switch {
		case !n.Live() || n.Pool != w.pool.ID || !slices.Contains(w.wave.Nodes, n.Name):
		case n.Usable() && n.ActedBy == policy.ActorNone:
			nodes = append(nodes, n.ID)
		default:
			leaving++
		}
	}
	return nodes, leaving
}

// empty plans to drain nodes of the wave whose pods have a place, the dearest first, as
// many as may go, and reports whether it did; or else whether none of them ever
// will. It names the launches in their place again, whose machines are there:
// each call has its token, so nothing is bought twice, and no drain begins
// if such a machine is lost before it does.
func (w *waveUnderWay) empty(old, fresh []policy.NodeID) (drained, stuck bool) {
	slices.SortFunc(old, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(w.price(&w.s.Nodes[y]), w.price(&w.s.Nodes[x])), cmp.Compare(w.s.Nodes[x].Name, w.s.Nodes[y].Name))
	})
	why := policy.Why{
		Reason: ReasonWave, Before: w.prices(old) + w.prices(fresh), After: w.prices(fresh),
		Text: fmt.Sprintf("the replacements of %s have run for %v", figures.Count(len(w.wave.Nodes), "node"), w.s.Now.Sub(w.wave.Since)),
	}
	var after []string
	again := w.again(fresh, why)
	for i := range again {
		after = append(after, again[i].Token)
	}
	stuck = w.left > 0
	for _, id := range old {
		if w.left <= 0 {
			break
		}
		n := &w.s.Nodes[id]
		if !movable(w.s, n) || w.backedOff(id) {
			continue // somebody said that it is to stay, or its drain did not end
		}
		pods, hold := w.pods.leavers(n)
		switch {
		case hold.Reason != "":
			stuck = false // a disruption budget may allow it later
		case !w.fits(n, pods):
			hold = policy.Why{Reason: policy.ReasonInfeasible, Text: "its pods do not all fit on the remaining nodes", Before: w.price(n)}
		}
		if hold.Reason != "" {
			w.plan.Holds = append(w.plan.Holds, policy.Hold{Pool: w.pool.ID, Node: id, Why: hold})
			continue
		}
		w.pods.charge(pods)
		if !drained {
			for i := range again {
				again[i].Replaces = id
			}
			w.plan.Launches = append(w.plan.Launches, again...)
		}
		w.drain(n, after, why)
		drained = true
	}
	return drained, stuck
}

// again returns the launches of the nodes fresh once more, as far as a plan can
// name them.
func (w *waveUnderWay) again(fresh []policy.NodeID, why policy.Why) []policy.Launch {
	var list []policy.Launch
	for _, id := range fresh {
		n := &w.s.Nodes[id]
		m := &w.s.Markets[n.Market]
		if !m.Offered || !slices.Contains(w.pool.Markets, m.ID) || !replan.Trusted(m) {
			continue
		}
		list = append(list, policy.Launch{Token: n.Token, Pool: w.pool.ID, Markets: []policy.MarketID{m.ID}, Replaces: policy.None, Why: why})
	}
	return list
}

// fits moves pods from n, a node of the wave, to nodes of the pool that stay, and reports
// whether all of them found a place; else all are where they were.
func (w *waveUnderWay) fits(n *policy.Node, pods []policy.Pod) bool {
	sp := w.pods.space()
	for i := range pods {
		sp.Unbind(&pods[i], n.ID)
	}
	rest, at := w.pods.displace(pods, func(x *policy.Node) bool { return !slices.Contains(w.wave.Nodes, x.Name) })
	if len(rest) == 0 {
		return true
	}
	placement.UnbindAll(sp, at)
	w.pods.setDown(pods)
	return false
}
