package karpenter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// The edits of pods.
type edit = func(*policy.Pod, *policy.Template)

// Candidates stand by what they cost for what it costs to disrupt them: 1 for the node
// and the eviction cost of each pod that has to find another place.
func TestCandidateOrder(t *testing.T) {
	plain := func(*policy.Pod, *policy.Template) {}
	for _, c := range []struct {
		name  string
		cents int64
		pods  []edit
		ratio float64 // dollars per unit
	}{
		{"one pod", 60, []edit{plain}, 0.30},
		{"three pods", 100, []edit{plain, plain, plain}, 0.25},
		{"its deletion cost", 90, []edit{func(p *policy.Pod, _ *policy.Template) { p.DeletionCost = 1 << 27 }}, 0.30},
		{"its priority", 100, []edit{func(_ *policy.Pod, t *policy.Template) { t.Priority = 1 << 26 }}, 0.25},
		{"at most 10", 110, []edit{func(_ *policy.Pod, t *policy.Template) { t.Priority = 1 << 30 }}, 0.10},
		{"at least 0", 60, []edit{plain, func(_ *policy.Pod, t *policy.Template) { t.Priority = -(1 << 30) }}, 0.30},
		{"of a DaemonSet", 60, []edit{plain, func(_ *policy.Pod, t *policy.Template) { t.DaemonSet = true }}, 0.30},
		{"terminating", 60, []edit{plain, func(p *policy.Pod, _ *policy.Template) { p.Phase = policy.PodTerminating }}, 0.30},
	} {
		// Of the two other nodes, one costs slightly less and one slightly more.
		f := newFixture(1)
		for _, cents := range []int64{int64(c.ratio*200) - 1, c.cents, int64(c.ratio*200) + 1} {
			f.node(0, f.sell(16, policy.OnDemand, cents))
			if cents != c.cents || len(f.Nodes) != 2 {
				f.pod(100)
				continue
			}
			for _, edit := range c.pods {
				f.pod(100, edit)
			}
		}
		var d karpenter.Disruptor
		var order []policy.NodeID
		for _, x := range d.Candidates(f.ready(), karpenter.SingleNode) {
			order = append(order, x.Node)
		}
		if !slices.Equal(order, []policy.NodeID{2, 1, 0}) {
			t.Errorf("%s: order %v, want the node between the others", c.name, order)
		}
	}
}

// TestBlocked names what keeps a node from being a candidate.
func TestBlocked(t *testing.T) {
	budget := func(n int32, unhealthy bool) func(*fixture) {
		return func(f *fixture) {
			f.PDBs = append(f.PDBs, policy.PDB{ID: policy.PDBID(len(f.PDBs)), Allowed: n, AlwaysAllowUnhealthy: unhealthy})
			f.Templates[0].PDBs = append(f.Templates[0].PDBs, policy.PDBID(len(f.PDBs)-1))
		}
	}
	both := func(edits ...func(*fixture)) func(*fixture) {
		return func(f *fixture) {
			for _, edit := range edits {
				edit(f)
			}
		}
	}
	after := func(ago time.Duration) func(*fixture) {
		return func(f *fixture) { f.Pools[0].ConsolidateAfter, f.events[0] = 30*time.Second, now.Add(-ago) }
	}
	for name, c := range map[string]struct {
		edit func(*fixture)
		want bool
	}{
		"nothing":                     {func(*fixture) {}, true},
		"consolidateAfter":            {after(30*time.Second - 1e6), false},
		"consolidateAfter is over":    {after(30 * time.Second), true},
		"nominated":                   {func(f *fixture) { f.nominated[0] = now + 1 }, false},
		"was nominated":               {func(f *fixture) { f.nominated[0] = now }, true},
		"budget of pods":              {budget(0, false), false},
		"budget of pods allows one":   {budget(1, false), true},
		"two budgets":                 {both(budget(1, false), budget(1, false)), false},
		"budget and an unready pod":   {both(budget(0, false), func(f *fixture) { f.Pods[0].Phase = policy.PodStarting }), false},
		"budget without unready pods": {both(budget(0, true), func(f *fixture) { f.Pods[0].Phase = policy.PodStarting }), true},
		"budget and a ready pod":      {budget(0, true), false},
		"budget of pods that stay": {both(budget(0, false),
			func(f *fixture) { f.Templates[0].Tolerations = []policy.Toleration{{Exists: true}} }), true},
		"do-not-disrupt on a pod":        {func(f *fixture) { f.Pods[0].DoNotDisrupt = true }, false},
		"do-not-disrupt on a node":       {func(f *fixture) { f.Nodes[0].DoNotDisrupt = true }, false},
		"not initialized":                {func(f *fixture) { f.Nodes[0].Phase = policy.NodeRegistered }, false},
		"drained by a person":            {func(f *fixture) { f.Nodes[0].ActedBy = policy.ActorPerson }, false},
		"taken by the provider":          {func(f *fixture) { f.Nodes[0].ReclaimAt = now + 1 }, false},
		"consolidateAfter: Never":        {func(f *fixture) { f.Consolidation[0] = policy.ConsolidateNever }, false},
		"WhenEmpty":                      {func(f *fixture) { f.Consolidation[0] = policy.WhenEmpty }, false},
		"a pool that is not Karpenter's": {func(f *fixture) { f.Pools[0].Provisioner = policy.ProvisionerClusterAutoscaler }, false},
		"do-not-disrupt on one that ends": {func(f *fixture) {
			f.pod(100)
			f.Pods[1].DoNotDisrupt, f.Pods[1].Phase = true,
				policy.PodTerminating
		}, true},
	} {
		f := newFixture(1)
		f.node(0, f.sell(4, policy.OnDemand, 20))
		f.pod(100)
		c.edit(f)
		var d karpenter.Disruptor
		list := d.Candidates(f.ready(), karpenter.MultiNode)
		if got := len(list) == 1; got != c.want {
			t.Errorf("%s: a candidate is %v, want %v", name, got, c.want)
		}
	}
}

// TestDue says when a node that is too young or nominated may go.
func TestDue(t *testing.T) {
	f := newFixture(1)
	m := f.sell(4, policy.OnDemand, 20)
	f.Pools[0].ConsolidateAfter = 10 * time.Minute
	for range 3 {
		f.node(0, m)
	}
	f.events[0], f.events[1], f.nominated[2] = now.Add(-time.Minute), now.Add(-4*time.Minute), now.Add(7*time.Minute)
	var d karpenter.Disruptor
	var state karpenter.ConsolidationState
	if cmd := d.Next(f.ready(), karpenter.Emptiness, &state); cmd != nil {
		t.Fatalf("nodes %v go, want none", nodesOf(cmd))
	}
	if at, held := d.Due(&state); at != now.Add(6*time.Minute) || held {
		t.Errorf("due at %v, held %v; want %v and false", at, held, now.Add(6*time.Minute))
	}
}
