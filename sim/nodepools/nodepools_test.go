package nodepools

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/karpenter"
	"github.com/spotter-dev/spotter/sim/machines"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// begin returns Karpenter at the start of a run, when it buys on demand.
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
	if k.consolidation.poll.at != found.Add(15*time.Second) || k.consolidation.command == nil ||
		len(k.consolidation.command.Candidates) != 2 || len(k.Drains.Active) != 0 {
		t.Fatalf("command %+v, to be validated at %v; want one of two nodes at %v", k.consolidation.command,
			k.consolidation.poll.at, found.Add(15*time.Second))
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

// Nodes that take the pods of a node that goes are nominated at every look of the provisioner: for
// twenty seconds each time, whether they are initialized or on their way.
func TestTargetsAreNominated(t *testing.T) {
	w := simtest.One(2)
	w.StartCluster = scenarios.StartNodes
	w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 3}}
	k := begin(t, w, 1)
	from := k.Pods.All[0].Node
	k.Drains.Start(from, nil, 0, policy.ActorKarpenter)
	for _, later := range []time.Duration{0, 10 * time.Second} {
		k.Clock.Now = k.Clock.Now.Add(later)
		k.provisioner.place()
		nominated := 0
		for id := range k.Nodes.All {
			switch until := k.tracker.of[id].nominatedUntil; {
			case until == 0:
			case until != k.Clock.Now.Add(20*time.Second) || policy.NodeID(id) == from:
				t.Errorf("after %v node %d is nominated until %v", later, id, until)
			default:
				nominated++
			}
		}
		if nominated != 1 {
			t.Errorf("after %v %d nodes are nominated, want the one that takes the pods", later, nominated)
		}
	}
}

// A node that pods waited for stays nominated for a while after it has joined: since the last look of
// the provisioner, which looks every ten seconds while pods wait.
func TestJoinedNodeStaysNominated(t *testing.T) {
	w := simtest.One(0)
	w.StartCluster = scenarios.StartNodes
	w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 2}}
	k := begin(t, w, 1)
	looked := k.Clock.Now
	k.provisioner.looked, k.Nodes.State[0].Nominated = looked, 1
	k.Clock.Now = looked.Add(37 * time.Second)
	k.NodeReady.Publish(0)
	k.NodeReady.Publish(1)
	k.Nodes.State[0].Nominated = 0
	view := karpenterView{k.consolidation}
	if got, want := view.NominatedUntil(0), looked.Add(30*time.Second+20*time.Second); got != want {
		t.Errorf("nominated until %v, want %v", got, want)
	}
	if got := view.NominatedUntil(1); got != 0 {
		t.Errorf("a node that no pod waited for is nominated until %v", got)
	}
}

// The API keeps the time of the last pod event in whole seconds, so that consolidateAfter ends up to a
// second early, and the next event counts up to a second early.
func TestPodEventsAreWholeSeconds(t *testing.T) {
	w := simtest.One(0)
	w.StartCluster = scenarios.StartNodes
	w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 1}}
	k := begin(t, w, 1)
	k.Nodes.All[0].Initialized = k.Clock.Now.Add(300 * time.Millisecond)
	if got := k.tracker.lastPodEvent(0); got != k.Clock.Now {
		t.Errorf("a node without pod events counts from %v, want %v", got, k.Clock.Now)
	}
	second := k.Clock.Now.Add(time.Minute)
	for _, x := range []struct{ at, want time.Duration }{
		{900 * time.Millisecond, 0},
		{9999 * time.Millisecond, 0},
		{10100 * time.Millisecond, 10 * time.Second},
	} {
		k.Clock.Now = second.Add(x.at)
		k.tracker.notePodEvent(0)
		if got, want := k.tracker.lastPodEvent(0), second.Add(x.want); got != want {
			t.Errorf("after %v the last event is at %v, want %v", x.at, got, want)
		}
	}
}

