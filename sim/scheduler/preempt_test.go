package scheduler

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// plainFits is Fits by binding the nominated pods.
func (s *Scheduler) plainFits(p *policy.Pod, n policy.NodeID) bool {
	if s.space.Check(p, n) != placement.OK {
		return false
	}
	repels := s.space.Topology().Repels(p.Template)
	var ahead []policy.Pod
	for _, x := range s.nominatedTo(n) {
		if x.pod.ID != p.ID && s.templates[x.pod.Template].Priority >= s.templates[p.Template].Priority {
			ahead = append(ahead, x.pod)
		}
	}
	for i := range ahead {
		s.space.Bind(&ahead[i], n)
	}
	v := s.space.Check(p, n)
	for i := range ahead {
		s.space.Unbind(&ahead[i], n)
	}
	return v == placement.OK || v == placement.RepelledByPod && !repels
}

// plainPreempt is the choice of Preempt, by examining all nodes and by taking each pod
// of lower priority off its node.
func (s *Scheduler) plainPreempt(p *policy.Pod, pods []policy.Pod, pdbs []policy.PDB) candidate {
	var best candidate
	defer func(b pdbStates) { s.pdbStates = b }(slices.Clone(s.pdbStates)) // Preempt is to learn of them itself
	for n := range policy.NodeID(s.space.Nodes()) {
		if unresolvable(s.space.Check(p, n)) {
			continue
		}
		s.lower = s.lower[:0]
		for _, v := range slices.Clone(s.space.Pods(n)) {
			if s.templates[pods[v].Template].Priority < s.templates[p.Template].Priority {
				s.lower = append(s.lower, v)
				s.space.Unbind(&pods[v], n)
			}
		}
		c, fits := candidate{node: n, rank: rank{highest: math.MinInt32, started: math.MaxInt64}}, s.plainFits(p, n)
		s.byImportance(pods, pdbs)
		for _, v := range s.spared {
			s.space.Bind(&pods[v.id], n)
			if fits && !s.plainFits(p, n) {
				s.space.Unbind(&pods[v.id], n)
				s.addVictim(&c, v, pods)
			}
		}
		for _, v := range c.victims {
			s.space.Bind(&pods[v], n)
		}
		if len(c.victims) > 0 && (len(best.victims) == 0 || c.before(&best.rank)) {
			best = c
		}
	}
	return best
}

// drawRanked is drawTemplates with priorities, budgets, ports and volumes.
func drawRanked(t *rapid.T) []policy.Template {
	templates := drawTemplates(t)
	for i := range templates {
		u := &templates[i]
		u.Priority = rapid.Int32Range(0, 3).Draw(t, "priority")
		if rapid.Bool().Draw(t, "plain") {
			u.Spread, u.PodAffinity, u.PodAntiAffinity = nil, nil, nil
		}
		switch rapid.IntRange(0, 9).Draw(t, "asks") {
		case 0:
			u.HostPorts = []policy.HostPort{{Port: 80}}
		case 1:
			u.Volumes = []policy.Volume{{Claim: "shared", Once: rapid.Bool().Draw(t, "once")}}
		}
		if rapid.Bool().Draw(t, "budget") {
			u.PDBs = []policy.PDBID{0}
		}
	}
	return templates
}

// TestPreemptAgreesWithPlainOne fills nodes whether or not the pods fit, and lets
// pending pods preempt others on them.
func TestPreemptAgreesWithPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		templates := drawRanked(t)
		sp := placement.New(templates, testZones)
		s := New(sp, templates, sameWorkload)
		nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
		aNode := func() policy.NodeID { return policy.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "node")) }
		for i := range nodes {
			n := drawSchedulerNode(t, i)
			n.VolumesMax = int32(rapid.IntRange(0, 2).Draw(t, "volumesMax"))
			sp.SetNode(&n)
			s.Changed(n.ID)
		}
		pods := make([]policy.Pod, rapid.IntRange(1, 40).Draw(t, "pods"))
		for i := range pods {
			pods[i] = policy.Pod{
				ID: policy.PodID(i), Template: policy.TemplateID(rapid.IntRange(0, len(templates)-1).Draw(t, "template")),
				Phase: policy.PodPending, Node: policy.None, VolumeZone: policy.ZoneID(rapid.IntRange(-1, 2).Draw(t, "volumeZone")),
			}
		}
		pdbs := []policy.PDB{{Allowed: rapid.Int32Range(0, 2).Draw(t, "allowed")}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			p := &pods[rapid.IntRange(0, len(pods)-1).Draw(t, "pod")]
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0: // a pod goes
				if p.Node >= 0 {
					sp.Unbind(p, p.Node)
					s.Changed(p.Node)
					p.Node, p.Phase = policy.None, policy.PodPending
				}
			case 1, 2: // a pod comes
				if p.Node < 0 {
					s.Withdraw(p.ID)
					p.Node, p.Phase, p.Bound = aNode(), policy.PodReady, policy.Time(rapid.IntRange(0, 3).Draw(t, "bound"))
					sp.Bind(p, p.Node)
					s.Changed(p.Node)
				}
			case 3:
				pdbs[0].Allowed = rapid.Int32Range(0, 2).Draw(t, "allowed")
				if p.Node < 0 {
					s.Nominate(p, aNode(), nil)
				}
			default:
				if p.Node >= 0 {
					continue
				}
				for n := range policy.NodeID(nodes) {
					if got, want := s.Fits(p, n), s.plainFits(p, n); got != want {
						t.Fatalf("pod %d fits onto node %d: %v, want %v", p.ID, n, got, want)
					}
				}
				want := s.plainPreempt(p, pods, pdbs)
				if len(want.victims) == 0 {
					want.node = policy.None
				}
				n, victims := s.Preempt(p, pods, pdbs)
				if fmt.Sprint(n, victims) != fmt.Sprint(want.node, want.victims) {
					t.Fatalf("pod %d ends %v on node %d, want %v on %d", p.ID, victims, n, want.victims, want.node)
				}
			}
		}
	})
}

