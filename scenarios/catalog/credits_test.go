package catalog

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestCredits: credits an hour, baseline and price as the user guide of EC2 and its price list have
// them, and terms for each type of these families and no other.
func TestCredits(t *testing.T) {
	for name, want := range map[string]struct {
		tenths int64 // of credits an hour
		price  policy.Money
		launch int64
	}{
		"t2.nano": {30, 50_000, 30}, "t2.medium": {240, 50_000, 60}, "t2.xlarge": {540, 50_000, 120}, "t2.2xlarge": {816, 50_000, 240},
		"t3.nano": {60, 50_000, 0}, "t3.small": {240, 50_000, 0}, "t3a.large": {360, 50_000, 0}, "t3.xlarge": {960, 50_000, 0},
		"t4g.micro": {120, 40_000, 0}, "t4g.2xlarge": {1920, 40_000, 0},
	} {
		x, _ := Lookup(AWS, name)
		if c := x.Credits; c.Baseline*60/100 != want.tenths || c.Surplus != want.price || c.Launch != want.launch ||
			c.Standard != (want.launch > 0) {
			t.Errorf("%s has %+v, want %+v", name, c, want)
		}
	}
	for _, provider := range Providers() {
		for _, name := range Types(provider) {
			x, _ := Lookup(provider, name)
			burstable := slices.Contains([]string{"t2", "t3", "t3a", "t4g"}, x.Family)
			if (x.Credits != policy.CPUCredits{}) != burstable || burstable && Unmodelled(provider, name) {
				t.Errorf("%s/%s has %+v", provider, name, x.Credits)
			}
		}
	}
}

// TestUnmodelled: types whose processors are shared on other terms.
func TestUnmodelled(t *testing.T) {
	for _, x := range [][2]string{{Azure, "Standard_B2ms"}, {Azure, "Standard_B16als_v2"}, {GCP, "e2-medium"},
		{GCP, "f1-micro"}, {AWS, "t1.micro"}} {
		if !Unmodelled(x[0], x[1]) {
			t.Errorf("%s is not known to share its processors", x[1])
		}
	}
	for _, x := range [][2]string{{Azure, "Standard_D2s_v3"}, {GCP, "e2-standard-2"}, {AWS, "m5.large"},
		{AWS, "t3.large"}, {Rackspace, "gp.vs1.medium-iad"}} {
		if Unmodelled(x[0], x[1]) {
			t.Errorf("%s is taken to share its processors", x[1])
		}
	}
}
