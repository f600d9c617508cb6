package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// budgeted returns a calm scenario of a service with two devices per pod, three of
// them, and a budget for it.
func budgeted(b policy.Budget) *builder {
	w := newBuilder(24 * time.Hour)
	w.w.Intensity, w.w.WarmUp = 0, time.Hour
	w.markets(1, 2, true)
	w.pool("p")
	w.workload("infer", policy.KindDeployment, 3, policy.Resources{CPU: 1800, Memory: gib, GPU: 2})
	b.Name, b.Namespace, b.Resource = "default/b", "default", "nvidia.com/gpu"
	b.Selector = policy.Selector{Everything: true}
	w.w.GPUBudgets = []policy.Budget{b}
	return w
}

// trainer adds a job of two pods with a device each, eight hours of work, safe
// every half hour.
func (b *builder) trainer() {
	t := b.workload("train", policy.KindJob, 2, policy.Resources{CPU: 900, Memory: gib, GPU: 1})
	w := &b.w.Workloads[t.Workload]
	w.Schedule, w.Replicas = nil, 0
	w.Job = &scenarios.Job{Pods: 2, Completions: 2, Work: 8 * time.Hour, Checkpoint: 30 * time.Minute, Releases: []policy.Time{testStart}}
}

// randomBudgets gives some scenarios up to three budgets on cores, most of them too
// small.
func (b *builder) randomBudgets(rnd *rand.Rand) {
	if rnd.IntN(4) > 0 {
		return
	}
	for i := range 1 + rnd.IntN(3) {
		x := policy.Budget{
			Name: fmt.Sprintf("default/b%d", i), Namespace: "default", Resource: "cpu", Selector: policy.Selector{Everything: true},
			HasGPUHours: true, GPUHours: float64(rnd.IntN(60)), Window: time.Duration(1+rnd.IntN(24)) * time.Hour,
			Action: policy.BudgetAction(rnd.IntN(3)), OverQuotaDelay: time.Duration(rnd.IntN(2)) * 5 * time.Minute,
			HasPodGrace: rnd.IntN(2) == 0, PodGrace: time.Duration(rnd.IntN(60)) * time.Second,
			Gate: rnd.IntN(2) == 0, LiveObjects: rnd.IntN(5) == 0,
		}
		if rnd.IntN(2) == 0 {
			x.HasDollars, x.Dollars = true, policy.Money(rnd.IntN(5))*policy.Dollar
		}
		if k := rnd.IntN(2 * len(b.w.Templates)); k < len(b.w.Templates) {
			x.Selector = policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpNotIn,
				Values: []string{b.w.Templates[k].Labels[0].Value}}}}
		}
		b.w.GPUBudgets = append(b.w.GPUBudgets, x)
	}
}

// TestBudgetCounts compares the ledger with what is counted apart from it: six
// devices for a day, none of it in the warm-up's hour but 6 h.
func TestBudgetCounts(t *testing.T) {
	b := budgeted(policy.Budget{HasGPUHours: true, GPUHours: 1000, Window: 48 * time.Hour})
	res, _ := runScenario(t, b.scenario(), "on-demand")
	got := res.Budgets[0]
	if got.GPUHours != 144 {
		t.Errorf("%v device-hours, want 6 × 24", got.GPUHours)
	}
	// The ledger has the warm-up too, less what starting took, and the last
	// decision is at most ten minutes before the end.
	if got.WindowHours < 147 || got.WindowHours > 150 || got.OverMinutes+got.ClosedMinutes+got.Evictions != 0 {
		t.Errorf("%+v", got)
	}
	if want := got.WindowHours / 1000; math.Abs(got.Peak-want) > 1e-9 {
		t.Errorf("peak %v, want %v", got.Peak, want)
	}
}

