package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeClass is the nodes of a pool and a market that stay, with so many pods all of one kind:
// they cost the same for the same pods. Those that have pods of several kinds are one class of
// their pool, with no market and no kind.
type nodeClass struct {
	classKey
	nodes []policy.NodeID // ascending by name
}

type classKey struct {
	pool   policy.PoolID
	market policy.MarketID
	kind   policy.TemplateID
	pods   int32
}

// A nodeClasses sorts the nodes with pods that stay into classes. It is kept from decision to
// decision, and only nodes that changed, or whose pods did, go to other classes.
type nodeClasses struct {
	list  []nodeClass // some are empty
	empty []int32     // those
	at    map[classKey]int32
	of    []int32 // by node, its class, or None
	moved []policy.NodeID
}

// keyOf returns the class of node id, or false for a node of none.
func (x *nodeClasses) keyOf(e *Policy, id policy.NodeID) (classKey, bool) {
	n, set := &e.nodes.all[id], &e.pods.sets[id]
	if !n.stays() || n.pool < 0 || n.market < 0 || set.n == 0 {
		return classKey{}, false
	}
	if set.kind < 0 {
		return classKey{n.pool, policy.None, policy.None, 0}, true
	}
	return classKey{n.pool, n.market, set.kind, set.n}, true
}

// read brings the classes to s, of which e has read the nodes and pods, and the names of nodes
// in its order. Those that did not change since the given snapshot were read from it.
func (x *nodeClasses) read(e *Policy, s *policy.Snapshot, since policy.Mark) {
	if e.pods.anew || !s.Follows(since) {
		x.forget(len(s.Nodes))
		e.names.read(s, since)
		for _, id := range e.names.order {
			if key, some := x.keyOf(e, id); some {
				x.put(id, key, e.names.rank)
			}
		}
		return
	}
	for len(x.of) < len(s.Nodes) {
		x.of = append(x.of, policy.None)
	}
	x.moved = x.moved[:0]
	for c := s.NodesSince(since); c.Next(); {
		x.look(e, c.ID, int(c.ID) >= len(e.names.names) || e.names.names[c.ID] != s.Nodes[c.ID].Name)
	}
	for _, id := range e.pods.touched {
		x.look(e, id, false)
	}
	e.names.read(s, since)
	slices.Sort(x.moved)
	for _, id := range slices.Compact(x.moved) {
		if key, some := x.keyOf(e, id); some {
			x.put(id, key, e.names.rank)
		}
	}
}

// forget empties all classes.
func (x *nodeClasses) forget(nodes int) {
	for i := range x.list {
		x.list[i].nodes = x.list[i].nodes[:0]
	}
	x.list, x.empty, x.at = x.list[:0], x.empty[:0], make(map[classKey]int32)
	x.of = slices.Grow(x.of[:0], nodes)[:nodes]
	for i := range x.of {
		x.of[i] = policy.None
	}
}

// look takes a node out of its class that is of another now, or has another name.
func (x *nodeClasses) look(e *Policy, id policy.NodeID, renamed bool) {
	key, some := x.keyOf(e, id)
	at := x.of[id]
	if at >= 0 && some && !renamed && x.list[at].classKey == key {
		return
	}
	if some {
		x.moved = append(x.moved, id)
	}
	if at < 0 {
		return
	}
	c := &x.list[at]
	k := slices.Index(c.nodes, id)
	c.nodes, x.of[id] = slices.Delete(c.nodes, k, k+1), policy.None
	if len(c.nodes) == 0 {
		delete(x.at, c.classKey)
		x.empty = append(x.empty, at)
	}
}

// put puts a node into its class, to where its name belongs by the ranks of names.
func (x *nodeClasses) put(id policy.NodeID, key classKey, rank []int32) {
	at, known := x.at[key]
	if !known {
		if last := len(x.empty) - 1; last >= 0 {
			at, x.empty = x.empty[last], x.empty[:last]
		} else {
			at, x.list = int32(len(x.list)), append(x.list, nodeClass{})
		}
		x.at[key], x.list[at].classKey = at, key
	}
	x.of[id] = at
	c := &x.list[at]
	k := len(c.nodes)
	if k > 0 && rank[c.nodes[k-1]] > rank[id] {
		k, _ = slices.BinarySearchFunc(c.nodes, rank[id], func(n policy.NodeID, r int32) int { return int(rank[n] - r) })
	}
	c.nodes = slices.Insert(c.nodes, k, id)
}
