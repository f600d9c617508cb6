package karpenter_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// TestValidEmpty finds three empty nodes and looks again after something happened.
func TestValidEmpty(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*fixture)
		want []policy.NodeID
	}{
		{"nothing", func(*fixture) {}, []policy.NodeID{0, 1, 2}},
		{"a pod came", func(f *fixture) { f.pod(100) }, []policy.NodeID{0, 1}},
		{"a pod was promised a place", func(f *fixture) { f.nominated[0] = now + 1 }, []policy.NodeID{1, 2}},
		{"a budget was closed", func(f *fixture) {
			f.Pools[0].Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, N: 1}, Active: true}}
		}, []policy.NodeID{0}},
		{"a node is gone", func(f *fixture) { f.Nodes[1].Phase = policy.NodeGone }, []policy.NodeID{0, 2}},
		{"all are gone", func(f *fixture) { f.Consolidation[0] = policy.ConsolidateNever }, nil},
	} {
		f := newFixture(1)
		m := f.sell(4, policy.OnDemand, 20)
		for range 3 {
			f.node(0, m)
		}
		var d karpenter.Disruptor
		cmd := d.Find(f.ready(), karpenter.Emptiness)
		wantNodes(t, "at first", cmd, 0, 1, 2)
		c.edit(f)
		if d = (karpenter.Disruptor{}); d.Valid(f.ready(), cmd) != (len(c.want) > 0) {
			t.Errorf("%s: valid is %v", c.name, len(c.want) == 0)
		}
		wantNodes(t, c.name, cmd, c.want...)
	}
}

// TestValidReplacement replaces a node by a cheaper one and looks again: what does not
// hold as a whole is given up.
func TestValidReplacement(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*fixture)
		want bool
	}{
		{"nothing", func(*fixture) {}, true},
		{"its pod is kept", func(f *fixture) { f.Pods[0].DoNotDisrupt = true }, false},
		{"the type no longer holds its pods", func(f *fixture) { f.Templates[0].Requests.CPU = 5000 }, false},
		{"there is room elsewhere", func(f *fixture) { f.node(0, 0).DoNotDisrupt = true }, false},
		{"another type can be had too", func(f *fixture) { f.sell(4, policy.OnDemand, 19) }, true},
	} {
		f := newFixture(1)
		f.node(0, f.sell(8, policy.OnDemand, 40))
		f.pod(3000)
		f.sell(4, policy.OnDemand, 20)
		var d karpenter.Disruptor
		cmd := d.Find(f.ready(), karpenter.SingleNode)
		if cmd == nil || cmd.Replacement == nil {
			t.Fatalf("%s: %+v, want a replacement", c.name, cmd)
		}
		c.edit(f)
		if d = (karpenter.Disruptor{}); d.Valid(f.ready(), cmd) != c.want {
			t.Errorf("%s: valid is %v", c.name, !c.want)
		}
	}
}

// TestStateLife counts a state as unchanged for five minutes.
func TestStateLife(t *testing.T) {
	var s karpenter.ConsolidationState
	s.Mark(now)
	first := s.Now(now)
	if s.Now(now.Add(5*time.Minute)-1) != first {
		t.Error("the state changed within five minutes")
	}
	if ends := s.Ends(); ends != now.Add(5*time.Minute) {
		t.Errorf("the state ends at %v, want %v", ends, now.Add(5*time.Minute))
	}
	second := s.Now(now.Add(5 * time.Minute))
	if second == first || s.Now(now.Add(10*time.Minute)-1) != second {
		t.Error("the state is not a new one for the next five minutes")
	}
	if s.Mark(now.Add(6 * time.Minute)); s.Now(now.Add(6*time.Minute)) == second {
		t.Error("what changed is not a new state")
	}
}

