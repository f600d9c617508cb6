package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A nodeIndex holds the properties of the nodes of a snapshot that are read most, in little memory.
type nodeIndex struct {
	all     []nodeEntry // by node
	markets int

	// plain[(1+p)*markets+m] is the number of nodes of pool p in market m that are plain, and
	// odd lists, ascending, those of the others that are there.
	plain []int32
	odd   []policy.NodeID

	// recommended are the nodes that the provider recommends to leave, ascending.
	recommended []policy.NodeID
}

// A nodeEntry is what is asked most of a node, in little memory.
type nodeEntry struct {
	pool         policy.PoolID
	market       policy.MarketID
	phase        policy.NodePhase
	actedBy      policy.Actor
	usable       bool // as Node.Usable
	reclaimed    bool // the provider said when it takes it back
	doNotDisrupt bool

	recommended policy.Time // as Node.Recommended
}

// read reads the nodes of s.
func (x *nodeIndex) read(s *policy.Snapshot) {
	x.all, x.markets = scratch.Zeroed(x.all, len(s.Nodes)), len(s.Markets)
	x.plain = scratch.Zeroed(x.plain, (1+len(s.Pools))*len(s.Markets))
	x.odd, x.recommended = x.odd[:0], x.recommended[:0]
	for i := range s.Nodes {
		n, e := &s.Nodes[i], &x.all[i]
		*e = nodeEntry{n.Pool, n.Market, n.Phase, n.ActedBy, n.Usable(), n.ReclaimAt != 0, n.DoNotDisrupt, n.Recommended}
		switch {
		case e.plain():
			x.plain[int(1+e.pool)*x.markets+int(e.market)]++
		case e.live():
			x.odd = append(x.odd, n.ID)
		}
		if e.recommended != 0 {
			x.recommended = append(x.recommended, n.ID)
		}
	}
}

// in returns by market the number of plain nodes of a pool.
func (x *nodeIndex) in(p policy.PoolID) []int32 {
	return x.plain[int(1+p)*x.markets : int(2+p)*x.markets]
}

// live reports whether the slot holds a node that exists or is on its way.
func (n *nodeEntry) live() bool { return n.phase != policy.NodeGone }

// stays reports whether n is usable and no controller drains it.
func (n *nodeEntry) stays() bool { return n.usable && n.actedBy == policy.ActorNone }

// plain reports whether n stays and has a market: most nodes do.
func (n *nodeEntry) plain() bool { return n.stays() && n.market >= 0 }

// A nodeClass is the nodes of a pool and a market that stay and have the same number of pods, all
// of one kind: they cost the same for the same pods. The nodes of a pool that have pods of several
// kinds form one class, with no market and no kind.
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

// A nodeClasses sorts the nodes with pods that stay into classes.
type nodeClasses struct {
	list []nodeClass
	of   []int32 // by node, its class, or None
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

// read sorts the nodes of s, of which e has read the nodes, their order and their pods.
func (x *nodeClasses) read(e *Policy, s *policy.Snapshot) {
	at := make(map[classKey]int32)
	x.list, x.of = x.list[:0], scratch.Zeroed(x.of, len(s.Nodes))
	for _, id := range e.names.order {
		key, some := x.keyOf(e, id)
		if !some {
			x.of[id] = policy.None
			continue
		}
		class, known := at[key]
		if !known {
			class = int32(len(x.list))
			at[key], x.list = class, append(x.list, nodeClass{classKey: key})
		}
		x.of[id], x.list[class].nodes = class, append(x.list[class].nodes, id)
	}
}

// A nameOrder is the order of nodes by name. It is kept from decision to decision, since
// few nodes come and go in between, and names are compared for these alone.
type nameOrder struct {
	names []string        // by node, as they were read last
	order []policy.NodeID // ascending by name
	rank  []int32         // by node, its place in order
}

// read orders the nodes of s.
func (x *nameOrder) read(s *policy.Snapshot) {
	same := func(id policy.NodeID) bool {
		return int(id) < min(len(x.names), len(s.Nodes)) && x.names[id] == s.Nodes[id].Name
	}
	x.order = slices.DeleteFunc(x.order, func(id policy.NodeID) bool { return !same(id) })
	for i := range s.Nodes {
		if id := policy.NodeID(i); !same(id) {
			at, _ := slices.BinarySearchFunc(x.order, id, func(a, b policy.NodeID) int {
				return cmp.Or(cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name), cmp.Compare(a, b))
			})
			x.order = slices.Insert(x.order, at, id)
		}
	}
	x.names, x.rank = scratch.Zeroed(x.names, len(s.Nodes)), scratch.Zeroed(x.rank, len(s.Nodes))
	for i, id := range x.order {
		x.names[id], x.rank[id] = s.Nodes[id].Name, int32(i)
	}
}

// named returns the nodes of this name.
func (x *nameOrder) named(name string) []policy.NodeID {
	from, _ := slices.BinarySearchFunc(x.order, name, func(id policy.NodeID,
		name string) int {
		return cmp.Compare(x.names[id], name)
	})
	to := from
	for to < len(x.order) && x.names[x.order[to]] == name {
		to++
	}
	return x.order[from:to]
}
