package market

import (
	"cmp"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A place is a region of a provider.
type place struct{ provider, region string }

// An offerKey identifies an instance type in a zone.
type offerKey struct {
	place
	zone, kind string
}

// market returns the name of the market for a capacity type.
func (k offerKey) market(c policy.CapacityType) string {
	return k.provider + "/" + k.region + "/" + k.zone + "/" + k.kind + "/" + c.String()
}

// A typeAt identifies an instance type in a region.
type typeAt struct {
	place
	kind string
}

type typeKey struct{ provider, kind string }

// An offer contains the known data about an instance type in a zone.
type offer struct {
	key offerKey

	// spot is empty if no feed has reported a price.
	spot curve

	// reported is the time up to which the Spot price is known.
	reported policy.Time

	reserve policy.Money
	bids    [3]policy.Money

	score    int8 // negative if unknown
	scoredAt policy.Time
}

// A listed is an on-demand price.
type listed struct {
	curve    curve
	modelled bool

	// catalog reports whether the price comes from the catalog. The first price that a feed reports
	// replaces it.
	catalog bool
}

// A banded is a published interruption band and the time of its report.
type banded struct {
	band policy.Band
	at   policy.Time
}

// knowledge contains the data that feeds have reported. It does not depend on their order.
type knowledge struct {
	zones     map[place]map[string]string // names of zones by ID
	described map[typeKey]policy.InstanceType
	types     map[typeKey]*policy.InstanceType // nil for types that were looked up and not found
	offers    map[offerKey]*offer
	onDemand  map[typeAt]*listed
	bands     map[typeAt]*banded
	asked     map[offerKey]bool // offers that Find was called for

	changed bool // the tables must be rebuilt
}

func newKnowledge() knowledge {
	return knowledge{
		changed: true,
		zones:   map[place]map[string]string{}, described: map[typeKey]policy.InstanceType{}, types: map[typeKey]*policy.InstanceType{},
		offers: map[offerKey]*offer{}, onDemand: map[typeAt]*listed{}, bands: map[typeAt]*banded{}, asked: map[offerKey]bool{},
	}
}

// zoneName returns the name of a zone, given its name or its ID.
func (k *knowledge) zoneName(at place, zone string) string { return cmp.Or(k.zones[at][zone], zone) }

// typeOf returns the instance type, or nil if neither the catalog nor a feed describes it, or if it
// has no allocatable resources.
func (k *knowledge) typeOf(provider, name string) *policy.InstanceType {
	key := typeKey{provider, name}
	t, seen := k.types[key]
	if !seen {
		found, ok := catalog.Lookup(provider, name)
		if !ok {
			found, ok = k.described[key]
		}
		if a := &found.Allocatable; ok && a.CPU > 0 && a.Memory > 0 && a.Pods > 0 {
			t = &found
		}
		k.types[key] = t
	}
	return t
}

// offerOf returns the offer with the given key. It creates the offer if it does not exist.
func (k *knowledge) offerOf(key offerKey) (o *offer, isNew bool) {
	if o := k.offers[key]; o != nil {
		return o, false
	}
	o = &offer{key: key, score: -1}
	k.offers[key] = o
	return o, true
}

// listedFor returns the on-demand price that a feed reported, else the price of the catalog, or nil
// if both are unknown.
func (k *knowledge) listedFor(at typeAt) *listed {
	if l := k.onDemand[at]; l != nil {
		return l
	}
	price, known := catalog.OnDemand(at.provider, at.region, at.kind)
	modelled := false
	if !known {
		price, _, known = catalog.OnDemandModelled(at.provider, at.region, at.kind)
		modelled = true
	}
	if !known {
		return nil
	}
	l := &listed{modelled: modelled, catalog: true, curve: curve{always: true}}
	l.curve.put(catalogDate(at.provider), price)
	k.onDemand[at] = l
	return l
}

// catalogDate returns the date of the catalog's price list of a provider.
func catalogDate(provider string) policy.Time {
	at, err := time.Parse(time.DateOnly, catalog.Date(provider))
	if err != nil {
		return 1 // impossible for a provider with prices
	}
	return policy.TimeOf(at)
}

// published reports whether l is a price that the provider publishes, so that other prices can be
// checked against it.
func (l *listed) published() bool { return l != nil && !l.modelled }

func compareKeys(a, b offerKey) int {
	return cmp.Or(strings.Compare(a.provider, b.provider), strings.Compare(a.region, b.region),
		strings.Compare(a.zone, b.zone), strings.Compare(a.kind, b.kind))
}
