package karpenter_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// TestUnscheduledAlike: a disruptor that remembers which pods did not fit does the same as one
// that simulates each node. The latter has a Draw, which chooses among topology domains; these
// clusters have no such choice.
func TestUnscheduledAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Uint8(), 60, 60).Draw(t, "cluster")
		find := func(edit func(*karpenter.Cluster)) *karpenter.Command {
			f, k := randomFixture(seed), karpenter.SingleNode
			c := f.ready()
			edit(c)
			var d karpenter.Disruptor
			return d.Find(c, k)
		}
		got := find(func(*karpenter.Cluster) {})
		want := find(func(c *karpenter.Cluster) { c.Draw = func(policy.PodID, string, []string) int { return 0 } })
		wantAlike(t, got, want)
	})
}

// randomFixture returns a cluster of full nodes, of which one alone has room or is replaced by
// a cheaper one, and of nodes with some room that stay; pods that wait compete for it.
func randomFixture(seed []uint8) *fixture {
	f, next := newFixture(1), 0
	draw := func(n int) int { next++; return int(seed[next%len(seed)]) % n }
	dear, large := f.sell(4, policy.OnDemand, 20), f.sell(8, policy.OnDemand, 38)
	if draw(4) == 0 {
		f.sell(4, policy.OnDemand, 19)
	}
	full := [][]int64{{3800}, {1900, 1900}, {1300, 1300, 1300}, {1000, 1000, 1900}, {1000, 1000, 1000, 1000}, {1000, 2900}}
	age := func(p *policy.Pod) { p.Created = now.Add(-time.Duration(draw(4)) * time.Second) }
	for range 1 + draw(2) {
		f.node(0, large).DoNotDisrupt = true
		f.pod(int64(4000 + 500*draw(7)))
	}
	for range 4 + draw(10) {
		f.node(0, dear)
		for _, milli := range full[draw(len(full))] {
			f.pod(milli, func(p *policy.Pod, t *policy.Template) {
				if age(p); draw(6) == 0 {
					t.NodeSelector = []policy.Label{{Key: "node.kubernetes.io/instance-type", Value: "t1"}}
				}
			})
		}
	}
	for range draw(4) {
		f.pod([]int64{1000, 1300, 1900}[draw(3)], func(p *policy.Pod, _ *policy.Template) {
			p.Node, p.Phase = policy.None, policy.PodPending
			age(p)
		})
	}
	return f
}

// TestUnscheduledApart: of two full nodes, the pod of one does not fit on the other nodes, since
// it selects its own type. The pod of the other has the same requests and fits, whichever is
// tried first.
func TestUnscheduledApart(t *testing.T) {
	for first := range 2 {
		f := newFixture(1)
		small, large := f.sell(4, policy.OnDemand, 20), f.sell(8, policy.OnDemand, 38)
		f.node(0, large).DoNotDisrupt = true
		f.pod(4500)
		for i := range 2 {
			f.node(0, small)
			f.pod(3500, func(_ *policy.Pod, x *policy.Template) {
				if i == first {
					x.NodeSelector = []policy.Label{{Key: "node.kubernetes.io/instance-type", Value: "t0"}}
				}
			})
		}
		wantNodes(t, fmt.Sprint(first), f.find(karpenter.SingleNode), policy.NodeID(2-first))
	}
}
