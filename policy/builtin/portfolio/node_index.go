package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeIndex is a compact index of the properties of nodes that are read most. It is kept from
// decision to decision, and nodes that changed are recounted.
type nodeIndex struct {
	all     []nodeEntry // by node
	markets int

	// plain[(1+p)*markets+m] is the number of plain nodes of pool p in market m. odd lists all
	// other live nodes in ascending order.
	plain []int32
	odd   []policy.NodeID

	// recommended are the nodes that the provider recommends leaving, in ascending order.
	recommended []policy.NodeID
}

// A nodeEntry contains the properties of a node that are read most.
type nodeEntry struct {
	pool         policy.PoolID
	market       policy.MarketID
	phase        policy.NodePhase
	actedBy      policy.Actor
	usable       bool // as Node.Usable
	reclaimed    bool // the provider has announced when it reclaims the node
	doNotDisrupt bool

	recommended policy.Time // as Node.Recommended
}

// read updates the index to s. since is the mark of the snapshot that was read last.
func (x *nodeIndex) read(s *policy.Snapshot, since policy.Mark) {
	cells := (1 + len(s.Pools)) * len(s.Markets)
	if !s.Follows(since) || len(x.plain) != cells || x.markets != len(s.Markets) {
		*x = nodeIndex{all: x.all[:0], markets: len(s.Markets), plain: make([]int32, cells), odd: x.odd[:0],
			recommended: x.recommended[:0]}
		since = policy.Mark{}
	}
	for len(x.all) < len(s.Nodes) {
		x.all = append(x.all, nodeEntry{pool: policy.None, market: policy.None})
	}
	for c := s.NodesSince(since); c.Next(); {
		id := c.ID
		n := &s.Nodes[id]
		was, now := x.all[id], nodeEntry{n.Pool, n.Market, n.Phase, n.ActedBy, n.Usable(), n.ReclaimAt != 0, n.DoNotDisrupt,
			n.Recommended}
		if was == now {
			continue
		}
		x.count(&was, -1)
		x.count(&now, 1)
		x.all[id] = now
		x.odd = listed(x.odd, id, now.live() && !now.plain())
		x.recommended = listed(x.recommended, id, now.recommended != 0)
	}
}

// listed returns list, which is ascending, with id added or removed.
func listed(list []policy.NodeID, id policy.NodeID, there bool) []policy.NodeID {
	at, was := slices.BinarySearch(list, id)
	switch {
	case there && !was:
		return slices.Insert(list, at, id)
	case was && !there:
		return slices.Delete(list, at, at+1)
	}
	return list
}

// count adds (sign 1) or removes (sign -1) a node.
func (x *nodeIndex) count(n *nodeEntry, sign int32) {
	if n.plain() {
		x.plain[int(1+n.pool)*x.markets+int(n.market)] += sign
	}
}

// in returns the number of plain nodes of a pool by market.
func (x *nodeIndex) in(p policy.PoolID) []int32 {
	return x.plain[int(1+p)*x.markets : int(2+p)*x.markets]
}

// live reports whether the node exists or is starting.
func (n *nodeEntry) live() bool { return n.phase != policy.NodeGone }

// stays reports whether n is usable and no controller drains it.
func (n *nodeEntry) stays() bool { return n.usable && n.actedBy == policy.ActorNone }

// plain reports whether n stays and has a market, as most nodes do.
func (n *nodeEntry) plain() bool { return n.stays() && n.market >= 0 }

// A nodeClass is the nodes of a pool and a market that stay and have the same number of pods, all
// of one kind: they cost the same for the same pods. All nodes of a pool that have pods of several
// kinds form one class, without a market and a kind.
type nodeClass struct {
	classKey
	nodes []policy.NodeID // in ascending order of name
}

type classKey struct {
	pool   policy.PoolID
	market policy.MarketID
	kind   policy.TemplateID
	pods   int32
}

// A nodeClasses groups the staying nodes with pods into classes. It is kept from decision to
// decision, and only nodes that changed, or whose pods changed, are regrouped.
type nodeClasses struct {
	list  []nodeClass // some are empty
	empty []int32     // indexes of the empty classes in list
	at    map[classKey]int32
	of    []int32 // by node, the index of its class, or None
	moved []policy.NodeID
}

// keyOf returns the key of the class of node id, or false if the node belongs to no class.
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

// read updates the classes to s, and the order of names of e. e must have read the nodes and pods
// of s. since is the mark of the snapshot that was read last.
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

// look removes a node from its class if it now belongs to another class or was renamed, and lists
// it in moved if it belongs to a class.
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

// put adds a node to its class, at its position by the ranks of names.
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

// A nameOrder is the order of nodes by name. It is kept from decision to decision, and only the
// names of nodes that changed are compared, since few do.
type nameOrder struct {
	names []string        // by node, as of the last read
	order []policy.NodeID // in ascending order of name
	rank  []int32         // by node, its index in order

	changed, before []policy.NodeID // kept to reuse their memory
}

// read updates the order to s. since is the mark of the snapshot that was read last.
func (x *nameOrder) read(s *policy.Snapshot, since policy.Mark) {
	known := len(x.names)
	changed := x.changed[:0]
	for c := s.NodesSince(since); c.Next(); {
		id := c.ID
		if int(id) >= known || x.names[id] != s.Nodes[id].Name {
			changed = append(changed, id)
		}
	}
	x.changed = changed
	if len(changed) == 0 && known == len(s.Nodes) {
		return
	}
	x.rank = slices.Grow(x.rank, max(0, len(s.Nodes)-len(x.rank)))[:max(known, len(s.Nodes))]
	for id := len(s.Nodes); id < known; id++ {
		x.rank[id] = -1
	}
	for _, id := range changed {
		x.rank[id] = -1
	}
	kept := x.order[:0]
	for _, id := range x.order {
		if x.rank[id] >= 0 {
			kept = append(kept, id)
		}
	}
	by := func(a, b policy.NodeID) int {
		return cmp.Or(cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name), cmp.Compare(a, b))
	}
	slices.SortFunc(changed, by)
	order := slices.Grow(x.before[:0], len(s.Nodes))
	x.before = x.order
	for _, id := range changed {
		at, _ := slices.BinarySearchFunc(kept, id, by)
		order = append(append(order, kept[:at]...), id)
		kept = kept[at:]
	}
	order = append(order, kept...)
	x.order = order
	x.names, x.rank = slices.Grow(x.names, max(0, len(s.Nodes)-known))[:len(s.Nodes)], x.rank[:len(s.Nodes)]
	for _, id := range changed {
		x.names[id] = s.Nodes[id].Name
	}
	for i, id := range x.order {
		x.rank[id] = int32(i)
	}
}

// named returns the nodes with the given name.
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
