package karpenter_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// TestSpotToSpot has nodes of 50 cents with one pod each, and offers a number of cheaper Spot
// types, each with enough capacity for all of the pods.
func TestSpotToSpot(t *testing.T) {
	for _, c := range []struct {
		name     string
		gate     bool
		method   karpenter.Method
		capacity []policy.CapacityType
		cheaper  int
		want     int // types of the replacement
	}{
		{"one of spot, gate closed", false, karpenter.SingleNode, []policy.CapacityType{policy.Spot}, 20, 0},
		{"one of spot, 14 types", true, karpenter.SingleNode, []policy.CapacityType{policy.Spot}, 14, 0},
		{"one of spot, 15 types", true, karpenter.SingleNode, []policy.CapacityType{policy.Spot}, 15, 15},
		{"one of spot, 20 types", true, karpenter.SingleNode, []policy.CapacityType{policy.Spot}, 20, 15},
		{"one on demand", false, karpenter.SingleNode, []policy.CapacityType{policy.OnDemand}, 1, 1},
		{"one on demand, 20 types", false, karpenter.SingleNode, []policy.CapacityType{policy.OnDemand}, 20, 20},
		{"two of spot, gate closed", false, karpenter.MultiNode, []policy.CapacityType{policy.Spot, policy.Spot}, 20, 0},
		{"two of spot", true, karpenter.MultiNode, []policy.CapacityType{policy.Spot, policy.Spot}, 1, 1},
		{"one of two of spot", false, karpenter.MultiNode, []policy.CapacityType{policy.Spot, policy.OnDemand}, 20, 20},
	} {
		f := newFixture(1)
		f.SpotToSpot = c.gate
		for _, capacity := range c.capacity {
			f.node(0, f.sell(8, capacity, 50))
			f.pod(3600)
		}
		for range c.cheaper {
			f.sell(8, policy.Spot, 30)
		}
		cmd := f.find(c.method)
		switch {
		case cmd == nil && c.want == 0:
		case cmd == nil || cmd.Replacement == nil:
			t.Errorf("%s: command %+v, want a replacement", c.name, cmd)
		case len(cmd.Replacement.Types) != c.want || len(nodesOf(cmd)) != len(c.capacity):
			t.Errorf("%s: %d nodes replaced by one of %d types, want %d by %d", c.name, len(nodesOf(cmd)),
				len(cmd.Replacement.Types), len(c.capacity), c.want)
		}
	}
}

// TestSameType has two nodes of 40 and 50 cents, both of whose pods one node of the first
// type holds: then the first might as well stay. Only a cheaper type replaces both.
func TestSameType(t *testing.T) {
	for name, cents := range map[string]int64{"a dearer type": 45, "a type of its price": 40, "a cheaper type": 39} {
		f := newFixture(1)
		for _, price := range []int64{40, 50} {
			f.node(0, f.sell(8, policy.OnDemand, price))
			f.pod(3600)
		}
		other := f.Markets[f.sell(8, policy.OnDemand, cents)].Type
		cmd := f.find(karpenter.MultiNode)
		if cents >= 40 {
			if cmd != nil {
				t.Errorf("%s: %+v, want nothing", name, cmd)
			}
			continue
		}
		if cmd == nil || cmd.Replacement == nil || len(cmd.Replacement.Types) != 1 || cmd.Replacement.Types[0] != other {
			t.Errorf("%s: %+v, want both replaced by it alone", name, cmd)
		}
	}
}

