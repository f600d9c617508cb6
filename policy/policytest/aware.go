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
			t.Fatalf("snapshot %d: reading what changed:\n%sreading everything:\n%s\n%+v\n%+v", i, a.Format(s),
				b.Format(s), a, b)
		}
		if a, b := Clone(t, &next), Clone(t, &next1); !reflect.DeepEqual(a, b) {
			t.Fatalf("snapshot %d: reading what changed:\n%+v\nreading everything:\n%+v", i, a, b)
		}
		m = next
	}
}

// Change changes one thing in s: a pod, a node, a market or a workload; or puts another node
// into the slot of one that is gone.
func Change(t *rapid.T, s *policy.Snapshot, c *policy.Changes) {
	switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
	case what < 2 && len(s.Pods) > 0:
		p := oneOf(t, s.Pods, "pod")
		changePod(t, s, p)
		c.NotePod(p.ID)
	case what == 2 && len(s.Markets) > 0:
		m := oneOf(t, s.Markets, "market")
		m.Price = max(m.Price.Times(rapid.SampledFrom([]float64{0.5, 0.9, 1.1, 2}).Draw(t, "times")), 1)
		m.Forecast.Hazard *= 1.5
	case what == 3 && len(s.Workloads) > 0:
		oneOf(t, s.Workloads, "workload").Replicas = rapid.Int32Range(0, 4).Draw(t, "replicas")
	case len(s.Nodes) > 0:
		n := oneOf(t, s.Nodes, "node")
		changeNode(t, s, n, c)
		c.NoteNode(n.ID)
	}
}

func oneOf[T any](t *rapid.T, list []T, of string) *T {
	return &list[rapid.IntRange(0, len(list)-1).Draw(t, of)]
}

func changeNode(t *rapid.T, s *policy.Snapshot, n *policy.Node, c *policy.Changes) {
	if n.Phase == policy.NodeGone {
		if like := oneOf(t, s.Nodes, "like"); like.Phase != policy.NodeGone {
			id := n.ID
			*n = *like
			n.ID, n.Name, n.Token = id, fmt.Sprintf("node-%d-%d", id, s.Now), ""
		}
		return
	}
	switch rapid.IntRange(0, 7).Draw(t, "node change") {
	case 0:
		n.ActedBy = rapid.SampledFrom([]policy.Actor{policy.ActorNone, policy.ActorUs, policy.ActorKarpenter,
			policy.ActorPerson}).Draw(t, "by")
	case 1:
		n.NotReady = !n.NotReady
	case 2:
		n.DoNotDisrupt = !n.DoNotDisrupt
	case 3:
		n.Recommended = s.Now - n.Recommended
	case 4:
		n.NoticeAt, n.ReclaimAt = s.Now, s.Now.Add(2*time.Minute)
	case 5:
		n.Phase = rapid.SampledFrom([]policy.NodePhase{policy.NodeRegistered, policy.NodeInitialized,
			policy.NodeDraining}).Draw(t, "phase")
		n.Initialized = s.Now
	case 6:
		n.Name = fmt.Sprintf("%s-%d-%d", rapid.StringMatching("[a-z]{3}").Draw(t, "name"), n.ID, s.Now)
	default:
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Node == n.ID || p.Nominated == n.ID {
				end(p)
				c.NotePod(p.ID)
			}
		}
		*n = policy.Node{ID: n.ID, Pool: policy.None, Market: policy.None}
	}
}

func changePod(t *rapid.T, s *policy.Snapshot, p *policy.Pod) {
	if p.Phase == policy.PodGone {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "pod change") {
	case 0:
		p.DeletionCost = rapid.Int32Range(-3, 1).Draw(t, "cost")
	case 1:
		p.DeletionCostFixed, p.DoNotDisrupt = !p.DeletionCostFixed, p.DeletionCostFixed
	case 2:
		if p.Phase >= policy.PodStarting {
			p.Phase = rapid.SampledFrom([]policy.PodPhase{policy.PodStarting, policy.PodReady, policy.PodTerminating}).Draw(t,
				"phase")
			p.Deleting = s.Now
		}
	case 3:
		p.Phase, p.Node, p.Nominated = policy.PodPending, policy.None, policy.None
	case 4:
		end(p)
	default:
		for i := range s.Nodes {
			if s.Nodes[i].Usable() && rapid.Bool().Draw(t, "there") {
				p.Phase, p.Node, p.Nominated = policy.PodReady, policy.NodeID(i), policy.None
				p.Bound, p.ReadySince = s.Now.Add(-2*time.Minute), s.Now.Add(-time.Minute)
				return
			}
		}
	}
}

// end empties the slot of a pod.
func end(p *policy.Pod) {
	*p = policy.Pod{ID: p.ID, Template: p.Template, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
}
