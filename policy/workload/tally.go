package workload

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A tally counts nodes and the pods bound to them by group. It is updated from snapshot to
// snapshot, because little changes in between (see [policy.Snapshot.PodsSince]). Its content is the
// same as if it had been rebuilt from the last snapshot.
type tally struct {
	mark      policy.Mark
	compat    bool
	templates []counted
	groups    int
	gpu       []bool // by group
	budgets   int

	nodes []talliedNode
	pods  []talliedPod
	lists scratch.Lists // of pods, by node

	// held contains, by group, the Features that depend on nodes only.
	held []Features

	// counts[g*templates+t] is the number of pods of template t in group g that count, onSpot the
	// number of those on Spot nodes, and using the number of pods, including terminating ones, on
	// usable nodes.
	counts, onSpot, using []int32

	// histogram is the weight of the samples, by group and bucket. sampled lists the pods with a
	// sample, by the same index.
	histogram []int64
	sampled   scratch.Lists

	// spread[g*budgets+b][n] is the number of nodes of group g that have n pods of budget b.
	spread [][]int32
}

// A counted contains the properties of a template that affect how its pods are counted.
type counted struct {
	weight  int64
	sampled bool           // observed startup times count, since none is stated
	budgets []policy.PDBID // budgets that count
}

// A talliedNode is the counted state of a node.
type talliedNode struct {
	group              int32
	usable, spot, held bool
	units              int64 // if it is held
	allocatable        policy.Resources
	budgets            []budgetCount
}

// A budgetCount is the number of pods of a budget on a node.
type budgetCount struct {
	budget policy.PDBID
	n      int32
}

// A talliedPod is the counted state of a pod; its node is None if the pod is not bound.
type talliedPod struct {
	node        policy.NodeID
	template    policy.TemplateID
	terminating bool
	sample      int64 // observed startup time in milliseconds, 0 if unknown
}

// read updates the tally to s, whose groups are g. The traits are those of the templates of s.
func (ta *tally) read(s *policy.Snapshot, g Groups, o Options, traits []traits) {
	if !ta.same(s, g, o, traits) {
		ta.forget(s, g, o, traits)
	}
	for len(ta.nodes) < len(s.Nodes) {
		ta.nodes = append(ta.nodes, talliedNode{group: policy.None})
	}
	for len(ta.pods) < len(s.Pods) {
		ta.pods = append(ta.pods, talliedPod{node: policy.None})
	}
	for c := s.NodesSince(ta.mark); c.Next(); {
		ta.readNode(s, g, c.ID)
	}
	for id, group := range g.Of { // the groups may be numbered differently than before
		if group != ta.nodes[id].group {
			ta.readNode(s, g, policy.NodeID(id))
		}
	}
	for c := s.PodsSince(ta.mark); c.Next(); {
		id := c.ID
		ta.readPod(&s.Pods[id], id)
	}
	ta.mark = s.Mark()
}

// same reports whether the counts can be updated to s rather than rebuilt.
func (ta *tally) same(s *policy.Snapshot, g Groups, o Options, traits []traits) bool {
	if !s.Follows(ta.mark) || ta.compat != o.Compat || ta.groups != g.N || !slices.Equal(ta.gpu, g.GPU) ||
		ta.budgets != len(s.PDBs) || len(ta.templates) != len(traits) {
		return false
	}
	for i := range traits {
		x, was := &traits[i], &ta.templates[i]
		if was.weight != x.weight || was.sampled != (x.startup == 0) || !slices.Equal(was.budgets, x.budgets) {
			return false
		}
	}
	return true
}

// forget resets the tally.
func (ta *tally) forget(s *policy.Snapshot, g Groups, o Options, traits []traits) {
	ta.mark, ta.compat, ta.groups, ta.budgets = policy.Mark{}, o.Compat, g.N, len(s.PDBs)
	ta.gpu, ta.templates = append(ta.gpu[:0], g.GPU...), ta.templates[:0]
	for i := range traits {
		x := &traits[i]
		ta.templates = append(ta.templates, counted{x.weight, x.startup == 0, x.budgets})
	}
	for n := range ta.nodes {
		ta.nodes[n] = talliedNode{group: policy.None, budgets: ta.nodes[n].budgets[:0]}
	}
	ta.nodes, ta.pods = ta.nodes[:min(len(ta.nodes), len(s.Nodes))], ta.pods[:0]
	ta.lists.Clear()
	ta.sampled.Clear()
	cells := g.N * len(traits)
	ta.held = scratch.Zeroed(ta.held, g.N)
	ta.counts, ta.onSpot, ta.using = scratch.Zeroed(ta.counts, cells), scratch.Zeroed(ta.onSpot,
		cells), scratch.Zeroed(ta.using, cells)
	ta.histogram = scratch.Zeroed(ta.histogram, g.N*buckets)
	for i := range ta.spread {
		clear(ta.spread[i])
	}
	for len(ta.spread) < g.N*len(s.PDBs) {
		ta.spread = append(ta.spread, nil)
	}
}

