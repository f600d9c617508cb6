package policytest

import (
	"fmt"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// aware decides on snapshots that follow one another, of which it is known what changed. A
// policy that keeps what it read has the same plan as one that reads everything.
func aware(t *rapid.T, build func() policy.Policy) {
	s, m := draw(t)
	if len(s.Nodes) == 0 || len(s.Pods) == 0 {
		return // nothing is said of what changed
	}
	p, changes := build(), policy.Changes{}
	for i := range rapid.IntRange(2, 5).Draw(t, "snapshots") {
		if i > 0 {
			s.Now = s.Now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				Change(t, s, &changes)
			}
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("the changed snapshot: %v", err)
		}
		changes.Publish(s)
		whole := s.Whole()
		plan, next := p.Decide(s, m)
		plan1, next1 := build().Decide(&whole, m)
		if a, b := Clone(t, &plan), Clone(t, &plan1); !reflect.DeepEqual(a, b) {
			t.Fatalf("snapshot %d: reading what changed:\n%sreading everything:\n%s\n%+v\n%+v", i, a.Format(s), b.Format(s), a, b)
		}
		if a, b := Clone(t, &next), Clone(t, &next1); !reflect.DeepEqual(a, b) {
			t.Fatalf("snapshot %d: reading what changed:\n%+v\nreading everything:\n%+v", i, a, b)
		}
		m = next
	}
}

// Change changes a node or a pod of s, which has some, or puts another into its slot.
func Change(t *rapid.T, s *policy.Snapshot, c *policy.Changes) {
	if rapid.Bool().Draw(t, "of a node") {
		n := &s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node")]
		changeNode(t, s, n)
		c.NoteNode(n.ID)
	} else {
		p := &s.Pods[rapid.IntRange(0, len(s.Pods)-1).Draw(t, "pod")]
		changePod(t, s, p)
		c.NotePod(p.ID)
	}
}

func changeNode(t *rapid.T, s *policy.Snapshot, n *policy.Node) {
	like := s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "like")]
	what := rapid.IntRange(0, 5).Draw(t, "what")
	switch {
	case n.Phase == policy.NodeGone && like.Phase != policy.NodeGone:
		id := n.ID
		*n = like
		n.ID, n.Name, n.Token = id, fmt.Sprintf("node-%d-%d", id, s.Now), ""
	case n.Phase == policy.NodeGone:
	case what == 0:
		n.NotReady = !n.NotReady
	case what == 1:
		n.DoNotDisrupt = !n.DoNotDisrupt
	case what == 2:
		n.ActedBy = rapid.SampledFrom([]policy.Actor{policy.ActorNone, policy.ActorUs, policy.ActorPerson}).Draw(t, "by")
	case what == 3:
		n.Recommended = s.Now - n.Recommended
	case n.Phase < policy.NodeInitialized:
		n.Phase++
		n.Initialized = s.Now
	default:
		n.Phase = policy.NodeDraining
	}
}

func changePod(t *rapid.T, s *policy.Snapshot, p *policy.Pod) {
	switch {
	case p.Phase == policy.PodGone:
	case p.Node < 0:
		n := &s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node")]
		if n.Phase >= policy.NodeInitialized {
			p.Phase, p.Node, p.Nominated, p.Bound, p.ReadySince = policy.PodReady, n.ID, policy.None, s.Now, s.Now
		}
	case p.Phase == policy.PodReady && rapid.Bool().Draw(t, "ends"):
		p.Phase, p.Deleting = policy.PodTerminating, s.Now
	default:
		*p = policy.Pod{ID: p.ID, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
	}
}
