package policy_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestChanges: a reader that reads only what changed since its last snapshot holds what is in the
// snapshot, whichever snapshots it read, and so do counts, notices and lists.
func TestChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c policy.Changes
		s := policy.Snapshot{
			Pools: make([]policy.Pool, 2), Types: []policy.InstanceType{{VCPU: 2}, {ID: 1, VCPU: 4, Capacity: policy.Resources{GPU: 1}}},
			Markets: []policy.Market{{Capacity: policy.Spot}, {ID: 1, Type: 1}},
		}
		var mark policy.Mark
		var nodes []policy.Node
		var pods []policy.Pod
		for range rapid.IntRange(1, 12).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				n := policy.NodeID(rapid.IntRange(0, min(len(s.Nodes), 150)).Draw(t, "node"))
				if int(n) == len(s.Nodes) {
					for range rapid.IntRange(1, 70).Draw(t, "more") {
						s.Nodes = append(s.Nodes, policy.Node{Pool: policy.None})
					}
				}
				s.Nodes[n].Pool = policy.PoolID(rapid.IntRange(-1, 1).Draw(t, "pool"))
				s.Nodes[n].Phase = policy.NodePhase(rapid.IntRange(0, 5).Draw(t, "phase"))
				s.Nodes[n].Market = policy.MarketID(rapid.IntRange(-1, 1).Draw(t, "market"))
				s.Nodes[n].ActedBy = policy.Actor(rapid.IntRange(0, 2).Draw(t, "by"))
				s.Nodes[n].Token = rapid.SampledFrom([]string{"", "token"}).Draw(t, "token")
				s.Nodes[n].ReclaimAt = policy.Time(rapid.IntRange(0, 1).Draw(t, "notice"))
				c.NoteNode(n)
				p := policy.PodID(rapid.IntRange(0, len(s.Pods)).Draw(t, "pod"))
				if int(p) == len(s.Pods) {
					s.Pods = append(s.Pods, policy.Pod{})
				}
				s.Pods[p].Created++
				s.Pods[p].Phase = policy.PodPhase(rapid.IntRange(0, 2).Draw(t, "phase"))
				c.NotePod(p)
			}
			c.Publish(&s)
			if counted := plain(s); len(s.Nodes) > 0 && len(s.Pods) > 0 {
				for p := range s.Pools {
					if got, want := s.Disruptable(policy.PoolID(p), policy.Empty), counted.Disruptable(policy.PoolID(p), policy.Empty); got != want {
						t.Fatalf("%d nodes of pool %d may be disrupted, want %d", got, p, want)
					}
					if got, want := s.Held(policy.PoolID(p)), counted.Held(policy.PoolID(p)); got != want {
						t.Fatalf("pool %d holds %v, want %v", p, got, want)
					}
				}
				if got, want := slices.Collect(s.Pending()), slices.Collect(counted.Pending()); !slices.Equal(got, want) {
					t.Fatalf("pending are %v, want %v", got, want)
				}
				list, _ := s.UnderNotice()
				for id := range s.Nodes {
					if noticed := slices.Contains(list, policy.NodeID(id)); noticed != (s.Nodes[id].ReclaimAt != 0) {
						t.Fatalf("node %d under notice: %v", id, noticed)
					}
				}
			}
			if !rapid.Bool().Draw(t, "read") {
				continue
			}
			nodes = slices.Grow(nodes, len(s.Nodes)-len(nodes))[:len(s.Nodes)]
			pods = slices.Grow(pods, len(s.Pods)-len(pods))[:len(s.Pods)]
			for c := s.NodesSince(mark); c.Next(); {
				id := c.ID
				nodes[id] = s.Nodes[id]
			}
			for c := s.PodsSince(mark); c.Next(); {
				id := c.ID
				pods[id] = s.Pods[id]
			}
			mark = s.Mark()
			for id := range nodes {
				if nodes[id].Pool != s.Nodes[id].Pool || nodes[id].Phase != s.Nodes[id].Phase || nodes[id].ReclaimAt != s.Nodes[id].ReclaimAt {
					t.Fatalf("node %d is %+v, want %+v", id, nodes[id], s.Nodes[id])
				}
			}
			if !slices.Equal(pods, s.Pods) {
				t.Fatalf("pods are %v, want %v", pods, s.Pods)
			}
		}
	})
}

// plain returns s without what is known of its changes.
func plain(s policy.Snapshot) *policy.Snapshot {
	whole := s.Whole()
	return &whole
}

// TestChangesOfAnother: nothing is known of what changed in other tables, nor since the
// snapshot of another observer or in one that was followed by another.
func TestChangesOfAnother(t *testing.T) {
	var c, other policy.Changes
	s := policy.Snapshot{Nodes: make([]policy.Node, 3), Pods: make([]policy.Pod, 3)}
	c.Publish(&s)
	first, mark := s, s.Mark()
	if !s.Follows(mark) || slotsIn(s.NodesSince(mark)) != 0 {
		t.Errorf("a snapshot differs from itself in %d nodes", slotsIn(s.NodesSince(mark)))
	}
	view := s
	view.Nodes = slices.Clone(s.Nodes)
	c.Publish(&s)
	alien := policy.Snapshot{Nodes: make([]policy.Node, 3), Pods: make([]policy.Pod, 3)}
	other.Publish(&alien)
	for name, x := range map[string]*policy.Snapshot{"a view": &view, "an old one": &first, "another observer's": &alien} {
		if x.Follows(mark) || slotsIn(x.NodesSince(mark)) != 3 || slotsIn(x.PodsSince(mark)) != 3 {
			t.Errorf("%s is taken for one that follows", name)
		}
	}
}

// slotsIn counts what c lists.
func slotsIn[ID ~int32](c policy.Cursor[ID]) (n int) {
	for c.Next() {
		n++
	}
	return n
}
