package scheduler

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A plainScheduler rescores every node for every pod, by going through all nodes and pods. Only
// its filters are those of the space.
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
			if n.Taints[k].Effect == policy.PreferNoSchedule && !policy.Tolerates(t.Tolerations, &n.Taints[k]) {
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
			list = append(list, constraint{c.TopologyKey, c.MaxSkew, func(u *policy.Template) bool { return c.Selector.Matches(u.Labels) }})
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
