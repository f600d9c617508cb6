package scenarios

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

func TestBindMarkets(t *testing.T) {
	withPrice := series("b", "m5.large", []policy.Time{0, 30}, 30_000, 31_000)
	withPrice.OnDemand = []policy.Money{95_000, 97_000}
	tr := fourDays(withPrice,
		series("a", "m5.large", []policy.Time{0}, 32_000),
		series("a", "m5.xlarge", []policy.Time{0}, 64_000),
		series("a", "no.such", []policy.Time{0}, 1_000),
	)
	w := bind(t, parse(t, "{}", ""), tr, BindOptions{From: newDay + 24*hours})
	if got := names(w); got != "a/m5.large/on-demand a/m5.large/spot a/m5.xlarge/on-demand a/m5.xlarge/spot b/m5.large/on-demand b/m5.large/spot" {
		t.Errorf("markets %s", got)
	}
	if !reflect.DeepEqual(w.Zones, []string{"a", "b"}) || len(w.Types) != 2 || w.Types[0].Name != "m5.large" || w.Types[1].ID != 1 {
		t.Errorf("zones %v, types %v", w.Zones, w.Types)
	}
	published, _ := catalog.OnDemand("aws", "us-east-1", "m5.large")
	if m := w.Markets[1]; m.OnDemand != published || m.Capacity != policy.Spot || m.Price != 32_000 || m.OnDemandModelled {
		t.Errorf("without a price in the trace the catalog's counts: %+v", m)
	}
	if m := w.Markets[4]; m.Price != 95_000 || w.Prices[4].Price[0] != 95_000 || len(w.Prices[4].At) != 1 {
		t.Errorf("the on-demand price is that at the start: %+v %+v", m, w.Prices[4])
	}
	if p := w.Prices[5]; !reflect.DeepEqual(p.Price, []policy.Money{30_000, 31_000}) || p.At[0] > w.Start.Add(-w.WarmUp) {
		t.Errorf("spot curve %+v", p)
	}
	if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "markets not used: 1: the catalog") ||
		!strings.Contains(w.Warnings[0], "no.such") {
		t.Errorf("warnings %q", w.Warnings)
	}
	if !reflect.DeepEqual(w.Pools[0].Markets, []policy.MarketID{0, 1, 2, 3, 4, 5}) || w.Pools[0].Mode != policy.ModeActive {
		t.Errorf("pool %+v", w.Pools[0])
	}
}

// A market that neither the trace nor the catalog can price on demand is left
// out and named; so is one that is not offered in the window.
func TestBindLeavesOut(t *testing.T) {
	unpriced := series("a", "m5.xlarge", []policy.Time{0}, 30_000)
	unpriced.Region = "us-east-9"
	tr := fourDays(unpriced,
		series("a", "m5.large", []policy.Time{0}, 32_000),
		series("a", "m5.2xlarge", []policy.Time{0, 60}, policy.NoPrice, 90_000),
	)
	w := bind(t, parse(t, "{}", ""), tr, BindOptions{})
	text := strings.Join(w.Warnings, "\n")
	if len(w.Markets) != 2 || !strings.Contains(text, "us-east-9/a/m5.xlarge") || !strings.Contains(text, "m5.2xlarge") {
		t.Errorf("markets %s, warnings %s", names(w), text)
	}
}

// A list that writes 0 for what is not sold sells nothing for free, and machines
// whose recorded price leaves out their accelerators are left out.
func TestBindNoFreeNodes(t *testing.T) {
	gpu := series("a", "p3.2xlarge", []policy.Time{0}, 30_000)
	gpu.OnDemand = []policy.Money{300_000} // the catalog: $3.06
	tr := fourDays(gpu, series("a", "m5.large", []policy.Time{0, 10}, 0, 32_000), series("a", "m5.2xlarge", []policy.Time{0}, 0))
	w := bind(t, parse(t, "{}", ""), tr, BindOptions{})
	text := strings.Join(w.Warnings, "\n")
	if len(w.Markets) != 2 || !strings.Contains(text, "p3.2xlarge") || !strings.Contains(text, "m5.2xlarge") {
		t.Errorf("markets %s, warnings %s", names(w), text)
	}
	for i := range w.Prices {
		if slices.Contains(w.Prices[i].Price, 0) {
			t.Errorf("%s is free: %v", w.Markets[i].Name, w.Prices[i].Price)
		}
	}
}

