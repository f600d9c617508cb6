package kueue

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An ID identifies a workload of a System.
type ID int

// A phase is where a workload is on its way through a queue.
type phase uint8

const (
	waiting  phase = iota // in the queue, to be tried
	parked                // in the queue; not tried again until something changes
	held                  // not in the queue until Resume
	admitted              // has quota
	evicting              // has quota, which it is about to lose
	gone
)

// A state is a workload with what happened to it.
type state struct {
	Workload
	id       ID
	phase    phase
	allowed  [][][]bool // by pod set, group and flavor of the group
	usage    []use      // while it has quota
	flavors  [][]int
	reserved policy.Time // when it got quota

	// tried is as in assignment, found when the generation of its queue was triedAt.
	tried   [][]int
	triedAt int
}

// A System is the state of Kueue: quotas, and the workloads that have some or wait for it.
type System struct {
	Setup
	nodes     []node // of queues, then of cohorts
	workloads []*state
	pending   [][]*state // by queue
	admitted  [][]*state // by queue

	// sticky is, by queue, the workload that preempts others and is tried first until it has quota;
	// nil without one. Queues with StrictFIFO need none.
	sticky []*state

	// generation counts, by queue, how often quota may have become free: until then, a workload
	// continues with the flavor after those that it tried.
	generation []int
}

// New returns a system without workloads.
func New(setup Setup) *System {
	n := len(setup.Queues)
	s := &System{Setup: setup, pending: make([][]*state, n), admitted: make([][]*state, n), sticky: make([]*state, n),
		generation: make([]int, n)}
	s.buildTree()
	return s
}

// Submit adds a workload to its queue.
func (s *System) Submit(w Workload) ID {
	x := &state{Workload: w, id: ID(len(s.workloads))}
	for k := range w.Sets {
		var groups [][]bool
		for g := range s.Queues[w.Queue].Groups {
			group := &s.Queues[w.Queue].Groups[g]
			var of []bool
			for _, f := range group.Flavors {
				of = append(of, s.Compatible(group, f, w.Sets[k].Template))
			}
			groups = append(groups, of)
		}
		x.allowed = append(x.allowed, groups)
	}
	s.workloads = append(s.workloads, x)
	s.pending[w.Queue] = append(s.pending[w.Queue], x)
	return x.id
}

// Reserve gives a waiting workload quota in the flavors, by pod set and resource, without a decision:
// it has had it since a time in the past.
func (s *System) Reserve(id ID, flavors [][]int, since policy.Time) {
	x := s.workloads[id]
	s.grant(x, flavors, s.usageOf(x, flavors), since)
}

// usageOf returns the usage of a workload with these flavors.
func (s *System) usageOf(x *state, flavors [][]int) (usage []use) {
	for k := range x.Sets {
		for r, v := range s.requests(&s.Queues[x.Queue], &x.Sets[k]) {
			if flavors[k][r] != None && v > 0 {
				usage = addUse(usage, s.pairOf(flavors[k][r], r), v)
			}
		}
	}
	return usage
}

// grant gives a pending workload its quota.
func (s *System) grant(x *state, flavors [][]int, usage []use, now policy.Time) {
	drop(&s.pending[x.Queue], x)
	if s.sticky[x.Queue] == x {
		s.sticky[x.Queue] = nil
	}
	x.phase, x.flavors, x.usage, x.reserved, x.tried = admitted, flavors, usage, now, nil
	s.admitted[x.Queue] = append(s.admitted[x.Queue], x)
	s.put(x)
}

func drop(list *[]*state, x *state) {
	if i := slices.Index(*list, x); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
}

// put counts the usage of x, and remove no longer.
func (s *System) put(x *state) {
	for _, u := range x.usage {
		s.use(x.Queue, u.pair, u.v)
	}
}

func (s *System) remove(x *state) {
	for _, u := range x.usage {
		s.release(x.Queue, u.pair, u.v)
	}
}