// TestPreemptPrefers ends the fewest and then the youngest of equally important pods,
// on whichever node it looks first.
func TestPreemptPrefers(t *testing.T) {
	templates := []policy.Template{
		{ID: 0, Requests: policy.Resources{CPU: 4000, Pods: 1}, Priority: 1},
		{ID: 1, Requests: policy.Resources{CPU: 2000, Pods: 1}},
		{ID: 2, Requests: policy.Resources{CPU: 4000, Pods: 1}},
	}
	type pod struct {
		node     policy.NodeID
		template policy.TemplateID
		bound    policy.Time
	}
	for _, c := range []struct {
		name   string
		pods   []pod
		victim policy.PodID
	}{
		{"one old pod before two young ones", []pod{{0, 1, 5}, {0, 1, 5}, {1, 2, 1}}, 2},
		{"the youngest of several", []pod{{0, 2, 2}, {1, 2, 3}, {1, 1, 1}}, 1},
		{"the first of equal ones", []pod{{0, 2, 2}, {1, 2, 2}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := placement.New(templates, testZones)
			s := New(sp, templates, sameWorkload)
			for n := range policy.NodeID(2) {
				node := policy.Node{ID: n, Name: fmt.Sprint("n", n), Phase: policy.NodeInitialized,
					Allocatable: policy.Resources{CPU: 4000 + 2000*int64(n), Pods: 9}}
				sp.SetNode(&node)
			}
			var pods []policy.Pod
			for i, x := range c.pods {
				pods = append(pods, policy.Pod{ID: policy.PodID(i), Template: x.template, Node: x.node, Bound: x.bound, Phase: policy.PodReady})
				sp.Bind(&pods[i], x.node)
			}
			p := policy.Pod{ID: policy.PodID(len(pods)), Node: policy.None, VolumeZone: policy.None}
			if n, victims := s.Preempt(&p, pods, nil); !slices.Equal(victims, []policy.PodID{c.victim}) || n != pods[c.victim].Node {
				t.Errorf("Preempt ends %v on node %d, want pod %d", victims, n, c.victim)
			}
		})
	}
}

// TestPreemptHeedsBudgets spares a pod once its budget allows no disruption any more, and
// no longer when it does again, though no node has changed.
func TestPreemptHeedsBudgets(t *testing.T) {
	templates := []policy.Template{
		{ID: 0, Requests: policy.Resources{CPU: 4000, Pods: 1}, Priority: 1},
		{ID: 1, Requests: policy.Resources{CPU: 4000, Pods: 1}, PDBs: []policy.PDBID{0}},
		{ID: 2, Requests: policy.Resources{CPU: 4000, Pods: 1}},
	}
	sp := placement.New(templates, testZones)
	s := New(sp, templates, sameWorkload)
	var pods []policy.Pod
	for n := range policy.NodeID(2) {
		sp.SetNode(&policy.Node{ID: n, Name: fmt.Sprint("n", n), Phase: policy.NodeInitialized,
			Allocatable: policy.Resources{CPU: 4000, Pods: 9}})
		pods = append(pods, policy.Pod{ID: policy.PodID(n), Template: policy.TemplateID(1 + n), Node: n, Phase: policy.PodReady})
		sp.Bind(&pods[n], n)
	}
	p := policy.Pod{ID: 2, Node: policy.None, VolumeZone: policy.None}
	for _, x := range []struct {
		allowed int32
		node    policy.NodeID
	}{{2, 0}, {1, 0}, {0, 1}, {0, 1}, {3, 0}} {
		if n, _ := s.Preempt(&p, pods, []policy.PDB{{Allowed: x.allowed}}); n != x.node {
			t.Errorf("with %d disruptions allowed it ends the pod of node %d, want that of %d", x.allowed, n, x.node)
		}
	}
}

// TestPickNominated sends a pod to the node that it is nominated to while that takes it,
// and elsewhere from then on, though it would not score best there.
func TestPickNominated(t *testing.T) {
	sp, s, pods := schedulerFleet(2, 2, false)
	p, other := &pods[0], pods[1]
	other.Node = 0
	sp.Bind(&other, 0)
	s.Changed(0)
	s.Nominate(p, 0, nil)
	if n, ok := s.Pick(p); !ok || n != 0 {
		t.Errorf("nominated to node 0 it goes to %d, %v", n, ok)
	}
	sp.SetNode(&policy.Node{ID: 0, Name: "n0", Phase: policy.NodeInitialized,
		Allocatable: policy.Resources{CPU: 200, Memory: 30 << 30, Pods: 58}})
	s.Changed(0)
	if n, ok := s.Pick(p); !ok || n != 1 {
		t.Errorf("node 0 has no room for it, and it goes to %d, %v", n, ok)
	}
}
