package nodepools

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/karpenter"
	"github.com/spotter-dev/spotter/sim/machines"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// begin returns Karpenter at the begin of a run, which buys on demand.
func begin(t *testing.T, w scenarios.BoundScenario, seed uint64) *Karpenter {
	t.Helper()
	simtest.SortMarkets(&w)
	run, m := simtest.NewRun(t, &w, seed)
	k := New(machines.New(cluster.New(run), m))
	k.Workloads.Start()
	k.Launches.Start(false)
	k.Start()
	k.Queue.Start()
	return k
}

// A node on which a pending pod was promised a place is not consolidated.
func TestPromisedNodeStays(t *testing.T) {
	w := simtest.One(4)
	w.StartCluster = scenarios.StartOnDemand
	k := begin(t, w, 1)
	var d karpenter.Disruptor
	if used := d.Candidates(k.consolidation.cluster(), karpenter.SingleNode); len(used) != 2 {
		t.Fatalf("%d candidates, want 2", len(used))
	}
	k.Nodes.State[1].Nominated = 1
	if used := d.Candidates(k.consolidation.cluster(), karpenter.SingleNode); len(used) != 1 || used[0].Node != 0 {
		t.Errorf("candidates %v, want the first node alone", used)
	}
}

// Empty nodes are looked at once more 15 s after they were found: by then a pod was
// promised a place on the first, and only the second is removed.
func TestEmptyNodesAreValidated(t *testing.T) {
	w := simtest.One(0)
	w.Pools[0].Budgets = nil
	w.StartCluster = scenarios.StartNodes
	w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 2}}
	k := begin(t, w, 1)
	found := k.Clock.Now.Add(time.Minute)
	k.Clock.Now, k.consolidation.poll.at = found, found
	k.consolidation.disrupt()
	if k.consolidation.poll.at != found.Add(15*time.Second) || k.consolidation.command == nil || len(k.consolidation.command.Candidates) != 2 || len(k.Drains.Active) != 0 {
		t.Fatalf("command %+v, to be validated at %v; want one of two nodes at %v", k.consolidation.command, k.consolidation.poll.at, found.Add(15*time.Second))
	}
	k.Nodes.State[0].Nominated = 1
	k.Clock.Now = k.consolidation.poll.at
	k.consolidation.disrupt()
	if a, b := k.Nodes.All[0].Phase, k.Nodes.All[1].Phase; a != policy.NodeInitialized || b == policy.NodeInitialized {
		t.Errorf("the nodes are %v and %v, want the second taken down alone", a, b)
	}
}

// An empty node on which a pod was promised a place is found at the look after the promise
// is dropped, though no look was to find anything before the promise ends.
func TestIdleUntilNodesChange(t *testing.T) {
	w := simtest.One(0)
	w.StartCluster = scenarios.StartNodes
	w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 1}}
	k := begin(t, w, 1)
	k.Nodes.State[0].Nominated = 1
	look := func() *karpenter.Command {
		k.Clock.Now = k.Clock.Now.Add(pollingPeriod)
		k.consolidation.poll.at = k.Clock.Now
		k.consolidation.disrupt()
		return k.consolidation.command
	}
	if cmd := look(); cmd != nil || !k.consolidation.idle() {
		t.Fatalf("command %+v, idle: %v; want none, and idle", cmd, k.consolidation.idle())
	}
	k.Nodes.State[0].Nominated = 0
	k.Nodes.Touch(0)
	if cmd := look(); cmd == nil {
		t.Error("no command, want the node removed")
	}
}

// Pods are planned onto nodes by name, initialized ones first, and names end at random:
// under one seed or another every node is the first of its phase.
func TestPlansByName(t *testing.T) {
	w := simtest.One(12)
	w.StartCluster = scenarios.StartOnDemand
	first := map[policy.NodeID]int{}
	for seed := range uint64(60) {
		k := begin(t, w, seed)
		late := []policy.NodeID{0, 2, 4} // on their way
		for _, n := range late {
			k.Nodes.All[n].Phase = policy.NodeRegistered
			k.Nodes.Touch(n)
		}
		list := k.provisioner.staying(nil)
		if len(list) != 6 || slices.ContainsFunc(list[:3], func(n policy.NodeID) bool { return slices.Contains(late, n) }) {
			t.Fatalf("seed %d: planned with %v, want 6 nodes with %v after the others", seed, list, late)
		}
		first[list[0]]++
		first[list[3]]++
	}
	for n := range policy.NodeID(6) {
		if first[n] < 10 {
			t.Errorf("node %d is first under %d of 60 seeds, want about 20", n, first[n])
		}
	}
}

// What resets the state of consolidation when an empty node is removed: not that it is marked
// for deletion, and not the end of the drain, but that its instance has shut down.
func TestShutdownIsAChange(t *testing.T) {
	w := simtest.One(0)
	w.StartCluster = scenarios.StartNodes
	w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 2}}
	k := begin(t, w, 1)
	changes := k.consolidation.state.Changes()
	k.Drains.Start(0, nil, 0, policy.ActorKarpenter)
	begun := k.Clock.Now
	for _, step := range []struct {
		until time.Duration
		gone  bool
		more  uint64
	}{{4 * time.Second, false, 0}, {6 * time.Second, true, 0}, {49 * time.Second, true, 0}, {51 * time.Second, true, 1}} {
		for e, ok := k.Clock.Next(begun.Add(step.until)); ok; e, ok = k.Clock.Next(begun.Add(step.until)) {
			if k.Clock.Now != begun || e.Kind() != 0 {
				k.Clock.CarryOut(&e)
			}
		}
		if gone, more := k.Nodes.All[0].Phase == policy.NodeGone, k.consolidation.state.Changes()-changes; gone != step.gone || more != step.more {
			t.Errorf("after %v the node is gone: %v, and %d changes were noted; want %v and %d", step.until, gone, more, step.gone, step.more)
		}
	}
}
