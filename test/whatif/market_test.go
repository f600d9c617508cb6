package whatif

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/test/e2e/bill"
	"github.com/spotter-dev/spotter/test/karpenter"
)

// A market is what the NodePools may buy: small nodes on demand, so that there are many of
// them, at the prices of the catalog, which those are that a capture without a trace draws.
type market struct {
	names, zones []string
	types        []any
	prices       bill.Prices
}

const region = "us-east-1"

func newMarket(t testing.TB) *market {
	t.Helper()
	m := &market{prices: bill.Prices{}}
	for _, family := range []string{"c6i", "m6i", "r6i", "c5", "m5", "r5"} {
		for _, size := range []string{"large", "xlarge"} {
			m.names = append(m.names, family+"."+size)
		}
	}
	m.zones = []string{region + "a", region + "b", region + "c"}
	for _, name := range m.names {
		x, known := catalog.Lookup(catalog.AWS, name)
		price, sold := catalog.OnDemand(catalog.AWS, region, name)
		if !known || !sold {
			t.Fatalf("%s is not in the catalog", name)
		}
		var offers []karpenter.Offer
		for _, zone := range m.zones {
			if !slices.Contains(catalog.Zones(catalog.AWS, region), zone) {
				t.Fatalf("%s is not in the catalog", zone)
			}
			offers = append(offers, karpenter.Offer{Zone: zone, Capacity: policy.OnDemand.String(), Price: price.Float()})
			m.prices[name+"/"+zone+"/"+policy.OnDemand.String()] = []bill.Price{{From: 0, MicroDollars: int64(price)}}
		}
		m.types = append(m.types, karpenter.Type(name, map[string]string{
			"cpu":               fmt.Sprintf("%dm", x.Allocatable.CPU+karpenter.ReservedCPU),
			"memory":            fmt.Sprint(x.Allocatable.Memory + karpenter.ReservedMemory),
			"ephemeral-storage": fmt.Sprint(x.Allocatable.Storage),
			"pods":              fmt.Sprint(x.Allocatable.Pods),
		}, offers))
	}
	return m
}
