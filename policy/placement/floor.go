package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Floor is the lowest price, in dollars per hour, of a milli-CPU, a byte of memory and an
// accelerator; 0 for a resource that is not sold. It gives a lower bound: nodes that run pods cost
// at least as much as the pods' requests at these prices.
type Floor [3]float64

// FloorOf returns the floor of the given offers.
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

// Cost returns a lower bound of the cost of need in dollars per hour. It returns 1e9, more than any
// price, if a resource that need contains is not sold.
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

// WastefulFirst sorts nodes by the difference between their price and the lower bound of the cost
// of their requests, descending, then by name.
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
