package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A plainScheduler scores every node anew for every pod, by going through all
// nodes and pods. Only the filters are those of the space.
type plainScheduler struct {
	space     *placement.Space
	templates []policy.Template
	nodes     []policy.Node
	pods      []policy.Pod
}

func (s *plainScheduler) pick(p *policy.Pod) (policy.NodeID, bool) {
	t := &s.templates[p.Template]
	var feasible []*policy.Node
	for i := range s.nodes {
		if s.nodes[i].Live() && s.space.Check(p, s.nodes[i].ID) == placement.OK {
			feasible = append(feasible, &s.nodes[i])
		}
	}
	if len(feasible) == 0 {
		return policy.None, false
	}
	total := make([]int64, len(feasible))
	add := func(weight int64, scores []int64) {
		for i := range scores {
			total[i] += weight * scores[i]
		}
	}
	add(1, s.least(t, feasible))
	add(1, s.balanced(t, feasible))
	add(weightTaints, s.taints(t, feasible))
	add(weightAffinity, s.preferred(t, feasible))
	add(weightSpread, s.spread(t, feasible))
	add(weightPods, s.podAffinity(t, feasible))
	best := 0
	for i := range total {
		if total[i] > total[best] {
			best = i
		}
	}
	return feasible[best].ID, true
}

func (s *plainScheduler) on(n *policy.Node) (list []*policy.Template) {
	for i := range s.pods {
		if s.pods[i].Node == n.ID {
			list = append(list, &s.templates[s.pods[i].Template])
		}
	}
	return list
}

func (s *plainScheduler) least(t *policy.Template, nodes []*policy.Node) (scores []int64) {
	for _, n := range nodes {
		cpu, memory := int64(0), int64(0)
		for _, u := range append(s.on(n), t) {
			c, m := u.Requests.CPU, u.Requests.Memory
			if c == 0 {
				c = 100
			}
			if m == 0 {
				m = 200 << 20
			}
			cpu, memory = cpu+c, memory+m
		}
		share := func(have, used int64) int64 {
			if used > have {
				return 0
			}
			return (have - used) * 100 / have
		}
		scores = append(scores, (share(n.Allocatable.CPU, cpu)+share(n.Allocatable.Memory, memory))/2)
	}
	return scores
}

func (s *plainScheduler) balanced(t *policy.Template, nodes []*policy.Node) (scores []int64) {
	for _, n := range nodes {
		cpu, memory := 0.0, 0.0
		for _, u := range append(s.on(n), t) {
			cpu += float64(u.Requests.CPU)
			memory += float64(u.Requests.Memory)
		}
		cpu = min(1, cpu/float64(n.Allocatable.CPU))
		memory = min(1, memory/float64(n.Allocatable.Memory))
		if t.Requests.CPU == 0 && t.Requests.Memory == 0 {
			scores = append(scores, 0)
			continue
		}
		scores = append(scores, int64((1-math.Abs((cpu-memory)/2))*100))
	}
	return scores
}

func (s *plainScheduler) taints(t *policy.Template, nodes []*policy.Node) []int64 {
	raw, most := make([]int64, len(nodes)), int64(0)
	for i, n := range nodes {
		for k := range n.Taints {
			if n.Taints[k].Effect == policy.PreferNoSchedule && !placement.Tolerates(t.Tolerations, &n.Taints[k]) {
				raw[i]++
			}
		}
		most = max(most, raw[i])
	}
	for i := range raw {
		if most == 0 {
			raw[i] = 100
		} else {
			raw[i] = 100 - 100*raw[i]/most
		}
	}
	return raw
}

func (s *plainScheduler) preferred(t *policy.Template, nodes []*policy.Node) []int64 {
	raw, most := make([]int64, len(nodes)), int64(0)
	for i, n := range nodes {
		for _, x := range t.Preferred {
			for _, r := range x.Term.Labels {
				if v, ok := n.Label(r.Key); ok && slices.Contains(r.Values, v) {
					raw[i] += int64(x.Weight)
				}
			}
		}
		most = max(most, raw[i])
	}
	for i := range raw {
		if most > 0 {
			raw[i] = 100 * raw[i] / most
		}
	}
	return raw
}

func (s *plainScheduler) domain(n *policy.Node, key string) (string, bool) {
	if key == labelHost {
		return n.Name, true
	}
	return n.Label(key)
}

