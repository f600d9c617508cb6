package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// expiring has one node with one pod and a PodDisruptionBudget of the pod. The node expires an
// hour before the run starts, and then every four hours.
func expiring(pdb policy.PDB) *builder {
	b := one(1)
	b.w.Pools[0].ExpireAfter = 4 * time.Hour
	pdb.Name, pdb.Namespace = "web", "default"
	b.w.PDBs = []policy.PDB{pdb}
	b.w.Templates[0].PDBs = []policy.PDBID{0}
	return b
}

// TestNodeForLeavingPods: for pods that wait to be evicted another node is bought although none is
// pending, unless they are kept for good. Limits do not count the node that goes.
func TestNodeForLeavingPods(t *testing.T) {
	one, none := policy.Quantity{Set: true, N: 1}, policy.Quantity{Set: true}
	for name, x := range map[string]struct {
		b      *builder
		bought bool
	}{
		"a budget that allows none now": {expiring(policy.PDB{MinAvailable: one}), true},
		"within limits": {func() *builder {
			b := expiring(policy.PDB{MinAvailable: one})
			b.w.Pools[0].Limits.CPU = b.w.Types[0].Capacity.CPU
			return b
		}(), true},
		"a budget that never allows one": {expiring(policy.PDB{MaxUnavailable: none}), false},
		"do-not-disrupt": {func() *builder {
			b := expiring(policy.PDB{MinAvailable: one})
			b.w.Workloads[0].DoNotDisrupt = true
			return b
		}(), false},
	} {
		_, log := runScenario(t, x.b.scenario(), "on-demand")
		begun, bought := when(t, log, " draining "), when(t, log, " launch ")
		if len(begun) == 0 {
			t.Fatalf("%s: no node is drained", name)
		}
		if got := len(bought) > 0 && bought[0] >= begun[0] && bought[0] <= begun[0].Add(20*time.Second); got != x.bought {
			t.Errorf("%s: drains begin at %v, nodes are bought at %v; want one bought: %v", name, begun, bought, x.bought)
		}
	}
}

// TestInterruptedPods: Karpenter does not evict a pod with do-not-disrupt, even if its node is
// about to be reclaimed; a policy of Spotter does.
func TestInterruptedPods(t *testing.T) {
	for policy, evicts := range map[string]bool{"karpenter": false, "spot": true} {
		b := one(6)
		b.w.Prices[3].Price[0]++ // spot in z1: all nodes come up in z0
		b.w.Workloads[0].DoNotDisrupt = true
		b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(3 * time.Hour), Duration: time.Hour, Share: 1, Zone: "z0"}}
		res, log := runScenario(t, b.scenario(), policy)
		if res.Notices == 0 {
			t.Fatalf("%s: no notice", policy)
		}
		if evicted, lost := count(log, " evicted "), count(log, " lost "); (evicted > 0) != evicts || (lost > 0) == evicts {
			t.Errorf("%s: %d pods were evicted and %d lost with their nodes; want evictions: %v", policy, evicted, lost, evicts)
		}
	}
}

// TestNoticeBeforeJoining: a node that gets a notice before it joins ends at the notice, and
// another is bought elsewhere at once.
func TestNoticeBeforeJoining(t *testing.T) {
	begin := at(3 * time.Hour)
	b := one(2, scenarios.ReplicaStep{At: begin.Add(-time.Minute), Replicas: 8})
	b.w.Prices[3].Price[0]++ // spot in z1
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: begin, Duration: time.Hour, Share: 1, Zone: "z0"}}
	_, log := runScenario(t, b.scenario(), "karpenter")
	early := 0
	for _, line := range log {
		words := strings.Fields(line)
		if words[1] == "deleted" && count(log, " registered "+words[2]+" ") == 0 && count(log, " launch "+words[2]+" ") == 1 {
			early++
		}
	}
	if other := count(log, " launch ", "/z1/"); early == 0 || other == 0 {
		t.Errorf("%d nodes ended before they joined, and %d were bought in the other zone; want some of both", early, other)
	}
}

// TestLimitsOfLaunches: a NodeClaim counts against the limits as its largest type until it is
// launched, so that pods are left over for which there is room ten seconds later.
func TestLimitsOfLaunches(t *testing.T) {
	const pods = 4
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, time.Hour
	b.markets(2, 2, false)
	b.pool("p").Limits.CPU = pods * b.w.Types[0].Capacity.CPU
	b.workload("web", policy.KindDeployment, 0, policy.Resources{CPU: 1800, Memory: gib})
	w := &b.w.Workloads[0]
	w.Schedule = append(w.Schedule, scenarios.ReplicaStep{At: at(time.Hour), Replicas: pods})
	b.w.Templates[0].PodAntiAffinity = []policy.PodTerm{{TopologyKey: "kubernetes.io/hostname",
		Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"web"}}}}}}
	b.w.Templates[0].Labels = []policy.Label{{Key: "app", Value: "web"}}
	_, log := runScenario(t, b.scenario(), "on-demand")
	bought := when(t, log, " launch ")
	if len(bought) != pods || bought[0] == bought[pods-1] || bought[pods-1] > at(time.Hour+time.Minute) {
		t.Errorf("nodes are bought at %v, want %d within a minute and not all at once", bought, pods)
	}
}
