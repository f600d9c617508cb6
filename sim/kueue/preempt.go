package kueue

import (
	"cmp"
	"slices"
)

// Why is the reason of a preemption, named as in Kueue's Preempted condition.
type Why uint8

// The reasons of preemptions.
const (
	InClusterQueue Why = iota
	InCohortReclamation
	InCohortReclaimWhileBorrowing
)

// String returns the reason in the Preempted condition.
func (w Why) String() string {
	return [...]string{"InClusterQueue", "InCohortReclamation", "InCohortReclaimWhileBorrowing"}[w]
}

// A victim is a workload that should be preempted.
type victim struct {
	w   *state
	why Why
}

// A candidate is a workload that may be preempted. Top is the smallest cohort that contains both its
// queue and that of the preemptor. ToReclaim means that it may only be preempted if the preemptor's
// queue does not borrow afterwards.
type candidate struct {
	victim
	top       int
	toReclaim bool
}

// victims returns the workloads that are preempted to admit w, none if there are not enough. Needs
// are the pairs in which quota is missing, and wants is what w requests.
func (s *System) victims(w *state, needs []pair, wants []use) []victim {
	own, advantage, others := s.candidates(w, needs, wants)
	all := slices.Concat(advantage, others, own)
	rank := func(c candidate) int { // evicted ones first, in the same order
		if c.w.phase == evicting {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(rank(a), rank(b)) })
	q := &s.Queues[w.Queue]
	tries := []bool{true, false} // with borrowing, or without
	switch {
	case len(advantage)+len(others) == 0, !q.Borrow && !s.below(w.Queue, needs):
		tries = tries[:1]
	case !q.Borrow && len(advantage) == 0:
		tries = []bool{false, true}
	}
	for _, borrowing := range tries {
		if targets := s.try(w, all, needs, wants, borrowing); len(targets) > 0 {
			return targets
		}
	}
	return nil
}

// below reports whether a queue uses less than its nominal quota of all pairs.
func (s *System) below(queue int, pairs []pair) bool {
	n := &s.nodes[queue]
	return !slices.ContainsFunc(pairs, func(p pair) bool { return n.usage[p] >= n.nominal[p] })
}

// try removes candidates in their order until w fits, and puts back those without which it fits too.
// It leaves the usage as it was.
func (s *System) try(w *state, all []candidate, needs []pair, wants []use, borrowing bool) []victim {
	var targets []victim
	fits := false
	for i := range all {
		if !s.valid(w, &all[i], needs, borrowing) {
			continue
		}
		s.remove(all[i].w)
		targets = append(targets, all[i].victim)
		if fits = s.fits(w.Queue, wants, borrowing); fits {
			break
		}
	}
	if !fits {
		for _, t := range targets {
			s.put(t.w)
		}
		return nil
	}
	for i := len(targets) - 2; i >= 0; i-- {
		s.put(targets[i].w)
		if !s.fits(w.Queue, wants, borrowing) {
			s.remove(targets[i].w)
			continue
		}
		targets[i] = targets[len(targets)-1]
		targets = targets[:len(targets)-1]
	}
	for _, t := range targets {
		s.put(t.w)
	}
	return targets
}

// fits reports whether a queue can use wants, with or without borrowing.
func (s *System) fits(queue int, wants []use, borrowing bool) bool {
	for _, u := range wants {
		if !borrowing && s.nodes[queue].exceeds(u.pair, u.v) || u.v > max(0, s.available(queue, u.pair)) {
			return false
		}
	}
	return true
}

// valid reports whether a candidate may still be preempted: those of other queues only while these,
// and their cohorts below the common one, use more than their quota.
func (s *System) valid(w *state, c *candidate, needs []pair, borrowing bool) bool {
	if c.w.Queue == w.Queue {
		return true
	}
	if borrowing && c.toReclaim {
		return false
	}
	for at := c.w.Queue; at != c.top; at = s.nodes[at].parent {
		if s.nodes[at].within(needs) {
			return false
		}
	}
	return true
}

// candidates returns the workloads that may be preempted for w, in the order in which they are: of
// its own queue, of queues over which its own has an advantage because the quota is closer to it, and
// of other queues.
func (s *System) candidates(w *state, needs []pair, wants []use) (own, advantage, others []candidate) {
	q := &s.Queues[w.Queue]
	own = s.gather(w, w.Queue, None, needs, q.Within, nil)
	if q.Reclaim != Never {
		rest := slices.Clone(wants)
		ahead := s.take(w.Queue, rest)
		before := w.Queue
		for top := s.nodes[w.Queue].parent; top != None; top = s.nodes[top].parent {
			into := &others
			if ahead {
				into = &advantage
			}
			s.collect(w, top, top, before, needs, into)
			if s.take(top, rest) {
				ahead = true
			}
			before = top
		}
	}
	for i := range advantage {
		advantage[i].why, advantage[i].toReclaim = InCohortReclamation, false
	}
	for _, list := range [][]candidate{own, advantage, others} {
		slices.SortFunc(list, func(a, b candidate) int {
			return cmp.Or(
				cmp.Compare(a.w.Priority, b.w.Priority), cmp.Compare(b.w.reserved, a.w.reserved), cmp.Compare(a.w.UID, b.w.UID))
		})
	}
	return own, advantage, others
}

// take reports whether wants fit in the quota of node i, and subtracts from them what is free of its
// guarded quota.
func (s *System) take(i int, wants []use) bool {
	n, fits := &s.nodes[i], true
	for k := range wants {
		u := &wants[k]
		fits = fits && !n.exceeds(u.pair, u.v)
		u.v = max(0, u.v-n.free(u.pair))
	}
	return fits
}

// collect adds the candidates in the tree below node i, without that below skip. Top is the root of
// the subtree.
func (s *System) collect(w *state, i, top, skip int, needs []pair, into *[]candidate) {
	for _, child := range s.nodes[i].cohorts {
		if child != skip && !s.nodes[child].within(needs) {
			s.collect(w, child, top, skip, needs, into)
		}
	}
	for _, child := range s.nodes[i].queues {
		if child != w.Queue && !s.Queues[child].Stopped && !s.nodes[child].within(needs) {
			*into = s.gather(w, child, top, needs, s.Queues[w.Queue].Reclaim, *into)
		}
	}
}

// gather adds the workloads of a queue that the rule lets w preempt and that use one of needs.
func (s *System) gather(w *state, queue, top int, needs []pair, rule Preemption, into []candidate) []candidate {
	if rule == Never {
		return into
	}
	q := &s.Queues[w.Queue]
	for _, other := range s.admitted[queue] {
		uses := slices.ContainsFunc(other.usage, func(u use) bool { return slices.Contains(needs, u.pair) })
		if !uses || !mayPreempt(w, other, rule) {
			continue
		}
		c := candidate{victim: victim{w: other, why: InClusterQueue}, top: top}
		if queue != w.Queue {
			c.why = InCohortReclaimWhileBorrowing
			if !q.Borrow || other.Priority >= w.Priority || q.HasBorrowMost && other.Priority > q.BorrowMost {
				c.why, c.toReclaim = InCohortReclamation, true
			}
		}
		into = append(into, c)
	}
	return into
}

// mayPreempt reports whether a rule lets w preempt other.
func mayPreempt(w, other *state, rule Preemption) bool {
	switch rule {
	case LowerPriority:
		return w.Priority > other.Priority
	case LowerOrNewerEqualPriority:
		return w.Priority > other.Priority || w.Priority == other.Priority && w.Created < other.Created
	}
	return rule == Any
}
