package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func sameWorkload(t, u *policy.Template) bool { return t.Workload == u.Workload }

var testZones = []string{"a", "b", "c"}

func drawTemplates(t *rapid.T) []policy.Template {
	templates := make([]policy.Template, rapid.IntRange(1, 4).Draw(t, "templates"))
	few := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	key := func() string { return rapid.SampledFrom([]string{labelHost, labelZone}).Draw(t, "key") }
	app := func() policy.Selector {
		v := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "selected")
		return policy.Selector{Requirements: []policy.Requirement{{Key: "app", Values: []string{v}}}}
	}
	for i := range templates {
		u := policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i / 2), Namespace: "n",
			Labels: []policy.Label{{Key: "app", Value: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app")}},
			Requests: policy.Resources{
				CPU: 100 * rapid.Int64Range(0, 5).Draw(t, "cpu"), Memory: rapid.Int64Range(0, 5).Draw(t, "memory") << 28, Pods: 1,
			},
		}
		for range rapid.IntRange(0, 2).Draw(t, "spreads") {
			u.Spread = append(u.Spread, policy.Spread{
				TopologyKey: key(), MaxSkew: rapid.Int32Range(1, 2).Draw(t, "skew"), Soft: !few("hard"), Selector: app(), IgnoreAffinity: true,
			})
		}
		for range rapid.IntRange(0, 2).Draw(t, "terms") {
			term := policy.PodTerm{Weight: 20 * rapid.Int32Range(0, 3).Draw(t, "weight"), Selector: app(), TopologyKey: key()}
			if rapid.Bool().Draw(t, "anti") {
				u.PodAntiAffinity = append(u.PodAntiAffinity, term)
			} else {
				u.PodAffinity = append(u.PodAffinity, term)
			}
		}
		if few("prefers") {
			u.Preferred = []policy.PreferredNodeTerm{{Weight: 10, Term: policy.NodeTerm{
				Labels: []policy.Requirement{{Key: labelZone, Values: []string{rapid.SampledFrom(testZones).Draw(t, "preferred")}}},
			}}}
		}
		if few("volume") {
			u.Volumes = []policy.Volume{{Zonal: true}}
		}
		templates[i] = u
	}
	return templates
}

func drawSchedulerNode(t *rapid.T, id int) policy.Node {
	n := policy.Node{
		ID: policy.NodeID(id), Name: fmt.Sprint("n", id), Phase: policy.NodeInitialized,
		Allocatable: policy.Resources{
			CPU: 1000 * rapid.Int64Range(1, 3).Draw(t, "cpu"), Memory: rapid.Int64Range(1, 4).Draw(t, "memory") << 30,
			Pods: rapid.Int64Range(2, 10).Draw(t, "pods"),
		},
	}
	if rapid.IntRange(0, 5).Draw(t, "zoned") > 0 {
		n.Labels = []policy.Label{{Key: labelZone, Value: rapid.SampledFrom(testZones).Draw(t, "zone")}}
	}
	if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
		n.Taints = []policy.Taint{{Key: "k", Effect: policy.PreferNoSchedule}}
	}
	return n
}

// TestSchedulerAgreesWithPlainOne binds, unbinds and changes nodes at random;
// both schedulers must choose the same node for every pod.
func TestSchedulerAgreesWithPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := &plainScheduler{templates: drawTemplates(t)}
		plain.space = placement.New(plain.templates, testZones)
		fast := New(plain.space, plain.templates, sameWorkload)
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			plain.nodes = append(plain.nodes, drawSchedulerNode(t, i))
			plain.space.SetNode(&plain.nodes[i])
			fast.Changed(policy.NodeID(i))
		}
		for i := range rapid.IntRange(1, 25).Draw(t, "pods") {
			plain.pods = append(plain.pods, policy.Pod{
				ID: policy.PodID(i), Phase: policy.PodPending, Node: policy.None,
				Template:   policy.TemplateID(rapid.IntRange(0, len(plain.templates)-1).Draw(t, "template")),
				VolumeZone: policy.ZoneID(rapid.IntRange(-1, 2).Draw(t, "volumeZone")),
			})
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			plain.step(t, fast)
		}
	})
}

