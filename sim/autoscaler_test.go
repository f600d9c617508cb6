package sim

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/controller"
)

// grouped returns a calm scenario of one service on Auto Scaling groups: two pods
// to a node of four cores.
func grouped(replicas int32, steps ...scenarios.ReplicaStep) *builder {
	b := one(replicas, steps...)
	b.groups(&b.w.Pools[0])
	return b
}

// when returns the instants of the lines that hold all the words.
func when(t *testing.T, lines []string, words ...string) []policy.Time {
	t.Helper()
	var times []policy.Time
	for _, line := range lines {
		if count([]string{line}, words...) == 0 {
			continue
		}
		stamp, _, _ := strings.Cut(line, " ")
		x, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, policy.TimeOf(x))
	}
	return times
}

// Ten pods fill five nodes; at six nothing is wanted any more. The nodes are
// unneeded from the next scan on and go together ten minutes later.
func TestGroupEmptyNodesGoAfterTenMinutes(t *testing.T) {
	_, log := runScenario(t, grouped(10, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0}).scenario(), "on-demand")
	deleted := when(t, log, " deleted ")
	if len(deleted) != 5 {
		t.Fatalf("%d nodes went, want 5", len(deleted))
	}
	for _, d := range deleted {
		if d != deleted[0] || d < at(6*time.Hour+10*time.Minute) || d > at(6*time.Hour+10*time.Minute+20*time.Second) {
			t.Errorf("a node went at %v, want all together ten minutes after six", d)
		}
	}
}

// Twenty-four pods fill twelve nodes; with at most ten at once the last two go a
// scan later.
func TestGroupTenEmptyNodesAtOnce(t *testing.T) {
	_, log := runScenario(t, grouped(24, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0}).scenario(), "on-demand")
	deleted := when(t, log, " deleted ")
	if len(deleted) != 12 || deleted[9] != deleted[0] || deleted[11] != deleted[0].Add(10*time.Second) {
		t.Errorf("nodes went at %v, want ten and then two ten seconds later", deleted)
	}
}

// thinned has six nodes of which, from six on, each holds one pod: three can go.
func thinned() *builder {
	b := grouped(0)
	for i := range 6 {
		id := policy.WorkloadID(len(b.w.Workloads))
		b.workload("pair-"+string(rune('a'+i)), policy.KindDeployment, 2, policy.Resources{CPU: 1800, Memory: gib})
		b.w.Workloads[id].Schedule = append(b.w.Workloads[id].Schedule, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 1})
	}
	return b
}

// Nodes with pods go one at a time, and each only ten minutes after it became
// unneeded.
func TestGroupDrainsOneAtATime(t *testing.T) {
	_, log := runScenario(t, thinned().scenario(), "on-demand")
	begun, gone := when(t, log, " draining "), when(t, log, " deleted ")
	if len(begun) < 2 || len(begun) != len(gone) {
		t.Fatalf("%d drains, %d nodes given back; want some", len(begun), len(gone))
	}
	if begun[0] < at(6*time.Hour+10*time.Minute) {
		t.Errorf("the first drain begins at %v, before ten minutes are over", begun[0])
	}
	for i := 1; i < len(begun); i++ {
		if begun[i] < gone[i-1] {
			t.Errorf("drain %d begins at %v, before the one before it ended at %v", i, begun[i], gone[i-1])
		}
	}
}

