package portfolio

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A floor is the least at which resources are sold in a list of offers: what holds
// pods costs no less than what they ask for costs at any of these prices.
type floor struct {
	known bool
	cpu   [len(ratios)]float64 // of a thousandth of a core, where memory is worth the ratio of it
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
func (m *rebalance) floorOf(offers []placement.Offer) floor {
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

// hopeless reports whether t does not pay even if the nodes for what has no place
// cost no more than the floor: to find that out takes a fraction of what it takes to
// look for the nodes.
func (m *rebalance) hopeless(t *trial) bool {
	k := of(m.spotFor(t.node))
	if len(t.rest) == 0 || len(m.offers) != len(m.sorts[k].offers) {
		return false // nothing is bought, or what was paid for in advance
	}
	var need policy.Resources
	for i := range t.rest {
		need = need.Plus(m.s.Templates[t.rest[i].Template].Requests)
	}
	least := *t
	least.after = m.least(k, &need)
	return !m.pays(&least)
}

// cannotPay reports whether t does not pay wherever the pods of its node go. Each pod
// that asks for more CPU or memory than is free anywhere else needs a new node, at the floor at
// least; the others are taken to find a place. It changes nothing, and takes a fraction
// of what it takes to look for the places.
func (m *rebalance) cannotPay(t *trial) bool {
	if t.node.Recommended != 0 {
		return false // what it saves to leave depends on more
	}
	var need policy.Resources
	rest := false
	for _, p := range m.e.pods.on(t.node.ID) {
		x := &m.s.Templates[p.template]
		if x.Workload >= 0 {
			t.moving += m.costs.each[x.Workload]
		}
		if !m.fitsBeside(t.node.ID, x.Requests) {
			need, rest = need.Plus(x.Requests), true
		}
	}
	least := *t
	if spot := m.spotFor(t.node); rest && (!spot || len(m.paidFor()) == 0) {
		if len(m.sorts[of(spot)].offers) == 0 {
			return true
		}
		least.after = m.least(of(spot), &need)
	}
	return !m.pays(&least)
}

// least returns the least that nodes for need cost at the k-th floor.
func (m *rebalance) least(k int, need *policy.Resources) policy.Money {
	f := &m.floors[k]
	if !f.known {
		*f = m.floorOf(m.sorts[k].offers)
	}
	return max(0, policy.Dollars(f.cost(need)*(1-floorPart))-splitMax)
}

// findRoom finds the targets that may have room for a pod.
func (m *rebalance) findRoom() {
	least := policy.Resources{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for i := range m.s.Templates {
		if t := &m.s.Templates[i]; !t.DaemonSet {
			least.CPU, least.Memory = min(least.CPU, t.Requests.CPU), min(least.Memory, t.Requests.Memory)
		}
	}
	for _, id := range m.targets {
		if holdsBoth(m.freeOn(id), least) {
			m.roomy = append(m.roomy, id)
		}
	}
}

// holdsBoth reports whether free is enough of CPU and memory, as far as memory is asked
// for.
func holdsBoth(free, need policy.Resources) bool {
	return need.CPU <= free.CPU && (need.Memory == 0 || need.Memory <= free.Memory)
}

// freeOn returns what is free on a target, CPU and memory at least.
func (m *rebalance) freeOn(id policy.NodeID) policy.Resources {
	if m.sp != nil {
		return m.sp.Free(id)
	}
	return m.e.pods.free(m.s, id)
}

// fitsBeside reports whether a pod that asks for need may have room on a node other than
// from.
func (m *rebalance) fitsBeside(from policy.NodeID, need policy.Resources) bool {
	return slices.ContainsFunc(m.roomy, func(id policy.NodeID) bool { return id != from && holdsBoth(m.freeOn(id), need) })
}

// floorPart is far more than all that is lost to rounding in a floor; what a node
// costs is besides rounded by less than one millionth of a dollar.
const floorPart = 1e-9