// Evict marks an admitted workload that is about to lose its quota. Requeue takes it.
func (s *System) Evict(id ID) {
	if x := s.workloads[id]; x.phase == admitted {
		x.phase = evicting
		s.generation[x.Queue]++
	}
}

// Requeue takes the quota of an admitted workload, which waits again.
func (s *System) Requeue(id ID) {
	x := s.workloads[id]
	s.lose(x)
	x.phase = waiting
	s.pending[x.Queue] = append(s.pending[x.Queue], x)
}

// Hold takes the quota of an admitted workload, which waits again only after Resume, as if it was
// created now.
func (s *System) Hold(id ID, now policy.Time) {
	x := s.workloads[id]
	s.lose(x)
	x.phase, x.Created = held, now
}

// Resume lets a held workload wait in its queue.
func (s *System) Resume(id ID) {
	if x := s.workloads[id]; x.phase == held {
		x.phase = waiting
		s.pending[x.Queue] = append(s.pending[x.Queue], x)
	}
}

// Shrink lowers the number of pods of a pod set, the others of which have done their work.
func (s *System) Shrink(id ID, set int, count int64) {
	x := s.workloads[id]
	p := &x.Sets[set]
	for r := range p.Requests {
		p.Requests[r] = p.Requests[r] / p.Count * count
	}
	p.Count = count
	if x.phase != admitted && x.phase != evicting {
		return
	}
	s.remove(x)
	x.usage = s.usageOf(x, x.flavors)
	s.put(x)
	s.generation[x.Queue]++
}

// Finish removes a workload.
func (s *System) Finish(id ID) {
	x := s.workloads[id]
	switch x.phase {
	case admitted, evicting:
		s.lose(x)
	case waiting, parked:
		drop(&s.pending[x.Queue], x)
		if s.sticky[x.Queue] == x {
			s.sticky[x.Queue] = nil
		}
	}
	x.phase = gone
}

// lose takes the quota of x.
func (s *System) lose(x *state) {
	s.remove(x)
	drop(&s.admitted[x.Queue], x)
	x.usage, x.flavors, x.tried = nil, nil, nil
	s.generation[x.Queue]++
}

// Retry lets the parked workloads of a queue, and of all queues in its tree of cohorts, be tried
// again: quota became free.
func (s *System) Retry(queue int) {
	root := s.root(queue)
	for i := range s.Queues {
		if s.root(i) != root {
			continue
		}
		for _, x := range s.pending[i] {
			x.phase = waiting
		}
	}
}

func (s *System) root(i int) int {
	for s.nodes[i].parent != None {
		i = s.nodes[i].parent
	}
	return i
}

// HasQuota reports whether a workload is admitted and not about to be evicted.
func (s *System) HasQuota(id ID) bool { return s.workloads[id].phase == admitted }

// FlavorsOf returns the flavors of an admitted workload, by pod set and resource.
func (s *System) FlavorsOf(id ID) [][]int { return s.workloads[id].flavors }

// Waits reports whether a workload has no quota and is not gone.
func (s *System) Waits(id ID) bool {
	p := s.workloads[id].phase
	return p == waiting || p == parked || p == held
}

// Parked reports whether a workload waits until quota becomes free.
func (s *System) Parked(id ID) bool { return s.workloads[id].phase == parked }

// Usage returns what a queue uses of a resource in a flavor.
func (s *System) Usage(queue, flavor, resource int) int64 {
	return s.nodes[queue].usage[s.pairOf(flavor, resource)]
}

// head returns the workload of a queue that is tried next, nil if no workload waits to be tried.
func (s *System) head(queue int) *state {
	var first *state
	for _, x := range s.pending[queue] {
		if x.phase == waiting && (first == nil || s.before(x, first)) {
			first = x
		}
	}
	return first
}

// before orders the workloads of a queue.
func (s *System) before(a, b *state) bool {
	if sticky := s.sticky[a.Queue]; sticky == a || sticky == b {
		return sticky == a
	}
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID)) < 0
}