// A node is kept by a pod whose budget allows no eviction, a pod that is not safe to evict, a pod
// with local storage, and a pool that is never consolidated. A pod that is marked safe to evict
// and an older pod of the system do not keep it.
func TestGroupPodsThatHoldNodes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *builder)
		holds  bool
	}{
		"nothing": {func(*builder) {}, false},
		"budget":  {func(b *builder) { b.eachPair(func(w policy.WorkloadID) { b.budget(w, policy.Quantity{Set: true}) }) }, true},
		"wide budget": {func(b *builder) {
			b.eachPair(func(w policy.WorkloadID) { b.budget(w, policy.Quantity{Set: true, N: 1}) })
		}, false},
		"not safe":      {func(b *builder) { b.eachPair(func(w policy.WorkloadID) { b.w.Templates[w].NotSafeToEvict = true }) }, true},
		"local storage": {func(b *builder) { b.eachPair(func(w policy.WorkloadID) { b.w.Workloads[w].LocalStorage = true }) }, true},
		"called safe": {func(b *builder) {
			b.eachPair(func(w policy.WorkloadID) { b.w.Workloads[w].LocalStorage, b.w.Templates[w].SafeToEvict = true, true })
		}, false},
		"system, older than an hour": {func(b *builder) {
			b.eachPair(func(w policy.WorkloadID) { b.w.Templates[w].Namespace = "kube-system" })
		}, false},
		"kept pool": {func(b *builder) { b.w.Pools[0].Consolidation = policy.ConsolidateNever }, true},
	} {
		b := thinned()
		c.change(b)
		_, log := runScenario(t, b.scenario(), "on-demand")
		if held := count(log, " draining ")+count(log, " deleted ") == 0; held != c.holds {
			t.Errorf("%s: nodes held %v, want %v", name, held, c.holds)
		}
	}
}

// eachPair calls f for each workload of thinned.
func (b *builder) eachPair(f func(policy.WorkloadID)) {
	for i := 1; i < len(b.w.Workloads); i++ {
		f(policy.WorkloadID(i))
	}
}

// Two pods of one workload share each node, and its budget lets one go at a time: the
// node goes all the same, since evictions are tried again. A budget that lets none go
// keeps it.
func TestGroupBudgetForWholeNodes(t *testing.T) {
	for allowed, gone := range map[int32]bool{0: false, 1: true, 2: true} {
		b := grouped(0)
		b.w.Workloads[0].Schedule[0].Replicas = 0
		b.workload("small", policy.KindDeployment, 2, policy.Resources{CPU: 800, Memory: gib})
		b.budget(1, policy.Quantity{Set: true, N: allowed})
		b.workload("filler", policy.KindDeployment, 1, policy.Resources{CPU: 1600, Memory: gib})
		b.workload("other", policy.KindDeployment, 1, policy.Resources{CPU: 2000, Memory: gib})
		b.w.Workloads[2].Schedule = append(b.w.Workloads[2].Schedule, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0})
		_, log := runScenario(t, b.scenario(), "on-demand")
		if begun := count(log, " draining ") > 0; begun != gone || begun != (count(log, " deleted ") > 0) {
			t.Errorf("a budget of %d: drains begun %v, want %v", allowed, begun, gone)
		}
	}
}

// A node that is empty takes no pods in thought: of one empty node and one with a
// pod only the empty one goes, and the pod stays where it is.
func TestGroupEmptyNodesAreNoRoom(t *testing.T) {
	b := grouped(0)
	for i, left := range []int32{1, 0} {
		b.workload("pair-"+string(rune('a'+i)), policy.KindDeployment, 2, policy.Resources{CPU: 1800, Memory: gib})
		b.w.Workloads[i+1].Schedule = append(b.w.Workloads[i+1].Schedule, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: left})
	}
	_, log := runScenario(t, b.scenario(), "on-demand")
	if gone, evicted, launched := count(log, " deleted "), count(log, " evicted "), count(log, " launch "); gone != 1 ||
		evicted != 0 || launched != 0 {
		t.Errorf("%d nodes went, %d pods were evicted and %d nodes launched, want 1, 0 and 0", gone, evicted, launched)
	}
}