// A cluster is in the region that sells the most for it, unless its pools name more regions.
func TestBindOneRegion(t *testing.T) {
	far := series("b", "m5.large", []policy.Time{0}, 10_000)
	far.Region = "us-west-2"
	azure := trace.Series{Provider: "azure", Region: "eastus", Zone: "eastus", Type: "Standard_D2s_v5",
		Product: trace.ProductLinux, At: []policy.Time{newDay}, Spot: []policy.Money{20_000}}
	near := []trace.Series{series("a", "m5.large", []policy.Time{0}, 32_000), series("a", "m5.xlarge", []policy.Time{0}, 60_000)}
	tr := &trace.Trace{Name: "test", Series: append(near, far, azure), From: newDay, To: newDay + 96*hours,
		WholeFrom: newDay, WholeTo: newDay + 96*hours}
	w := bind(t, parse(t, "{}", ""), tr, BindOptions{})
	if len(w.Markets) != 4 || !strings.Contains(strings.Join(w.Warnings, "\n"), "is in aws/us-east-1") {
		t.Errorf("markets %s, warnings %q", names(w), w.Warnings)
	}
	if w = bind(t, parse(t, "{regions: [us-east-1, us-west-2]}", ""), tr, BindOptions{}); len(w.Markets) != 6 {
		t.Errorf("markets %s", names(w))
	}
	w = bind(t, parse(t, "{}", ""), &trace.Trace{Name: "test", Series: []trace.Series{azure}, From: newDay, To: newDay +
		96*hours, WholeFrom: newDay, WholeTo: newDay + 96*hours}, BindOptions{})
	if len(w.Markets) != 2 || w.Markets[0].Provider != "azure" {
		t.Errorf("markets %s", names(w))
	}
}

// Of what is sold under several products only the plain Linux price counts.
func TestBindProducts(t *testing.T) {
	windows, vpc, plain := series("a", "m5.large", []policy.Time{0}, 50_000), series("a", "m5.large", []policy.Time{0},
		40_000), series("a", "m5.large", []policy.Time{0}, 30_000)
	windows.Product, vpc.Product = "Windows", trace.ProductLinux+" (Amazon VPC)"
	w := bind(t, parse(t, "{}", ""), fourDays(windows, vpc, plain), BindOptions{})
	if len(w.Markets) != 2 || w.Markets[1].Price != 30_000 {
		t.Errorf("markets %s at %v", names(w), w.Markets[1].Price)
	}
	unnamed := series("a", "m5.large", []policy.Time{0}, 45_000)
	unnamed.Product = ""
	if w = bind(t, parse(t, "{}", ""), fourDays(unnamed, plain), BindOptions{}); len(w.Markets) != 2 || w.Markets[1].Price != 30_000 {
		t.Errorf("with an unnamed product as well: markets %s at %v", names(w), w.Markets[1].Price)
	}
	plain.Product = ""
	w = bind(t, parse(t, "{}", ""), fourDays(windows, plain), BindOptions{})
	if len(w.Markets) != 2 || w.Markets[1].Price != 30_000 {
		t.Errorf("without a product: markets %s at %v", names(w), w.Markets[1].Price)
	}
	if w, err := Bind(parse(t, "{}", ""), fourDays(windows), BindOptions{}); !errors.Is(err, ErrNoMarket) {
		t.Errorf("Windows alone gave %v, %v", w, err)
	}
}

