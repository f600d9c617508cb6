package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A floor is the least at which resources are sold in a list of offers: what holds
// pods costs no less than what they ask for costs at any of these prices.
type floor struct {
	known bool
	cpu   [len(ratios)]float64 // of a thousandth of a core, at each of ratios
	gpu   float64
}

// cost returns the least that need costs, in dollars an hour.
func (f *floor) cost(need *policy.Resources) float64 {
	least := float64(f.gpu * float64(need.GPU))
	for i, ratio := range ratios {
		size := float64(need.CPU) + float64(ratio*float64(need.Memory))/(1<<20)
		least = max(least, f.cpu[i]*size)
	}
	return least
}

// floorOf returns the floor of offers at what a node costs now.
func (m *marketOffers) floorOf(offers []placement.Offer) floor {
	list := m.e.nodeOffers[:0]
	for i := range offers {
		a := &offers[i].Allocatable
		list = addUndominated(list, nodeOffer{m.prices.buying(offers[i].Market), float64(a.CPU), float64(a.Memory), float64(a.GPU)})
	}
	m.e.nodeOffers = list
	f := floor{known: true, gpu: cheapest(list, func(x *nodeOffer) float64 { return x.gpu })}
	for i, ratio := range ratios {
		f.cpu[i] = cheapest(list, func(x *nodeOffer) float64 { return x.cpu + float64(ratio*x.memory)/(1<<20) })
	}
	return f
}

// least returns the least that nodes for need cost at the k-th floor.
func (m *marketOffers) least(k int, need *policy.Resources) policy.Money {
	f := &m.floors[k]
	if !f.known {
		*f = m.floorOf(m.sorts[k].offers)
	}
	return max(0, policy.Dollars(f.cost(need)*(1-floorPart))-splitMax)
}

// floorPart is far more than all that is lost to rounding in a floor; what a node
// costs is besides rounded by less than one millionth of a dollar.
const floorPart = 1e-9
