package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nameOrder is the order of nodes by name. It is kept from decision to decision, since
// few nodes come and go in between, and names are compared for these alone.
type nameOrder struct {
	names []string        // by node, as they were read last
	order []policy.NodeID // ascending by name
	rank  []int32         // by node, its place in order

	changed, before []policy.NodeID // memory
}

// read orders the nodes of s. Those that did not change since the given snapshot were read
// from it.
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

// named returns the nodes of this name.
func (x *nameOrder) named(name string) []policy.NodeID {
	from, _ := slices.BinarySearchFunc(x.order, name, func(id policy.NodeID, name string) int { return cmp.Compare(x.names[id], name) })
	to := from
	for to < len(x.order) && x.names[x.order[to]] == name {
		to++
	}
	return x.order[from:to]
}
