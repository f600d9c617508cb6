package sim

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestLostOnce reclaims Spot nodes whose drain a budget blocks to the end: their pods go down
// with them, are counted once, and are not evicted.
func TestLostOnce(t *testing.T) {
	b := one(6)
	b.budget(0, policy.Quantity{Set: true})
	b.w.PDBs[0].AlwaysAllowUnhealthy = true
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(3 * time.Hour), Duration: time.Hour, Share: 1}}
	w := b.scenario()
	for m := range w.Markets {
		if w.Markets[m].Capacity == policy.Spot && w.Markets[m].Zone == 0 {
			w.StartCluster = scenarios.StartNodes
			w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: policy.MarketID(m), Count: 3}}
		}
	}
	res, log := runScenario(t, w, "spot")
	lost := count(log, " lost ")
	if lost != 6 || res.ReclaimEvictions != int64(lost) || count(log, " evicted ") != 0 {
		t.Errorf("%d pods lost, %d counted, %d evicted; want 6, 6 and 0", lost, res.ReclaimEvictions, count(log, " evicted "))
	}
}

// stuckWorld has, from 1:00 on, a pod of six cores that the limit of eight cores
// leaves no room for.
func stuckScenario(steps ...scenarios.ReplicaStep) *builder {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, time.Hour
	b.markets(1, 2, false)
	b.pool("p").Limits = policy.Resources{CPU: 8000}
	b.workload("web", policy.KindDeployment, 2, policy.Resources{CPU: 1800, Memory: gib})
	b.w.Workloads[0].Schedule = append(b.w.Workloads[0].Schedule, steps...)
	b.workload("big", policy.KindDeployment, 0, policy.Resources{CPU: 6000, Memory: gib})
	b.w.Workloads[1].Schedule = append(b.w.Workloads[1].Schedule, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 1})
	return b
}

// TestStuckPod holds that a pod for which nothing can be bought delays no other:
// new ones are ready within 98 s, whenever they come.
func TestStuckPod(t *testing.T) {
	for offset := time.Duration(0); offset < 3*time.Minute; offset += 45 * time.Second {
		res, log := runScenario(t, stuckScenario(scenarios.ReplicaStep{At: at(6*time.Hour + offset), Replicas: 4}).scenario(), "on-demand")
		if n := count(log, " ready default/web-"); n != 2 || res.TimeToReadyP95 > 98*time.Second {
			t.Errorf("%v after six: %d new pods ready, after %v", offset, n, res.TimeToReadyP95)
		}
	}
}

// TestStuckPodAndConsolidation holds that such a pod keeps no node from being
// emptied: at six the first workload goes, and what is left fits on one node.
func TestStuckPodAndConsolidation(t *testing.T) {
	b := stuckScenario()
	b.w.Pools[0].Consolidation = policy.WhenEmptyOrUnderutilized
	b.w.Pools[0].Budgets[0].Nodes = policy.Quantity{Set: true, N: 2}
	b.w.Workloads[0].Schedule = []scenarios.ReplicaStep{{At: testStart.Add(-time.Hour), Replicas: 2}, {At: at(6 * time.Hour), Replicas: 1}}
	b.workload("api", policy.KindDeployment, 1, policy.Resources{CPU: 2000, Memory: gib})
	w := b.scenario()
	for m := range w.Markets {
		if w.Markets[m].Capacity == policy.OnDemand && w.Markets[m].Type == 0 {
			w.StartCluster = scenarios.StartNodes
			w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: policy.MarketID(m), Count: 2}}
		}
	}
	res, log := runScenario(t, w, "on-demand")
	if n := count(log, " deleted "); n != 1 || res.NodeHours > 19 {
		t.Errorf("%d nodes given back, %.1f node-hours; want 1 and about 18", n, res.NodeHours)
	}
}

// TestExpire replaces the nodes of the start every four hours.
func TestExpire(t *testing.T) {
	b := one(2)
	b.w.Pools[0].ExpireAfter = 4 * time.Hour
	_, log := runScenario(t, b.scenario(), "on-demand")
	if n := count(log, " deleted "); n != 3 {
		t.Errorf("%d nodes were replaced, want 3 (at 3:00, 7:00 and 11:00)", n)
	}
}

