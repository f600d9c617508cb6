package kube

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// A region of Azure without zones is its own zone, whatever number its nodes are labelled with; all
// other labels name the zone.
func TestZones(t *testing.T) {
	for _, c := range []struct{ provider, region, label, zone, written string }{
		{policy.Azure, "westus", "0", "westus", "0"},
		{policy.Azure, "westus", "12", "westus", "0"},
		{policy.Azure, "westeurope", "westeurope-1", "westeurope-1", "westeurope-1"},
		{policy.Azure, "", "0", "0", "0"},
		{policy.Azure, "westus", "", "", ""},
		{policy.AWS, "us-east-1", "us-east-1a", "us-east-1a", "us-east-1a"},
		{policy.AWS, "us-east-1", "0", "0", "0"},
		{policy.Rackspace, "us-east-iad-1", "us-east-iad-1", "us-east-iad-1", "us-east-iad-1"},
	} {
		zone := MarketZone(c.provider, c.region, c.label)
		if written := ZoneLabel(c.provider, c.region, zone); zone != c.zone || written != c.written {
			t.Errorf("%s %s labelled %q: zone %q, written as %q; want %q and %q", c.provider, c.region, c.label, zone, written,
				c.zone, c.written)
		}
	}
}
