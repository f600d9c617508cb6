// Package fleet reduces what a NodeClaim allows to a request to EC2 Fleet, as Karpenter's provider
// for AWS does after the core has made the claim. The rules are those of
// github.com/aws/karpenter-provider-aws v1.14.1, pkg/providers/instance; the tool karpenterawsdiff
// holds this package against that code.
//
// How EC2 then serves the request, its allocation strategy, is simulated by the market.
package fleet

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// TypesMax is how many instance types one request names (maxInstanceTypes in
// instance.go).
const TypesMax = 60

// An Offering is one instance type in one zone under one capacity type.
type Offering struct {
	Market policy.MarketID
	Type   policy.TypeID

	// Price is the cost of one node for one hour.
	Price policy.Money

	Capacity policy.CapacityType

	// Block says that it is a capacity block.
	Block bool

	// Exotic says that the type has accelerators or is bare metal.
	Exotic bool
}

// Request returns the offerings that the request names, all of one capacity type. The offerings are
// the available ones that the NodeClaim allows, cheapest first; they keep their order. The slice is
// overwritten.
//
// Types with accelerators and bare metal are requested only where nothing else is allowed
// (ExoticInstanceTypeFilter in filter/filter.go). Where both capacity types are allowed, Spot
// offerings that cost more than the cheapest on-demand offering are left out (SpotOfferingFilter).
// Of the rest the TypesMax types with the cheapest offerings are kept, each in all its zones; Spot
// is requested if any of them has a Spot offering (getCapacityType in instance.go). For a NodeClaim
// with minValues everything that it allows is requested: neither of the two rules applies. Reserved
// offerings take precedence over all others, and one request is for one kind of reservation: see
// reserved.
func Request(offerings []Offering, minValues bool) []Offering {
	offerings = reserved(offerings)
	if minValues {
		return oneCapacityType(cheapestTypes(offerings))
	}
	if slices.ContainsFunc(offerings, func(o Offering) bool { return !o.Exotic }) {
		offerings = slices.DeleteFunc(offerings, func(o Offering) bool { return o.Exotic })
	}
	if i := slices.IndexFunc(offerings, func(o Offering) bool { return o.Capacity == policy.OnDemand }); i >= 0 {
		most := offerings[i].Price
		offerings = slices.DeleteFunc(offerings, func(o Offering) bool { return o.Capacity == policy.Spot && o.Price > most })
	}
	return oneCapacityType(cheapestTypes(offerings))
}

// reserved keeps of offerings with reserved ones the kind of reservation with the cheapest,
// and of capacity blocks one (CapacityReservationTypeFilter and CapacityBlockFilter in
// filter/filter.go). Of several reservations of one type and zone the provider is named the
// one with the most left; here it chooses among all.
func reserved(offerings []Offering) []Offering {
	is := func(o Offering) bool { return o.Capacity == policy.Reserved }
	i := slices.IndexFunc(offerings, is)
	if i < 0 {
		return offerings
	}
	block := !slices.ContainsFunc(offerings, func(o Offering) bool {
		return is(o) && !o.Block &&
			o.Price == offerings[i].Price
	})
	offerings = slices.DeleteFunc(offerings, func(o Offering) bool { return !is(o) || o.Block != block })
	if block {
		offerings = offerings[:1]
	}
	return offerings
}

// oneCapacityType keeps the spot offerings where there are any.
func oneCapacityType(offerings []Offering) []Offering {
	is := func(o Offering) bool { return o.Capacity == policy.Spot }
	spot := slices.ContainsFunc(offerings, is)
	return slices.DeleteFunc(offerings, func(o Offering) bool { return is(o) != spot })
}

// cheapestTypes keeps the offerings of the TypesMax types whose cheapest offerings come
// first.
func cheapestTypes(offerings []Offering) []Offering {
	var buf [TypesMax]policy.TypeID
	types := buf[:0]
	return slices.DeleteFunc(offerings, func(o Offering) bool {
		if slices.Contains(types, o.Type) {
			return false
		}
		if len(types) == TypesMax {
			return true
		}
		types = append(types, o.Type)
		return false
	})
}
