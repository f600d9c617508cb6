package kueue

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Outcome is what a cycle did with a workload at the head of its queue.
type Outcome uint8

// The outcomes.
const (
	Admitted  Outcome = iota
	Preempts          // it waits for its victims to lose their quota
	Skipped           // another workload of the cycle took what it would have got
	NoFit             // no flavors can be assigned, now or ever
	NoVictims         // it would fit if others were preempted, but none may be
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	return [...]string{"admitted", "preempts", "skipped", "does not fit", "finds no victims"}[o]
}

// A Decision is what a cycle did with one workload.
type Decision struct {
	Workload ID
	Outcome  Outcome
	Flavors  [][]int  // of an admitted workload, by pod set and resource
	Victims  []Victim // of a workload that preempts
	Parked   bool     // it is not tried again until quota becomes free
}

// A Victim is a workload that loses its quota, and why.
type Victim struct {
	Workload ID
	Why      Why
}

// An entry is a workload at the head of its queue during a cycle.
type entry struct {
	*state
	found   assignment
	victims []victim
	outcome Outcome
	at      int // generation of the queue when the flavors were found
}

// Cycle tries the first workload of each queue, and returns what it did with them in the order in
// which they were considered: those that borrow least first, then by priority and age. Admitted
// workloads have their quota afterwards. Victims are marked with Evict; the caller requeues them once
// their pods are gone.
func (s *System) Cycle(now policy.Time) []Decision {
	var entries []*entry
	for i := range s.Queues {
		if x := s.head(i); x != nil && !s.Queues[i].Stopped {
			entries = append(entries, s.nominate(x))
		}
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.found.distance, b.found.distance), cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Created, b.Created))
	})
	before := make([][]int64, len(s.nodes))
	for i := range s.nodes {
		before[i] = slices.Clone(s.nodes[i].usage)
	}
	var taken []*state
	for _, e := range entries {
		s.consider(e, &taken)
	}
	for i := range s.nodes {
		copy(s.nodes[i].usage, before[i])
	}
	var decisions []Decision
	for _, e := range entries {
		decisions = append(decisions, s.conclude(e, now))
	}
	return decisions
}

// nominate finds flavors for a workload, and its victims if it must preempt others.
func (s *System) nominate(x *state) *entry {
	e := &entry{state: x, found: s.assign(x), at: s.generation[x.Queue]}
	if e.found.worst == preempt {
		e.victims = s.victims(x, e.found.preempts, e.found.usage)
	}
	return e
}

// consider decides on an entry, given the entries before it. It counts the usage of those that are
// admitted, and what is kept free for those that wait. Taken are the victims so far.
func (s *System) consider(e *entry, taken *[]*state) {
	switch {
	case e.found.worst == noFit:
		e.outcome = NoFit
		return
	case e.found.worst == preempt && len(e.victims) == 0:
		e.outcome = NoVictims
		if s.Queues[e.Queue].Reclaim != Any {
			s.keep(e)
		}
		return
	case slices.ContainsFunc(e.victims, func(v victim) bool { return slices.Contains(*taken, v.w) }):
		e.outcome = Skipped
		return
	}
	removed := slices.Clone(*taken)
	for _, v := range e.victims {
		removed = append(removed, v.w)
	}
	for _, x := range removed {
		s.remove(x)
	}
	fits := s.fits(e.Queue, e.found.usage, true)
	for _, x := range removed {
		s.put(x)
	}
	if !fits {
		e.outcome = Skipped
		return
	}
	*taken = removed
	for _, u := range e.found.usage {
		s.use(e.Queue, u.pair, u.v)
	}
	if e.outcome = Admitted; e.found.worst == preempt {
		e.outcome = Preempts
	}
}

// keep counts what a workload without victims would use of its own quota, or may borrow, so that
// workloads that are considered later cannot take it.
func (s *System) keep(e *entry) {
	n := &s.nodes[e.Queue]
	for _, u := range e.found.usage {
		v, left := u.v, n.nominal[u.pair]-n.usage[u.pair]
		switch {
		case e.found.distance == 0:
			v = max(0, min(v, left))
		case n.borrow[u.pair] != None:
			v = min(v, left+n.borrow[u.pair])
		}
		s.use(e.Queue, u.pair, v)
	}
}

// conclude makes the outcome of an entry true.
func (s *System) conclude(e *entry, now policy.Time) Decision {
	x := e.state
	d := Decision{Workload: x.id, Outcome: e.outcome}
	strict, again := s.Queues[x.Queue].Strict, false
	switch e.outcome {
	case Admitted:
		d.Flavors = e.found.flavors
		s.grant(x, e.found.flavors, e.found.usage, now)
		s.generation[x.Queue]++
		return d
	case Preempts:
		for _, v := range e.victims {
			d.Victims = append(d.Victims, Victim{v.w.id, v.why})
			s.Evict(v.w.id)
		}
		if x.tried, again = nil, true; !strict {
			s.sticky[x.Queue] = x
		}
	case Skipped:
		x.tried, again = nil, true
	case NoFit, NoVictims:
		x.tried, x.triedAt = e.found.tried, e.at
		for _, groups := range x.tried {
			again = again || slices.ContainsFunc(groups, func(i int) bool { return i != None })
		}
	}
	if d.Parked = !again && !strict; d.Parked {
		x.phase = parked
	}
	return d
}
