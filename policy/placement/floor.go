package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Floor is the least that one CPU, one byte of memory and one accelerator cost, in dollars an
// hour; 0 for a resource that is not sold. Nodes that hold pods cost no less than the pods'
// requests at these prices.
type Floor [3]float64

// FloorOf returns the floor of what can be bought.
func FloorOf(offers []Offer) (f Floor) {
	for i := range offers {
		o := &offers[i]
		for r, have := range [...]int64{o.Allocatable.CPU, o.Allocatable.Memory, o.Allocatable.GPU} {
			if have <= 0 {
				continue
			}
			if unit := o.Price.Float() / float64(have); f[r] == 0 || unit < f[r] {
				f[r] = unit
			}
		}
	}
	return f
}

// Cost returns the least that need costs, in dollars an hour; far more than any
// price where a part of it is not sold.
func (f Floor) Cost(need policy.Resources) float64 {
	least := 0.0
	for r, want := range [...]int64{need.CPU, need.Memory, need.GPU} {
		switch {
		case want == 0:
		case f[r] == 0:
			return 1e9
		default:
			least = max(least, float64(want)*f[r])
		}
	}
	return least
}

// WastefulFirst sorts nodes by their price above the least cost of their requests, the
// greatest first, then by name.
func WastefulFirst(s *policy.Snapshot, sp *Space, nodes []policy.NodeID, floor Floor,
	price func(*policy.Node) policy.Money) {
	waste := make([]policy.Money, len(s.Nodes))
	for _, id := range nodes {
		waste[id] = price(&s.Nodes[id]) - policy.Dollars(min(floor.Cost(sp.Requested(id)), 1e6))
	}
	slices.SortFunc(nodes, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(waste[y], waste[x]), cmp.Compare(s.Nodes[x].Name, s.Nodes[y].Name))
	})
}