// Prices before the trace are its first; a market that appears on a later day
// was not offered before.
func TestBindFirstPrices(t *testing.T) {
	tr := fourDays(
		series("a", "m5.large", []policy.Time{0, 26}, 30_000, 31_000),
		series("a", "m5.xlarge", []policy.Time{5}, 60_000),
		series("b", "m5.xlarge", []policy.Time{30, 31}, 61_000, policy.NoPrice),
	)
	w := bind(t, parse(t, "{}", ""), tr, BindOptions{})
	begin := newDay - 6*hours
	for i, want := range map[int]PriceCurve{
		1: {[]policy.Time{begin, newDay}, []policy.Money{30_000, 30_000}},
		3: {[]policy.Time{begin, newDay + 5*hours}, []policy.Money{60_000, 60_000}},
	} {
		if !reflect.DeepEqual(w.Prices[i], want) {
			t.Errorf("%s: %+v, want %+v", w.Markets[i].Name, w.Prices[i], want)
		}
	}
	if len(w.Markets) != 4 {
		t.Errorf("a market that comes after the end is there: %s", names(w))
	}
	w = bind(t, parse(t, "{}", ""), tr, BindOptions{Window: 1})
	want := PriceCurve{[]policy.Time{newDay + 18*hours, newDay + 30*hours, newDay + 31*hours},
		[]policy.Money{policy.NoPrice, 61_000, policy.NoPrice}}
	if len(w.Markets) != 6 || !reflect.DeepEqual(w.Prices[5], want) || w.Markets[5].Offered || w.Markets[5].Price != 0 {
		t.Errorf("%s: %+v, want %+v", names(w), w.Prices[len(w.Prices)-1], want)
	}
}

// What a pool may buy, rule by rule, of one trace.
func TestBindPools(t *testing.T) {
	var all []trace.Series
	for _, zone := range []string{"a", "b", "c"} {
		for _, name := range []string{"m5.large", "m5.4xlarge", "c5.xlarge", "r5.2xlarge", "m6g.xlarge", "g4dn.xlarge", "m5.metal"} {
			if zone != "c" || name == "m5.large" {
				all = append(all, series(zone, name, []policy.Time{0}, 20_000))
			}
		}
	}
	tr := fourDays(all...)
	for markets, want := range map[string]string{
		"{}":                                 "a/c5.xlarge a/m5.4xlarge a/m5.large a/r5.2xlarge b/c5.xlarge b/m5.4xlarge b/m5.large b/r5.2xlarge c/m5.large",
		"{zones: [c]}":                       "c/m5.large",
		"{zones: [a], minGPUs: 1}":           "a/g4dn.xlarge",
		"{zones: [a], families: [m5, g4dn]}": "a/g4dn.xlarge a/m5.4xlarge a/m5.large",
		"{zones: [a], instanceTypes: [m5.metal]}":                            "a/m5.metal",
		"{zones: [a], architectures: [arm64]}":                               "a/m6g.xlarge",
		"{zones: [a], architectures: [arm64, amd64], maxVCPU: 4}":            "a/c5.xlarge a/m5.large a/m6g.xlarge",
		"{zones: [a], categories: [c, r]}":                                   "a/c5.xlarge a/r5.2xlarge",
		"{zones: [a], minVCPU: 4, maxVCPU: 8}":                               "a/c5.xlarge a/r5.2xlarge",
		"{zones: [a], minMemory: 64Gi}":                                      "a/m5.4xlarge a/r5.2xlarge",
		"{zones: [a], maxPrice: 0.01}":                                       "a/m5.large", // spot may cost a tenth of $0.096
		"{zones: [a], maxPrice: 0.02, categories: [m]}":                      "a/m5.4xlarge a/m5.large",
		"{zones: [a], maxInstanceTypes: 1}":                                  "a/c5.xlarge",
		"{maxZones: 2, maxVCPU: 2}":                                          "a/m5.large b/m5.large",
		"{maxZones: 1, regions: [us-east-1], categories: [c]}":               "a/c5.xlarge",
		"{zones: [a], maxInstanceTypes: 2, minMemory: 8Gi, categories: [m]}": "a/m5.4xlarge a/m5.large",
	} {
		w := bind(t, parse(t, markets, ""), tr, BindOptions{})
		var got []string
		for _, m := range w.Markets {
			if m.Capacity == policy.Spot {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(m.Name, "aws/us-east-1/"), "/spot"))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got  %s\nwant %s", markets, strings.Join(got, " "), want)
		}
	}
	ranked := parse(t, "{maxZones: 1, maxInstanceTypes: 1, minPlacementScore: 9}", "")
	ranked.pools[0].capacity.Spec.Policy = &v1alpha1.PolicyRef{Name: "leftover"}
	w := bind(t, ranked, tr, BindOptions{})
	if want := (policy.MarketChoice{ScoreMin: 9, HasScoreMin: true, TypesMax: 1,
		ZonesMax: 1}); w.Pools[0].Choice != want || len(w.Pools[0].Markets) != 18 {
		t.Errorf("a pool whose policy ranks markets has %d of them and %+v, want 18 and %+v", len(w.Pools[0].Markets), w.Pools[0].Choice, want)
	}
	other := parse(t, "{}", "")
	other.pools[0].capacity.Spec.Backend = v1alpha1.Backend{Rackspace: &v1alpha1.RackspaceBackend{}}
	if _, err := Bind(other, tr, BindOptions{}); !errors.Is(err, ErrNoMarket) {
		t.Errorf("a pool of another provider: %v", err)
	}
	_, err := Bind(parse(t, "{zones: [d]}", ""), tr, BindOptions{})
	if !errors.Is(err, ErrNoMarket) || !strings.Contains(err.Error(), "test.yaml:5") || !strings.Contains(err.Error(), "pool main") {
		t.Errorf("got %v, want ErrNoMarket with line and pool", err)
	}
}

