package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A restless policy does nothing, every few seconds.
type restless struct{ policy.Policy }

func (restless) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return policy.Plan{Wake: s.Now.Add(5 * time.Second)}, m
}

// TestLossIsNoticedLate takes a zone without a word at six. Until the cluster has
// noticed, 50 s after the first node is gone, every snapshot is the one of a run
// in which nothing happened; the metrics count from the loss on.
func TestLossIsNoticedLate(t *testing.T) {
	first := func(log string) policy.Time {
		for line := range strings.Lines(log) {
			if strings.Contains(line, " reclaimed ") {
				at, err := time.Parse(time.RFC3339, strings.Fields(line)[0])
				if err != nil {
					t.Fatal(err)
				}
				return policy.TimeOf(at)
			}
		}
		t.Fatal("no node was lost")
		return 0
	}
	observed := func(faults ...scenarios.Fault) (map[policy.Time]string, string, *Result) {
		b := one(8)
		b.budget(0, policy.Quantity{Set: true, N: 2})
		b.workload("db", policy.KindStatefulSet, 3, policy.Resources{CPU: 500, Memory: gib})
		b.workload("batch", policy.KindJob, 2, policy.Resources{CPU: 500, Memory: gib})
		b.w.Workloads[2].Schedule, b.w.Workloads[2].Replicas = nil, 0
		b.w.Workloads[2].Job = &scenarios.Job{Pods: 2, Completions: 2, Work: 8 * time.Hour, Checkpoint: time.Minute,
			Releases: []policy.Time{at(time.Hour)}}
		b.w.Faults = faults
		var log strings.Builder
		seen := map[policy.Time]string{}
		res := mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: restless{mustPolicy(t, "on-demand")},
			Seed: 1, Check: true, Log: &log,
			Observed: func(s *policy.Snapshot, _ *policy.Plan) {
				if s.Now >= at(6*time.Hour) && s.Now < at(6*time.Hour+6*time.Minute) {
					seen[s.Now] = fmt.Sprintf("%+v", s.Whole())
				}
			}})
		return seen, log.String(), res
	}
	calm, _, _ := observed()
	dark, log, res := observed(scenarios.Fault{Kind: scenarios.FaultZoneOutage, At: at(6 * time.Hour), Duration: time.Hour, Zone: "z0"})
	lost := first(log)
	same, differ := 0, 0
	for now, s := range dark {
		switch {
		case now < lost:
		case now < lost.Add(DefaultDelays().Detect):
			if same++; s != calm[now] {
				i := 0
				for i < min(len(s), len(calm[now])) && s[i] == calm[now][i] {
					i++
				}
				t.Fatalf("%v after the loss the snapshot knows of it: %q, without it %q", now.Sub(lost), cut(s, i), cut(calm[now], i))
			}
		case s != calm[now]:
			differ++
		}
	}
	if same == 0 || differ == 0 {
		t.Errorf("%d snapshots before the loss was noticed, %d after that show it", same, differ)
	}
	if res.Availability == 1 || res.WorkLost == 0 && !strings.Contains(log, " lost ") {
		t.Errorf("availability %v, work lost %v", res.Availability, res.WorkLost)
	}
}

