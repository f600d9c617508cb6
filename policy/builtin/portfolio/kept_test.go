package portfolio

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestKept: whatever changes from snapshot to snapshot, a policy that decided on those before
// decides the same as one that reads the last one alone.
func TestKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		var changes policy.Changes
		for step := range rapid.IntRange(2, 6).Draw(t, "decisions") {
			if step > 0 {
				s.Now = s.Now.Add(10 * time.Minute)
				for range rapid.IntRange(0, 6).Draw(t, "changes") {
					change(t, s, &changes)
				}
			}
			changes.Publish(s)
			fresh, err := New(DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			whole := s.Whole()
			plan, next := kept.Decide(s, m)
			want, wantNext := fresh.Decide(&whole, m)
			if !reflect.DeepEqual(plan, want) || !reflect.DeepEqual(next, wantNext) {
				t.Fatalf("decided\n%s%+v\nread alone\n%s%+v", plan.Format(s), next, want.Format(s), wantNext)
			}
			if got, want := kept.classes.byKey(), fresh.classes.byKey(); !reflect.DeepEqual(got, want) {
				t.Fatalf("classes are %v, read alone %v", got, want)
			}
			if !slices.Equal(kept.roomy.nodes, fresh.roomy.nodes) || !slices.Equal(kept.names.order, fresh.names.order) {
				t.Fatalf("room is on %v by name %v, read alone %v %v", kept.roomy.nodes, kept.names.order, fresh.roomy.nodes, fresh.names.order)
			}
			if x, y := &kept.nodes, &fresh.nodes; !slices.Equal(x.all, y.all) || !slices.Equal(x.plain, y.plain) || !slices.Equal(x.odd, y.odd) || !slices.Equal(x.recommended, y.recommended) {
				t.Fatalf("nodes are %+v, read alone %+v", *x, *y)
			}
			m = next
		}
	})
}

// byKey returns the nodes of the classes that have any.
func (x *nodeClasses) byKey() map[classKey][]policy.NodeID {
	all := map[classKey][]policy.NodeID{}
	for i := range x.list {
		if c := &x.list[i]; len(c.nodes) > 0 {
			all[c.classKey] = c.nodes
		}
	}
	return all
}

// change changes one thing in s.
func change(t *rapid.T, s *policy.Snapshot, changes *policy.Changes) {
	pick := func(n int, of string) int { return rapid.IntRange(0, n-1).Draw(t, of) }
	switch what := pick(6, "what"); {
	case what < 3 && len(s.Pods) > 0:
		p := &s.Pods[pick(len(s.Pods), "pod")]
		changePod(t, s, p)
		changes.NotePod(p.ID)
	case what == 3 && len(s.Markets) > 0:
		m := &s.Markets[pick(len(s.Markets), "market")]
		m.Price = m.Price.Times(rapid.SampledFrom([]float64{0.5, 0.9, 1.1, 2}).Draw(t, "times"))
		m.Forecast.Hazard *= 1.5
	case what == 4 && len(s.Workloads) > 0:
		s.Workloads[pick(len(s.Workloads), "workload")].Replicas = int32(pick(5, "replicas"))
	case len(s.Nodes) > 0:
		n := &s.Nodes[pick(len(s.Nodes), "node")]
		changeNode(t, s, n, changes)
		changes.NoteNode(n.ID)
	}
}

func changePod(t *rapid.T, s *policy.Snapshot, p *policy.Pod) {
	if p.Phase == policy.PodGone {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "pod-change") {
	case 0:
		p.DeletionCost = rapid.Int32Range(-3, 1).Draw(t, "cost")
	case 1:
		p.DeletionCostFixed, p.DoNotDisrupt = !p.DeletionCostFixed, p.DeletionCostFixed
	case 2:
		if p.Phase >= policy.PodStarting {
			p.Phase = rapid.SampledFrom([]policy.PodPhase{policy.PodStarting, policy.PodReady, policy.PodTerminating}).Draw(t, "phase")
		}
	case 3:
		p.Phase, p.Node, p.Nominated = policy.PodPending, policy.None, policy.None
	case 4:
		p.Phase, p.Node, p.Nominated, p.Name = policy.PodGone, policy.None, policy.None, ""
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

func changeNode(t *rapid.T, s *policy.Snapshot, n *policy.Node, changes *policy.Changes) {
	if n.Phase == policy.NodeGone {
		return
	}
	switch rapid.IntRange(0, 7).Draw(t, "node-change") {
	case 0:
		n.ActedBy = rapid.SampledFrom([]policy.Actor{policy.ActorNone, policy.ActorUs, policy.ActorKarpenter}).Draw(t, "by")
	case 1:
		n.NotReady = !n.NotReady
	case 2:
		n.ReclaimAt, n.NoticeAt = s.Now.Add(2*time.Minute), s.Now
	case 3:
		n.Recommended = s.Now
	case 4:
		n.Phase = rapid.SampledFrom([]policy.NodePhase{policy.NodeRegistered, policy.NodeInitialized, policy.NodeDraining}).Draw(t, "phase")
	case 5:
		n.Name = rapid.StringMatching("[a-z]{6}").Draw(t, "name")
	case 6:
		n.DoNotDisrupt = !n.DoNotDisrupt
	default:
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Node == n.ID || p.Nominated == n.ID {
				p.Phase, p.Node, p.Nominated, p.Name = policy.PodGone, policy.None, policy.None, ""
				changes.NotePod(p.ID)
			}
		}
		*n = policy.Node{ID: n.ID, Pool: policy.None, Market: policy.None}
	}
}
