package static_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/static"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// build makes the policy of a story.
var build = policytest.Builder(static.DefaultConfig, static.New)

func TestRules(t *testing.T) {
	policytest.Rules(t, build, "", "share=1")
}

func TestDecide(t *testing.T) { policytest.Cases(t, "testdata/decide", build) }

// TestComesToRest carries out plans at once, again and again: the pool must settle and be no
// further from the share than before.
func TestComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		p, err := build("share=" + rapid.SampledFrom([]string{"0", "0.3", "0.5", "1"}).Draw(t, "share"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Pools {
			s.Pools[i].Budgets = nil
		}
		for step := range 60 {
			plan, _ := p.Decide(s, policy.Memory{})
			if step > 40 && len(plan.Drains)+len(plan.Launches) > 0 {
				t.Fatalf("step %d still moves:\n%s", step, plan.Format(s))
			}
			before := distances(s, &plan)
			apply(s, &plan)
			for i, d := range distances(s, &plan) {
				if d > before[i]+1e-9 {
					t.Fatalf("step %d took pool %d from %v to %v of its share", step, i, before[i], d)
				}
			}
		}
	})
}

// distances returns how far each pool is from its share, in units of it; 0 for
// pools that plan does not move by choice alone.
func distances(s *policy.Snapshot, plan *policy.Plan) []float64 {
	d := make([]float64, len(s.Pools))
	for i := range s.Pools {
		at := placement.BalanceOf(s, policy.PoolID(i))
		d[i] = math.Abs(float64(at.Spot) - s.Pools[i].Steer.Share*float64(at.Total))
		for _, st := range plan.Steers {
			if int(st.Pool) == i {
				d[i] = 0
			}
		}
	}
	for _, x := range plan.Drains {
		if x.Why.Reason != policy.ReasonShare {
			return make([]float64, len(s.Pools))
		}
	}
	for _, x := range plan.Launches {
		if x.Why.Reason != policy.ReasonShare {
			return make([]float64, len(s.Pools))
		}
	}
	return d
}

// apply carries plan out as if every launch were granted in its first market
// and every pod moved at once.
func apply(s *policy.Snapshot, plan *policy.Plan) {
	for _, st := range plan.Steers {
		s.Pools[st.Pool].Steer = st.State(s.Now)
	}
	to := make(map[policy.NodeID][]policy.NodeID)
	for _, l := range plan.Launches {
		m := &s.Markets[l.Markets[0]]
		it := &s.Types[m.Type]
		n := policy.Node{
			ID: policy.NodeID(len(s.Nodes)), Name: l.Token, Pool: l.Pool, Market: m.ID, Phase: policy.NodeInitialized,
			Allocatable: it.Allocatable, VolumesMax: it.VolumesMax, GPUResource: it.GPUResource, Launched: s.Now,
			Labels: placement.NodeLabels(s.Types, s.Zones, &s.Pools[l.Pool], m),
		}
		to[l.Replaces] = append(to[l.Replaces], n.ID)
		s.Nodes = append(s.Nodes, n)
	}
	sp := placement.FromSnapshot(s)
	for _, d := range plan.Drains {
		for _, id := range append([]policy.PodID(nil), sp.Pods(d.Node)...) {
			pod := &s.Pods[id]
			sp.Unbind(pod, d.Node)
			pod.Phase, pod.Node, pod.Bound, pod.ReadySince = policy.PodPending, policy.None, 0, 0
			target, ok := policy.NodeID(policy.None), false
			for _, n := range to[d.Node] {
				if !ok && sp.Check(pod, n) == placement.OK {
					target, ok = n, true
				}
			}
			for n := range s.Nodes {
				if !ok && policy.NodeID(n) != d.Node && s.Nodes[n].Pool == s.Nodes[d.Node].Pool && sp.Check(pod, policy.NodeID(n)) == placement.OK {
					target, ok = policy.NodeID(n), true
				}
			}
			if ok {
				pod.Phase, pod.Node, pod.Bound, pod.ReadySince = policy.PodReady, target, s.Now, s.Now
				sp.Bind(pod, target)
			}
		}
		s.Nodes[d.Node] = policy.Node{ID: d.Node}
		sp.RemoveNode(d.Node)
	}
	for i := range s.Pods { // pods that found no place went away
		if p := &s.Pods[i]; p.Phase == policy.PodPending && len(plan.Drains) > 0 {
			*p = policy.Pod{ID: p.ID, Template: p.Template, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		}
	}
	s.Now += policy.DefaultStep
}

func TestParameters(t *testing.T) {
	for value, want := range map[string]string{
		"0.7": "static:share=0.7", "0.5": "static", "1": "static:share=1",
		"1.5": "", "-0.1": "", "NaN": "", "half": "",
	} {
		p, err := build("share=" + value)
		switch {
		case want == "" && err == nil:
			t.Errorf("share=%s was taken", value)
		case want != "" && err != nil:
			t.Errorf("share=%s: %v", value, err)
		case want != "" && p.Name() != want:
			t.Errorf("share=%s is called %s, want %s", value, p.Name(), want)
		}
	}
	if _, err := build("ratio=0.5"); err == nil || !strings.Contains(err.Error(), `"ratio"`) {
		t.Errorf("unknown parameter: %v", err)
	}
}