// TestLossIsNoticedByNobody takes a node and looks at all that it was part of at
// once: what the cluster counts stays, what serves does not.
func TestLossIsNoticedByNobody(t *testing.T) {
	b := one(1)
	b.budget(0, policy.Quantity{Set: true, N: 1})
	b.workload("batch", policy.KindJob, 1, policy.Resources{CPU: 500, Memory: gib})
	b.w.Workloads[1].Schedule, b.w.Workloads[1].Replicas = nil, 0
	b.w.Workloads[1].Job = &scenarios.Job{Pods: 1, Completions: 1, Work: 8 * time.Hour, Checkpoint: time.Minute,
		Releases: []policy.Time{at(-time.Hour)}}
	r, err := newRun(Config{Prepared: mustPrepare(t, b.scenario()), Policy: restless{mustPolicy(t, "on-demand")}, Seed: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	r.begin(false)
	for r.Clock.Now < at(0) {
		e, _ := r.Clock.Next(at(0))
		r.Clock.CarryOut(&e)
	}
	look := func() string {
		for w := range policy.WorkloadID(len(r.Scenario.Workloads)) {
			r.cluster.WorkloadChanged.Publish(w)
			r.cluster.PDBs.Update(w)
		}
		s, err := r.controller.Observer.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v %+v %+v %+v %+v", s.Workloads, s.PDBs, s.Pools, s.Nodes, s.Pods)
	}
	before, done := look(), r.cluster.Jobs.All[0].Tasks[0].Done
	r.machines.Reclaims.Reclaim(0)
	if after := look(); after != before {
		t.Errorf("before the loss\n%s\nafter it\n%s", before, after)
	}
	if r.cluster.Serving.State(0).Ready != 0 || r.cluster.Jobs.All[0].Tasks[0].Done != done ||
		r.cluster.Jobs.All[0].Tasks[0].Kept < 50*time.Minute {
		t.Errorf("%d pods serve, %v of the job are known to be done and %v are", r.cluster.Serving.State(0).Ready,
			r.cluster.Jobs.All[0].Tasks[0].Done, r.cluster.Jobs.All[0].Tasks[0].Kept)
	}
	if err := r.check(); err != nil {
		t.Error(err)
	}
	r.machines.Removals.Forget(0)
	if seen(r) != 0 || r.cluster.Jobs.All[0].Tasks[0].Done < 50*time.Minute || r.cluster.Jobs.All[0].Tasks[0].Kept != 0 {
		t.Errorf("%d pods count as ready, %v of the job are known to be done", seen(r), r.cluster.Jobs.All[0].Tasks[0].Done)
	}
}

// seen returns how many pods of the first workload the cluster takes for ready.
func seen(r *run) int32 {
	var w policy.Workload
	r.cluster.Workloads.Observe(0, &w)
	return w.Ready
}

// TestDrainOfALostNode drains a node that is lost before the loss is detected: the node is
// drained like any other, and its pods are recreated at once.
func TestDrainOfALostNode(t *testing.T) {
	b := one(2)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultZoneOutage, At: at(6 * time.Hour), Duration: time.Hour, Zone: "z0"}}
	w := b.scenario()
	for m := range w.Markets {
		if w.Markets[m].Capacity == policy.OnDemand && w.Markets[m].Zone == 0 {
			w.StartCluster = scenarios.StartNodes
			w.Seeds = []scenarios.NodeSeed{{Market: policy.MarketID(m), Count: 1}}
		}
	}
	r, err := newRun(Config{Prepared: mustPrepare(t, w), Policy: restless{mustPolicy(t, "on-demand")}, Seed: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	drained, stayed := policy.Time(0), false
	r.controller.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		if drained != 0 || !r.cluster.Nodes.State[0].Lost {
			// No kubelet ends the pods: they hold their places until the node goes.
			stayed = stayed ||
				drained != 0 && s.Now.Sub(drained) >= 20*time.Second && r.cluster.Nodes.State[0].Lost && len(r.cluster.Space.Pods(0)) == 2
			return
		}
		drained = s.Now
		if err := r.controller.Actuator.Drain(t.Context(), s, &policy.Drain{Node: 0}); err != nil {
			t.Error(err)
		}
		if r.cluster.Nodes.All[0].Phase != policy.NodeDraining || r.cluster.Serving.State(0).Ready != 0 || seen(r) != 0 ||
			r.cluster.Workloads.State[0].Active != 2 {
			t.Errorf("phase %v, %d ready, %d seen as ready, %d active; want draining, 0, 0 and 2",
				r.cluster.Nodes.All[0].Phase, r.cluster.Serving.State(0).Ready, seen(r), r.cluster.Workloads.State[0].Active)
		}
	}
	r.begin(false)
	if err := r.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if drained == 0 || !stayed {
		t.Fatalf("drained at %v; its pods stayed: %v", drained, stayed)
	}
	if _, err := r.finish(); err != nil {
		t.Fatal(err)
	}
}

// TestStartWithinLimits starts a run with no more nodes than the pool's limits allow.
func TestStartWithinLimits(t *testing.T) {
	b := one(10).startOnDemand()
	b.w.Pools[0].Limits = policy.Resources{CPU: 8000}
	r, err := newRun(Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	r.begin(false)
	if len(r.cluster.Nodes.All) != 2 || r.machines.Pools.All[0].Used.CPU != 8000 || len(r.cluster.Queue.Pending) != 6 {
		t.Errorf("%d nodes with %d m CPU and %d pending pods, want 2, 8000 and 6", len(r.cluster.Nodes.All),
			r.machines.Pools.All[0].Used.CPU, len(r.cluster.Queue.Pending))
	}
}

// TestEveryRoundStartsAPod holds that four completions one after the other, of
// ten minutes each and a start-up of ten, are not owed within an hour.
func TestEveryRoundStartsAPod(t *testing.T) {
	for due, missed := range map[time.Duration]int64{time.Hour: 0, 90 * time.Minute: 1} {
		b := one(1)
		b.w.Pools[0].Limits = policy.Resources{CPU: 4000}
		b.workload("batch", policy.KindJob, 1, policy.Resources{CPU: 3500, Memory: gib}).Startup = 10 * time.Minute
		w := &b.w.Workloads[1]
		w.Schedule, w.Replicas = nil, 0
		w.Job = &scenarios.Job{Pods: 1, Completions: 4, Work: 10 * time.Minute, Deadline: due, Releases: []policy.Time{at(time.Hour)}}
		if res, _ := runScenario(t, b.scenario(), "on-demand"); res.JobsMissed != missed {
			t.Errorf("due after %v: %d missed, want %d", due, res.JobsMissed, missed)
		}
	}
}
