package v1alpha1

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Offer is the data about one instance type in one zone, sold as Spot and on demand, on which
// the choice of a pool depends.
// +kubebuilder:object:generate=false
type Offer struct {
	Provider, Region, Zone string

	// Type is the same pointer in all offers of a type.
	Type *policy.InstanceType

	// OnDemand is the price of a node-hour on demand. Modelled says that it is not a published
	// price: it then bounds nothing.
	OnDemand policy.Money
	Modelled bool

	// Spot is the Spot price, policy.NoPrice if it is unknown. Score is the placement score, below
	// zero if it is unknown.
	Spot  policy.Money
	Score int8
}

// A Place is the location of a cluster.
// +kubebuilder:object:generate=false
type Place struct{ Provider, Region string }

// Cluster names the cluster that p serves: its cloudspace, or nothing, which is the
// cluster of all other pools.
func (p *CapacityPool) Cluster() string {
	if p.Spec.Backend.Rackspace != nil {
		return p.Spec.Backend.Rackspace.Cloudspace
	}
	return ""
}

// Choose returns the indices of the offers that p takes, ascending. Offers are
// ascending by provider, region, zone and type; p has its defaults.
//
// A pool that does not name several regions buys in the region of its cluster. Places has the
// region by [CapacityPool.Cluster]. A cluster that is not in places is assumed to be in the region
// with the most offers for its first pool, the first by name among equals, and is added.
func (p *CapacityPool) Choose(offers []Offer, places map[string]Place) []int {
	m := &p.Spec.Markets
	var taken []int
	for i := range offers {
		o := &offers[i]
		if p.BuysFrom(o.Provider) && m.Take(o.Region, o.Zone, o.Type) && o.affordable(m) &&
			(p.RanksMarkets() || o.scored(m)) {
			taken = append(taken, i)
		}
	}
	if len(m.Regions) < 2 {
		taken = InOnePlace(offers, taken, p.Cluster(), places)
	}
	if p.RanksMarkets() {
		return taken
	}
	if m.MaxInstanceTypes != nil {
		taken = cheapestTypes(offers, taken, m, int(*m.MaxInstanceTypes))
	}
	if m.MaxZones != nil {
		taken = fullestZones(offers, taken, int(*m.MaxZones))
	}
	return taken
}

// InOnePlace keeps the taken offers in the region of a cluster. If that is unknown, it is the
// region of most of them.
func InOnePlace(offers []Offer, taken []int, cluster string, places map[string]Place) []int {
	at, known := places[cluster]
	if !known && len(taken) > 0 {
		at = fullestPlace(offers, taken)
		places[cluster] = at
	}
	return slices.DeleteFunc(taken, func(i int) bool { return offers[i].place() != at })
}

func (o *Offer) place() Place { return Place{o.Provider, o.Region} }

func fullestPlace(offers []Offer, taken []int) Place {
	counts := map[Place]int{}
	for _, i := range taken {
		counts[offers[i].place()]++
	}
	best := offers[taken[0]].place()
	for _, i := range taken { // offers are ascending by provider and region
		if p := offers[i].place(); counts[p] > counts[best] {
			best = p
		}
	}
	return best
}

// spotFloor is the part of the on-demand price below which Spot is not sold: AWS, Google and Azure
// all advertise savings of up to 90% or 91%.
const spotFloor = 10

// affordable reports whether a node may ever cost no more than the bound on price, which applies
// when one is bought: as Spot at the present price or at the lowest that is sold, or on demand. A
// price that is not published rules nothing out.
func (o *Offer) affordable(m *Markets) bool {
	return m.MaxPrice == nil || o.Modelled || min(o.least(), o.OnDemand/spotFloor) <= policy.Dollars(*m.MaxPrice)
}

// least returns the lowest price that a node is known to have now.
func (o *Offer) least() policy.Money {
	if o.Spot <= 0 || o.OnDemand > 0 && o.OnDemand < o.Spot {
		return o.OnDemand
	}
	return o.Spot
}

// scored compares with the bound on the placement score.
func (o *Offer) scored(m *Markets) bool {
	return m.MinPlacementScore == nil || o.Score < 0 || int32(o.Score) >= *m.MinPlacementScore
}

// cheapestTypes keeps the offers of the n types that cost least per vCPU on
// demand, the first by name among equals; under a bound on price those first that
// can be bought now.
func cheapestTypes(offers []Offer, taken []int, m *Markets, n int) []int {
	var best []*Offer
	unavailable := map[*policy.InstanceType]int{} // 0 where one of its offers can be bought now
	for _, i := range taken {
		o := &offers[i]
		k := slices.IndexFunc(best, func(b *Offer) bool { return b.Type == o.Type })
		if k < 0 {
			unavailable[o.Type] = 1
		}
		if m.MaxPrice == nil || o.least() <= policy.Dollars(*m.MaxPrice) {
			unavailable[o.Type] = 0
		}
		switch {
		case k < 0:
			best = append(best, o)
		case o.OnDemand < best[k].OnDemand:
			best[k] = o
		}
	}
	slices.SortFunc(best, func(a, b *Offer) int {
		return cmp.Or(cmp.Compare(unavailable[a.Type], unavailable[b.Type]), cmp.Compare(int64(a.OnDemand)*b.Type.VCPU,
			int64(b.OnDemand)*a.Type.VCPU), cmp.Compare(a.Type.Name, b.Type.Name))
	})
	best = best[:min(n, len(best))]
	return slices.DeleteFunc(taken, func(i int) bool {
		return !slices.ContainsFunc(best, func(b *Offer) bool { return b.Type == offers[i].Type })
	})
}

// fullestZones keeps the offers of the n zones with the most offers, the first
// by name among equals.
func fullestZones(offers []Offer, taken []int, n int) []int {
	type zone struct {
		name  string
		count int
	}
	var zones []zone
	for _, i := range taken {
		name := offers[i].Zone
		k := slices.IndexFunc(zones, func(z zone) bool { return z.name == name })
		if k < 0 {
			zones, k = append(zones, zone{name: name}), len(zones)
		}
		zones[k].count++
	}
	slices.SortFunc(zones, func(a, b zone) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	zones = zones[:min(n, len(zones))]
	return slices.DeleteFunc(taken, func(i int) bool {
		return !slices.ContainsFunc(zones, func(z zone) bool { return z.name == offers[i].Zone })
	})
}