// TestLaunchPrice replaces an on-demand node only by one that is certainly cheaper. The most that
// the new node may cost is the price of its most expensive Spot market, or the on-demand price if
// it has no Spot market.
func TestLaunchPrice(t *testing.T) {
	for _, c := range []struct {
		name  string
		spot  []int64
		price int64 // on demand
		want  bool
	}{
		{"cheaper in all markets", []int64{20, 49}, 60, true},
		{"as dear in one", []int64{20, 50}, 60, false},
		{"dearer in one", []int64{20, 70}, 40, false},
		{"cheaper on demand", nil, 49, true},
		{"as dear on demand", nil, 50, false},
	} {
		f := newFixture(1)
		f.node(0, f.sell(4, policy.OnDemand, 50))
		f.pod(3600)
		m := f.sell(4, policy.OnDemand, c.price)
		for _, cents := range c.spot {
			f.market(f.Markets[m].Type, policy.Spot, cents)
		}
		cmd := f.find(karpenter.SingleNode)
		if (cmd != nil) != c.want {
			t.Errorf("%s: %+v, want a replacement: %v", c.name, cmd, c.want)
		}
		if cmd != nil && len(c.spot) > 0 && len(cmd.Replacement.Markets) != len(c.spot) {
			t.Errorf("%s: it may be launched in %v, want spot alone", c.name, cmd.Replacement.Markets)
		}
	}
}

// TestMultiNodeMax has 120 small nodes whose pods have room on a big one.
func TestMultiNodeMax(t *testing.T) {
	f := newFixture(1)
	small, big := f.sell(2, policy.OnDemand, 10), f.sell(64, policy.OnDemand, 11)
	for range 120 {
		f.node(0, small)
		f.pod(1500)
	}
	f.node(0, big).DoNotDisrupt = true
	for i := range f.Pods {
		f.Templates[i].Requests.CPU = 10
	}
	if n := len(nodesOf(f.find(karpenter.MultiNode))); n != 101 {
		t.Errorf("%d nodes go at once, want 101", n)
	}
}

// TestScheduled removes a node of one pod only where the pod surely has a place, and
// replaces it by one new node only.
func TestScheduled(t *testing.T) {
	waits := func(p *policy.Pod, _ *policy.Template) { p.Node, p.Phase = policy.None, policy.PodPending }
	rests := func(f *fixture) { f.Pools[1].ConsolidateAfter, f.events[1] = time.Minute, now }
	for _, c := range []struct {
		name     string
		edit     func(*fixture)
		removed  bool
		replaced bool
	}{
		{"room elsewhere", func(*fixture) {}, true, false},
		{"no room elsewhere", func(f *fixture) { f.Templates[1].Requests.CPU = 3000 }, false, false},
		{"no room elsewhere and a cheaper type", func(f *fixture) {
			f.Templates[1].Requests.CPU = 3000
			f.sell(4, policy.OnDemand, 19)
		}, true, true},
		{"room where no pods come to", rests, false, false},
		{"room where no pods come to and a cheaper type", func(f *fixture) {
			rests(f)
			f.sell(4, policy.OnDemand, 19)
		}, true, true},
		{"room on a node on its way", func(f *fixture) { f.Nodes[1].Phase = policy.NodeRegistered }, false, false},
		{"room on a node on its way and a cheaper type", func(f *fixture) {
			f.Nodes[1].Phase = policy.NodeRegistered
			f.sell(4, policy.OnDemand, 19)
		}, false, false},
		{"a pending pod without a place", func(f *fixture) { f.pod(64_000, waits) }, true, false},
		{"a pending pod in its place", func(f *fixture) { f.pod(2400, waits) }, false, false},
		{"a pending pod that needs a node too", func(f *fixture) {
			f.Templates[1].Requests.CPU = 3000
			f.sell(4, policy.OnDemand, 1)
			f.pod(3000, waits)
		}, false, false},
	} {
		f := newFixture(2)
		m := f.sell(4, policy.OnDemand, 20)
		f.node(0, m)
		f.pod(2000)
		f.node(1, m).DoNotDisrupt = true
		f.pod(1000)
		c.edit(f)
		cmd := f.find(karpenter.SingleNode)
		if (cmd != nil) != c.removed || cmd != nil && (cmd.Replacement != nil) != c.replaced {
			t.Errorf("%s: %+v, want it removed: %v, replaced: %v", c.name, cmd, c.removed, c.replaced)
		}
	}
}

