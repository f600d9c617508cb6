package sim

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/kueue"
)

// queued gives the job of a scenario a queue of Kueue with quota for this many devices on Spot and on
// demand, and adds a second job of the same shape with a priority of 10 that is released an hour later.
func queued(b *builder, spot, onDemand int64) {
	w := &b.w
	setup := scenarios.QueueSetup{Setup: kueue.Setup{Resources: 1, Pods: kueue.None}}
	none := scenarios.Queued{Queue: kueue.None}
	setup.Of = slices.Repeat([]scenarios.Queued{none}, len(w.Workloads))
	queue := kueue.Queue{Name: "q", Cohort: kueue.None, Within: kueue.LowerPriority, PreemptNext: true,
		Groups: []kueue.Group{{Resources: []int{0}, Flavors: []int{0, 1}}}}
	for i, n := range []int64{spot, onDemand} {
		name := []string{"spot", "on-demand"}[i]
		setup.Flavors = append(setup.Flavors, kueue.Flavor{Name: name,
			Labels: []policy.Label{{Key: "karpenter.sh/capacity-type", Value: name}}})
		queue.Quotas = append(queue.Quotas, kueue.Quota{Flavor: i, Nominal: n, Borrowing: kueue.None, Lending: kueue.None})
	}
	setup.Queues = []kueue.Queue{queue}
	for _, base := range []string{"first", "second"} {
		t := b.workload(base, policy.KindJob, 2, policy.Resources{CPU: 900, Memory: gib, GPU: 1})
		at, of := testStart, scenarios.Queued{Requests: []int64{1}}
		if base == "second" {
			at, of.Priority = testStart.Add(time.Hour), 10
		}
		job := scenarios.Job{Pods: 2, Completions: 2, Work: 3 * time.Hour, Checkpoint: 30 * time.Minute}
		release := job
		release.Releases = []policy.Time{at}
		w.Workloads[t.Workload].Schedule, w.Workloads[t.Workload].Replicas = nil, 0
		w.Workloads[t.Workload].Job = &release
		for f := range setup.Flavors {
			v := b.workload(base+"@"+setup.Flavors[f].Name, policy.KindJob, 2, policy.Resources{CPU: 900, Memory: gib, GPU: 1})
			v.NodeSelector = setup.Flavors[f].Labels
			w.Workloads[v.Workload].Schedule, w.Workloads[v.Workload].Replicas = nil, 0
			w.Workloads[v.Workload].Job = &job
			of.Variants = append(of.Variants, scenarios.Variant{Flavors: []int{f}, Workload: v.Workload})
		}
		setup.Of = append(setup.Of, of, none, none)
	}
	w.Queues = &setup
}

// TestKueueAdmits has quota on Spot for one of two jobs and on demand for the other: both run at once,
// each on nodes of its flavor.
func TestKueueAdmits(t *testing.T) {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, 0
	b.markets(1, 1, true)
	b.pool("p")
	queued(b, 2, 2)
	res, log := runScenario(t, b.scenario(), "spot")
	if q := res.Queues[0]; q.Admitted != 2 || q.Preempted != 0 || q.Pending != 0 || q.WaitP95 != 0 || res.JobsDone != 2 {
		t.Errorf("the queue came to %+v, %d jobs done; want both admitted at once\n%s", q, res.JobsDone, strings.Join(log, "\n"))
	}
	for _, want := range []string{" bound default/first@spot-0 ", " bound default/second@on-demand-0 "} {
		if count(log, want) != 1 {
			t.Errorf("the log lacks %q\n%s", want, strings.Join(log, "\n"))
		}
	}
}

// TestKueuePreempts has quota for one of two jobs: the second preempts the first, which resumes from
// its checkpoint once the second has ended, two hours late.
func TestKueuePreempts(t *testing.T) {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, 0
	b.markets(1, 1, true)
	b.pool("p")
	queued(b, 2, 0)
	res, log := runScenario(t, b.scenario(), "spot")
	q := res.Queues[0]
	if q.Admitted != 3 || q.Preempted != 1 || q.Pending != 0 || res.JobsDone != 2 {
		t.Errorf("the queue came to %+v, %d jobs done; want the first admitted twice\n%s", q, res.JobsDone, strings.Join(log, "\n"))
	}
	if q.WaitP95 < 3*time.Hour || q.WaitP95 > 3*time.Hour+15*time.Minute || q.WaitP50 > 2*time.Second {
		t.Errorf("waits of %v and %v, want that of the second job's work", q.WaitP50, q.WaitP95)
	}
	if res.WorkLost >= 2*30*time.Minute {
		t.Errorf("%v of work lost, want less than since the last checkpoints", res.WorkLost)
	}
}

