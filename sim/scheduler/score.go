package scheduler

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// The weights of kube-scheduler's default plugins (pkg/scheduler/apis/config/v1/default_plugins.go,
// Kubernetes 1.35). Image locality is left out, since nodes of a simulation have no images.
const (
	weightTaints   = 3
	weightAffinity = 2
	weightSpread   = 2
	weightPods     = 2
)

// scoreMax is the highest score of a plugin.
const scoreMax = 100

// A scored is a group in a pick, with the scores of its best node before normalization.
type scored struct {
	group    *group
	node     policy.NodeID
	resource int32
	spread   int64
	pods     int64
	ignored  bool  // the node lacks a key of a spread constraint
	total    int64 // weighted sum of the normalized scores
}

// best returns the node with the highest weighted sum of normalized scores.
func (s *Scheduler) best() policy.NodeID {
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
		c.total = score
		if score > bestScore || score == bestScore && c.node < best {
			best, bestScore = c.node, score
		}
	}
	return best
}

// reversed normalizes a count of which lower values are better, given the highest one.
func reversed(count, most int64) int64 {
	if most == 0 {
		return scoreMax
	}
	return scoreMax - scoreMax*count/most
}

// scoreSpread computes the raw scores of the soft spread constraints: the number of pods in a
// node's domains. Constraints on keys with many domains have a higher weight.
func (s *Scheduler) scoreSpread(r *nodeIndex) {
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
		r.softs[k].weight = portable.Log(float64(s.domains(r, &r.softs[k], nodes) + 2))
	}
	for i := range s.scored {
		c := &s.scored[i]
		sum := 0.0
		for k := range r.softs {
			soft := &r.softs[k]
			if d := s.space.Topology().Domain(soft.counter, c.node); d >= 0 {
				sum += float64(float64(s.space.Topology().Counted(soft.counter, d))*soft.weight) + float64(soft.skewMax-1)
			}
		}
		c.spread = int64(math.Round(sum))
	}
}

// domains returns the number of domains of a constraint's key among the candidate nodes. nodes is
// the number of these nodes. Under the default constraints, all nodes without the key together
// count as one more domain.
func (s *Scheduler) domains(r *nodeIndex, soft *softSpread, nodes int32) int32 {
	if s.space.Topology().ByHost(soft.counter) {
		return nodes
	}
	s.picks++
	count, without := int32(0), int32(0)
	for i := range s.scored {
		c := &s.scored[i]
		if c.ignored {
			continue
		}
		d := s.space.Topology().Domain(soft.counter, c.node)
		if d < 0 {
			without = 1
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
	return count + without
}

// scorePods computes the raw scores of preferred pod affinity.
func (s *Scheduler) scorePods(r *nodeIndex) {
	for k := range r.affinities {
		l := &r.affinities[k]
		for i := range s.scored {
			if d := s.space.Topology().Domain(l.counter, s.scored[i].node); d >= 0 {
				s.scored[i].pods += l.weight * int64(s.space.Topology().Counted(l.counter, d))
			}
		}
	}
}
