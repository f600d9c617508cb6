package portfolio

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// orderedMax is how many nodes are ordered, those that go first.
const orderedMax = 1000

// A deletionOrder gives the pods of every node a deletion cost. It reads what the pool is
// and what the plan empties already, and adds deletion costs to the plan alone.
type deletionOrder struct {
	*poolContext
	prices *prices
	share  float64
}

// A rankedNode is a node in the order in which nodes are kept as workloads shrink.
type rankedNode struct {
	node   policy.NodeID
	cost   float64 // of the node, dollars an hour
	yields float64 // what those of its pods are worth that a workload gives up as it shrinks, dollars an hour
	stays  float64 // what its other pods add to what it costs to empty it, dollars an hour
	base   float64 // (cost - stays) / yields
	pods   int32   // the number of those that go
	held   int32   // the least deletion cost of them, 0 where they have none
	stale  bool    // not all have it
}

// plan gives the pods of every node a deletion cost, so that a workload that
// shrinks leaves whole nodes and not a part of each: first those that cost most for
// what such pods use of them. It is built up from what is kept longest, node by
// node as nodes are bought, so that the nodes that remain are spread however many go.
func (o *deletionOrder) plan() {
	o.hurry()
	list := o.ordered()
	if len(list) < 2 {
		return
	}
	list = o.keep(list)
	costs := numbered(list)
	texts := make(map[float64]string) // of what nodes cost and pods are worth: few differ
	textOf := func(dollars float64) string {
		x, known := texts[dollars]
		if !known {
			x = text(dollars)
			texts[dollars] = x
		}
		return x
	}
	for i := range list {
		r := &list[i]
		if costs[i] == r.held && !r.stale {
			continue
		}
		o.out.DeletionCosts = append(o.out.DeletionCosts, policy.DeletionCost{Node: r.node, Cost: costs[i], Why: policy.Why{
			Reason: policy.ReasonCheaper, Before: policy.Dollars(r.cost), After: policy.Dollars(r.yields),
			Text: "as workloads shrink " + strconv.Itoa(len(list)-1-i) + " of " + strconv.Itoa(len(list)) + " nodes go before it: it costs " +
				textOf(r.cost) + " an hour for pods that are worth " + textOf(r.yields) + " elsewhere",
		}})
	}
}

// hurry lets the pods of nodes that are on their way out go before all others.
func (o *deletionOrder) hurry() {
	s := o.s
	for i := range o.e.nodes {
		n := &o.e.nodes[i]
		if n.pool != o.pool.ID || !n.live() || !n.reclaimed && n.actedBy != policy.ActorUs {
			continue
		}
		x := policy.DeletionCost{Node: policy.NodeID(i), Cost: leavingCost, Why: policy.Why{Reason: policy.ReasonNotice, Text: "the node is on its way out"}}
		if slices.ContainsFunc(s.Pods, func(p policy.Pod) bool { return x.Ranks(s, &p) }) {
			o.out.DeletionCosts = append(o.out.DeletionCosts, x)
		}
	}
}

// ordered returns the nodes on which pods can be asked to go first, those that cost
// least for what these use first: those that cost most for their pods, as many as are
// ordered.
func (o *deletionOrder) ordered() []rankedNode {
	s := o.s
	value := o.prices.evaluate(o.share > 0)
	values, goes := make([]float64, len(s.Templates)), make([]bool, len(s.Templates))
	for i := range s.Templates {
		t := &s.Templates[i]
		values[i], goes[i] = value.of(t.Requests), t.Workload >= 0 && s.Workloads[t.Workload].Kind == policy.KindDeployment
	}
	all := make([]bool, len(s.Templates)) // by kind: pods of all its templates go
	for i := range s.Templates {
		kind := o.e.pods.needs[i].kind
		all[kind] = goes[i] && (int(kind) == i || all[kind])
	}
	k := &o.e.ranking
	k.begin(len(s.Markets))
	for _, id := range o.e.names.order {
		n := &o.e.nodes[id]
		if n.pool != o.pool.ID || !n.stays() || n.market < 0 || o.leaves(id) {
			continue
		}
		r := rankedNode{node: id, cost: o.prices.keepingIn(n.market)}
		if set := &o.e.pods.sets[id]; set.kind >= 0 && all[set.kind] {
			r.pods, r.held, r.stale = set.n, set.held, set.stale
			for range set.n {
				r.yields += values[set.kind]
			}
		} else {
			o.addPods(&r, values, goes)
		}
		if r.yields > 0 {
			r.base = (r.cost - r.stays) / r.yields
			k.add(&r, n.market)
		}
	}
	return k.last(orderedMax)
}

