package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/nightly"
)

// overheadMax is the most by which on-demand's bill may exceed the bound over
// on-demand markets in an embedded scenario. Karpenter takes preferred spread as
// required, replaces nodes by one only, removes a tenth of them every 25 s at most, and rests after
// looks in vain, so that clusters that shrink stay well above their packing.
const overheadMax = 1.4

// TestPackingOverhead runs on-demand in every embedded scenario, and where slots raise the
// bound those that come near it: none may cost less.
func TestPackingOverhead(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	longest := time.Duration(nightly.Count(48, 24*365)) * time.Hour
	for _, name := range scenarios.Names() {
		if strings.HasPrefix(name, "bench-") && name != "bench-100" {
			continue // the same services in greater number
		}
		sc, err := scenarios.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
		if errors.Is(err, scenarios.ErrNoMarket) {
			continue // it requires a trace of its own
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Duration = min(w.Duration, longest)
		r := run(t, w, "on-demand", 1)
		bound := Of(w)
		t.Logf("%s %.3f", name, float64(r.Bill)/float64(bound.OnDemand))
		if got := float64(r.Bill) / float64(bound.OnDemand); got > overheadMax || cost(r) < bound.OnDemand {
			t.Errorf("%s: on-demand pays %v, %.3f times the bound %v, want at most %v; with outages %v", name, r.Bill, got,
				bound.OnDemand, overheadMax, cost(r))
		}
		o, err := New(w)
		if err != nil {
			t.Fatal(err)
		}
		under, err := o.Under(1)
		if err != nil {
			t.Fatal(err)
		}
		if under.Slots == under.Cost {
			continue
		}
		for _, spec := range []string{"spot", "karpetrack", "portfolio"} {
			got := cost(run(t, w, spec, 1))
			t.Logf("%s %s %v, bounds %v and with slots %v", name, spec, got, under.Cost, under.Slots)
			if got < under.Slots {
				t.Errorf("%s: %s costs %v, the bound with slots is %v", name, spec, got, under.Slots)
			}
		}
	}
}

// cost is the bill of a run plus its outage cost.
func cost(r *sim.Result) policy.Money { return r.Bill + r.OutageCost }

// run does a run.
func run(t *testing.T, w *scenarios.BoundScenario, spec string, seed uint64) *sim.Result {
	t.Helper()
	r, err := sim.Run(t.Context(), evaltest.Config(t, w, spec, seed))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// scenariosTried is the number of random scenarios in which every policy is run.
var scenariosTried = nightly.Count(120, 1000)

// TestNoRunBeatsOracle runs every policy in random scenarios, under the bound of the
// seed with its slots, in every fourth cut short. That of on-demand also holds for
// its own.
func TestNoRunBeatsOracle(t *testing.T) {
	random := rapid.Custom(drawScenario)
	policies := append(registry.Names(), "spotvortex:compat=true", "static:share=1")
	policies = slices.DeleteFunc(policies, func(p string) bool { return p == registry.Manifest })
	ran, bounds, costs, raised, short := 0, 0.0, 0.0, 0, 0
	for i := range scenariosTried {
		w := random.Example(i)
		o, err := New(w)
		if err != nil {
			continue // a pod fits nowhere
		}
		if i%4 == 3 {
			o.workMax = i * i % 100_000
		}
		seed := uint64(i)
		bound := o.Every()
		seeded, err := o.Under(seed)
		if err != nil {
			t.Fatal(err)
		}
		under := max(seeded.Slots, bound.Cost)
		if seeded.Slots > seeded.Cost {
			raised++
		}
		if seeded.Short+bound.Short > 0 {
			short++
		}
		least := policy.Money(-1)
		for _, spec := range policies {
			r := run(t, w, spec, seed)
			ran++
			if got := cost(r); got < under || spec == "on-demand" && got < bound.OnDemand {
				t.Errorf("scenario %d: %s costs %v, the bound is %v, on demand %v", i, spec, got, under, bound.OnDemand)
			} else if least < 0 || got < least {
				least = got
			}
		}
		bounds, costs = bounds+float64(under), costs+float64(least)
	}
	t.Logf("%d runs; the bounds are %.0f %% of what the best policies cost; slots raise %d of them, %d are cut short",
		ran, bounds/costs*100, raised, short)
	if raised < scenariosTried/10 || short < scenariosTried/100 {
		t.Errorf("slots raise %d bounds and %d are cut short: too few to say that they hold", raised, short)
	}
	if ran < scenariosTried*len(policies)/2 {
		t.Errorf("only %d runs", ran)
	}
}

// drawScenario makes a small scenario of a few hours that has of everything: zones,
// sizes, curves, services that grow and shrink, jobs, an agent, recorded
// availability, and orders of trouble.
func drawScenario(t *rapid.T) *scenarios.BoundScenario {
	w := &scenarios.BoundScenario{Settings: scenarios.Settings{
		Name: "random", Start: evaltest.Monday, WarmUp: time.Hour, Duration: time.Duration(rapid.IntRange(1, 3).Draw(t, "hours")) * time.Hour,
		ReadyGrace: time.Duration(rapid.IntRange(0, 20).Draw(t, "grace")) * time.Minute,
		Intensity:  float64(rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "intensity")), Slots: rapid.IntRange(0, 3).Draw(t, "slots"),
	}}
	for z := range rapid.IntRange(1, 2).Draw(t, "zones") {
		w.Zones = append(w.Zones, fmt.Sprintf("z%d", z))
	}
	drawMarkets(t, w)
	drawCommitments(t, w)
	w.Pools = []policy.Pool{{Name: "general", OnDemandFallback: true, Share: policy.ShareRange{Max: 1},
		Consolidation: policy.WhenEmptyOrUnderutilized, Levers: policy.Levers{Weights: true, Limits: true},
		Budgets: []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, Percent: true, N: 50}, Active: true}}}}
	for m := range w.Markets {
		w.Pools[0].Markets = append(w.Pools[0].Markets, policy.MarketID(m))
	}
	for range rapid.IntRange(1, 2).Draw(t, "services") {
		drawService(t, w)
	}
	if rapid.Bool().Draw(t, "job") {
		drawJob(t, w)
	}
	if rapid.Bool().Draw(t, "agent") {
		addWork(w, policy.KindDaemonSet, policy.Template{Requests: policy.Resources{CPU: 200, Memory: 1 << 28, Pods: 1},
			DaemonSet: true}, scenarios.Workload{})
	}
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		w.Faults = append(w.Faults, scenarios.Fault{
			Kind: rapid.SampledFrom([]scenarios.FaultKind{scenarios.FaultZoneOutage, scenarios.FaultCapacityShortage,
				scenarios.FaultPriceRamp, scenarios.FaultLateNotice, scenarios.FaultSlowNodes, scenarios.FaultOnDemandRefused, scenarios.FaultZonalShift}).Draw(t, "fault"),
			At:       w.Start.Add(time.Duration(rapid.IntRange(-30, 100).Draw(t, "minute")) * time.Minute),
			Duration: time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute,
			Share:    rapid.SampledFrom([]float64{0.5, 1}).Draw(t, "share"), Factor: rapid.SampledFrom([]float64{0.5, 2}).Draw(t, "factor"),
			Zone: rapid.SampledFrom([]string{"", "z0"}).Draw(t, "zone"),
		})
	}
	if rapid.IntRange(0, 3).Draw(t, "budgeted") == 0 {
		drawBudgets(t, w)
	}
	return w
}

