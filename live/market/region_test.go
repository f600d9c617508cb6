package market

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestRegionOfANodeThatDoesNotSayIt takes the region of a node from its zone, and where
// that says nothing the only one there is.
func TestRegionOfANodeThatDoesNotSayIt(t *testing.T) {
	for _, c := range []struct {
		name, provider, zone string
		regions, reported    []string
		want                 string
	}{
		{"as the zone is written at AWS", "aws", "ap-southeast-2c", nil, nil, "ap-southeast-2"},
		{"as the zone is written at Google", "gcp", "europe-west1-b", nil, nil, "europe-west1"},
		{"as the zone is written at Azure", "azure", "westeurope-1", nil, nil, "westeurope"},
		{"where the zone is known", "aws", "us-east-1-bos-1a", nil, []string{"us-east-1/us-east-1-bos-1a"}, "us-east-1"},
		{"the zone before the region that is set", "aws", "eu-west-1a", []string{"us-east-1"}, nil, "eu-west-1"},
		{"the region that is set", "aws", "test-zone-a", []string{"us-east-1"}, []string{"eu-west-1/eu-west-1a"}, "us-east-1"},
		{"the only one that is known", "aws", "test-zone-a", nil, []string{"eu-west-1/eu-west-1a", "eu-west-1/eu-west-1b"}, "eu-west-1"},
		{"one of two", "aws", "test-zone-a", nil, []string{"eu-west-1/eu-west-1a", "us-east-1/us-east-1a"}, ""},
		{"one of two that are set", "aws", "test-zone-a", []string{"eu-west-1", "us-east-1"}, nil, ""},
		{"of another provider", "gcp", "test-zone-a", nil, []string{"eu-west-1/eu-west-1a"}, ""},
		{"a zone of that name in two regions", "aws", "a", nil, []string{"r1/a", "r2/a"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newBookFixture(t, func(cfg *Config) { cfg.Regions = c.regions })
			for _, at := range c.reported {
				region, zone, _ := strings.Cut(at, "/")
				d.known.offerOf(offerKey{place{"aws", region}, zone, "m5.large"})
			}
			d.tabulate()
			if got := d.table.regionOf(d.config.Regions, c.provider, c.zone); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

// TestFindWithoutARegion prices a node without a region label, as those of kwok.
func TestFindWithoutARegion(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04)}})
	s := d.fill(t)
	if id := d.Find("aws", "", "eu-west-1a", "m5.large", policy.Spot); id == policy.None || s.Markets[id].Name != m5a {
		t.Errorf("it is market %v", id)
	}
}
