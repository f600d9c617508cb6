package portfolio

import (
	"math"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// orderedMax is how many nodes are ordered, those that go first.
const orderedMax = 1000

// A deletionOrder gives the pods of every node a deletion cost. It reads what the pool is
// and what the plan empties already, and adds deletion costs to the plan alone.
type deletionOrder struct {
	*poolContext
	prices *prices
	perPod *podLosses
	share  float64
}

// A keptNode is a node in the order in which nodes are kept as workloads shrink.
type keptNode struct {
	node   policy.NodeID
	held   int32   // the least deletion cost of those of its pods that go, 0 where they have none
	yields float64 // what these are worth, dollars an hour
	stale  bool    // not all have it
}

// plan gives the pods of every node a deletion cost, so that a workload that
// shrinks leaves whole nodes and not a part of each: first those that cost most for
// what such pods use of them. It is built up from what is kept longest, node by
// node as nodes are bought, so that the nodes that remain are spread however many go.
func (o *deletionOrder) plan() {
	o.hurry()
	k := &o.e.ranking
	if o.order() < 2 {
		return
	}
	o.keep()
	k.held = k.held[:0]
	for i := range k.kept {
		k.held = append(k.held, k.kept[i].held)
	}
	costs := k.numbering.of(k.held)
	asked := k.asked[:0]
	for i := range k.kept {
		if x := &k.kept[i]; costs[i] != x.held || x.stale {
			asked = append(asked, int32(i))
		}
	}
	k.asked = asked
	o.ask(asked, costs)
}

// ask adds the costs of the given places in the order to the plan. The accounts of all share
// one text.
func (o *deletionOrder) ask(asked, costs []int32) {
	k := &o.e.ranking
	clear(k.texts)
	all, last := figures.Count(len(k.kept), "node"), len(k.kept)-1
	buf := k.buf[:0]
	list := slices.Grow(o.out.DeletionCosts, len(asked))
	for _, i := range asked {
		x := &k.kept[i]
		cost := o.prices.keepingIn(o.e.nodes.all[x.node].market)
		buf = strconv.AppendInt(append(buf, "when workloads shrink, it follows "...), int64(last)-int64(i), 10)
		buf = append(append(append(buf, " of "...), all...), ": it costs "...)
		buf = append(append(buf, k.textOf(cost)...), "/h for pods worth "...)
		buf = append(append(buf, k.textOf(x.yields)...), "/h elsewhere"...)
		list = append(list, policy.DeletionCost{Node: x.node, Cost: costs[i], Why: policy.Why{
			Reason: policy.ReasonCheaper, Before: policy.Dollars(cost), After: policy.Dollars(x.yields),
		}})
		k.ends = append(k.ends, len(buf))
	}
	texts, began := string(buf), 0
	for n, end := range k.ends {
		list[len(list)-len(asked)+n].Why.Text = texts[began:end]
		began = end
	}
	o.out.DeletionCosts, k.buf, k.ends = list, buf, k.ends[:0]
}

// hurry lets the pods of nodes that are on their way out go before all others.
func (o *deletionOrder) hurry() {
	s := o.s
	for _, id := range o.e.nodes.odd {
		n := &o.e.nodes.all[id]
		if n.pool != o.pool.ID || !n.reclaimed && n.actedBy != policy.ActorUs {
			continue
		}
		x := policy.DeletionCost{Node: id, Cost: leavingCost, Why: policy.Why{Reason: policy.ReasonNotice,
			Text: "the node is being reclaimed or drained"}}
		if slices.ContainsFunc(o.e.pods.on(x.Node), func(p boundPod) bool { return x.Ranks(s, &s.Pods[p.id]) }) {
			o.out.DeletionCosts = append(o.out.DeletionCosts, x)
		}
	}
}

// order ranks the nodes on which pods can be asked to go first: those that cost most for
// what these use, as many as are ordered. It returns their number.
func (o *deletionOrder) order() int {
	s, k := o.s, &o.e.ranking
	value := o.prices.evaluate(o.share > 0)
	k.values, k.goes, k.all = scratch.Zeroed(k.values, len(s.Templates)), scratch.Zeroed(k.goes,
		len(s.Templates)), scratch.Zeroed(k.all, len(s.Templates))
	for i := range s.Templates {
		t := &s.Templates[i]
		k.values[i], k.goes[i] = value.of(t.Requests), t.Workload >= 0 &&
			s.Workloads[t.Workload].Kind == policy.KindDeployment
	}
	for i := range s.Templates { // by kind: pods of all its templates go
		kind := o.e.pods.needs[i].kind
		k.all[kind] = k.goes[i] && (int(kind) == i || k.all[kind])
	}
	k.runs = k.runs[:0]
	for i := range o.e.classes.list {
		c := &o.e.classes.list[i]
		if c.pool != o.pool.ID || len(c.nodes) == 0 {
			continue
		}
		if c.kind < 0 || !k.all[c.kind] {
			o.rankEach(c.nodes)
			continue
		}
		r := run{market: c.market, cost: o.prices.keepingIn(c.market), nodes: o.staying(c.nodes)}
		for range c.pods {
			r.yields += k.values[c.kind]
		}
		k.add(&r)
	}
	return k.last(orderedMax, o.e.names.rank)
}

// staying returns those of nodes that the plan does not empty.
func (o *deletionOrder) staying(nodes []policy.NodeID) []policy.NodeID {
	if len(o.out.Drains) == 0 || !slices.ContainsFunc(nodes, o.leaves) {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), o.leaves)
}