// The replacement of a node is bought, and then the budget allows no eviction for 13 minutes,
// because a new pod takes that long to start. The replacement stays empty and is protected, though
// it is not needed for longer than the ten minutes that nodes are kept.
func TestGroupKeepsReplacements(t *testing.T) {
	b := grouped(4).startOnDemand()
	b.w.WarmUp = 0
	late := b.workload("late", policy.KindDeployment, 0, policy.Resources{CPU: 50, Memory: gib})
	late.Startup = 13 * time.Minute
	late.PodAffinity = []policy.PodTerm{{TopologyKey: labelHost, Weight: 100, Selector: policy.Selector{ // not on the node that is drained
		Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"first"}}}}}}
	b.w.Workloads[1].Schedule = append(b.w.Workloads[1].Schedule, scenarios.ReplicaStep{At: at(20 * time.Second), Replicas: 1})
	b.budget(0, policy.Quantity{Set: true, N: 1})
	b.w.Templates[1].PDBs = b.w.Templates[0].PDBs
	b.workload("first", policy.KindDeployment, 1, policy.Resources{CPU: 200, Memory: gib})
	var out bytes.Buffer
	mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "static:share=1"),
		Forecaster: mustForecaster(t), Seed: 1, Check: true, Log: &out})
	log := slices.Collect(strings.Lines(out.String()))
	ready, evicted, gone := when(t, log, " initialized "), when(t, log, " evicted default/web"), when(t, log, " deleted ")
	if len(ready) == 0 || len(evicted) == 0 || len(gone) == 0 {
		t.Fatalf("%d nodes joined, %d pods were evicted, %d nodes went; want some", len(ready), len(evicted), len(gone))
	}
	if ready[0] > at(2*time.Minute) || evicted[0] < at(13*time.Minute) || gone[0] < evicted[0] {
		t.Errorf("the replacement joined at %v, the first pod moved at %v and the first node went at %v, want 00:01, 00:13 and later",
			ready[0], evicted[0], gone[0])
	}
}

// After groups grew, no node is released for ten minutes: the drains that would start at 6:10
// wait because of the growth at 6:08.
func TestGroupDelayAfterAdd(t *testing.T) {
	b := thinned()
	b.workload("late", policy.KindDeployment, 0, policy.Resources{CPU: 3500, Memory: gib})
	id := len(b.w.Workloads) - 1
	b.w.Workloads[id].Schedule = append(b.w.Workloads[id].Schedule, scenarios.ReplicaStep{At: at(6*time.Hour + 8*time.Minute), Replicas: 1})
	_, log := runScenario(t, b.scenario(), "on-demand")
	if begun := when(t, log, " draining "); len(begun) == 0 || begun[0] < at(6*time.Hour+18*time.Minute) {
		t.Errorf("drains begin at %v, want none before 6:18", begun)
	}
}

// Without a way back to on-demand the pods wait for spot. The group backs off for
// five, then ten minutes and so on, and is found short a minute after each attempt.
func TestGroupBacksOff(t *testing.T) {
	b := grouped(0, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 4})
	b.w.Pools[0].OnDemandFallback = false
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(5 * time.Hour), Duration: 3 * time.Hour, Share: 1}}
	_, log := runScenario(t, b.scenario(), "spot")
	refused := when(t, log, " refused ")
	if len(refused) < 4 {
		t.Fatalf("%d refusals, want several", len(refused))
	}
	for i, least := range []time.Duration{6 * time.Minute, 11 * time.Minute, 21 * time.Minute} {
		if d := refused[i+1].Sub(refused[i]); d < least || d > least+2*time.Minute {
			t.Errorf("%v between attempts %d and %d, want %v and the time to see it", d, i, i+1, least)
		}
	}
	if n := count(log, " launch ", "/spot "); n != 2 {
		t.Errorf("%d spot nodes came when spot reopened, want 2", n)
	}
}

// A node that cannot be emptied in time is given up, and for three minutes no
// other is tried.
func TestGroupDelayAfterFailure(t *testing.T) {
	b, delays := thinned(), DefaultDelays()
	delays.Terminate = 3 * time.Minute // evictions are tried for two
	for i := range b.w.Templates {
		b.w.Templates[i].Grace = delays.Terminate
	}
	var out bytes.Buffer
	mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1,
		Check: true, Log: &out, Delays: &delays})
	log := slices.Collect(strings.Lines(out.String()))
	begun, undone := when(t, log, "T06:", " draining "), when(t, log, "T06:", " undrained ")
	if len(begun) < 2 || len(undone) == 0 {
		t.Fatalf("%d drains, %d undone; want some", len(begun), len(undone))
	}
	if d := begun[1].Sub(undone[0]); d < 3*time.Minute {
		t.Errorf("the next drain begins %v after the failure, want 3 min at least", d)
	}
}