// TestBudgets has three nodes in each of two pools, and counts those of each that go. A
// node of neither pool has room for all pods.
func TestBudgets(t *testing.T) {
	of := func(n int32, reasons ...policy.DisruptionReason) policy.DisruptionBudget {
		return policy.DisruptionBudget{Nodes: policy.Quantity{Set: true, N: n}, Reasons: reasons, Active: true}
	}
	for _, c := range []struct {
		name    string
		method  karpenter.Method
		budgets [2][]policy.DisruptionBudget
		want    [2]int
	}{
		{"no budget", karpenter.Emptiness, [2][]policy.DisruptionBudget{}, [2]int{3, 3}},
		{"each has its own", karpenter.Emptiness, [2][]policy.DisruptionBudget{{of(1)}, {of(2)}}, [2]int{1, 2}},
		{"for emptiness", karpenter.Emptiness, [2][]policy.DisruptionBudget{{of(1, policy.Empty)}, {of(0, policy.Underutilized)}}, [2]int{1, 3}},
		{"the strictest", karpenter.Emptiness, [2][]policy.DisruptionBudget{{of(2), of(1, policy.Empty), of(0, policy.Drifted)}}, [2]int{1, 3}},
		{"for many", karpenter.MultiNode, [2][]policy.DisruptionBudget{{of(1, policy.Underutilized)}, {of(0, policy.Empty)}}, [2]int{1, 3}},
		{"for one", karpenter.SingleNode, [2][]policy.DisruptionBudget{{of(0, policy.Underutilized)}, {of(0, policy.Empty)}}, [2]int{0, 1}},
		{"all closed", karpenter.MultiNode, [2][]policy.DisruptionBudget{{of(0)}, {of(0)}}, [2]int{}},
	} {
		f := newFixture(2)
		m := f.sell(16, policy.OnDemand, 80)
		f.node(0, m).Pool = policy.None
		for p := range policy.PoolID(2) {
			f.Pools[p].Budgets = c.budgets[p]
			for range 3 {
				f.node(p, m)
				if c.method != karpenter.Emptiness {
					f.pod(2000)
				}
			}
		}
		got := [2]int{}
		if cmd := f.find(c.method); cmd != nil {
			for _, x := range cmd.Candidates {
				got[x.Pool]++
			}
		}
		if got != c.want {
			t.Errorf("%s: %v nodes of the pools go, want %v", c.name, got, c.want)
		}
	}
}

// TestPoolsInTurn has four nodes, those of pool 0 before the one of pool 1. The first two
// have no place for their pods. After the first of pool 0 the one of pool 1 is tried.
func TestPoolsInTurn(t *testing.T) {
	f := newFixture(2)
	m := f.sell(4, policy.OnDemand, 20)
	for i, x := range []struct {
		pool policy.PoolID
		cpu  int64
	}{{0, 3500}, {0, 3500}, {0, 1000}, {1, 1000}} {
		f.node(x.pool, m)
		f.pod(x.cpu, func(p *policy.Pod, _ *policy.Template) { p.DeletionCost = int32(i) << 20 })
	}
	wantNodes(t, "in turn", f.find(karpenter.SingleNode), 3)
}

// TestBalanced has two nodes, of which one costs a tenth of both. It goes where it has at
// most a fifth of the disruption cost, which is 20 in all: 1 for it and 1 for each pod.
func TestBalanced(t *testing.T) {
	for _, c := range []struct {
		name string
		mode policy.Consolidation
		pods int
		want bool
	}{
		{"a tenth", policy.Balanced, 1, true},
		{"a fifth", policy.Balanced, 3, true},
		{"a quarter", policy.Balanced, 4, false},
		{"a quarter in another pool", policy.WhenEmptyOrUnderutilized, 4, true},
	} {
		f := newFixture(1)
		f.Consolidation[0] = c.mode
		f.node(0, f.sell(16, policy.OnDemand, 10))
		for range c.pods {
			f.pod(10)
		}
		n := f.node(0, f.sell(16, policy.OnDemand, 90))
		n.DoNotDisrupt = true
		for range 18 - c.pods {
			f.pod(10)
		}
		if cmd := f.find(karpenter.SingleNode); (cmd != nil) != c.want {
			t.Errorf("%s: %+v, want it removed: %v", c.name, cmd, c.want)
		}
	}
}
