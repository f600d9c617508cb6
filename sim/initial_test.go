package sim

import (
	"slices"
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
		b.w.StartCluster = scenarios.StartNodes
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
	b.w.StartCluster = scenarios.StartNodes
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

// TestStatedPodsOfJobs has a job that starts with the run: its pods are on the node that the
// scenario states, and work at once.
func TestStatedPodsOfJobs(t *testing.T) {
	b := one(0)
	b.w.WarmUp = 0
	w := &b.w.Workloads[0]
	w.Kind, w.Schedule, w.Replicas = policy.KindJob, nil, 1
	w.Job = &scenarios.Job{Pods: 1, Completions: 1, Work: 1000000, Releases: []policy.Time{b.w.Start.Add(-b.w.WarmUp)}}
	b.w.StartCluster = scenarios.StartNodes
	b.w.Seeds = []scenarios.NodeSeed{{Count: 1}, {Count: 1, Pods: []scenarios.PodsOnNode{{Workload: 0, Count: 1}}}}
	_, log := runScenario(t, b.scenario(), "on-demand")
	begin, _, _ := strings.Cut(log[0], " ")
	if count(log, begin, " bound ", "-2 0") != 1 || count(log, begin, " ready ") != 1 {
		t.Errorf("the pod of the job is not at work on the second node at once:\n%s", strings.Join(log[:min(len(log), 20)], "\n"))
	}
}

// TestStartEmpty: without stated nodes the pods are pending in an empty cluster when the warm-up
// starts, and the policy's own provisioner launches the nodes, of the NodePool of the greatest
// weight and under its rules. Time that pods are pending in the warm-up is no outage.
func TestStartEmpty(t *testing.T) {
	for _, x := range []struct {
		weights [2]int32
		pool    string
	}{{[2]int32{100, 0}, "p"}, {[2]int32{0, 100}, "q"}} {
		b := one(6)
		b.pool("q")
		b.w.Pools[0].CapacityTypes, b.w.Pools[1].CapacityTypes = []policy.CapacityType{policy.OnDemand}, []policy.CapacityType{policy.Spot}
		b.w.NodePools = []*scenarios.NodePool{{Weight: x.weights[0]}, {Weight: x.weights[1]}}
		res, log := runFromWarmUp(t, b, "as-is")
		all := count(log, " launch ")
		if own := count(log, " launch "+x.pool+"-"); all == 0 || own != all {
			t.Errorf("weights %v: %d of %d nodes are of pool %s, want all", x.weights, own, all, x.pool)
		}
		if spot := count(log, " launch ", "/spot"); x.pool == "p" && spot != 0 || x.pool == "q" && spot != all {
			t.Errorf("weights %v: %d of %d nodes are Spot", x.weights, spot, all)
		}
		if res.Unserved != 0 || res.Outages.Incidents != 0 || res.Launches != 0 || res.WarmUpLaunches != int64(all) {
			t.Errorf("weights %v: unserved %v, %d incidents, %d launches and %d in the warm-up; want all launches in the warm-up, and nothing unserved",
				x.weights, res.Unserved, res.Outages.Incidents, res.Launches, res.WarmUpLaunches)
		}
	}
}

// TestStartOnDemand: every policy starts on the same on-demand nodes, which a policy for Spot
// leaves.
func TestStartOnDemand(t *testing.T) {
	var want []string
	for _, spec := range []string{"on-demand", "karpenter", "static"} {
		res, log := runFromWarmUp(t, one(6).startOnDemand(), spec)
		nodes := slices.DeleteFunc(log, func(line string) bool { // those that were not bought have no price
			return !strings.Contains(line, " launch ") || !strings.HasSuffix(line, " 0")
		})
		if want == nil {
			want = nodes
		}
		if count(nodes, "/on-demand") != 3 || !slices.Equal(nodes, want) {
			t.Errorf("%s starts with %q, want three on-demand nodes as %q", spec, nodes, want)
		}
		if spot := res.SpotHours > 0; spot != (spec != "on-demand") {
			t.Errorf("%s holds Spot nodes: %v", spec, spot)
		}
	}
}

// runFromWarmUp runs what was built and returns the whole log.
func runFromWarmUp(t *testing.T, b *builder, spec string) (*Result, []string) {
	t.Helper()
	var out strings.Builder
	res := mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, spec),
		Forecaster: mustForecaster(t), Seed: 1, Check: true, Log: &out})
	return res, strings.Split(strings.TrimSpace(out.String()), "\n")
}

// TestOnDemandStart starts on Spot nodes that no budget lets go: the reference run has the same
// nodes on demand, and pays for no Spot.
func TestOnDemandStart(t *testing.T) {
	for _, onDemand := range []bool{false, true} {
		b := one(4)
		b.w.Pools[0].Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true}}}
		b.w.StartCluster = scenarios.StartNodes
		spot := slices.IndexFunc(b.w.Markets, func(m policy.Market) bool { return m.Capacity == policy.Spot })
		b.w.Seeds = []scenarios.NodeSeed{{Market: policy.MarketID(spot), Count: 2, Pods: []scenarios.PodsOnNode{{Workload: 0, Count: 2}}}}
		res := mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"),
			Forecaster: mustForecaster(t), Seed: 1, Check: true, OnDemandStart: onDemand})
		if paid := res.SpotBill > 0; paid == onDemand || res.Bill <= 0 || res.OutageMinutes > 0 {
			t.Errorf("start on demand %v: a bill of %v, of which Spot %v, and %d outage minutes", onDemand, res.Bill,
				res.SpotBill, res.OutageMinutes)
		}
	}
}

// TestStartVolumes: the volumes of a StatefulSet exist before the warm-up of an empty cluster, one
// zone after the other and the same for every policy, so that its pods stay spread.
func TestStartVolumes(t *testing.T) {
	var want []string
	for _, spec := range []string{"on-demand", "spot"} {
		b := one(1)
		x := b.workload("db", policy.KindStatefulSet, 4, policy.Resources{CPU: 500, Memory: gib})
		x.Volumes = []policy.Volume{{Zonal: true}}
		_, log := runFromWarmUp(t, b, spec)
		zones := map[string]string{} // by node
		var got []string
		for _, line := range log {
			words := strings.Fields(line)
			switch {
			case words[1] == "launch":
				zones[words[2]] = strings.Split(words[3], "/")[2]
			case words[1] == "bound" && strings.Contains(words[2], "db-"):
				got = append(got, words[2]+" "+zones[words[3]])
			}
		}
		slices.Sort(got)
		got = slices.Compact(got)
		if want == nil {
			want = got
		}
		if len(got) != 4 || count(got, " z0") != 2 || count(got, " z1") != 2 || !slices.Equal(got, want) {
			t.Errorf("%s has the volumes in %v, want two in each of two zones as %v", spec, got, want)
		}
	}
}
