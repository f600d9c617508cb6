package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// BenchmarkOracle takes the time of all bounds of a case with one seed: 6 CPU-ms
// for bench-2000, 850 for a scenario of 250 types and 31 services. It says in how many
// pieces they are cut short.
func BenchmarkOracle(b *testing.B) {
	for _, name := range []string{"bench-100", "bench-500", "bench-2000"} {
		b.Run(name, func(b *testing.B) { timeBounds(b, evaltest.Embedded(b, name)) })
	}
	b.Run("wide", func(b *testing.B) { timeBounds(b, wide(250, 31, 168*time.Hour)) })
}

func timeBounds(b *testing.B, w *scenarios.BoundScenario) {
	for b.Loop() {
		o, err := New(w)
		if err != nil {
			b.Fatal(err)
		}
		bound := o.Every()
		under, err := o.Under(1)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(bound.Cost.Float(), "oracle-$")
		b.ReportMetric(under.Slots.Float(), "slots-$")
		b.ReportMetric(float64(bound.Short+under.Short), "short")
	}
}

// wide has the given numbers of types and services, no two services alike. Each type has three
// Spot markets, whose prices change every six hours.
func wide(types, services int, length time.Duration) *scenarios.BoundScenario {
	w := evaltest.Scenario("w", 0)
	w.Duration = length
	w.Types, w.Prices = nil, nil
	w.Markets, w.Pools[0].Markets = nil, nil
	for i := range types {
		cpu := int64(2 + i%15)
		w.Types = append(w.Types, policy.InstanceType{ID: policy.TypeID(i), Name: fmt.Sprintf("t%d", i), Family: fmt.Sprintf("t%d", i%40),
			Allocatable: policy.Resources{CPU: cpu * 1000, Memory: (cpu*int64(2+i%7) + 1) << 30, Storage: 20 << 30, Pods: 58}})
		for z := range 4 {
			var c scenarios.PriceCurve
			for k := range int(length/(6*time.Hour)) + 1 {
				c.At = append(c.At, w.Start.Add(time.Duration(k)*6*time.Hour))
				c.Price = append(c.Price, policy.Money(1000*cpu*int64(10+(i*7+z*3+k)%9)))
			}
			id, capacity := policy.MarketID(len(w.Markets)), policy.Spot
			if z == 3 {
				capacity, c = policy.OnDemand, scenarios.PriceCurve{At: []policy.Time{1}, Price: []policy.Money{policy.Money(60_000 * cpu)}}
			}
			w.Markets = append(w.Markets, policy.Market{ID: id, Name: fmt.Sprintf("aws/r/a/t%d/%d", i, z), Provider: "aws",
				Region: "r", Type: policy.TypeID(i), Capacity: capacity, Band: policy.BandUnknown})
			w.Pools[0].Markets = append(w.Pools[0].Markets, id)
			w.Prices = append(w.Prices, c)
		}
	}
	for i := range services - 1 {
		t := w.Templates[0]
		t.ID, t.Workload = policy.TemplateID(i+1), policy.WorkloadID(i+1)
		t.Requests.CPU, t.Requests.Memory = int64(200+100*(i%12)+i), int64(1+i%9)<<29
		w.Templates = append(w.Templates, t)
		w.Workloads = append(w.Workloads, w.Workloads[0])
	}
	return w
}