// TestBudgetEvicts gives 60 GPU-hours a day to six devices, which last for ten hours. Then the
// gate closes and the pods are evicted. None is recreated or pending, and that does not count as
// an outage; the missing work is unserved.
func TestBudgetEvicts(t *testing.T) {
	b := budgeted(policy.Budget{HasGPUHours: true, GPUHours: 60, Window: 24 * time.Hour, Action: policy.BudgetEvict})
	var pending int
	w := b.scenario()
	cfg := Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true}
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		for i := range s.Pods {
			if s.Budgets[0].Closed && s.Pods[i].Phase == policy.PodPending {
				pending++
			}
		}
	}
	res := mustRun(t, cfg)
	x := res.Budgets[0]
	if x.Evictions != 3 || pending != 0 || res.OutageMinutes != 0 || res.Incidents != 0 {
		t.Errorf("%d evictions, %d pods pending behind the gate, %d minutes of outage; want 3, 0, 0", x.Evictions, pending, res.OutageMinutes)
	}
	// The hour of warm-up counts, so nine hours are left of ten.
	if x.GPUHours < 53.9 || x.GPUHours > 55 || x.Peak < 1 || x.Peak > 1.01 {
		t.Errorf("%v device-hours, peak %v; want 54 and little more", x.GPUHours, x.Peak)
	}
	if missed := res.Unserved - res.KeptOut; x.ClosedMinutes < 13*60 || missed < 0 || missed > res.Unserved/50 {
		t.Errorf("closed for %d min, unserved %v, of it kept out %v", x.ClosedMinutes, res.Unserved, res.KeptOut)
	}
}

// TestBudgetReopens gives 60 GPU-hours in twelve hours: the gate opens when a
// tenth has left the window, and the controller, which was denied for hours, has
// its pods back within its longest wait.
func TestBudgetReopens(t *testing.T) {
	b := budgeted(policy.Budget{HasGPUHours: true, GPUHours: 60, Window: 12 * time.Hour, Action: policy.BudgetEvict, Gate: true})
	res, log := runScenario(t, b.scenario(), "on-demand")
	var opened, created string
	for _, line := range log {
		if opened == "" && count([]string{line}, " gate ", " - 0") == 1 {
			opened = line[:24]
		}
		if opened != "" && created == "" && count([]string{line}, " created ") == 1 {
			created = line[:24]
		}
	}
	from, err := time.Parse(time.RFC3339, opened)
	if err != nil {
		t.Fatalf("the gate never opened: %v", log)
	}
	to, err := time.Parse(time.RFC3339, created)
	if err != nil || to.Sub(from) > 1000*time.Second {
		t.Errorf("the gate opened at %s and a pod was made at %s", opened, created)
	}
	if res.OutageMinutes != 0 {
		t.Errorf("%d minutes of outage", res.OutageMinutes)
	}
}

// TestBudgetMindsPDB has a disruption budget that keeps two of three pods: one is evicted, and
// the others keep running. Their eviction is requested again, at most every two minutes.
func TestBudgetMindsPDB(t *testing.T) {
	b := budgeted(policy.Budget{HasGPUHours: true, GPUHours: 60, Window: 24 * time.Hour, Action: policy.BudgetEvict})
	b.budget(0, policy.Quantity{Set: true, N: 1})
	res, _ := runScenario(t, b.scenario(), "on-demand")
	if x := res.Budgets[0]; x.Evictions != 1 || x.GPUHours < 100 {
		t.Errorf("%d evictions, %v device-hours; want 1, and more than 100", x.Evictions, x.GPUHours)
	}
	if res.Decisions > 2000 {
		t.Errorf("%d decisions", res.Decisions)
	}
}