// The disruption controller looks every ten seconds from an instant on that the seed draws.
func TestLooksBeginAtRandom(t *testing.T) {
	phases := map[int64]bool{}
	for seed := range uint64(20) {
		k := begin(t, simtest.One(4), seed)
		k.consolidation.noteChange()
		at := k.consolidation.poll.at
		if wait := at.Sub(k.Clock.Now); wait < 0 || wait > pollingPeriod {
			t.Fatalf("seed %d: the first look is %v after the start", seed, wait)
		}
		phases[int64(at)%pollingPeriod.Milliseconds()] = true
	}
	if len(phases) < 15 {
		t.Errorf("20 seeds look at %d different instants of ten seconds, want almost as many", len(phases))
	}
}

// Both capacity types are requested from a provider that takes the cheapest open market, and one
// from EC2.
func TestRequestedCapacityTypes(t *testing.T) {
	w := simtest.One(0)
	for _, cheapest := range []bool{false, true} {
		k := begin(t, w, 1)
		k.Market.LowestPrice = cheapest
		var markets []policy.MarketID
		for m := range k.Scenario.Markets {
			markets = append(markets, policy.MarketID(m))
		}
		types := map[policy.CapacityType]bool{}
		for _, m := range k.provisioner.request(0, markets) {
			types[k.Scenario.Markets[m].Capacity] = true
		}
		if want := map[bool]int{false: 1, true: 2}[cheapest]; len(types) != want {
			t.Errorf("where the cheapest market is taken (%v) %d capacity types are requested, want %d", cheapest, len(types), want)
		}
	}
}

// While Karpenter drains an empty node for its least time the node is shown as being deleted, as
// the deletion of its NodeClaim has it in live mode; one with pods is being drained.
func TestEmptyNodesAreDeleting(t *testing.T) {
	for replicas, want := range map[int32]policy.NodePhase{0: policy.NodeDeleting, 2: policy.NodeDraining} {
		w := simtest.One(replicas)
		w.StartCluster = scenarios.StartNodes
		w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 1}}
		k := begin(t, w, 1)
		k.Drains.Start(0, nil, 0, policy.ActorKarpenter)
		if got := k.Nodes.All[0].Phase; got != want {
			t.Errorf("a node with %d pods is %v, want %v", replicas, got, want)
		}
	}
}

// Pods of any size in a pool with an exact share get whole nodes. As many of the nodes are Spot
// as bring the pool nearest to its share: within half a node, or no further away than before.
func TestExactShareInWholeNodes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := simtest.New(12 * time.Hour)
		w.Intensity, w.WarmUp = 0, time.Hour
		simtest.AddMarkets(&w, 2, 3, false)
		simtest.AddPool(&w, "p")
		kind := policy.TypeID(rapid.IntRange(0, len(w.Types)-1).Draw(r, "type"))
		size := w.Types[kind].VCPU
		cpu := rapid.Int64Range(300, 1000*size-100).Draw(r, "cpu")
		simtest.AddWorkload(&w, "job", policy.KindDeployment, int32(rapid.IntRange(1, 60).Draw(r, "pods")),
			policy.Resources{CPU: cpu, Memory: simtest.GiB / 8})
		w.StartCluster = scenarios.StartNodes
		for i := range w.Markets {
			if m := &w.Markets[i]; m.Type == kind && m.Zone == 0 {
				if n := rapid.IntRange(0, 6).Draw(r, "nodes"); n > 0 {
					w.Seeds = append(w.Seeds, scenarios.NodeSeed{Market: m.ID, Count: n})
				}
			}
		}
		k := begin(t, w, 1)
		allowed := make([]bool, len(w.Markets))
		for i := range k.Scenario.Markets {
			allowed[i] = k.Scenario.Markets[i].Type == kind
		}
		x := &k.Pools.State[0]
		x.Share, x.Exact, x.Allowed = float64(rapid.IntRange(1, 19).Draw(r, "share"))/20, true, allowed
		away := func() float64 {
			held := k.Nodes.Sizes[0]
			return math.Abs(x.Share*float64(held.Total) - float64(held.Spot))
		}
		before := away()
		k.provisioner.place()
		if after := away(); after > max(before, float64(size)/2)+1e-9 {
			r.Errorf("the pool of nodes of %d vCPU was %.2f away from its share and is %.2f away: it holds %+v", size, before,
				after, k.Nodes.Sizes[0])
		}
		if k.Nodes.Sizes[0].Total == 0 {
			r.Error("nothing was bought")
		}
	})
}
