package karpenter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// TestVersionOrder: before 1.14 the first candidate is the one whose pods cost least to move,
// DaemonSets' counted in, the less the nearer the node is to its expiry; since then it is the
// one that costs most for that.
func TestVersionOrder(t *testing.T) {
	old := func(f *fixture) {
		f.Nodes[0].Launched, f.Nodes[1].Launched = now.Add(-90*time.Hour), now.Add(-time.Hour)
	}
	for name, c := range map[string]struct {
		edit          func(*fixture)
		before, since policy.NodeID
	}{
		"price":         {func(*fixture) {}, 1, 0},
		"expiry":        {func(f *fixture) { f.Pools[0].ExpireAfter = 100 * time.Hour; old(f) }, 0, 0},
		"never expires": {old, 1, 0},
		"a DaemonSet's": {func(f *fixture) {
			f.pod(1, func(_ *policy.Pod, t *policy.Template) { t.DaemonSet, t.Priority = true, 1<<28 })
		}, 0, 0},
		"a deletion cost": {func(f *fixture) { f.Pods[2].DeletionCost = 1 << 29 }, 0, 0},
	} {
		for v, want := range map[karpenter.Version]policy.NodeID{12: c.before, 13: c.before, 14: c.since, 15: c.since, 0: c.since} {
			f := newFixture(1)
			f.Version = v
			m := f.sell(16, policy.OnDemand, 90)
			f.node(0, m)
			f.pod(100)
			f.pod(100)
			f.node(0, f.sell(16, policy.OnDemand, 50))
			f.pod(100)
			c.edit(f)
			var d karpenter.Disruptor
			if list := d.Candidates(f.ready(), karpenter.SingleNode); len(list) != 2 || list[0].Node != want {
				t.Errorf("%s: under %d the candidates are %v, want %d first", name, v, list, want)
			}
		}
	}
}

// TestVersionRules: since 1.14 pods of candidates are not moved to nodes within their pool's
// consolidateAfter, and a node whose pods cost nothing to move counts as empty.
func TestVersionRules(t *testing.T) {
	for _, v := range []karpenter.Version{12, 13, 14, 15, 0} {
		f := newFixture(2)
		f.Version = v
		m := f.sell(4, policy.OnDemand, 20)
		f.node(0, m)
		f.pod(2000)
		f.node(1, m).DoNotDisrupt = true
		f.pod(1000)
		f.Pools[1].ConsolidateAfter, f.events[1] = time.Minute, now
		if cmd := f.find(karpenter.SingleNode); (cmd != nil) != v.Before(14) {
			t.Errorf("under %d %+v is done where only a young node has room", v, cmd)
		}
		f = newFixture(1)
		f.Version = v
		f.node(0, f.sell(4, policy.OnDemand, 20))
		f.pod(100, func(p *policy.Pod, _ *policy.Template) { p.DeletionCost = -1 << 28 })
		if cmd := f.find(karpenter.Emptiness); (cmd == nil) != v.Before(14) {
			t.Errorf("under %d %+v is done with a node whose pod costs nothing", v, cmd)
		}
		f = newFixture(1)
		f.Version = v
		f.node(0, f.sell(4, policy.OnDemand, 20))
		f.pod(2500)
		f.node(0, f.sell(4, policy.OnDemand, 0))
		f.pod(2500)
		f.sell(8, policy.OnDemand, 10)
		if cmd := f.find(karpenter.MultiNode); (cmd == nil) != v.Before(14) {
			t.Errorf("under %d %+v is done with two nodes, of which one has no price", v, cmd)
		}
		f = newFixture(1)
		f.Version = v
		f.node(0, f.sell(4, policy.OnDemand, 20))
		f.pod(1500)
		f.pod(1000, func(_ *policy.Pod, t *policy.Template) {
			t.DaemonSet, t.NodeSelector = true, []policy.Label{{Key: "node.kubernetes.io/instance-type", Value: "t0"}}
		})
		f.sell(2, policy.OnDemand, 10)
		if cmd := f.find(karpenter.SingleNode); (cmd == nil) != v.Before(14) {
			t.Errorf("under %d %+v is done where a DaemonSet leaves no room on cheaper nodes, on which it does not run", v, cmd)
		}
	}
}

// TestVersionTurns: before 1.14 an empty node has the turn of its pool when nodes are tried
// one by one.
func TestVersionTurns(t *testing.T) {
	for v, want := range map[karpenter.Version]policy.NodeID{12: 2, 13: 2, 14: 1, 15: 1, 0: 1} {
		f := newFixture(2)
		f.Version = v
		m := f.sell(4, policy.OnDemand, 20)
		f.node(0, m)
		f.node(0, m)
		f.pod(100)
		f.node(1, m)
		f.pod(100)
		f.pod(100)
		wantNodes(t, fmt.Sprintf("under %d", v), f.find(karpenter.SingleNode), want)
	}
}
