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
}

// read orders the nodes of s. Those that did not change since the given snapshot were read
// from it.
func (x *nameOrder) read(s *policy.Snapshot, since policy.Mark) {
	known := len(x.names)
	var changed []policy.NodeID
	for c := s.NodesSince(since); c.Next(); {
		id := c.ID
		if int(id) >= known || x.names[id] != s.Nodes[id].Name {
			changed = append(changed, id)
		}
	}
	if len(changed) == 0 && known == len(s.Nodes) {
		return
	}
	x.order = slices.DeleteFunc(x.order, func(id policy.NodeID) bool {
		return int(id) >= len(s.Nodes) || x.names[id] != s.Nodes[id].Name
	})
	by := func(a, b policy.NodeID) int {
		return cmp.Or(cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name), cmp.Compare(a, b))
	}
	slices.SortFunc(changed, by)
	kept := x.order
	x.order = make([]policy.NodeID, 0, len(s.Nodes))
	for _, id := range changed {
		at, _ := slices.BinarySearchFunc(kept, id, by)
		x.order = append(append(x.order, kept[:at]...), id)
		kept = kept[at:]
	}
	x.order = append(x.order, kept...)
	x.names, x.rank = slices.Grow(x.names[:0], len(s.Nodes))[:len(s.Nodes)], slices.Grow(x.rank[:0], len(s.Nodes))[:len(s.Nodes)]
	for i, id := range x.order {
		x.names[id], x.rank[id] = s.Nodes[id].Name, int32(i)
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
