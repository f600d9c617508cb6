// Package evaltest makes small scenarios and made-up results of runs, for tests of
// comparisons and of what is written of them. It knows nothing of package eval, so
// that its tests may use it.
package evaltest

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
)

// Monday is when the first window of all scenarios starts.
var Monday = policy.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))

const day = 24 * time.Hour

// Scenario has one service of 4 pods, each half of a $0.10 on-demand node for which
// spot takes $0.04, over a day. Windows count from 0.
func Scenario(name string, window int) *scenarios.BoundScenario {
	return &scenarios.BoundScenario{
		Settings: scenarios.Settings{Name: name, Start: Monday.Add(time.Duration(window) * day), Duration: day, WarmUp: day,
			ReadyGrace: 10 * time.Minute, Digest: [32]byte{0xab, byte(len(name))}, Intensity: 1},
		Types: []policy.InstanceType{{Name: "m5.large", VCPU: 2, Allocatable: policy.Resources{CPU: 2000, Memory: 8 << 30,
			Pods: 20}}},
		Zones: []string{"a"},
		Markets: []policy.Market{
			{ID: 0, Name: "aws/r/a/m5.large/on-demand", Capacity: policy.OnDemand},
			{ID: 1, Name: "aws/r/a/m5.large/spot", Capacity: policy.Spot},
		},
		Prices:    []scenarios.PriceCurve{price(100_000), price(40_000)},
		Pools:     []policy.Pool{{Name: "general", Markets: []policy.MarketID{0, 1}}},
		Templates: []policy.Template{{Name: "default/web", Requests: policy.Resources{CPU: 1000, Memory: 2 << 30, Pods: 1}}},
		Workloads: []scenarios.Workload{{
			Workload: policy.Workload{Name: "default/web", Kind: policy.KindDeployment},
			Schedule: []scenarios.ReplicaStep{{At: 1, Replicas: 4}},
		}},
		Trace: scenarios.TraceInfo{Name: "synthetic", From: Monday, To: Monday.Add(31 * day), Synthetic: true,
			About: "a price walk made for tests"},
	}
}

// Slotted is [Scenario] with the given number of pods and a second Spot market: 3 nodes at
// $0.04 an hour and 10 at $0.06. Two pods fill a node.
func Slotted(pods int32) *scenarios.BoundScenario {
	w := Scenario("w", 0)
	w.Intensity = 0
	w.Workloads[0].Schedule[0].Replicas = pods
	w.Zones = append(w.Zones, "b")
	w.Markets = append(w.Markets, policy.Market{ID: 2, Name: "aws/r/b/m5.large/spot", Zone: 1, Capacity: policy.Spot})
	w.Pools[0].Markets = []policy.MarketID{0, 1, 2}
	w.Prices = append(w.Prices, price(60_000))
	w.Available = []scenarios.AvailabilityCurve{{}, Deep(3), Deep(10)}
	return w
}

// Deep is a market that has the given number of nodes at all times.
func Deep(nodes int32) scenarios.AvailabilityCurve {
	return scenarios.AvailabilityCurve{At: []policy.Time{1}, Available: []bool{true}, Nodes: []int32{nodes}}
}

func price(p policy.Money) scenarios.PriceCurve {
	return scenarios.PriceCurve{At: []policy.Time{1}, Price: []policy.Money{p}}
}

// A Run identifies the run whose result is made up.
type Run struct {
	Scenario string
	Window   int
	Bound    *scenarios.BoundScenario
	Policy   string
	Seed     uint64
}

// Result makes up the result of a run: Spot is cheap and has outages, the others
// are in between. Every figure depends on nothing but r.
func Result(r Run) *sim.Result {
	weather := chance.New(r.Seed, "weather", r.Scenario).At1(uint64(r.Window))
	luck := chance.New(r.Seed, r.Policy, r.Scenario).At1(uint64(r.Window))
	out := &sim.Result{
		Scenario: r.Scenario, Policy: r.Policy, Seed: r.Seed, Window: billing.Span{From: r.Bound.Start,
			To: r.Bound.Start.Add(r.Bound.Duration)},
		Weather: [32]byte{byte(weather), byte(weather >> 8)}, Hash: [32]byte{byte(luck)},
		Availability: 0.999, PodDays: 4, Launches: 12, NodeHours: 48, VoluntaryEvictions: 1,
		TimeToReadyP50: 40 * time.Second, TimeToReadyP95: 90 * time.Second,
	}
	share, outage := map[string]float64{"static": 0.5, "spotvortex": 0.6}[r.Policy], 0
	if r.Policy == "spot" {
		share, outage = 1, luck.At1(1).IntN(40)
	}
	out.Bill = policy.Dollars(4.8 - 2.2*share - 0.4*weather.At1(2).Float() - 0.3*luck.At1(3).Float())
	out.CapacityHours, out.SpotShare = 4*out.NodeHours, share
	out.SpotBill = out.Bill.Times(2.6 * share / (4.8 - 2.2*share))
	out.OnDemandBill = out.Bill - out.SpotBill
	if outage > 0 {
		out.Outages = Outages(r.Bound, int64(outage))
	}
	out.OutageCost = policy.Money(outage) * 20_000
	out.IncidentCost = out.OutageCost
	out.ReclaimEvictions = int64(float64(share * 10))
	out.Workloads = []sim.WorkloadResult{{Name: "default/web", Kind: policy.KindDeployment, PodValue: 50_000,
		Outages: out.Outages, OutageCost: out.OutageCost, Availability: 0.999, SpotShare: share}}
	return out
}

// Outages are those of a run with one incident of the given minutes, all but 20
// seconds of which are due to a reclaim.
func Outages(w *scenarios.BoundScenario, minutes int64) sim.Outages {
	d := time.Duration(minutes) * time.Minute
	out := sim.Outages{Outage: d, OutageMinutes: minutes, Incidents: 1, PodsAffected: 2,
		Longest: sim.Incident{Workload: "default/web", Began: w.Start.Add(d), Outage: d, Pods: 2, Cause: sim.CauseReclaim}}
	out.Causes[sim.CauseReclaim] = sim.CauseOutage{Outage: d - 20*time.Second, Incidents: 1}
	out.Causes[sim.CauseProvisioner].Outage = 20 * time.Second
	return out
}