// readNode updates the counts of a node and its pods.
func (ta *tally) readNode(s *policy.Snapshot, g Groups, id policy.NodeID) {
	x := &ta.nodes[id]
	for p := ta.lists.First(int(id)); p >= 0; p = ta.lists.Next(p) {
		ta.count(policy.PodID(p), -1)
	}
	ta.hold(x, -1)
	n := &s.Nodes[id]
	if *x = (talliedNode{group: g.Of[id], budgets: x.budgets}); x.group >= 0 {
		var f Features
		x.spot = f.hold(s, n, g.GPU[x.group])
		x.held, x.units, x.usable, x.allocatable = f.Nodes > 0, f.Units, n.Usable(), n.Allocatable
		ta.hold(x, 1)
	}
	for p := ta.lists.First(int(id)); p >= 0; p = ta.lists.Next(p) {
		ta.count(policy.PodID(p), 1)
	}
}

// hold adds a node to the counts of its group (sign 1), or removes it (sign -1).
func (ta *tally) hold(x *talliedNode, sign int64) {
	if x.group < 0 {
		return
	}
	f := &ta.held[x.group]
	if x.usable {
		f.Allocatable = f.Allocatable.Plus(x.allocatable.Scale(sign))
	}
	if !x.held {
		return
	}
	f.Nodes += int(sign)
	f.Units += sign * x.units
	if x.spot {
		f.SpotNodes += int(sign)
		f.SpotUnits += sign * x.units
	}
}

// readPod updates the counts with the current state of a pod.
func (ta *tally) readPod(p *policy.Pod, id policy.PodID) {
	x := &ta.pods[id]
	if x.node >= 0 {
		ta.count(id, -1)
	}
	*x = talliedPod{node: policy.None}
	if p.Phase == policy.PodGone || p.Node < 0 {
		ta.lists.Put(int(id), policy.None)
		return
	}
	ta.lists.Put(int(id), int(p.Node))
	*x = talliedPod{node: p.Node, template: p.Template, terminating: p.Phase == policy.PodTerminating}
	if ta.templates[p.Template].sampled && p.ReadySince > p.Bound && p.Bound > 0 {
		x.sample = int64(p.ReadySince - p.Bound)
	}
	ta.count(id, 1)
}

// count adds a pod to the counts (sign 1), or removes it (sign -1).
func (ta *tally) count(id policy.PodID, sign int32) {
	p := &ta.pods[id]
	n := &ta.nodes[p.node]
	if n.group < 0 {
		return
	}
	cell, t := int(n.group)*len(ta.templates)+int(p.template), &ta.templates[p.template]
	if n.usable {
		ta.using[cell] += sign
	}
	if p.terminating && !ta.compat {
		return // it still uses its node, but its requirements do not count
	}
	ta.counts[cell] += sign
	if n.spot {
		ta.onSpot[cell] += sign
	}
	if p.sample > 0 {
		at := int(n.group)*buckets + bucket(p.sample)
		ta.histogram[at] += int64(sign) * t.weight
		if sign < 0 {
			at = policy.None
		}
		ta.sampled.Put(int(id), at)
	}
	for _, b := range t.budgets {
		ta.countBudget(n, b, sign)
	}
}

// countBudget adds sign pods of budget b to node n.
func (ta *tally) countBudget(n *talliedNode, b policy.PDBID, sign int32) {
	at := slices.IndexFunc(n.budgets, func(x budgetCount) bool { return x.budget == b })
	if at < 0 {
		at, n.budgets = len(n.budgets), append(n.budgets, budgetCount{budget: b})
	}
	was := n.budgets[at].n
	now := was + sign
	spread := &ta.spread[int(n.group)*ta.budgets+int(b)]
	for len(*spread) <= int(max(was, now)) {
		*spread = append(*spread, 0)
	}
	(*spread)[was]-- // the entry for 0 pods has no meaning
	(*spread)[now]++
	if n.budgets[at].n = now; now == 0 {
		n.budgets = slices.Delete(n.budgets, at, at+1)
	}
}

// most returns the two largest numbers of pods of budget b on one node of group g.
func (ta *tally) most(g int, b policy.PDBID) (x BudgetSpread) {
	spread := ta.spread[g*ta.budgets+int(b)]
	for n := len(spread) - 1; n > 0; n-- {
		switch {
		case spread[n] == 0:
		case x.Most > 0:
			x.Second = n
			return x
		case spread[n] > 1:
			return BudgetSpread{Most: n, Second: n}
		default:
			x.Most = n
		}
	}
	return x
}

// samples calls visit with the sample of each pod of a group in a bucket.
func (ta *tally) samples(group, bucket int, visit func(sample)) {
	for id := ta.sampled.First(group*buckets + bucket); id >= 0; id = ta.sampled.Next(id) {
		visit(sample{ta.pods[id].sample, ta.templates[ta.pods[id].template].weight, int32(group)})
	}
}
