package sim

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/policy/portable"
)

// The weights of kube-scheduler's default plugins. Image locality is left out:
// nodes of a simulation hold no images.
const (
	weightTaints   = 3
	weightAffinity = 2
	weightSpread   = 2
	weightPods     = 2
)

// scoreMax is the score of the best node by one plugin.
const scoreMax = 100

// A scheduler chooses nodes as kube-scheduler's default profile does: of the
// nodes that pass all filters the one with the greatest weighted score. It
// looks at every node, and of equal nodes takes the one with the lowest id.
//
// For each template it keeps the nodes that pass the filters of their own,
// grouped by all that scores and topology filters look at but free resources.
// Within a group the node with the best resource score is the best, so that a
// choice looks at one node of each group. A change of a node moves that node
// between groups only.
type scheduler struct {
	space     *place.Space
	templates []policy.Template
	rosters   []*roster

	// log holds the nodes that changed since the entry base; latest is the
	// last entry of each node, so that one that changed often is looked at
	// once.
	log    []policy.NodeID
	base   int
	latest []int

	scored []scored
	seen   []int32 // by domain: the constraint and pick that met it last
	picks  int32
}

// logMax is how many changes are remembered. A roster further behind is built
// anew.
const logMax = 1 << 13

func newScheduler(sp *place.Space, templates []policy.Template) *scheduler {
	s := &scheduler{space: sp, templates: templates, rosters: make([]*roster, len(templates))}
	for i := range templates {
		s.rosters[i] = newRoster(sp, templates, &templates[i])
	}
	return s
}

// changed says that node n, or what is bound to it, is not what it was.
func (s *scheduler) changed(n policy.NodeID) {
	if len(s.log) >= logMax {
		s.base += len(s.log)
		s.log = s.log[:0]
	}
	for int(n) >= len(s.latest) {
		s.latest = append(s.latest, -1)
	}
	s.latest[n] = s.base + len(s.log)
	s.log = append(s.log, n)
}

// catchUp tells r of the nodes that changed since it was used last.
func (s *scheduler) catchUp(r *roster) {
	end := s.base + len(s.log)
	if r.read < s.base {
		for n := range s.space.Nodes() {
			r.update(s.space, policy.NodeID(n))
		}
		r.read = end
		return
	}
	for ; r.read < end; r.read++ {
		if n := s.log[r.read-s.base]; s.latest[n] == r.read {
			r.update(s.space, n)
		}
	}
}

// A scored is a group during one pick, with its scores before normalization.
type scored struct {
	group    *group
	node     policy.NodeID
	resource int32
	spread   int64
	pods     int64
	ignored  bool // lacks a key of a spread constraint
}

// pick returns the best node for p, and whether any passes all filters.
func (s *scheduler) pick(p *policy.Pod) (policy.NodeID, bool) {
	r := s.rosters[p.Template]
	s.catchUp(r)
	s.scored = s.scored[:0]
	for i := range r.groups {
		g := &r.groups[i]
		if g.nodes == 0 {
			continue
		}
		top := g.top(r)
		if s.space.Check(p, top.node) == place.OK {
			s.scored = append(s.scored, scored{group: g, node: top.node, resource: top.score})
		}
	}
	switch len(s.scored) {
	case 0:
		return policy.None, false
	case 1:
		return s.scored[0].node, true
	}
	s.scoreSpread(r)
	s.scorePods(r)
	return s.best(), true
}

// best returns the node of the greatest weighted sum of normalized scores.
func (s *scheduler) best() policy.NodeID {
	var disliked, preference int32
	least, most, any := int64(math.MaxInt64), int64(0), false
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range s.scored {
		c := &s.scored[i]
		disliked, preference = max(disliked, c.group.disliked), max(preference, c.group.preference)
		low, high = min(low, c.pods), max(high, c.pods)
		if !c.ignored {
			least, most, any = min(least, c.spread), max(most, c.spread), true
		}
	}
	best, bestScore := policy.NodeID(policy.None), int64(-1)
	for i := range s.scored {
		c := &s.scored[i]
		score := int64(c.resource)
		score += weightTaints * reversed(int64(c.group.disliked), int64(disliked))
		if preference > 0 {
			score += weightAffinity * (scoreMax * int64(c.group.preference) / int64(preference))
		}
		switch {
		case c.ignored || !any:
		case most == 0:
			score += weightSpread * scoreMax
		default:
			score += weightSpread * (scoreMax * (most + least - c.spread) / most)
		}
		if high > low {
			score += weightPods * int64(scoreMax*(float64(c.pods-low)/float64(high-low)))
		}
		if score > bestScore || score == bestScore && c.node < best {
			best, bestScore = c.node, score
		}
	}
	return best
}

// reversed normalizes a count of which less is better.
func reversed(count, most int64) int64 {
	if most == 0 {
		return scoreMax
	}
	return scoreMax - scoreMax*count/most
}

// scoreSpread computes the raw score of the soft spread constraints: the pods
// in a node's domains, those of keys with many domains weighing more.
func (s *scheduler) scoreSpread(r *roster) {
	if len(r.softs) == 0 {
		return
	}
	nodes := int32(0)
	for i := range s.scored {
		c := &s.scored[i]
		c.ignored = r.requireAll && r.lacksKey(s.space, c.node)
		if !c.ignored {
			nodes += c.group.nodes
		}
	}
	for k := range r.softs {
		r.softs[k].weight = portable.Log(float64(s.domains(&r.softs[k], nodes) + 2))
	}
	for i := range s.scored {
		c := &s.scored[i]
		sum := 0.0
		for k := range r.softs {
			soft := &r.softs[k]
			if d := s.space.Domain(soft.tally, c.node); d >= 0 {
				sum += float64(float64(s.space.Counted(soft.tally, d))*soft.weight) + float64(soft.skewMax-1)
			}
		}
		c.spread = int64(math.Round(sum))
	}
}

// domains returns how many domains the candidate nodes have by a constraint's
// key; nodes is their number.
func (s *scheduler) domains(soft *soft, nodes int32) int32 {
	if s.space.ByHost(soft.tally) {
		return nodes
	}
	s.picks++
	count := int32(0)
	for i := range s.scored {
		c := &s.scored[i]
		d := s.space.Domain(soft.tally, c.node)
		if c.ignored || d < 0 {
			continue
		}
		for int(d) >= len(s.seen) {
			s.seen = append(s.seen, 0)
		}
		if s.seen[d] != s.picks {
			s.seen[d] = s.picks
			count++
		}
	}
	return count
}

// scorePods computes the raw score of preferred pod affinity.
func (s *scheduler) scorePods(r *roster) {
	for k := range r.leanings {
		l := &r.leanings[k]
		for i := range s.scored {
			if d := s.space.Domain(l.tally, s.scored[i].node); d >= 0 {
				s.scored[i].pods += l.weight * int64(s.space.Counted(l.tally, d))
			}
		}
	}
}