// TestExpireAgain gives a drain up that a budget blocks, and tries again when
// the budget allows it: from 8:00 on there is a third pod, and two must stay.
func TestExpireAgain(t *testing.T) {
	b := one(2, scenarios.ReplicaStep{At: at(8 * time.Hour), Replicas: 3})
	b.w.Pools[0].ExpireAfter = 4 * time.Hour
	b.w.PDBs = []policy.PDB{{Name: "web", Namespace: "default", MinAvailable: policy.Quantity{Set: true, N: 2}}}
	b.w.Templates[0].PDBs = []policy.PDBID{0}
	_, log := runScenario(t, b.scenario(), "on-demand")
	if n := count(log, " deleted "); n == 0 {
		t.Error("the first node outlives its drain that was given up")
	}
}

// TestOverlappingFaults takes the controller away twice at once: the end of the
// shorter fault does not bring it back.
func TestOverlappingFaults(t *testing.T) {
	b := one(4)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultControllerDown, At: at(3 * time.Hour), Duration: 2 * time.Hour},
		{Kind: scenarios.FaultControllerDown, At: at(210 * time.Minute), Duration: 10 * time.Minute}}
	_, log := runScenario(t, b.scenario(), "static")
	if n := count(log, "T03:", " step ") + count(log, "T04:", " step "); n != 0 {
		t.Errorf("%d decisions while the controller was down", n)
	}
}

// TestJobOfTheWarmUp: a job that is done before metering starts does not count.
func TestJobOfTheWarmUp(t *testing.T) {
	w := jobScenario(0)
	w.Faults = nil
	w.Workloads[1].Job.Releases, w.Workloads[1].Job.Work = []policy.Time{at(-50 * time.Minute)}, 10*time.Minute
	if res, _ := runScenario(t, w, "on-demand"); res.JobsDone != 0 {
		t.Errorf("%d jobs done, want 0", res.JobsDone)
	}
}

// TestRampOfNothing holds that a price ramp offers no market that is not offered.
func TestRampOfNothing(t *testing.T) {
	b := one(1)
	c := &b.w.Prices[1]
	c.At, c.Price = append(c.At, at(2*time.Hour)), append(c.Price, policy.NoPrice)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultPriceRamp, At: at(3 * time.Hour), Duration: time.Hour, Factor: 2}}
	w := b.scenario()
	s := mustPrepare(t, w)
	for m := range w.Markets {
		c := s.Prices(policy.MarketID(m))
		k, _ := slices.BinarySearch(c.At, at(3*time.Hour+1))
		if slices.Contains(w.Prices[m].Price, policy.NoPrice) && c.Price[k-1] != policy.NoPrice {
			t.Errorf("%s is offered by the ramp", w.Markets[m].Name)
		}
	}
}

// TestSeedsBeyondSlots says how many of the scenario's nodes have no place.
func TestSeedsBeyondSlots(t *testing.T) {
	b := one(1)
	b.w.Slots = 2
	w := b.scenario()
	for m := range w.Markets {
		if w.Markets[m].Capacity == policy.Spot {
			w.StartCluster = scenarios.StartNodes
			w.Seeds = []scenarios.NodeSeed{{Market: policy.MarketID(m), Count: 5}}
		}
	}
	if res, _ := runScenario(t, w, "on-demand"); len(res.Warnings) != 1 {
		t.Errorf("warnings %q, want one", res.Warnings)
	}
}

// TestParallel runs one stage many times at once: what is shared is only read.
func TestParallel(t *testing.T) {
	w := stormy(20)
	w.Pools[0].Budgets = append(w.Pools[0].Budgets, policy.DisruptionBudget{Nodes: policy.Quantity{Set: true, N: 1},
		Schedule: "0 9 * * *", Duration: 8 * time.Hour})
	stage := mustPrepare(t, w)
	var hashes [6][32]byte
	var wait sync.WaitGroup
	for i := range hashes {
		wait.Go(func() {
			res := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, specs[i%3]), Forecaster: mustForecaster(t), Seed: 3})
			hashes[i] = res.Hash
		})
	}
	wait.Wait()
	for i := range 3 {
		if hashes[i] != hashes[i+3] {
			t.Errorf("two runs of %s differ", specs[i])
		}
	}
}