func (s *plainScheduler) step(t *rapid.T, fast *Scheduler) {
	p := &s.pods[rapid.IntRange(0, len(s.pods)-1).Draw(t, "pod")]
	n := policy.NodeID(rapid.IntRange(0, len(s.nodes)-1).Draw(t, "node"))
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what == 0:
		s.nodes[n] = drawSchedulerNode(t, int(n))
		s.space.SetNode(&s.nodes[n])
		fast.Changed(n)
	case what == 1 && p.Node >= 0 && p.Phase != policy.PodTerminating:
		s.space.MarkTerminating(p, p.Node)
		p.Phase = policy.PodTerminating
		fast.Changed(p.Node)
	case p.Node >= 0:
		s.space.Unbind(p, p.Node)
		fast.Changed(p.Node)
		p.Node, p.Phase = policy.None, policy.PodPending
	default:
		got, ok := fast.Pick(p)
		want, some := s.pick(p)
		if got != want || ok != some {
			t.Fatalf("pod %d (template %d) goes to %d (%v), want %d (%v)", p.ID, p.Template, got, ok, want, some)
		}
		if ok {
			p.Node, p.Phase = got, policy.PodReady
			s.space.Bind(p, got)
			fast.Changed(got)
		}
	}
}

// schedulerFleet returns an empty cluster and pods to bind to it.
func schedulerFleet(nodes, pods int, hard bool) (*placement.Space, *Scheduler, []policy.Pod) {
	var templates []policy.Template
	for i := range 40 {
		app := fmt.Sprint("app", i)
		t := policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Namespace: "n",
			Labels:   []policy.Label{{Key: "app", Value: app}},
			Requests: policy.Resources{CPU: 200 + 50*int64(i), Memory: (256 + 64*int64(i)) << 20, Pods: 1},
		}
		if hard {
			t.Spread = []policy.Spread{{
				TopologyKey: labelZone, MaxSkew: 1,
				Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Values: []string{app}}}},
			}}
		}
		templates = append(templates, t)
	}
	sp := placement.New(templates, testZones)
	s := New(sp, templates, sameWorkload)
	labels := [][]policy.Label{{{Key: labelZone, Value: "a"}}, {{Key: labelZone, Value: "b"}}, {{Key: labelZone, Value: "c"}}}
	for i := range nodes {
		sp.SetNode(&policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprint("n", i), Phase: policy.NodeInitialized, Labels: labels[i%3],
			Allocatable: policy.Resources{CPU: 7900, Memory: 30 << 30, Pods: 58},
		})
		s.Changed(policy.NodeID(i))
	}
	list := make([]policy.Pod, pods)
	for i := range list {
		list[i] = policy.Pod{ID: policy.PodID(i), Template: policy.TemplateID(i % 40), Node: policy.None, VolumeZone: policy.None}
	}
	return sp, s, list
}

// TestSchedulerAllocatesNothing binds and unbinds in a cluster that has met
// the same states before.
func TestSchedulerAllocatesNothing(t *testing.T) {
	sp, s, pods := schedulerFleet(100, 400, false)
	round := func() {
		for i := range pods {
			n, ok := s.Pick(&pods[i])
			if !ok {
				t.Fatalf("pod %d does not fit: %s", i, s.reason(&pods[i]))
			}
			pods[i].Node = n
			sp.Bind(&pods[i], n)
			s.Changed(n)
		}
		for i := range pods {
			sp.Unbind(&pods[i], pods[i].Node)
			s.Changed(pods[i].Node)
		}
	}
	for range 50 {
		round()
	}
	if n := policytest.Allocations(20, round); n != 0 {
		t.Errorf("binding 400 pods allocates %v times, want none", n)
	}
}

func BenchmarkScheduler(b *testing.B) {
	for _, hard := range []bool{false, true} {
		b.Run(fmt.Sprintf("hard=%v", hard), func(b *testing.B) {
			for b.Loop() {
				sp, s, pods := schedulerFleet(2000, 8000, hard)
				for i := range pods {
					n, ok := s.Pick(&pods[i])
					if !ok {
						b.Fatalf("pod %d does not fit: %s", i, s.reason(&pods[i]))
					}
					sp.Bind(&pods[i], n)
					s.Changed(n)
				}
			}
		})
	}
}

// reason says in words why nothing takes p: how many nodes each filter refused.
func (s *Scheduler) reason(p *policy.Pod) string {
	var counts [32]int
	nodes := 0
	for n := range s.space.Nodes() {
		v := s.space.Check(p, policy.NodeID(n))
		if v != placement.NoNode {
			counts[v]++
			nodes++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d nodes take it", counts[placement.OK], nodes)
	for v := range counts {
		if n := counts[v]; n > 0 && placement.Result(v) != placement.OK {
			fmt.Fprintf(&b, ", %d %s", n, placement.Result(v))
		}
	}
	return b.String()
}
