package sim

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestStatedPods has pods where the scenario says that they run: two on the first node and
// none on the second, though the scheduler would spread them. What does not fit is said by
// name and put elsewhere.
func TestStatedPods(t *testing.T) {
	for _, x := range []struct {
		on   int32
		want [2]int
		said string
	}{{0, [2]int{1, 1}, ""}, {2, [2]int{2, 0}, ""}, {9, [2]int{2, 0}, ""}} {
		b := one(2)
		b.w.WarmUp = 0
		b.w.Seeds = []scenarios.NodeSeed{{Count: 1, Pods: []scenarios.PodsOnNode{{Workload: 0, Count: x.on}}}, {Count: 1}}
		_, log := runScenario(t, b.scenario(), "on-demand")
		begin, _, _ := strings.Cut(log[0], " ")
		for n, want := range x.want {
			if got := count(log, begin, " bound ", "-"+string(rune('1'+n))+" 0"); got != want {
				t.Errorf("%d stated on the first node: %d pods begin on node %d, want %d", x.on, got, n+1, want)
			}
		}
	}
	b := one(4)
	b.w.WarmUp = 0
	b.w.Seeds = []scenarios.NodeSeed{{Count: 1, Pods: []scenarios.PodsOnNode{{Workload: 0, Count: 4}}}, {Count: 1}}
	res, log := runScenario(t, b.scenario(), "on-demand")
	said := "pods of " + b.w.Workloads[0].Name + " that spec.nodes has on nodes of " + b.w.Pools[0].Name
	if all := strings.Join(res.Warnings, "\n"); strings.Count(all, said) != 1 || !strings.Contains(all, "do not all fit there") {
		t.Errorf("warnings %q, want one with %q", res.Warnings, said)
	}
	if n := count(log, " launch "); n != 2 {
		t.Errorf("%d launches, want none but the two nodes at the begin", n)
	}
}

// TestStatedPodsOfJobs has the pods of a job that begins with the run on the node where
// they are stated, at work at once.
func TestStatedPodsOfJobs(t *testing.T) {
	b := one(0)
	b.w.WarmUp = 0
	w := &b.w.Workloads[0]
	w.Kind, w.Schedule, w.Replicas = policy.KindJob, nil, 1
	w.Job = &scenarios.Job{Pods: 1, Completions: 1, Work: 1000000, Releases: []policy.Time{b.w.Start.Add(-b.w.WarmUp)}}
	b.w.Seeds = []scenarios.NodeSeed{{Count: 1}, {Count: 1, Pods: []scenarios.PodsOnNode{{Workload: 0, Count: 1}}}}
	_, log := runScenario(t, b.scenario(), "on-demand")
	begin, _, _ := strings.Cut(log[0], " ")
	if count(log, begin, " bound ", "-2 0") != 1 || count(log, begin, " ready ") != 1 {
		t.Errorf("the pod of the job is not at work on the second node at once:\n%s", strings.Join(log[:min(len(log), 20)], "\n"))
	}
}
