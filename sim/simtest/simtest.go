// Package simtest builds scenarios by hand, for tests of the simulator.
package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/market"
	"github.com/spotter-dev/spotter/sim/setup"
)

// Start is the start of the window of built scenarios: a Thursday, 00:00 UTC.
var Start = policy.TimeOf(time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC))

// GiB is the number of bytes in a gibibyte.
const GiB = int64(1) << 30

// New returns a scenario of the given duration without markets.
func New(duration time.Duration) scenarios.BoundScenario {
	return scenarios.BoundScenario{Settings: scenarios.Settings{Name: "test", Start: Start, Duration: duration,
		WarmUp: 24 * time.Hour, ReadyGrace: 10 * time.Minute, Intensity: 1}}
}

// AddMarkets adds markets for every combination of zone, type and capacity type. Types have 4, 8,
// 16 … vCPUs.
func AddMarkets(w *scenarios.BoundScenario, zones, types int, gpus bool) {
	for z := range zones {
		w.Zones = append(w.Zones, fmt.Sprintf("z%d", z))
	}
	for t := range types {
		cpu := int64(4) << t
		typ := policy.InstanceType{ID: policy.TypeID(t), Provider: "aws", Name: fmt.Sprintf("t%d.large", t),
			Family:   fmt.Sprintf("t%d", t),
			Category: "t", Arch: "amd64", VCPU: cpu, VolumesMax: 5}
		typ.Capacity = policy.Resources{CPU: cpu * 1000, Memory: cpu * 4 * GiB, Storage: 20 * GiB, Pods: 30}
		if gpus {
			typ.Capacity.GPU, typ.GPUResource = cpu/4, "nvidia.com/gpu"
		}
		typ.Allocatable = typ.Capacity.Minus(policy.Resources{CPU: 100, Memory: GiB / 2})
		w.Types = append(w.Types, typ)
	}
	for z := range zones {
		for t := range types {
			od := policy.Money(50_000 * w.Types[t].VCPU)
			for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				w.Markets = append(w.Markets, policy.Market{ID: policy.MarketID(len(w.Markets)),
					Name:     fmt.Sprintf("aws/r/z%d/%s/%v", z, w.Types[t].Name, c),
					Provider: "aws", Region: "r", Zone: policy.ZoneID(z), Type: policy.TypeID(t), Capacity: c, OnDemand: od, Band: policy.BandUnknown})
				price := od
				if c == policy.Spot {
					price = od * 3 / 10
				}
				w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{Start.Add(-48 * time.Hour)},
					Price: []policy.Money{price}})
			}
		}
	}
}

// AddPool adds a pool that Karpenter serves, with all markets.
func AddPool(w *scenarios.BoundScenario, name string) *policy.Pool {
	p := policy.Pool{ID: policy.PoolID(len(w.Pools)), Name: name, Provisioner: policy.ProvisionerKarpenter,
		Mode:  policy.ModeActive,
		Share: policy.ShareRange{Max: 1}, OnDemandFallback: true, Levers: policy.Levers{Weights: true, Limits: true,
			Launch: true},
		Budgets: []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, Percent: true, N: 10}}}}
	for i := range w.Markets {
		p.Markets = append(p.Markets, policy.MarketID(i))
	}
	w.Pools = append(w.Pools, p)
	return &w.Pools[p.ID]
}

// AddWorkload adds a workload with the given number of replicas and requests of each pod, and
// returns the template.
func AddWorkload(w *scenarios.BoundScenario, name string, kind policy.WorkloadKind, replicas int32,
	requests policy.Resources) *policy.Template {
	id := policy.WorkloadID(len(w.Workloads))
	requests.Pods = 1
	w.Workloads = append(w.Workloads, scenarios.Workload{
		Workload: policy.Workload{ID: id, Name: "default/" + name, Kind: kind, Replicas: replicas},
		Schedule: []scenarios.ReplicaStep{{At: Start.Add(-48 * time.Hour), Replicas: replicas}}, OutagePenalty: 4})
	t := policy.Template{ID: policy.TemplateID(id), Workload: id, Name: "default/" + name, Namespace: "default",
		Requests: requests,
		Labels:   []policy.Label{{Key: "app", Value: name}}, Grace: 30 * time.Second, OutagePenalty: -1, MigrationTier: -1}
	if requests.GPU > 0 {
		t.GPUResource = "nvidia.com/gpu"
	}
	t.DaemonSet = kind == policy.KindDaemonSet
	w.Templates = append(w.Templates, t)
	return &w.Templates[id]
}

// SortMarkets sorts the markets by name, as in a bound scenario.
func SortMarkets(w *scenarios.BoundScenario) {
	order := make([]int, len(w.Markets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		if w.Markets[x].Name < w.Markets[y].Name {
			return -1
		}
		return 1
	})
	markets, prices := make([]policy.Market, len(order)), make([]scenarios.PriceCurve, len(order))
	moved := make([]policy.MarketID, len(order))
	for to, from := range order {
		markets[to], prices[to] = w.Markets[from], w.Prices[from]
		markets[to].ID, moved[from] = policy.MarketID(to), policy.MarketID(to)
	}
	if w.Available != nil {
		available := make([]scenarios.AvailabilityCurve, len(order))
		for to, from := range order {
			available[to] = w.Available[from]
		}
		w.Available = available
	}
	for i := range w.Seeds {
		w.Seeds[i].Market = moved[w.Seeds[i].Market]
	}
	w.Markets, w.Prices = markets, prices
	for i := range w.Pools {
		for k, m := range w.Pools[i].Markets {
			w.Pools[i].Markets[k] = moved[m]
		}
		slices.Sort(w.Pools[i].Markets)
	}
}

// One returns a scenario of half a day, without reclaims, in which a pool of two zones and one type
// of 4 vCPUs runs a Deployment of pods of 1.8 vCPUs and 1 GiB.
func One(replicas int32, steps ...scenarios.ReplicaStep) scenarios.BoundScenario {
	w := New(12 * time.Hour)
	w.Intensity, w.WarmUp = 0, time.Hour
	AddMarkets(&w, 2, 1, false)
	AddPool(&w, "p")
	AddWorkload(&w, "web", policy.KindDeployment, replicas, policy.Resources{CPU: 1800, Memory: GiB})
	w.Workloads[0].Schedule = append(w.Workloads[0].Schedule, steps...)
	return w
}

// NewRun returns the shared state of a run of w and its market, for tests of its parts.
func NewRun(t testing.TB, w *scenarios.BoundScenario, seed uint64) (*setup.Run, *market.Market) {
	t.Helper()
	p, err := setup.Prepare(w)
	if err != nil {
		t.Fatal(err)
	}
	run, drawn, err := setup.NewRun(p, setup.Config{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	cfg := market.Config{Seed: seed, Unavailable: run.Delays.Unavailable, AuctionNotice: run.Delays.RackspaceNotice}
	return run, market.New(cfg, p.Market, drawn, run.Clock)
}
