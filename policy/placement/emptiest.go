package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// EmptiestFirst sorts nodes by the largest fraction of any resource that is requested on them,
// ascending, then by name. Draining the first nodes causes the least disruption.
func EmptiestFirst(s *policy.Snapshot, sp *Space, nodes []policy.NodeID) { sortByUse(s, sp, nodes, 1) }

// FullestFirst sorts nodes by the same fraction, descending, then by name.
func FullestFirst(s *policy.Snapshot, sp *Space, nodes []policy.NodeID) { sortByUse(s, sp, nodes, -1) }

func sortByUse(s *policy.Snapshot, sp *Space, nodes []policy.NodeID, sign float64) {
	type ranked struct {
		id  policy.NodeID
		key float64
	}
	order := make([]ranked, len(nodes))
	for i, id := range nodes {
		order[i] = ranked{id, sign * sp.Requested(id).LargestShare(sp.Allocatable(id))}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(s.Nodes[a.id].Name, s.Nodes[b.id].Name)
	})
	for i := range order {
		nodes[i] = order[i].id
	}
}