// rankEach adds each of nodes on its own: what its pods are differs from node to node.
func (o *deletionOrder) rankEach(nodes []policy.NodeID) {
	for i, id := range nodes {
		if o.leaves(id) {
			continue
		}
		m := o.e.nodes.all[id].market
		r := run{market: m, cost: o.prices.keepingIn(m), nodes: nodes[i : i+1], own: true}
		o.addPods(&r)
		o.e.ranking.add(&r)
	}
}

// addPods counts the pods of the node of r, of which those go whose template does.
func (o *deletionOrder) addPods(r *run) {
	k, first := &o.e.ranking, true
	for _, p := range o.e.pods.on(r.nodes[0]) {
		switch {
		case p.phase == policy.PodTerminating:
		case k.goes[p.template] && !p.fixed:
			r.stale = r.stale || !first && p.cost != r.held
			if first || p.cost < r.held {
				r.held = p.cost
			}
			r.yields += k.values[p.template]
			first = false
		default:
			r.stays += o.perPod.of(o.s, &o.s.Pods[p.id]) / o.e.cfg.Holding.Hours()
		}
	}
}

// A ratio is the Spot part of the nodes that are kept, if an exact share must be held, and the
// nodes to choose from.
type ratio struct {
	s                 *policy.Snapshot
	pool              *policy.Pool
	spot, total       int64  // units of the share that are kept
	remaining         [2]int // nodes to choose from, on demand and on spot
	size              [2]int64
	wanted, unlimited bool
}

// ratioBeside returns the ratio of the nodes of the pool that stay whatever goes:
// those that are not in runs.
func (o *deletionOrder) ratioBeside(runs []run) *ratio {
	x := &ratio{s: o.s, pool: o.pool, unlimited: !o.pool.Share.Exact}
	if x.unlimited {
		return x
	}
	h := share.Of(o.s, o.pool.ID)
	x.spot, x.total = h.Spot, h.Spot+h.Fixed
	for i := range runs {
		spot, size := x.of(runs[i].market)
		n := len(runs[i].nodes)
		size *= int64(n)
		x.remaining[spot] += n
		x.size[spot] += size
		x.total -= size
		x.spot -= size * int64(spot)
	}
	x.next()
	return x
}

// of returns 1 for a market of spot, else 0, and the units of the share of a node.
func (x *ratio) of(m policy.MarketID) (spot int, size int64) {
	if x.s.Markets[m].Capacity == policy.Spot {
		spot = 1
	}
	return spot, share.Units(x.s, x.pool.ID, m)
}

// next finds the capacity type of the next node: a node of mean size of the type that brings the
// share nearer, while there is one.
func (x *ratio) next() {
	x.wanted = x.remaining[1] > 0
	if x.remaining[0] > 0 && x.remaining[1] > 0 {
		size := float64(x.size[1]) / float64(x.remaining[1])
		x.wanted = float64(x.spot)+size/2 <= float64(x.pool.Share.Target*(float64(x.total)+size))
	}
}

