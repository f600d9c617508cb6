package rackspace_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

var _ market.Feed = (*rackspace.Feed)(nil)

func (w *fixture) read() *market.Update {
	w.t.Helper()
	u, err := w.b.Feed().Read(w.ctx, market.Ask{Now: policy.TimeOf(w.clock.Now())})
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// A cloudspace is in one region: nothing of another region is reported, and a launch there is held,
// not tried.
func TestFaultOtherRegion(t *testing.T) {
	w := newFixture(t)
	if u, err := w.b.Feed().Read(w.ctx, market.Ask{Now: policy.TimeOf(w.clock.Now())}); u != nil || !errors.Is(err, market.ErrNothingWanted) {
		t.Errorf("before the region is known the feed reports %+v, %v; want to be asked again soon", u, err)
	}
	w.mustRun(time.Minute)
	u := w.read()
	for _, p := range u.Spot {
		if p.Region != "us-east-iad-1" || p.Zone != p.Region || p.Provider != policy.Rackspace {
			t.Errorf("there is a price %+v", p)
		}
	}
	if len(u.Spot) != 3 {
		t.Errorf("%d prices, want those of three classes", len(u.Spot))
	}
	if got := heldFor(w.launch("t1", 90_000, "gp.vs2.medium-sjc")); got != "OtherRegion" {
		t.Errorf("a launch in another region is held for %q", got)
	}
	if len(w.cloudWrites()) != 0 || len(w.ledger()) != 0 {
		t.Error("something was written")
	}
}

// What is sold on demand has the published price and is offered; the price of what
// is not is modelled and said to be.
func TestFeedPrices(t *testing.T) {
	w := newFixture(t)
	w.mustRun(time.Minute)
	if !w.b.Feed().Prices() {
		t.Error("the feed is not among the sources of prices")
	}
	u := w.read()
	for _, p := range u.Spot {
		if p.Type == "gp.vs1.large-iad" && (p.Price != 30_000 || p.Reserve != 2_000 || p.Bids != [3]policy.Money{30_000, 60_000, 120_000}) {
			t.Errorf("the price is %+v", p)
		}
	}
	for _, p := range u.OnDemand {
		want := map[string]policy.Money{"gp.vs1.medium-iad": 50_000, "gp.vs1.large-iad": 100_000}[p.Type]
		if want != p.Price && want != 0 || p.Modelled != (want == 0) || p.Price <= 0 {
			t.Errorf("on demand: %+v", p)
		}
	}
	if len(u.OnDemand) != 3 || len(u.Offerings) != 2 {
		t.Errorf("%d prices on demand and %d offerings, want 3 and 2", len(u.OnDemand), len(u.Offerings))
	}
	w.server.SetPrice("gp.vs1.large-iad", 35_000)
	w.mustRun(time.Minute)
	if got := spotPrice(w.read(), "gp.vs1.large-iad"); got != 35_000 {
		t.Errorf("after a change the price is %v", got)
	}
}

// Sizes with units are not cut to whole numbers, accelerators are counted, words for
// categories are understood, and pods are not offered what the kubelet keeps.
func TestFaultSizesOfUnknownClasses(t *testing.T) {
	w := newFixture(t)
	w.server.Change(func(s *fake.State) {
		at := []fake.Price{{Price: 100_000}}
		s.Classes = append(s.Classes,
			fake.Class{Name: "gp.vs9.tiny-iad", Region: "us-east-iad-1", Category: "General Purpose", CPU: "2", Memory: "3.75GB", Prices: at},
			fake.Class{Name: "gpu.vs9.huge-iad", Region: "us-east-iad-1", Category: "GPU Accelerated", CPU: "24", Memory: "64Gi", Prices: at},
			fake.Class{Name: "gp.vs9.odd-iad", Region: "us-east-iad-1", Category: "General Purpose", CPU: "two", Memory: "4GB", Prices: at})
	})
	w.mustRun(time.Minute)
	u := w.read()
	types := map[string]policy.InstanceType{}
	for _, x := range u.Types {
		types[x.Name] = x
	}
	known, _ := catalog.Lookup(policy.Rackspace, "gp.vs1.medium-iad")
	if x := types["gp.vs9.tiny-iad"]; x.Capacity != known.Capacity || x.Allocatable != known.Allocatable ||
		x.Category != "gp" || x.Family != "gp.vs9" {
		t.Errorf("a class as large as %s is described as %+v, want %+v", known.Name, x, known)
	}
	if x := types["gpu.vs9.huge-iad"]; x.Capacity.GPU != 1 || x.Allocatable.GPU != 1 ||
		x.GPUResource != "nvidia.com/gpu" || x.Category != "gpu" {
		t.Errorf("a class of accelerators is described as %+v", x)
	}
	if _, ok := types["gp.vs9.odd-iad"]; ok || !strings.Contains(strings.Join(u.Warnings, "\n"),
		`gp.vs9.odd-iad of us-east-iad-1: cpu is "two"`) {
		t.Errorf("a class that cannot be read: warnings %v", u.Warnings)
	}
}

// The recorded feed is read as it is.
func TestFeedReadsTheRecordedSample(t *testing.T) {
	sample := goldenFile(t, "rackspace_percentiles_sample.json")
	w := newFixture(t)
	w.server.Change(func(s *fake.State) {
		for i := range s.Classes {
			s.Classes[i].Name = "other-" + s.Classes[i].Name // the feed alone knows the sample's
		}
	})
	w.mustRun(time.Minute)
	w.server.SetFaults(fake.Faults{Hook: func(r *http.Request) (int, string) {
		if r.URL.Path == fake.PricesPath {
			return http.StatusOK, string(sample)
		}
		return 0, ""
	}})
	u := w.read()
	want := map[string][4]policy.Money{
		"gp.vs1.2xlarge-iad": {10_000, 41_000, 41_000, 46_000}, "gp.vs1.medium-iad": {1_000, 2_000, 2_000,
			6_000}, "ch.vs1.large-iad": {5_000, 6_000, 11_000, 11_000},
	}
	for _, p := range u.Spot {
		if got := [4]policy.Money{p.Price, p.Bids[0], p.Bids[1], p.Bids[2]}; got != want[p.Type] {
			t.Errorf("%s: %v, want %v", p.Type, got, want[p.Type])
		}
	}
	if len(u.Spot) != len(want) || len(u.Warnings) != 0 {
		t.Errorf("%d prices and warnings %v, want %d and none", len(u.Spot), u.Warnings, len(want))
	}
}

// A feed that fails or publishes invalid rows results in an error or a warning, never in a price of
// 0.
func TestFeedFailures(t *testing.T) {
	w := newFixture(t)
	w.mustRun(time.Minute)
	for name, x := range map[string]struct {
		status int
		body   string
		err    bool
	}{
		"gone":         {404, "no such key", true},
		"broken":       {500, "x", true},
		"page":         {200, "<html>", true},
		"cut":          {200, `{"regions":{"us-east-iad-1":{"serverclasses":{"gp.vs1.med`, true},
		"empty":        {200, `{}`, true},
		"wrong type":   {200, `{"regions":[]}`, true},
		"no price":     {200, `{"regions":{"us-east-iad-1":{"serverclasses":{"gp.vs1.medium-iad":{"cpu":2,"memory":4}}}}}`, false},
		"odd price":    {200, `{"regions":{"us-east-iad-1":{"serverclasses":{"gp.vs1.medium-iad":{"market_price":"NaN"}}}}}`, false},
		"a list":       {200, `{"regions":{"us-east-iad-1":{"serverclasses":{"gp.vs1.medium-iad":{"market_price":[1]}}}}}`, false},
		"other region": {200, `{"regions":{"mars":{"serverclasses":{}}}}`, false},
	} {
		w.server.SetFaults(fake.Faults{Hook: func(*http.Request) (int, string) { return x.status, x.body }})
		u, err := w.b.Feed().Read(w.ctx, market.Ask{Now: 1})
		if (err != nil) != x.err {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(u.Spot) != 0 || len(u.Warnings) == 0) {
			t.Errorf("%s: prices %v, warnings %v", name, u.Spot, u.Warnings)
		}
	}
}