// Recorded signals are those in force at the start. Unknown availability is skipped, and so is a
// sample that repeats the state before it.
func TestBindSignals(t *testing.T) {
	s := series("a", "m5.large", []policy.Time{0, 2, 30, 31, 40}, 1, 1, 1, 1, 1)
	s.Available = []int8{1, -1, 0, 0, 1}
	s.ProbeGap = []int32{0, 60, 120, 180, 240}
	s.Band, s.Score = []int8{2, 3, -1, -1, 4}, []int8{-1, 7, 8, 8, 8}
	s.Bids[0], s.Bids[2] = []policy.Money{1, 2, 3, 3, 3}, []policy.Money{0, 5, 6, 6, 6}
	tr := fourDays(s, series("b", "m5.large", []policy.Time{0}, 1))
	w := bind(t, parse(t, "{}", ""), tr, BindOptions{Window: 1})
	if m := w.Markets[1]; m.Band != 3 || m.PlacementScore != 7 || m.BandModelled || m.BidPercentiles != [3]policy.Money{2, 0, 5} {
		t.Errorf("band %d, score %d, bids %v", m.Band, m.PlacementScore, m.BidPercentiles)
	}
	if m := w.Markets[3]; m.Band != policy.BandUnknown || m.PlacementScore >= 0 {
		t.Errorf("without columns: band %d, score %d", m.Band, m.PlacementScore)
	}
	want := AvailabilityCurve{
		At:        []policy.Time{newDay + 30*hours, newDay + 40*hours},
		Available: []bool{false, true},
		Gap:       []policy.Time{120_000, 240_000},
	}
	if !reflect.DeepEqual(w.Available[1], want) || w.Available[0].At != nil || w.Available[3].At != nil || !w.Trace.Availability {
		t.Errorf("availability %+v, want %+v", w.Available, want)
	}
	for _, x := range []struct {
		market int
		at     policy.Time
		score  int8
		band   policy.Band
		bids   [3]policy.Money
	}{
		{1, -1, -1, 0, [3]policy.Money{}}, {1, 2, 7, 3, [3]policy.Money{2, 0, 5}}, {1, 29, 7, 3, [3]policy.Money{2, 0, 5}},
		{1, 30, 8, 3, [3]policy.Money{3, 0, 6}}, {1, 31, 8, 3, [3]policy.Money{3, 0, 6}}, {1, 90, 8, 4, [3]policy.Money{3, 0, 6}},
		{0, 30, -1, 0, [3]policy.Money{}}, {3, 30, -1, 0, [3]policy.Money{}},
	} {
		m := policy.Market{BandModelled: true}
		w.Signals[x.market].Publish(&m, newDay+x.at*hours)
		if m.PlacementScore != x.score || m.Band != x.band || m.BidPercentiles != x.bids || m.BandModelled != (x.band == 0) {
			t.Errorf("market %d in hour %d: score %d, band %d, modelled %t, bids %v, want %+v",
				x.market, x.at, m.PlacementScore, m.Band, m.BandModelled, m.BidPercentiles, x)
		}
	}
	s.Available, s.ProbeGap = nil, nil
	if drawn := bind(t, parse(t, "{}", ""), fourDays(s), BindOptions{Window: 1}); drawn.Signals[1].Band != nil ||
		drawn.Signals[1].Score == nil {
		t.Error("the band changes in a run whose reclaims are drawn from the first one, or no score is known")
	}
	if w := bind(t, parse(t, "{minPlacementScore: 8}", ""), tr,
		BindOptions{Window: 1}); names(w) != "b/m5.large/on-demand b/m5.large/spot" || w.Available != nil {
		t.Errorf("with a least score of 8: %s; a market without one stays", names(w))
	}
}