// TestSearchedOnce has a node that nothing cheaper replaces until its price rises. Karpenter
// searches again when something changed, and after five minutes.
func TestSearchedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		marked bool
		want   bool
	}{
		"within five minutes": {5*time.Minute - time.Second, false, false},
		"after five minutes":  {5 * time.Minute, false, true},
		"after a change":      {time.Second, true, true},
	} {
		f := newFixture(1)
		f.node(0, f.sell(4, policy.OnDemand, 20))
		f.pod(3000)
		f.sell(4, policy.OnDemand, 30)
		var d karpenter.Disruptor
		var state karpenter.ConsolidationState
		state.Mark(now)
		if cmd := d.Next(f.ready(), karpenter.Emptiness, &state); cmd != nil {
			t.Fatalf("%s: %+v, want nothing", name, cmd)
		}
		f.prices[0] *= 2
		f.Now = now.Add(c.after)
		if c.marked {
			state.Mark(f.Now)
		}
		if cmd := d.Next(&f.Cluster, karpenter.Emptiness, &state); (cmd != nil) != c.want {
			t.Errorf("%s: %+v, want a command: %v", name, cmd, c.want)
		}
	}
}

// TestChangedNode looks again after a pod left a node: of nodes that are not listed as
// changed nothing is read again, so that another's pod finds the room only where it is.
func TestChangedNode(t *testing.T) {
	f := newFixture(1)
	m := f.sell(4, policy.OnDemand, 20)
	f.node(0, m)
	f.pod(2000)
	f.node(0, m)
	f.pod(1500)
	f.pod(1500)
	c := f.ready()
	c.Tracked = true
	var d karpenter.Disruptor
	var state karpenter.ConsolidationState
	wantNodes(t, "at first", d.Next(c, karpenter.SingleNode, &state))
	c.Space.Unbind(&f.Pods[2], 1)
	f.Pods[2].Phase, f.Pods[2].Node = policy.PodGone, policy.None
	state.Mark(now)
	wantNodes(t, "not listed", d.Next(c, karpenter.SingleNode, &state))
	c.Changed = []policy.NodeID{1}
	state.Mark(now)
	wantNodes(t, "listed", d.Next(c, karpenter.SingleNode, &state), 0)
}

// fullNodes is a cluster of n full nodes and a cheap one, the last candidate, which alone can
// go: its pod has room on a node that is kept.
func fullNodes(n int) *fixture {
	f := newFixture(1)
	m := f.sell(4, policy.OnDemand, 20)
	for range n {
		f.node(0, m)
		f.pod(4000)
	}
	f.node(0, f.sell(2, policy.OnDemand, 5))
	f.pod(1000)
	f.node(0, m).DoNotDisrupt = true
	f.pod(3000)
	return f
}

// TestSingleTimeout: the search reaches the last of 200 nodes, but not of 2,500 within three
// minutes. It has then marked nothing, and another pass follows.
func TestSingleTimeout(t *testing.T) {
	for n, found := range map[int]bool{200: true, 2500: false} {
		f := fullNodes(n)
		var d karpenter.Disruptor
		var state karpenter.ConsolidationState
		state.Mark(now)
		cmd := d.Next(f.ready(), karpenter.Emptiness, &state)
		if late := d.Took() > 3*time.Minute; (cmd != nil) != found || late == found || d.Again() == found {
			t.Errorf("%d nodes: command %+v after %v, another look: %v; want a command: %v", n, cmd, d.Took(), d.Again(), found)
		}
	}
}

// TestSettle: what changes while Karpenter searches is no reason to search again, as the state
// is noted at the end. A command that is not valid any more marks nothing, and another look
// follows.
func TestSettle(t *testing.T) {
	f := newFixture(1)
	f.node(0, f.sell(4, policy.OnDemand, 20))
	f.pod(3000)
	f.sell(4, policy.OnDemand, 30)
	var d karpenter.Disruptor
	var state karpenter.ConsolidationState
	state.Mark(now)
	wantNodes(t, "at first", d.Next(f.ready(), karpenter.Emptiness, &state))
	state.Mark(now.Add(time.Second))
	d.Settle(now.Add(2*time.Second), &state)
	f.prices[0] *= 2
	f.Now = now.Add(10 * time.Second)
	wantNodes(t, "nothing changed since", d.Next(&f.Cluster, karpenter.Emptiness, &state))
	if d.Again() {
		t.Error("another look follows one that found nothing")
	}
	state.Mark(f.Now)
	wantNodes(t, "after a change", d.Next(&f.Cluster, karpenter.Emptiness, &state), 0)
	if d.Next(&f.Cluster, karpenter.Methods, &state); !d.Again() {
		t.Error("no other look follows a command that is not valid any more")
	}
}
