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
// demand, beside a second job of the same shape with a priority of 10 that is released an hour later.
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

// TestKueueExample runs the example of the documentation: every pod of a job is on nodes of the flavor
// with which it was admitted, and lent quota is taken back.
func TestKueueExample(t *testing.T) {
	text, err := os.ReadFile("../docs/examples/kueue-spot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	res, log := runScenario(t, boundText(t, string(text)), "spot")
	admitted, preempted := int64(0), int64(0)
	for _, q := range res.Queues {
		admitted, preempted = admitted+q.Admitted, preempted+q.Preempted
	}
	if admitted < 10 || preempted == 0 || res.JobsDone == 0 {
		t.Errorf("the queues came to %+v, %d jobs done; want preemptions", res.Queues, res.JobsDone)
	}
	on := map[string]bool{}
	for _, line := range log {
		if !strings.Contains(line, " bound ") {
			continue
		}
		for _, flavor := range []string{"spot", "on-demand"} {
			if strings.Contains(line, "@"+flavor+"-") {
				on[flavor] = true
			}
		}
	}
	if !on["spot"] || !on["on-demand"] {
		t.Errorf("pods of both flavors were to run, but only %v did", on)
	}
}