// A warm-up before the start of the trace has all published data, and not only prices, as of the
// first instant of the trace.
func TestBindBeforeTrace(t *testing.T) {
	s := series("a", "m5.large", []policy.Time{0, 3}, 7, 8)
	s.Available, s.Band, s.Score, s.Hazard = []int8{1, 1}, []int8{2, 3}, []int8{4, 5}, []float64{0.5, 0.25}
	s.Bids = [3][]policy.Money{{1, 2}, {3, 4}, {5, 6}}
	late := series("b", "m5.large", []policy.Time{30}, 1) // not sold on the first day
	late.Score = []int8{9}
	w := bind(t, parse(t, "{}", ""), fourDays(s), BindOptions{})
	if w.Start != newDay || w.WarmUp != 6*time.Hour {
		t.Fatalf("from %v, warm-up %v", w.Start, w.WarmUp)
	}
	seen := func(market int, hour policy.Time) policy.Market {
		m := policy.Market{Band: policy.BandUnknown, BandModelled: true}
		w.Signals[market].Publish(&m, newDay+hour*hours)
		m.Forecast.Hazard, _ = w.Signals[market].HazardAt(newDay + hour*hours)
		return m
	}
	want := policy.Market{Band: 2, PlacementScore: 4, BidPercentiles: [3]policy.Money{1, 3, 5}, Forecast: policy.Forecast{Hazard: 0.5}}
	for _, hour := range []policy.Time{-6, -1, 0, 2} {
		if got := seen(1, hour); !reflect.DeepEqual(got, want) {
			t.Errorf("in hour %d: %+v, want %+v", hour, got, want)
		}
	}
	if got := seen(1, 3); got.Band != 3 || got.PlacementScore != 5 || got.BidPercentiles != [3]policy.Money{2, 4, 6} ||
		got.Forecast.Hazard != 0.25 {
		t.Errorf("in hour 3: %+v", got)
	}
	if s.At[0] != newDay {
		t.Error("the trace was written to")
	}
	w = bind(t, parse(t, "{}", ""), fourDays(s, late), BindOptions{Window: 1})
	if before, after := seen(3, 29).PlacementScore, seen(3, 30).PlacementScore; before >= 0 || after != 9 {
		t.Errorf("a market has the score %d before it is first sold, and then %d", before, after)
	}
}

// TestOrigins says of prices and of reclaims each where they come from: one may
// be recorded where the other is not.
func TestOrigins(t *testing.T) {
	seen := series("a", "m5.large", []policy.Time{0, 30}, 1, 1)
	seen.Available = []int8{1, 0}
	plain := series("b", "m5.large", []policy.Time{0}, 1)
	for _, x := range []struct {
		series            []trace.Series
		synthetic, priced bool
		want              string
	}{
		{[]trace.Series{plain}, false, true, "recorded prices, reclaims modelled"},
		{[]trace.Series{seen}, false, true, "recorded prices, reclaims recorded"},
		{[]trace.Series{seen}, false, false, "modelled prices, reclaims recorded"},
		{[]trace.Series{seen, plain}, false, false, "modelled prices, reclaims recorded in part and modelled elsewhere"},
		{[]trace.Series{seen}, true, true, "synthetic prices, reclaims generated"},
		{[]trace.Series{plain}, true, true, "synthetic prices, reclaims modelled"},
	} {
		tr := fourDays(x.series...)
		if tr.Synthetic = x.synthetic; !x.priced {
			tr.Meta = map[string]string{trace.MetaModelled: "no prices"}
		}
		w := bind(t, parse(t, "{}", ""), tr, BindOptions{Window: 1})
		if got := w.Trace.Prices() + " prices, reclaims " + w.Reclaims(); got != x.want {
			t.Errorf("%s, want %s", got, x.want)
		}
	}
}
