package try

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A presentPrice is the present price of an instance type in a region, of a provider that publishes
// no past ones.
type presentPrice struct {
	region, kind string
	spot         bool
	price        policy.Money
}

// presentSeries returns the Spot prices of a provider from one time to another in each zone of their
// region, as if they had not changed. Types that the catalog does not have are left out.
func presentSeries(provider string, prices []presentPrice, from, to policy.Time) (all []trace.Series) {
	onDemand := map[[2]string]policy.Money{}
	for _, p := range prices {
		if !p.spot {
			onDemand[[2]string{p.region, p.kind}] = p.price
		}
	}
	for _, p := range prices {
		if _, known := catalog.Lookup(provider, p.kind); !p.spot || !known {
			continue
		}
		list := onDemand[[2]string{p.region, p.kind}]
		for _, zone := range catalog.Zones(provider, p.region) {
			all = append(all, trace.Series{Provider: provider, Region: p.region, Zone: zone, Type: p.kind,
				At: []policy.Time{from, to}, Spot: []policy.Money{p.price, p.price}, OnDemand: []policy.Money{list, list}})
		}
	}
	return slices.Clip(all)
}
