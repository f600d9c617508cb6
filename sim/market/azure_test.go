package market

import (
	"fmt"
	"math"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
)

// newAzure returns Spot and on-demand markets of families of Azure, each with types of one size in
// three zones, at equal prices and with nodes for everyone.
func newAzure(t *testing.T, seed uint64, families, sizes int, fails bool) *Market {
	t.Helper()
	begin := policy.Time(1_700_000_000_000)
	w := &scenarios.BoundScenario{}
	w.AzureAllocationFailures = fails
	var drawn []weather.Market
	for f := range families {
		for s := range sizes {
			kind := policy.TypeID(len(w.Types))
			w.Types = append(w.Types, policy.InstanceType{ID: kind, Name: fmt.Sprintf("f%d-%d", f, s), Family: fmt.Sprintf("f%d", f)})
			for zone := range 3 {
				for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
					m := policy.Market{ID: policy.MarketID(len(w.Markets)), Provider: policy.Azure, Region: "r", Zone: policy.ZoneID(zone),
						Type: kind, Capacity: c, Name: fmt.Sprintf("azure/r/r-%d/%s/%s", zone, w.Types[kind].Name, c)}
					w.Markets = append(w.Markets, m)
					w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{begin}, Price: []policy.Money{1000}})
					drawn = append(drawn, weather.Market{Name: m.Name, Provider: m.Provider, Region: "r", Zone: fmt.Sprint(zone),
						Type: w.Types[kind].Name, Spot: c == policy.Spot, Band: policy.BandUnknown})
				}
			}
		}
	}
	cfg := weather.Config{Seed: seed, From: begin, To: begin + 2000*hour, Intensity: 0, Params: weather.DefaultParams()}
	x, err := weather.New(cfg, drawn)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPrices(w, cfg.From, cfg.To)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Seed: seed}, p, x, &engine.Queue{Now: begin})
}

// TestAzureAttempts holds that the first attempts of an hour succeed as often as is published, that
// failures have the published shares, and that each closes the markets that it concerns until the
// hour ends, and no other.
func TestAzureAttempts(t *testing.T) {
	m := newAzure(t, 7, 12, 2, true)
	attempts, failed, count := 0, 0, map[string]int{}
	for range 1500 {
		for f := range 12 {
			id := policy.MarketID(f*12 + (f%2)*6 + (f%3)*2 + f%2) // a market of the family, of either kind
			if m.Closed(id) {
				t.Fatalf("%s is closed at the start of an hour", m.scenario.Markets[id].Name)
			}
			attempts++
			if !m.attemptFails(id) {
				continue
			}
			failed++
			count[closedBy(t, m, id)]++
		}
		m.clock.Now = (m.clock.Now/azureState + 1) * azureState
	}
	near := func(what string, got, want, by float64) {
		t.Helper()
		if math.Abs(got-want) > by {
			t.Errorf("%s: %.4f, want %.4f ± %.4f", what, got, want, by)
		}
	}
	n := float64(attempts)
	near("attempts that succeed", 1-float64(failed)/n, 0.58, 0.015)
	near("failures for a quota", float64(count["family"])/float64(failed), 0.9456, 0.012)
	near("failures in a zone", float64(count["market"])/float64(failed), 0.0305, 0.01)
	near("failures in a region", float64(count["type"])/float64(failed), 0.0214, 0.008)
}

// closedBy returns which markets the failure in market id has closed: those of its family, of its
// type, or it alone. Markets of the other capacity type are never closed with it.
func closedBy(t *testing.T, m *Market, id policy.MarketID) string {
	t.Helper()
	x := &m.scenario.Markets[id]
	family := m.scenario.Types[x.Type].Family
	n := 0
	for i := range m.scenario.Markets {
		y := &m.scenario.Markets[i]
		if m.scenario.Types[y.Type].Family != family || !m.Closed(y.ID) {
			continue
		}
		if n++; y.Capacity != x.Capacity {
			t.Fatalf("the failure in %s closes %s", x.Name, y.Name)
		}
		if m.state[i].seen.Refused != m.clock.Now || m.state[i].unavailable != (m.clock.Now/azureState+1)*azureState {
			t.Fatalf("%s is closed until %v and refused at %v", y.Name, m.state[i].unavailable, m.state[i].seen.Refused)
		}
	}
	return map[int]string{1: "market", 3: "type", 6: "family"}[n]
}

// TestAzureAllocation holds that a launch takes the next market that does not fail, that equal seeds
// fail alike, and that nothing fails unless the scenario states it.
func TestAzureAllocation(t *testing.T) {
	calm, a, b := newAzure(t, 3, 6, 1, false), newAzure(t, 3, 6, 1, true), newAzure(t, 3, 6, 1, true)
	var spot []policy.MarketID
	for i := range a.scenario.Markets {
		if a.scenario.Markets[i].Capacity == policy.Spot {
			spot = append(spot, policy.MarketID(i))
		}
	}
	moved, refused := 0, 0
	for k := range 400 {
		first, _, ok := calm.Allocate(spot, Allocation{Number: k})
		if !ok || calm.Closed(first) {
			t.Fatal("a launch fails without the setting")
		}
		id, _, ok := a.Allocate(spot, Allocation{Number: k})
		if other, _, also := b.Allocate(spot, Allocation{Number: k}); other != id || also != ok {
			t.Fatalf("hour %d: %d, %v and %d, %v under one seed", k, id, ok, other, also)
		}
		switch {
		case !ok:
			refused++
		case a.Closed(id):
			t.Fatalf("hour %d: the node is in a market that is closed", k)
		case id != first:
			moved++
		}
		for _, m := range []*Market{calm, a, b} {
			m.clock.Now = (m.clock.Now/azureState + 1) * azureState
		}
	}
	if moved < 100 || refused > 8 {
		t.Errorf("of 400 launches %d are in another market and %d are refused; want about 168, and 400 × 0.4^6 ≈ 2", moved, refused)
	}
}