// wants reports whether a node of market m may come next.
func (x *ratio) wants(m policy.MarketID) bool {
	return x.unlimited || (x.s.Markets[m].Capacity == policy.Spot) == x.wanted
}

// add counts a node of market m as kept.
func (x *ratio) add(m policy.MarketID) {
	if x.unlimited {
		return
	}
	spot, size := x.of(m)
	x.spot += size * int64(spot)
	x.total += size
	x.remaining[spot]--
	x.size[spot] -= size
	x.next()
}

const (
	// misplaced is by how much, as a part of the nodes, one may stand elsewhere in
	// the order than it should before its pods are given another cost.
	misplaced = 0.15

	// orderStep is between the costs of two adjacent nodes when all are renumbered, so that later
	// ones find a place between them.
	orderStep = 1 << 16

	// leavingCost is that of pods on nodes which are on their way out.
	leavingCost = math.MinInt32 / 2
)

// settleMax is how often costs are looked at again until none changes.
const settleMax = 4

// A numbering finds the deletion costs of nodes in the order in which they are kept. It works
// in the memory that it has. found holds the costs of asked, which follow from it alone: most
// often the order and the costs in it are those of the last time.
type numbering struct {
	asked, found []int32

	others, given, stays []int32
	highest              []int64
	staying              []bool
}

// of returns the deletion costs of nodes in the order in which they are kept, below 0, which is the
// default cost of pods. With these costs as held it would return the same, so that written costs
// are stable. held are the costs that the nodes have. The list is valid until the next call.
func (x *numbering) of(held []int32) []int32 {
	if slices.Equal(held, x.asked) {
		return x.found
	}
	x.asked, x.found = append(x.asked[:0], held...), append(x.found[:0], held...)
	for range settleMax {
		x.others = append(x.others[:0], x.found...)
		x.renumber(x.others, x.found)
		if slices.Equal(x.found, x.others) {
			return x.found
		}
	}
	evenly(x.found)
	return x.found
}

// evenly renumbers all costs.
func evenly(costs []int32) {
	for i := range costs {
		costs[i] = int32(-(i + 1) * orderStep)
	}
}

// renumber fills in costs in place of held: a node that stands about where it
// should keeps what it has, and the others are put between.
func (x *numbering) renumber(held, costs []int32) {
	x.given, x.highest, x.stays = x.given[:0], x.highest[:0], x.stays[:0]
	for i, cost := range held {
		if cost < 0 && cost > leavingCost { // it has a cost
			x.highest = append(x.highest, -int64(cost)<<32|int64(len(x.given)))
			x.given = append(x.given, int32(i))
		}
	}
	slices.Sort(x.highest) // places in given, those with the highest costs first
	away := max(2, int(misplaced*float64(len(held))))
	x.staying = scratch.Zeroed(x.staying, len(held))
	for k, at := range x.highest {
		if place := int(int32(at)); k-place <= away && place-k <= away {
			x.stays = append(x.stays, x.given[place])
			x.staying[x.given[place]] = true
		}
	}
	if !x.between(held, costs) {
		evenly(costs)
	}
}

// between fills in costs: those of stays are unchanged, and each other node comes after the number
// of these that must be kept longer than it. It reports whether there were enough costs between.
func (x *numbering) between(held, costs []int32) bool {
	next, upper := 0, int64(0)
	for k := range len(x.stays) + 1 {
		began, n := next, int64(0) // the others that as many of stays are before as were put so far
		for ; next < len(held) && !x.staying[next]; next++ {
			n++
		}
		lower := upper - (n+1)*orderStep
		if k < len(x.stays) {
			at := x.stays[k]
			lower = int64(held[at])
			costs[at] = held[at]
		}
		if upper-lower <= n || lower <= leavingCost/2 {
			return false
		}
		for j := range n {
			costs[began+int(j)] = int32(upper - (upper-lower)*(j+1)/(n+1))
		}
		next, upper = next+1, lower
	}
	return true
}
