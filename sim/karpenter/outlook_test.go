package karpenter_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// TestChooseCapacity has a Spot node of 50 cents with one pod, and a cheaper type of both
// capacity types. A new node may be Spot, so that it does not replace the node; but it is on
// demand if its pod requires that in any way.
func TestChooseCapacity(t *testing.T) {
	const key = "karpenter.sh/capacity-type"
	onDemand := policy.Requirement{Key: key, Op: policy.OpIn, Values: []string{"on-demand"}}
	term := policy.NodeTerm{Labels: []policy.Requirement{onDemand}}
	app := []policy.Label{{Key: "app", Value: "a"}}
	apart := policy.PodTerm{Selector: policy.Selector{Everything: true}, TopologyKey: key}
	for _, c := range []struct {
		name string
		edit func(*policy.Template)
		want bool
	}{
		{"nothing", func(*policy.Template) {}, false},
		{"in a pool that buys no spot", func(*policy.Template) {}, true},
		{"another label", func(t *policy.Template) { t.NodeSelector = app }, false},
		{"a selector", func(t *policy.Template) { t.NodeSelector = []policy.Label{{Key: key, Value: "on-demand"}} }, true},
		{"affinity", func(t *policy.Template) { t.Affinity = []policy.NodeTerm{term} }, true},
		{"a preference", func(t *policy.Template) { t.Preferred = []policy.PreferredNodeTerm{{Weight: 1, Term: term}} }, true},
		{"pod anti-affinity", func(t *policy.Template) { t.PodAntiAffinity = []policy.PodTerm{apart} }, true},
		{"pod affinity", func(t *policy.Template) { t.PodAffinity = []policy.PodTerm{apart} }, true},
		{"spread", func(t *policy.Template) {
			t.Spread = []policy.Spread{{TopologyKey: key, MaxSkew: 1, Selector: policy.Selector{Everything: true}}}
		}, true},
	} {
		f := newFixture(1)
		f.node(0, f.sell(8, policy.Spot, 50))
		f.pod(3600, func(_ *policy.Pod, t *policy.Template) { c.edit(t) })
		// A pod of its kind runs on demand already, or on Spot if that must keep this pod away
		// from Spot.
		other, small := policy.OnDemand, f.sell(4, policy.OnDemand, 30)
		f.market(f.Markets[small].Type, policy.Spot, 20)
		if len(f.Templates[0].PodAntiAffinity)+len(f.Templates[0].Spread) > 0 {
			other = policy.Spot
		}
		f.node(0, f.sell(16, other, 100)).DoNotDisrupt = true
		f.pod(15_000)
		f.spot = c.name != "in a pool that buys no spot"
		if cmd := f.find(karpenter.SingleNode); (cmd != nil) != c.want {
			t.Errorf("%s: %+v, want a replacement: %v", c.name, cmd, c.want)
		}
	}
}

// TestSpotClaimsAlike: a disruptor that knows beforehand that new nodes may be spot does what
// one does that cannot know: for that one there are pods that choose a capacity type, of which
// none is in the cluster.
func TestSpotClaimsAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Uint8(), 60, 60).Draw(t, "cluster")
		for m := karpenter.MultiNode; m <= karpenter.SingleNode; m++ {
			got, choosy := randomSpotFixture(seed), randomSpotFixture(seed)
			choosy.Templates = append(choosy.Templates, policy.Template{ID: policy.TemplateID(len(choosy.Templates)),
				NodeSelector: []policy.Label{{Key: "karpenter.sh/capacity-type", Value: "spot"}}, Requests: policy.Resources{CPU: 1 << 40}})
			wantAlike(t, got.find(m), choosy.find(m))
		}
	})
}

// TestOtherOffers has a node of 50 cents, and two types of one size with different prices. The
// node is replaced if the cheaper type fits its pod and costs less than the node.
func TestOtherOffers(t *testing.T) {
	f := newFixture(1)
	f.node(0, f.sell(8, policy.OnDemand, 50))
	f.pod(3600)
	small, dear := f.sell(4, policy.OnDemand, 30), f.sell(4, policy.OnDemand, 60)
	c, d := f.ready(), karpenter.Disruptor{}
	for _, x := range []struct {
		cores, cents int64
		want         bool
	}{{2, 30, false}, {4, 30, true}, {2, 30, false}, {4, 55, false}} {
		f.cores[f.Markets[small].Type], f.cores[f.Markets[dear].Type] = x.cores, x.cores
		f.prices[small] = policy.Money(x.cents * 10_000)
		if cmd := d.Find(c, karpenter.SingleNode); (cmd != nil) != x.want {
			t.Errorf("%d cores for %d cents: %+v, want a replacement: %v", x.cores, x.cents, cmd, x.want)
		}
	}
}

// TestHopelessAlike: a disruptor that knows beforehand which nodes cannot go does what one does
// that simulates each, since nothing is known of nodes with a pod that is starting.
func TestHopelessAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Uint8(), 60, 60).Draw(t, "cluster")
		for m := karpenter.MultiNode; m <= karpenter.SingleNode; m++ {
			got, plain := randomSpotFixture(seed), randomSpotFixture(seed)
			for i := range plain.Pods {
				if p := &plain.Pods[i]; p.Phase == policy.PodReady {
					p.Phase = policy.PodStarting
				}
			}
			wantAlike(t, got.find(m), plain.find(m))
		}
	})
}

// randomSpotFixture returns a cluster of nodes of both capacity types with some room, and
// pods that wait.
func randomSpotFixture(seed []uint8) *fixture {
	f, next := newFixture(2), 0
	draw := func(n int) int { next++; return int(seed[next%len(seed)]) % n }
	f.SpotToSpot = draw(4) == 0
	for range 2 + draw(4) {
		m := f.sell(int64(2+2*draw(4)), policy.OnDemand, int64(20+draw(20)))
		if draw(3) > 0 {
			f.market(f.Markets[m].Type, policy.Spot, int64(10+draw(20)))
		}
	}
	for range 2 + draw(8) {
		n := f.node(policy.PoolID(draw(2)), policy.MarketID(draw(len(f.Markets))))
		left := n.Allocatable.CPU - int64(draw(3))*400
		for left > 0 && draw(4) > 0 {
			cpu := min(left, int64(500+500*draw(6)))
			f.pod(cpu)
			left -= cpu
		}
	}
	for range draw(3) {
		f.pod(int64(500+500*draw(6)), func(p *policy.Pod, _ *policy.Template) { p.Node, p.Phase = policy.None, policy.PodPending })
	}
	return f
}