// addPods counts the pods of r, of which those go whose template does.
func (o *deletionOrder) addPods(r *rankedNode, values []float64, goes []bool) {
	for _, p := range o.e.pods.on(r.node) {
		switch {
		case p.phase == policy.PodTerminating:
		case goes[p.template] && !p.fixed:
			r.add(p.cost, values[p.template])
		default:
			r.stays += o.e.losses.of(o.s, &o.s.Pods[p.id]) / o.e.cfg.Holding.Hours()
		}
	}
}

// add counts a pod that is worth so many dollars an hour, and has a deletion cost.
func (r *rankedNode) add(cost int32, value float64) {
	if r.pods > 0 && cost != r.held {
		r.stale = true
	}
	if r.pods == 0 || cost < r.held {
		r.held = cost
	}
	r.yields += value
	r.pods++
}

// keep returns the nodes in the order in which they are kept, the longest first:
// next comes always the one that costs least for its pods with the risk of
// concentration among those before it. Where the pool states an exact share it is
// one of the capacity type that brings those before it nearest to that, so that it
// is kept however many nodes go.
func (o *deletionOrder) keep(list []rankedNode) []rankedNode {
	ratio := o.ratioBeside(list)
	c := newConcentration(o.poolContext)
	out := slices.Grow(o.e.ranking.kept[:0], len(list))
	batches := o.e.ranking.batches(o.s, o.e.nodes, list)
	order := byFloor(batches)
	for range list {
		p := pick{place: -1}
		best := (*batch)(nil)
		for _, n := range order {
			b := &batches[n]
			if best != nil && b.floor > best.low {
				break // nor does any that follows cost less
			}
			if ratio.wants(b.market) {
				if b.price(&c, len(out)); best == nil || b.low < best.low {
					best = b
				}
			}
		}
		p.look(best)
		for _, n := range order {
			b := &batches[n]
			if b.floor > p.least {
				break
			}
			if b == best || !ratio.wants(b.market) {
				continue
			}
			if b.price(&c, len(out)); b.low <= p.least {
				p.look(b)
			}
		}
		r := &list[p.place]
		p.of.take(p.at, o.e.ranking.next)
		order = replaced(order, batches, p.of)
		m := o.e.nodes[r.node].market
		ratio.add(m)
		c.add(m, 1)
		out = append(out, *r)
	}
	o.e.ranking.kept = out
	return out
}

// A pick is the node that costs least for its pods of those that were looked at, of
// several the first in the list.
type pick struct {
	of    *batch
	at    int   // in its runs
	place int32 // in the list, -1 of none
	least float64
}

// look takes the nodes of b into the choice.
func (p *pick) look(b *batch) {
	for k := range b.runs {
		r := &b.runs[k]
		if p.place >= 0 && b.least(r.base) > p.least {
			return // those that follow cost no less
		}
		x := (b.cost*b.factor - r.stays) / r.yields
		if p.place < 0 || x < p.least || x == p.least && r.first < p.place {
			*p = pick{b, k, r.first, x}
		}
	}
}

// A batch is nodes of one market, which cost the same, all with or all without pods that
// stay.
type batch struct {
	market policy.MarketID
	plain  bool  // without pods that stay
	runs   []run // ascending by base

	cost  float64 // of a node, dollars an hour
	extra float64 // the same for what its pods are worth that go, of the node with most of them

	// floor is no more than what they cost for their pods wherever so many are kept, factor by
	// how much they are dearer where priced nodes are kept, and low what they cost then at the
	// least.
	floor, factor, low float64
	priced             int
}

// A run is nodes of a batch whose pods are worth the same, so that the first is kept
// before the others.
type run struct {
	base, yields, stays float64
	first, last         int32 // places in a list that ascends, linked by ranking.next
}

// price finds what nodes of b cost where as many nodes are kept as c has.
func (b *batch) price(c *concentration, kept int) {
	if b.priced == kept {
		return
	}
	b.priced, b.factor = kept, 1
	if c.total > 0 {
		b.factor = 1 + c.risk(b.market)/c.total
	}
	b.low = b.least(b.runs[0].base)
}

