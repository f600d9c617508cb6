package catalog

import (
	"math"
	"slices"
	"testing"
)

// TestVolumePrices: what is included costs nothing, what goes beyond it by its tier.
func TestVolumePrices(t *testing.T) {
	for _, x := range []struct {
		volume Volume
		region string
		want   float64
		known  bool
	}{
		{Volume{Type: "gp3", GiB: 20}, "us-east-1", 1.60, true},
		{Volume{Type: "gp3", GiB: 100, IOPS: 3000, MiBps: 125}, "us-east-1", 8, true},
		{Volume{Type: "gp3", GiB: 100, IOPS: 5000, MiBps: 250}, "us-west-2", 8 + 2000*0.005 + 125*0.04, true},
		{Volume{Type: "gp2", GiB: 50, IOPS: 150}, "us-east-1", 5, true},
		{Volume{Type: "gp2", GiB: 50}, "eu-central-1", 50 * 0.119, true},
		{Volume{Type: "io1", GiB: 10, IOPS: 1000}, "us-east-1", 1.25 + 65, true},
		{Volume{Type: "io2", GiB: 10, IOPS: 70_000}, "us-east-1", 1.25 + 32_000*0.065 + 32_000*0.046 + 6000*0.032, true},
		{Volume{Type: "st1", GiB: 500}, "us-east-1", 22.5, true},
		{Volume{Type: "gp3", GiB: 20}, "moon-1", 1.60, false},
	} {
		if got, known := x.volume.PriceOf(x.region); math.Abs(got-x.want) > 1e-9 || known != x.known {
			t.Errorf("%+v in %s costs %v a month (known %v), want %v (%v)", x.volume, x.region, got, known, x.want, x.known)
		}
	}
	for name := range volumePrices {
		if !slices.Contains(VolumeTypes(), name) {
			t.Errorf("%s is not among the types", name)
		}
	}
}