// TestBudgetPauses gives 9 GPU-hours in six hours to a job that needs 16. It is suspended after
// four and a half hours, resumes when a quarter of the quota is free again, and completes. It
// repeats less than half an hour of work per pod and suspension.
func TestBudgetPauses(t *testing.T) {
	b := newBuilder(24 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, time.Hour
	b.markets(1, 1, true)
	b.pool("p")
	b.trainer()
	b.w.GPUBudgets = []policy.Budget{{
		Name: "default/b", Namespace: "default", Resource: "nvidia.com/gpu", Selector: policy.Selector{Everything: true},
		HasGPUHours: true, GPUHours: 9, Window: 6 * time.Hour, Action: policy.BudgetPause,
	}}
	suspended := 0
	cfg := Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true}
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		if s.Workloads[0].Suspended {
			suspended++
			if slices.ContainsFunc(s.Pods, func(p policy.Pod) bool { return p.Phase == policy.PodReady }) {
				t.Errorf("at %v a pod of the suspended job is ready", s.Now)
			}
		}
	}
	res := mustRun(t, cfg)
	x := res.Budgets[0]
	if res.JobsDone != 1 || x.Pauses == 0 || suspended == 0 || res.WorkLost > time.Duration(x.Pauses)*time.Hour {
		t.Errorf("%d jobs done after %d pauses, %v of work lost", res.JobsDone, x.Pauses, res.WorkLost)
	}
	if x.Peak > 1.01 {
		t.Errorf("the budget was used to %v", x.Peak)
	}
}

// TestBudgetsEveryPolicy holds that no policy is without the budgets of a scenario.
func TestBudgetsEveryPolicy(t *testing.T) {
	w := budgeted(policy.Budget{HasGPUHours: true, GPUHours: 60, Window: 24 * time.Hour, Action: policy.BudgetEvict}).scenario()
	for _, spec := range append(slices.Clone(specs), "manifest") {
		res := mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, spec), Forecaster: mustForecaster(t), Seed: 1})
		if x := res.Budgets[0]; x.Evictions < 3 || x.Peak > 1.01 {
			t.Errorf("%s: %+v", spec, x)
		}
	}
}

// TestBudgetCountsWithoutController takes the controller away for six hours, in
// which two of three pods go: what they used until then, and what the third went
// on to use, is booked when it is back, and the gate closes then.
func TestBudgetCountsWithoutController(t *testing.T) {
	b := budgeted(policy.Budget{HasGPUHours: true, GPUHours: 36, Window: 48 * time.Hour, Gate: true})
	w := &b.w.Workloads[0]
	w.Schedule = append(w.Schedule, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 1})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultControllerDown, At: at(4 * time.Hour), Duration: 6 * time.Hour}}
	res, log := runScenario(t, b.scenario(), "on-demand")
	got := res.Budgets[0]
	// Six devices for six hours, two for 18.
	if math.Abs(got.GPUHours-72) > 0.1 {
		t.Errorf("%v device-hours are held, want 72", got.GPUHours)
	}
	// The ledger has the warm-up's hour too, less what starting took, and the last
	// decision is at most ten minutes before the end.
	if more := got.WindowHours - got.GPUHours; more < 5 || more > 6 {
		t.Errorf("the ledger has %v device-hours, %v more than were held in the window", got.WindowHours, more)
	}
	// The use of 6 h × 6 in the window and of the warm-up exceeds the quota: it ran out while the
	// controller was down.
	if n := count(log, "T10:00:00.000Z", " gate ", " - 1"); n != 1 {
		t.Errorf("the gate closed %d times when the controller was back, want once", n)
	}
}

// TestBudgetGrace gives evicted pods no time to end, or more than the five seconds
// that they take: three pods of two devices hold these for so long.
func TestBudgetGrace(t *testing.T) {
	x := policy.Budget{HasGPUHours: true, GPUHours: 60, Window: 24 * time.Hour, Action: policy.BudgetEvict, HasPodGrace: true}
	none, _ := runScenario(t, budgeted(x).scenario(), "on-demand")
	x.PodGrace = time.Hour
	enough, _ := runScenario(t, budgeted(x).scenario(), "on-demand")
	if more := (enough.Budgets[0].GPUHours - none.Budgets[0].GPUHours) * 3600; math.Abs(more-30) > 0.01 {
		t.Errorf("%v device-seconds more, want 6 × 5", more)
	}
}