// least returns what nodes of b cost for their pods at the least from one on whose base
// is given.
func (b *batch) least(base float64) float64 {
	x := base + float64(b.extra*(b.factor-1))
	return x - float64(leastPart*(math.Abs(base)+float64(b.extra*b.factor)))
}

// take takes out the first node of the k-th run.
func (b *batch) take(k int, next []int32) {
	r := &b.runs[k]
	if r.first = next[r.first]; r.first < 0 {
		b.runs = slices.Delete(b.runs, k, k+1)
	}
	b.start()
}

// start reads the first run. Without pods that stay it has most of those that go.
func (b *batch) start() {
	if len(b.runs) == 0 {
		return
	}
	base := b.runs[0].base
	if b.plain {
		b.extra = base
	}
	b.floor = base - float64(2*leastPart*(math.Abs(base)+b.extra))
}

// byFloor returns the places of batches in the order of their floors.
func byFloor(batches []batch) []int32 {
	order := make([]int32, len(batches))
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(batches[a].floor, batches[b].floor), cmp.Compare(a, b))
	})
	return order
}

// replaced returns order after the first node of b was taken: b stands further back, or
// nowhere if that was its last.
func replaced(order []int32, batches []batch, b *batch) []int32 {
	at := slices.IndexFunc(order, func(n int32) bool { return &batches[n] == b })
	if len(b.runs) == 0 {
		return slices.Delete(order, at, at+1)
	}
	for ; at+1 < len(order) && batches[order[at+1]].floor < b.floor; at++ {
		order[at], order[at+1] = order[at+1], order[at]
	}
	return order
}

// add counts r, at its place in the list, to the last run or to one of its own.
func (b *batch) add(r *rankedNode, place int32, next []int32) {
	next[place] = -1
	b.extra = min(b.extra, r.cost/r.yields)
	if last := len(b.runs) - 1; last >= 0 && b.runs[last].yields == r.yields && b.runs[last].stays == r.stays {
		x := &b.runs[last]
		next[x.last], x.last = place, place
		return
	}
	b.runs = append(b.runs, run{r.base, r.yields, r.stays, place, place})
}

// leastPart is far more than all that is lost to rounding in what a node costs.
const leastPart = 1e-9

// batches returns the batches of list, whose order k has no more need of.
func (k *ranking) batches(s *policy.Snapshot, nodes []nodeEntry, list []rankedNode) []batch {
	var all []batch
	k.next = slices.Grow(k.next[:0], len(list))[:len(list)]
	at := make([][2]int32, len(s.Markets)) // places in all, from 1 on: with pods that stay, and without
	for i := range list {
		r := &list[i]
		x, plain := &s.Markets[nodes[r.node].market], r.stays == 0
		place := &at[x.ID][0]
		if plain {
			place = &at[x.ID][1]
		}
		if *place == 0 {
			all = append(all, batch{market: x.ID, plain: plain, priced: -1, cost: r.cost, extra: math.Inf(1)})
			*place = int32(len(all))
		}
		all[*place-1].add(r, int32(i), k.next)
	}
	for n := range all {
		all[n].start()
	}
	return all
}

// A ratio is how much of the nodes that are kept is spot, where an exact share is
// to be held, and what there is to choose from.
type ratio struct {
	s                 *policy.Snapshot
	pool              *policy.Pool
	spot, total       int64  // units of the share that are kept
	remaining         [2]int // nodes to choose from, on demand and on spot
	size              [2]int64
	wanted, unlimited bool
}

// ratioBeside returns the ratio of the nodes of the pool that stay whatever goes:
// those that are not in list.
func (o *deletionOrder) ratioBeside(list []rankedNode) *ratio {
	x := &ratio{s: o.s, pool: o.pool, unlimited: !o.pool.Share.Exact}
	if x.unlimited {
		return x
	}
	h := share.Of(o.s, o.pool.ID)
	x.spot, x.total = h.Spot, h.Spot+h.Fixed
	for i := range list {
		m := o.s.Nodes[list[i].node].Market
		spot, size := x.of(m)
		x.remaining[spot]++
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

// next finds out of which capacity type the next node is to be: of that which
// brings the share nearer, a node of mean size, as long as there is one.
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