// drawBudgets gives w budgets on cores, most of which are spent within its hours.
func drawBudgets(t *rapid.T, w *scenarios.BoundScenario) {
	for i := range rapid.IntRange(1, 2).Draw(t, "budgets") {
		b := policy.Budget{Name: fmt.Sprintf("default/b%d", i), Namespace: "default", Resource: "cpu",
			Selector: policy.Selector{Everything: true},
			Window: time.Duration(rapid.IntRange(1, 3).Draw(t,
				"window")) * time.Hour, Action: policy.BudgetAction(rapid.IntRange(0, 2).Draw(t, "action")),
			OverQuotaDelay: time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * time.Minute, Gate: rapid.Bool().Draw(t, "gate")}
		if b.HasGPUHours = rapid.Bool().Draw(t, "hours"); b.HasGPUHours {
			b.GPUHours = float64(rapid.IntRange(0, 12).Draw(t, "quota")) / 2
		}
		if b.HasDollars = !b.HasGPUHours || rapid.Bool().Draw(t, "dollars"); b.HasDollars {
			b.Dollars = policy.Money(rapid.IntRange(0, 300_000).Draw(t, "dollars"))
		}
		w.GPUBudgets = append(w.GPUBudgets, b)
	}
}

func drawMarkets(t *rapid.T, w *scenarios.BoundScenario) {
	for i := range rapid.IntRange(1, 3).Draw(t, "types") {
		cpu := int64(2) << i
		typ := policy.InstanceType{ID: policy.TypeID(i), Provider: "aws", Name: fmt.Sprintf("t%d.large", i),
			Family: fmt.Sprintf("t%d", i), Category: "t", Arch: "amd64", VCPU: cpu}
		typ.Capacity = policy.Resources{CPU: cpu * 1000, Memory: cpu * int64(rapid.IntRange(2, 8).Draw(t, "memory")) << 30,
			Storage: 20 << 30, Pods: int64(rapid.IntRange(3, 20).Draw(t, "pods"))}
		typ.Allocatable = typ.Capacity.Minus(policy.Resources{CPU: 100, Memory: 1 << 28})
		w.Types = append(w.Types, typ)
		for z, zone := range w.Zones {
			od := policy.Money(50_000*cpu + int64(rapid.IntRange(0, 9_999).Draw(t, "odd")))
			for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				w.Markets = append(w.Markets, policy.Market{ID: policy.MarketID(len(w.Markets)), Name: fmt.Sprintf("aws/r/%s/%s/%v", zone, typ.Name, c),
					Provider: "aws", Region: "r", Zone: policy.ZoneID(z), Type: typ.ID, Capacity: c, OnDemand: od, Band: policy.BandUnknown})
				curve := scenarios.PriceCurve{At: []policy.Time{w.Start.Add(-2 * time.Hour)}, Price: []policy.Money{od}}
				available := scenarios.AvailabilityCurve{}
				if c == policy.Spot {
					curve = drawCurve(t, w, od)
					if rapid.IntRange(0, 3).Draw(t, "recorded") == 0 {
						available = drawAvailability(t, w)
					}
				}
				w.Prices, w.Available = append(w.Prices, curve), append(w.Available, available)
			}
		}
	}
}