// TestKueueStated has pods of both jobs on the nodes with which the run starts: the first job, which is
// on Spot, and the second on demand. Both have their quota from the start and work on in place, though
// the second has the higher priority and would take Spot.
func TestKueueStated(t *testing.T) {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, 0
	b.markets(1, 1, true)
	b.pool("p")
	queued(b, 2, 2)
	w := &b.w
	first, second := policy.WorkloadID(0), policy.WorkloadID(3)
	w.Workloads[second].Job.Releases[0] = testStart
	w.StartCluster = scenarios.StartNodes
	for i := range w.Markets {
		on := map[policy.CapacityType]policy.WorkloadID{policy.Spot: first, policy.OnDemand: second}[w.Markets[i].Capacity]
		w.Seeds = append(w.Seeds, scenarios.NodeSeed{Market: policy.MarketID(i), Count: 2,
			Pods: []scenarios.PodsOnNode{{Workload: on, Count: 1}}})
	}
	res, log := runScenario(t, b.scenario(), "spot")
	if q := res.Queues[0]; q.Admitted != 0 || q.Preempted != 0 || q.Pending != 0 || res.JobsDone != 2 {
		t.Errorf("the queue came to %+v, %d jobs done; want none admitted after the start", q, res.JobsDone)
	}
	begin, _, _ := strings.Cut(log[0], " ")
	for _, want := range []string{" ready default/first@spot-", " ready default/second@on-demand-"} {
		if count(log, begin, want) != 2 {
			t.Errorf("want two times %q at the start\n%s", want, strings.Join(log[:min(len(log), 30)], "\n"))
		}
	}
}

// TestKueueOrder has quota for one of two jobs: the one that was created first is admitted first, though
// both are released together and its name is the later one.
func TestKueueOrder(t *testing.T) {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, 0
	b.markets(1, 1, true)
	b.pool("p")
	queued(b, 2, 0)
	w := &b.w
	w.Workloads[3].Job.Releases[0] = testStart
	w.Queues.Of[3].Priority = 0
	w.Queues.Of[0].Created, w.Queues.Of[3].Created = testStart.Add(-time.Hour), testStart.Add(-2*time.Hour)
	_, log := runScenario(t, b.scenario(), "spot")
	var order []string
	for _, line := range log {
		if words := strings.Fields(line); words[1] == "queue-admitted" {
			order = append(order, words[2])
		}
	}
	if want := []string{"default/second", "default/first"}; !slices.Equal(order, want) {
		t.Errorf("admitted in the order %q, want %q", order, want)
	}
}

// TestKueueOnDemand runs jobs of both flavors without Spot nodes, as savings are measured against: the
// job of the flavor of Spot nodes runs on demand, too, unless its pods request Spot themselves.
func TestKueueOnDemand(t *testing.T) {
	for own, done := range map[bool]int64{false: 2, true: 1} {
		b := newBuilder(12 * time.Hour)
		b.w.Intensity, b.w.WarmUp = 0, 0
		b.markets(1, 1, true)
		b.pool("p")
		queued(b, 2, 2)
		if own {
			b.w.Templates[0].NodeSelector = b.w.Queues.Flavors[0].Labels
		}
		res, _ := runLogged(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"),
			Forecaster: mustForecaster(t), Seed: 1, Check: true, OnDemandStart: true})
		if res.JobsDone != done || res.SpotHours != 0 {
			t.Errorf("own selector %v: %d jobs are done with %v hours of Spot, want %d without any", own, res.JobsDone, res.SpotHours, done)
		}
	}
}

// TestKueueExample runs the example of the documentation, and finds in it what it is for: research
// borrows Spot quota of product, runs on demand where Spot is used up, and waits where both are; product
// never waits, since it takes its quota back.
func TestKueueExample(t *testing.T) {
	text, err := os.ReadFile("../docs/examples/kueue-spot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	res, log := runScenario(t, boundText(t, string(text)), "spot")
	product, research := res.Queues[0], res.Queues[1]
	if product.Name != "product" || product.Admitted != 6 || product.Preempted != 0 || product.WaitP95 > 2*time.Second {
		t.Errorf("product came to %+v, want its six jobs admitted within 2 s", product)
	}
	if research.Admitted < 30 || research.Preempted == 0 || research.WaitP95 < time.Hour {
		t.Errorf("research came to %+v, want some preempted and some that wait an hour", research)
	}
	reclaimed, most := 0, map[string]int{}
	on, ready := map[string]string{}, map[string]int{} // flavor by pod, and ready pods by flavor, of research
	for _, line := range log {
		words := strings.Fields(line)
		switch pod := words[2]; words[1] {
		case "queue-preempted":
			if kueue.Why(words[4][0]-'0') == kueue.InCohortReclamation {
				reclaimed++
			}
		case "ready":
			if _, rest, ours := strings.Cut(pod, "research/sweep@"); ours {
				flavor := rest[:strings.LastIndexByte(rest, '-')]
				on[pod], ready[flavor] = flavor, ready[flavor]+1
				most[flavor] = max(most[flavor], ready[flavor])
			}
		case "ended", "lost":
			if flavor, known := on[pod]; known {
				ready[flavor]--
				delete(on, pod)
			}
		}
	}
	if reclaimed != int(research.Preempted) {
		t.Errorf("%d of %d preemptions reclaim lent quota, want all", reclaimed, research.Preempted)
	}
	if most["spot"] != 8 || most["on-demand"] != 4 || len(most) != 2 {
		t.Errorf("research had at most %v devices; want all 8 of Spot, 4 of them borrowed, and all 4 on demand", most)
	}
}
