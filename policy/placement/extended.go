package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Amount is a quantity of an extended resource. The caller numbers the resources from 0.
type Amount struct {
	Resource int
	Quantity int64
}

// RequestExtended sets the extended resources that a pod of t requests in addition to its Requests.
// It must be called before a pod of t is bound.
func (sp *Space) RequestExtended(t policy.TemplateID, amounts []Amount) {
	sp.table.kinds[t].extended = amounts
}

// OfferExtended sets the extended resources that n offers in addition to its Allocatable, indexed
// by the number of the resource. It must be called after [Space.SetNode] and before a pod is bound
// to n.
func (sp *Space) OfferExtended(n policy.NodeID, offers []int64) {
	sp.occupancy.nodes[n].extended = slices.Clone(offers)
}

// FreeExtended returns the free quantity of an extended resource on n. It is negative if pods
// request more than n offers.
func (sp *Space) FreeExtended(n policy.NodeID, resource int) int64 {
	return sp.occupancy.freeExtended(n, resource)
}

func (oc *occupancy) freeExtended(n policy.NodeID, resource int) int64 {
	if free := oc.nodes[n].extended; resource < len(free) {
		return free[resource]
	}
	return 0
}

func (oc *occupancy) hasExtended(k *kind, n policy.NodeID) bool {
	for _, a := range k.extended {
		if a.Quantity > oc.freeExtended(n, a.Resource) {
			return false
		}
	}
	return true
}

// useExtended subtracts the requests of a pod of k from the free quantities (delta 1), or adds them
// (delta -1).
func (oc *occupancy) useExtended(k *kind, n policy.NodeID, delta int64) {
	nd := &oc.nodes[n]
	for _, a := range k.extended {
		for a.Resource >= len(nd.extended) {
			nd.extended = append(nd.extended, 0)
		}
		nd.extended[a.Resource] -= delta * a.Quantity
	}
}