// drawCurve returns a price that moves every half hour, or is not offered.
func drawCurve(t *rapid.T, w *scenarios.BoundScenario, od policy.Money) scenarios.PriceCurve {
	var c scenarios.PriceCurve
	for at := w.Start.Add(-2 * time.Hour); at < w.Start.Add(w.Duration); at = at.Add(30 * time.Minute) {
		price := od.Times(float64(rapid.IntRange(10, 120).Draw(t, "price")) / 100)
		if rapid.IntRange(0, 9).Draw(t, "offered") == 0 {
			price = policy.NoPrice
		}
		c.At, c.Price = append(c.At, at), append(c.Price, price)
	}
	if slices.Max(c.Price) == policy.NoPrice {
		c.Price[len(c.Price)-1] = od
	}
	return c
}

func drawAvailability(t *rapid.T, w *scenarios.BoundScenario) scenarios.AvailabilityCurve {
	var a scenarios.AvailabilityCurve
	up := rapid.Bool().Draw(t, "up")
	for at := w.Start.Add(-2 * time.Hour); at < w.Start.Add(w.Duration); at = at.Add(time.Duration(rapid.IntRange(10,
		90).Draw(t, "until")) * time.Minute) {
		a.At, a.Available = append(a.At, at), append(a.Available, up)
		up = !up
	}
	return a
}

func drawService(t *rapid.T, w *scenarios.BoundScenario) {
	template := policy.Template{Requests: policy.Resources{CPU: int64(rapid.IntRange(1, 7).Draw(t, "cpu")) * 250,
		Memory: int64(rapid.IntRange(1, 7).Draw(t, "gib")) << 29, Pods: 1},
		OutagePenalty: -1, MigrationTier: -1}
	if rapid.IntRange(0, 3).Draw(t, "bound") == 0 {
		template.NodeSelector = []policy.Label{{Key: "topology.kubernetes.io/zone", Value: "z0"}}
	}
	l := scenarios.Workload{OutagePenalty: float64(rapid.IntRange(0, 4).Draw(t, "penalty"))}
	at := w.Start.Add(-2 * time.Hour)
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		l.Schedule = append(l.Schedule, scenarios.ReplicaStep{At: at, Replicas: int32(rapid.IntRange(0, 6).Draw(t, "replicas"))})
		at = at.Add(time.Duration(rapid.IntRange(5, 120).Draw(t, "later")) * time.Minute)
	}
	addWork(w, policy.KindDeployment, template, l)
}

func drawJob(t *rapid.T, w *scenarios.BoundScenario) {
	job := &scenarios.Job{Pods: int32(rapid.IntRange(1, 3).Draw(t, "parallel")),
		Completions: int32(rapid.IntRange(1, 4).Draw(t, "completions")),
		Work:        time.Duration(rapid.IntRange(5, 40).Draw(t, "work")) * time.Minute, Deadline: time.Duration(rapid.IntRange(0,
			3).Draw(t, "deadline")) * time.Hour,
		Checkpoint: time.Duration(rapid.IntRange(0, 1).Draw(t, "checkpoint")) * 5 * time.Minute}
	at := w.Start.Add(time.Duration(rapid.IntRange(-50, 50).Draw(t, "released")) * time.Minute)
	for range rapid.IntRange(1, 2).Draw(t, "releases") {
		job.Releases = append(job.Releases, at)
		at = at.Add(time.Hour)
	}
	addWork(w, policy.KindJob, policy.Template{Requests: policy.Resources{CPU: int64(rapid.IntRange(1, 7).Draw(t,
		"job cpu")) * 250, Memory: 1 << 30, Pods: 1},
		OutagePenalty: -1, MigrationTier: -1}, scenarios.Workload{Job: job, OutagePenalty: 1})
}

// addWork adds a workload with its template.
func addWork(w *scenarios.BoundScenario, kind policy.WorkloadKind, template policy.Template, l scenarios.Workload) {
	id := len(w.Workloads)
	template.ID, template.Workload = policy.TemplateID(id), policy.WorkloadID(id)
	template.Name, template.Namespace = fmt.Sprintf("default/w%d", id), "default"
	l.ID, l.Name, l.Kind = policy.WorkloadID(id), template.Name, kind
	w.Templates, w.Workloads = append(w.Templates, template), append(w.Workloads, l)
}