// A constraint is a soft spread constraint, stated or by default.
type constraint struct {
	key    string
	skew   int32
	counts func(u *policy.Template) bool
}

func (s *plainScheduler) constraints(t *policy.Template) (list []constraint) {
	if len(t.Spread) == 0 {
		same := func(u *policy.Template) bool { return u.Workload == t.Workload }
		return []constraint{{labelHost, 3, same}, {labelZone, 5, same}}
	}
	for i := range t.Spread {
		c := &t.Spread[i]
		if c.Soft {
			list = append(list, constraint{c.TopologyKey, c.MaxSkew, func(u *policy.Template) bool { return placement.Selects(&c.Selector, u.Labels) }})
		}
	}
	return list
}

// eligible reports whether n has the keys of all constraints that t states.
func (s *plainScheduler) eligible(t *policy.Template, list []constraint, n *policy.Node) bool {
	for _, c := range list {
		if _, ok := s.domain(n, c.key); !ok && len(t.Spread) > 0 {
			return false
		}
	}
	return true
}

// count returns how many pods c counts in the domain of n.
func (s *plainScheduler) count(t *policy.Template, list []constraint, c constraint, n *policy.Node) (count int) {
	here, _ := s.domain(n, c.key)
	for k := range s.nodes {
		m := &s.nodes[k]
		if d, _ := s.domain(m, c.key); !m.Live() || d != here || c.key != labelHost && !s.eligible(t, list, m) {
			continue
		}
		for p := range s.pods {
			if s.pods[p].Node == m.ID && s.pods[p].Phase != policy.PodTerminating && c.counts(&s.templates[s.pods[p].Template]) {
				count++
			}
		}
	}
	return count
}

func (s *plainScheduler) spread(t *policy.Template, nodes []*policy.Node) []int64 {
	scores, list := make([]int64, len(nodes)), s.constraints(t)
	if len(list) == 0 {
		return scores
	}
	low, high := int64(math.MaxInt64), int64(0)
	for i, n := range nodes {
		sum := 0.0
		for _, c := range list {
			domains := map[string]bool{}
			for _, m := range nodes {
				if d, _ := s.domain(m, c.key); s.eligible(t, list, m) {
					domains[d] = true
				}
			}
			if _, ok := s.domain(n, c.key); ok {
				count := float64(s.count(t, list, c, n))
				sum += float64(count*portable.Log(float64(len(domains)+2))) + float64(c.skew-1)
			}
		}
		scores[i] = int64(math.Round(sum))
		if s.eligible(t, list, n) {
			low, high = min(low, scores[i]), max(high, scores[i])
		}
	}
	for i, n := range nodes {
		switch {
		case !s.eligible(t, list, n):
			scores[i] = 0
		case high == 0:
			scores[i] = 100
		default:
			scores[i] = 100 * (high + low - scores[i]) / high
		}
	}
	return scores
}

func (s *plainScheduler) podAffinity(t *policy.Template, nodes []*policy.Node) []int64 {
	scores := make([]int64, len(nodes))
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for i, n := range nodes {
		near := func(key string, m *policy.Node) bool {
			a, ok := s.domain(n, key)
			b, there := s.domain(m, key)
			return ok && there && a == b
		}
		for k := range s.nodes {
			m := &s.nodes[k]
			for _, u := range s.on(m) {
				weigh := func(sign int64, terms []policy.PodTerm, owner, other *policy.Template, required int64) {
					for x := range terms {
						if placement.TermMatches(owner, &terms[x], other) && near(terms[x].TopologyKey, m) {
							w := int64(terms[x].Weight)
							if w == 0 {
								w = required
							}
							scores[i] += sign * w
						}
					}
				}
				weigh(1, t.PodAffinity, t, u, 0)
				weigh(-1, t.PodAntiAffinity, t, u, 0)
				weigh(1, u.PodAffinity, u, t, 1)
				weigh(-1, u.PodAntiAffinity, u, t, 0)
			}
		}
		low, high = min(low, scores[i]), max(high, scores[i])
	}
	for i := range scores {
		if high > low {
			scores[i] = int64(100 * (float64(scores[i]-low) / float64(high-low)))
		} else {
			scores[i] = 0
		}
	}
	return scores
}

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
		s.space.Terminating(p, p.Node)
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
