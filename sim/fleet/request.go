// Package fleet reduces the offerings that a NodeClaim allows to an EC2 Fleet request, as
// Karpenter's AWS provider does after the core has created the claim. The rules are those of
// github.com/aws/karpenter-provider-aws v1.14.1, pkg/providers/instance; the tool karpenterawsdiff
// compares this package with that code.
//
// The market simulates the allocation strategy by which EC2 serves the request.
package fleet

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// TypesMax is the maximum number of instance types in one request (maxInstanceTypes in
// instance.go).
const TypesMax = 60

// An Offering is one instance type in one zone under one capacity type.
type Offering struct {
	Market policy.MarketID
	Type   policy.TypeID

	// Price is the cost of one node for one hour.
	Price policy.Money

	Capacity policy.CapacityType

	// Block reports whether the offering is a capacity block.
	Block bool

	// Exotic reports whether the type has accelerators or is bare metal.
	Exotic bool
}

// Request returns the offerings to request, all of one capacity type. offerings must be the
// available ones that the NodeClaim allows, cheapest first; Request keeps their order and
// overwrites the slice.
//
// Types with accelerators and bare metal are requested only if no other types are allowed
// (ExoticInstanceTypeFilter in filter/filter.go). If both capacity types are allowed, Spot
// offerings that cost more than the cheapest on-demand offering are left out (SpotOfferingFilter).
// These two rules do not apply to a NodeClaim with minValues. Of the remaining offerings, those of
// the TypesMax types with the cheapest offerings are kept, each type in all its zones. Spot is
// requested if any of them is a Spot offering (getCapacityType in instance.go).
//
// Reserved offerings take precedence over all others. One request is for one kind of reservation;
// see reserved.
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

// reserved returns the offerings unchanged if none is reserved. Otherwise, it keeps the reserved
// offerings of the same kind (capacity blocks or others) as the cheapest one, and only the first
// capacity block (CapacityReservationTypeFilter and CapacityBlockFilter in filter/filter.go). For
// several reservations of one type and zone, Karpenter names the one with the most remaining
// capacity; here, the provider chooses among all.
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

// oneCapacityType keeps only the Spot offerings, if there are any.
func oneCapacityType(offerings []Offering) []Offering {
	is := func(o Offering) bool { return o.Capacity == policy.Spot }
	spot := slices.ContainsFunc(offerings, is)
	return slices.DeleteFunc(offerings, func(o Offering) bool { return is(o) != spot })
}

// cheapestTypes keeps the offerings of the first TypesMax types in the list.
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
