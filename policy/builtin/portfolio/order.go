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

// orderedMax is the maximum number of nodes that are ordered: those that should be removed first.
const orderedMax = 1000

// A deletionOrder assigns a deletion cost to the pods of every node. It reads the state of the pool
// and the drains that are planned, and changes only the deletion costs of the plan.
type deletionOrder struct {
	*poolContext
	prices *prices
	perPod *podLosses
	share  float64
}

// A keptNode is a node in the order in which nodes are kept as workloads shrink.
type keptNode struct {
	node   policy.NodeID
	held   int32   // lowest deletion cost of its pods that may go; 0 without such pods
	yields float64 // value of these pods, dollars per hour
	stale  bool    // some of these pods have another deletion cost
}

// plan assigns a deletion cost to the pods of every node, so that workloads that shrink empty whole
// nodes instead of a part of each: first the nodes that cost most for the pods on them. The order
// is built from the node that is kept longest, node by node as if they were bought, so that the
// remaining nodes are spread however many are removed.
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

// ask adds to the plan the costs of the nodes at the given indexes in the order. The texts of all
// explanations share one string.
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

// hurry assigns the lowest deletion cost to the pods of nodes that are leaving.
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

// order ranks the nodes with pods that workloads may remove, and keeps the orderedMax nodes that
// cost most for these pods. It returns their number.
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
	for i := range s.Templates { // by kind, whether the pods of all its templates go
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

// staying returns the nodes in nodes that the plan does not drain.
func (o *deletionOrder) staying(nodes []policy.NodeID) []policy.NodeID {
	if len(o.out.Drains) == 0 || !slices.ContainsFunc(nodes, o.leaves) {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), o.leaves)
}

// rankEach adds each of nodes as a run of its own, since their pods differ.
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

// addPods counts the pods of the node of r. A pod goes if its template does and no other controller
// set its deletion cost.
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

// A ratio tracks the Spot share of the nodes that are kept, if an exact share is required, and the
// nodes still to choose from.
type ratio struct {
	s                 *policy.Snapshot
	pool              *policy.Pool
	spot, total       int64  // units of the pool's share that are kept
	remaining         [2]int // number of nodes to choose from, on-demand and Spot
	size              [2]int64
	wanted, unlimited bool
}

// ratioBeside returns the ratio of the nodes of the pool that are not in runs.
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

// of returns 1 for a Spot market and 0 for others, and the size of a node in units of the share.
func (x *ratio) of(m policy.MarketID) (spot int, size int64) {
	if x.s.Markets[m].Capacity == policy.Spot {
		spot = 1
	}
	return spot, share.Units(x.s, x.pool.ID, m)
}

// next sets the capacity type of the next node: the type of which a node of mean size brings the
// pool nearer to its share, if such nodes remain.
func (x *ratio) next() {
	x.wanted = x.remaining[1] > 0
	if x.remaining[0] > 0 && x.remaining[1] > 0 {
		size := float64(x.size[1]) / float64(x.remaining[1])
		x.wanted = float64(x.spot)+size/2 <= float64(x.pool.Share.Target*(float64(x.total)+size))
	}
}

// wants reports whether a node of market m may be next.
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
	// misplaced is how far a node may be from its position in the order, as a fraction of the
	// number of nodes, before its pods get another cost.
	misplaced = 0.15

	// orderStep is the distance between the costs of adjacent nodes when all are renumbered, so
	// that later nodes fit between them.
	orderStep = 1 << 16

	// leavingCost is the deletion cost of pods on nodes that are leaving.
	leavingCost = math.MinInt32 / 2
)

// settleMax is the maximum number of passes until the costs no longer change.
const settleMax = 4

// A numbering computes the deletion costs of nodes in the order in which they are kept. It reuses
// its memory, and caches in found the result for asked: usually neither the order nor its costs
// have changed since the last call.
type numbering struct {
	asked, found []int32

	others, given, stays []int32
	highest              []int64
	staying              []bool
}

// of returns the deletion costs of nodes in the order in which they are kept. held are the present
// costs of these nodes. All results are negative, below the default cost of pods. Called with its
// result, it returns the same costs, so that written costs are stable. The result is valid until
// the next call.
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

// evenly assigns evenly spaced costs to all nodes.
func evenly(costs []int32) {
	for i := range costs {
		costs[i] = int32(-(i + 1) * orderStep)
	}
}

// renumber sets costs from held: a node near its position in the order keeps its cost, and the
// others get costs in between.
func (x *numbering) renumber(held, costs []int32) {
	x.given, x.highest, x.stays = x.given[:0], x.highest[:0], x.stays[:0]
	for i, cost := range held {
		if cost < 0 && cost > leavingCost { // the node has a cost
			x.highest = append(x.highest, -int64(cost)<<32|int64(len(x.given)))
			x.given = append(x.given, int32(i))
		}
	}
	slices.Sort(x.highest) // indexes in given, highest costs first
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

// between sets costs. The nodes in stays keep theirs, and the nodes between them in the order get
// costs in between. It reports whether there are enough costs.
func (x *numbering) between(held, costs []int32) bool {
	next, upper := 0, int64(0)
	for k := range len(x.stays) + 1 {
		began, n := next, int64(0) // n is the number of nodes up to the next one that stays
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
