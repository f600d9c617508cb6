package eval

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
)

var monday = policy.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))

// smallWorld has one service of 4 pods, each half of a $0.10 on-demand node
// for which spot takes $0.04, over a day.
func smallWorld(name string, window int) *scenarios.World {
	size := policy.Resources{CPU: 2000, Memory: 8 << 30, Pods: 20}
	pod := policy.Resources{CPU: 1000, Memory: 2 << 30, Pods: 1}
	start := monday.Add(time.Duration(window) * 24 * time.Hour)
	return &scenarios.World{
		Name: name, Start: start, Duration: 24 * time.Hour, WarmUp: 24 * time.Hour, ReadyGrace: 10 * time.Minute,
		Digest: [32]byte{0xab, byte(len(name))}, Intensity: 1,
		Types: []policy.InstanceType{{Name: "m5.large", VCPU: 2, Allocatable: size}},
		Zones: []string{"a"},
		Markets: []policy.Market{
			{ID: 0, Name: "aws/r/a/m5.large/on-demand", Capacity: policy.OnDemand},
			{ID: 1, Name: "aws/r/a/m5.large/spot", Capacity: policy.Spot},
		},
		Prices: []scenarios.PriceCurve{
			{At: []policy.Time{1}, Price: []policy.Money{100_000}},
			{At: []policy.Time{1}, Price: []policy.Money{40_000}},
		},
		Pools:     []policy.Pool{{Name: "general", Markets: []policy.MarketID{0, 1}}},
		Templates: []policy.Template{{Name: "default/web", Requests: pod}},
		Workloads: []scenarios.Workload{{
			Workload: policy.Workload{Name: "default/web", Kind: policy.KindDeployment},
			Schedule: []scenarios.ReplicaStep{{At: 1, Replicas: 4}},
		}},
		Trace: scenarios.TraceInfo{Name: "embedded", From: monday, To: monday.Add(31 * 24 * time.Hour), Synthetic: true, About: "a price walk made for tests"},
	}
}

// cases returns windows of scenarios.
func cases(windows int, names ...string) []Case {
	var out []Case
	for _, n := range names {
		for w := range windows {
			out = append(out, Case{Scenario: n, Window: w, World: smallWorld(n, w)})
		}
	}
	return out
}

// errCloud is what the fake's failing runs fail with.
var errCloud = errors.New("the cloud fell down")

// A fake makes up results: spot is cheap and has outages, the others lie
// between. Every figure depends on nothing but the job.
type fake struct {
	fail func(Job) bool
	slow func(Job)
}

func (f fake) run(_ context.Context, j Job) (*sim.Result, error) {
	if f.slow != nil {
		f.slow(j)
	}
	if f.fail != nil && f.fail(j) {
		return nil, errCloud
	}
	weather := chance.New(j.Seed, "weather", j.Scenario).At1(uint64(j.Window))
	luck := chance.New(j.Seed, j.Policy, j.Scenario).At1(uint64(j.Window))
	r := &sim.Result{
		Scenario: j.Scenario, Policy: j.Policy, Seed: j.Seed, Window: billing.Span{From: j.World.Start, To: j.end()},
		Weather: [32]byte{byte(weather), byte(weather >> 8)}, Hash: [32]byte{byte(luck)},
		Availability: 0.999, PodDays: 4, Launches: 12, NodeHours: 48, VoluntaryEvictions: 1,
		TimeToReadyP50: 40 * time.Second, TimeToReadyP95: 90 * time.Second,
	}
	share, outage := map[string]float64{OnDemand: 0, "static": 0.5, "spotvortex": 0.6}[j.Policy], 0
	if j.Policy == "spot" {
		share, outage = 1, luck.At1(1).IntN(40)
	}
	r.Bill = policy.Dollars(4.8 - 2.2*share - 0.4*weather.At1(2).Float() - 0.3*luck.At1(3).Float())
	r.SpotShare = share
	if d := time.Duration(outage) * time.Minute; outage > 0 {
		r.Outages = sim.Outages{Outage: d, OutageMinutes: int64(outage), Incidents: 1, PodsAffected: 2,
			Longest: sim.Incident{Workload: "default/web", Began: j.World.Start.Add(d), Outage: d, Pods: 2, Cause: sim.CauseReclaim}}
		r.Causes[sim.CauseReclaim] = sim.CauseOutage{Outage: d - 20*time.Second, Incidents: 1}
		r.Causes[sim.CauseProvisioner].Outage = 20 * time.Second
	}
	r.OutageCost = policy.Money(outage) * 20_000
	r.IncidentCost = r.OutageCost
	r.ReclaimEvictions = int64(float64(share * 10))
	r.Workloads = []sim.WorkloadResult{{Name: "default/web", Kind: policy.KindDeployment, PodValue: 50_000,
		Outages: r.Outages, OutageCost: r.OutageCost, Availability: 0.999, SpotShare: share}}
	return r, nil
}

// shown is the configuration that outputs are shown with.
func shown() Config {
	c := DefaultConfig()
	c.Policies, c.Baseline = []string{OnDemand, "spot", "static", "spotvortex"}, StandingBaseline
	c.Cases = cases(2, "web-week")
	c.Seeds = DefaultSeeds(5)
	c.Gates = StandingGates()
	c.Version = "v0.1.0"
	c.Invocation = "spotter eval web-week --windows 2 --seeds 5"
	return c
}

// policyReport returns the report on a policy in the first scenario.
func policyReport(r *Report, name string) *PolicyReport {
	i := slices.IndexFunc(r.Groups[0].Policies, func(p PolicyReport) bool { return p.Policy == name })
	return &r.Groups[0].Policies[i]
}