// Nodes of two sizes make two classes. The expander takes the size that leaves
// least unused: a pod of seven cores makes the larger one grow, one of 3.5 cores
// the smaller one.
func TestGroupExpander(t *testing.T) {
	for cpu, want := range map[int64]string{7000: "t1.large", 3500: "t0.large"} {
		b := newBuilder(12 * time.Hour)
		b.w.Intensity, b.w.WarmUp = 0, time.Hour
		b.markets(1, 2, false)
		b.groups(b.pool("p"))
		b.workload("web", policy.KindDeployment, 0, policy.Resources{CPU: cpu, Memory: cpu * 3 * gib / 1000})
		b.w.Workloads[0].Schedule = append(b.w.Workloads[0].Schedule, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 3})
		_, log := runScenario(t, b.scenario(), "on-demand")
		if n := count(log, " launch ", want); n != 3 || count(log, " launch ") != 3 {
			t.Errorf("pods of %d m: %d of %d nodes are %s, want 3 of 3", cpu, n, count(log, " launch "), want)
		}
	}
}

// Of five nodes without pods the Cluster Autoscaler leaves the two that are the
// least of their group, and only then do snapshots show them as such. A drain that
// is under way counts as done.
func TestGroupScalesInToLeastSize(t *testing.T) {
	b := grouped(10, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0})
	b.w.Groups.Min, b.w.StartCluster = 2, scenarios.StartOnDemand
	cfg := Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true}
	shown := map[int]int{} // by nodes there are, the most that were shown as the least
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		live, least := 0, 0
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Live() && s.Markets[n.Market].Capacity == policy.OnDemand {
				live++
				if n.AtGroupMin {
					least++
				}
			}
		}
		shown[live] = max(shown[live], least)
	}
	if res := mustRun(t, cfg); res.Launches != 0 {
		t.Errorf("%d nodes were launched in the window, want none", res.Launches)
	}
	if len(shown) != 2 || shown[5] != 0 || shown[2] != 2 {
		t.Errorf("by the number of nodes, so many were shown as the least: %v, want 0 of 5 and 2 of 2", shown)
	}

	r, err := newRun(Config{Prepared: cfg.Prepared, Policy: mustPolicy(t, "on-demand"), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	r.begin(false)
	r.machines.Launches.Tokens["awaited"], r.cluster.Nodes.All[4].Phase = 4, policy.NodeRegistered
	for id := range policy.NodeID(3) {
		if !r.autoscaler.MayLose(0) {
			t.Errorf("with %d of 5 leaving a group that is to hold 2 may spare no other", id)
		}
		r.machines.Drains.Start(id, []string{"awaited"}, 0, policy.ActorUs)
	}
	if r.autoscaler.MayLose(0) {
		t.Error("with 3 of 5 leaving a group that is to hold 2 may spare another")
	}
	if err := r.controller.Actuator.Drain(t.Context(), nil, &policy.Drain{Node: 3}); !errors.Is(err, controller.ErrLeastSize) {
		t.Errorf("a drain of the fourth ends with %v, want %v", err, controller.ErrLeastSize)
	}
}

// A node that is about to go is tainted softly, and no longer once it is needed
// again.
func TestGroupSoftTaint(t *testing.T) {
	b := grouped(8, scenarios.ReplicaStep{At: at(6*time.Hour + 5*time.Minute), Replicas: 1},
		scenarios.ReplicaStep{At: at(6*time.Hour + 14*time.Minute), Replicas: 8})
	tainted := map[bool]int{}
	cfg := Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true}
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		for i := range s.Nodes {
			if s.Nodes[i].Live() && len(s.Nodes[i].Taints) > 0 {
				tainted[s.Now > at(6*time.Hour+5*time.Minute) && s.Now < at(6*time.Hour+15*time.Minute)]++
			}
		}
	}
	mustRun(t, cfg)
	if tainted[true] == 0 || tainted[false] != 0 {
		t.Errorf("%d soft taints were seen while nodes were unneeded and %d at other times, want some and none", tainted[true], tainted[false])
	}
}
