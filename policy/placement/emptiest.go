package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// EmptiestFirst sorts nodes by the largest share of one resource that is
// requested of them, then by name: those first that are emptied at the least
// disturbance.
func EmptiestFirst(s *policy.Snapshot, sp *Space, nodes []policy.NodeID) {
	type ranked struct {
		id    policy.NodeID
		share float64
	}
	order := make([]ranked, len(nodes))
	for i, id := range nodes {
		order[i] = ranked{id, sp.Requested(id).LargestShare(sp.Allocatable(id))}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.share, b.share), cmp.Compare(s.Nodes[a.id].Name, s.Nodes[b.id].Name))
	})
	for i := range order {
		nodes[i] = order[i].id
	}
}
