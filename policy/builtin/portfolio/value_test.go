package portfolio

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// plainValue is what evaluate returns, found over all markets.
func plainValue(d *planState, spot bool) resourceValue {
	best, most := resourceValue{}, -1.0
	for _, ratio := range ratios {
		least := -1.0
		for _, r := range d.prices.ranked {
			m := &d.s.Markets[r.market]
			a := d.demand.freeCapacity(m.Type)
			size := float64(a.CPU) + float64(ratio*float64(a.Memory))/(1<<20)
			if d.demand.total.GPU > 0 {
				size = float64(a.GPU)
			}
			if m.Capacity == policy.Spot != spot || size <= 0 {
				continue
			}
			if x := d.prices.costs[r.market] / size; least < 0 || x < least {
				least = x
			}
		}
		least = max(least, 0)
		w := resourceValue{cpu: least, memory: float64(least*ratio) / (1 << 20)}
		if d.demand.total.GPU > 0 {
			w = resourceValue{gpu: least}
		}
		if v := w.of(d.demand.total); v > most {
			best, most = w, v
		}
	}
	return best
}

// TestEvaluate compares what is found over the few markets that no other outdoes, and
// is kept, with the plain form, to the last bit.
func TestEvaluate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		s := &policy.Snapshot{Now: 1, Zones: []string{"a"}, Pools: make([]policy.Pool, 1)}
		for range rapid.IntRange(1, 6).Draw(t, "types") {
			s.Types = append(s.Types, policy.InstanceType{VCPU: 4, Allocatable: policy.Resources{
				CPU: rapid.Int64Range(0, 8).Draw(t, "cpu") * 500, Memory: rapid.Int64Range(0, 8).Draw(t, "memory") << 30,
				GPU: rapid.Int64Range(0, 2).Draw(t, "gpu"),
			}})
		}
		prices := rapid.OneOf(rapid.SampledFrom([]float64{0, 0.1, 0.2}), rapid.Float64Range(0, 2))
		for range rapid.IntRange(0, 30).Draw(t, "markets") {
			m := policy.Market{ID: policy.MarketID(len(s.Markets)), Offered: true, Price: policy.Dollars(prices.Draw(t, "price"))}
			m.Type = policy.TypeID(rapid.IntRange(0, len(s.Types)-1).Draw(t, "type"))
			m.Capacity = rapid.SampledFrom([]policy.CapacityType{policy.OnDemand, policy.Spot}).Draw(t, "capacity")
			m.Forecast.Hazard = rapid.SampledFrom([]float64{0, 0.01, 0.3}).Draw(t, "hazard")
			s.Markets, s.Pools[0].Markets = append(s.Markets, m), append(s.Pools[0].Markets, m.ID)
		}
		e.read(s)
		d := newPlanState(e, s, &s.Pools[0], new(policy.Plan), policy.PoolMemory{})
		d.demand.total = policy.Resources{CPU: 3000, Memory: 20 << 30, GPU: rapid.Int64Range(0, 1).Draw(t, "gpus")}
		d.demand.daemons = policy.Resources{CPU: rapid.SampledFrom([]int64{0, 700}).Draw(t, "daemons")}
		for _, loss := range []float64{0, 0.5, 3} {
			d.prices = pricesByNode(d.demand, d.ledger, &poolLosses{perNode: loss}, d.reclaims)
			for range 2 {
				for _, spot := range []bool{false, true} {
					if got, want := d.prices.evaluate(spot), plainValue(d, spot); got != want {
						t.Fatalf("with a loss of %v, spot %t: %+v, want %+v", loss, spot, got, want)
					}
				}
			}
		}
	})
}
