package portfolio

import (
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/scratch"
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
		x := policy.DeletionCost{Node: id, Cost: leavingCost, Why: policy.Why{Reason: policy.ReasonNotice, Text: "the node is being reclaimed or drained"}}
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
	k.values, k.goes, k.all = scratch.Zeroed(k.values, len(s.Templates)), scratch.Zeroed(k.goes, len(s.Templates)), scratch.Zeroed(k.all, len(s.Templates))
	for i := range s.Templates {
		t := &s.Templates[i]
		k.values[i], k.goes[i] = value.of(t.Requests), t.Workload >= 0 && s.Workloads[t.Workload].Kind == policy.KindDeployment
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
			r.stays += o.e.losses.of(o.s, &o.s.Pods[p.id]) / o.e.cfg.Holding.Hours()
		}
	}
}
