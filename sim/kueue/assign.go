package kueue

import "slices"

// A mode says how a flavor can be assigned, from the worst to the best.
type mode uint8

const (
	noFit        mode = iota // never, or only by a preemption that is not allowed
	noCandidates             // by preempting others, of which none may be preempted
	preempt                  // by preempting some of the same queue
	reclaim                  // by preempting others of the cohort only
	fit
)

// A choice is a mode and the distance from which quota is borrowed.
type choice struct {
	mode     mode
	distance int
}

// better reports whether a is preferred to b in queue q.
func (q *Queue) better(a, b choice) bool {
	switch {
	case a.mode == noFit || b.mode == noFit:
		return a.mode != noFit
	case a.mode == b.mode:
		return a.distance < b.distance
	case q.PreferPreemption && a.distance != b.distance:
		return a.distance < b.distance
	}
	return a.mode > b.mode
}

// goOn reports whether the next flavor is tried after one that can be assigned as c says.
func (q *Queue) goOn(c choice) bool {
	return c.mode <= noCandidates || c.mode < fit && q.PreemptNext || c.distance > 0 && q.BorrowNext
}

// An assignment is a flavor for each resource of each pod set, or what was found of it before a pod
// set could not be assigned.
type assignment struct {
	worst    mode // noFit, preempt for all kinds of preemption, or fit
	distance int
	flavors  [][]int // by pod set and resource, None for what is not requested
	preempts []pair  // what needs preemption, ascending
	usage    []use   // by pair, ascending
	tried    [][]int // by pod set and group, the flavor after which the next attempt continues; None after the last
}

// A use is an amount of a resource in a flavor.
type use struct {
	pair pair
	v    int64
}

func usageOf(list []use, p pair) int64 {
	for _, u := range list {
		if u.pair == p {
			return u.v
		}
	}
	return 0
}

// addUse adds v to the usage of p in list, which is ascending by pair.
func addUse(list []use, p pair, v int64) []use {
	i, found := slices.BinarySearchFunc(list, p, func(u use, p pair) int { return u.pair - p })
	if found {
		list[i].v += v
		return list
	}
	return slices.Insert(list, i, use{p, v})
}

// groupOf returns the resource group of queue q that covers resource r, or None.
func (q *Queue) groupOf(r int) int {
	return slices.IndexFunc(q.Groups, func(g Group) bool { return slices.Contains(g.Resources, r) })
}

// requests returns what pod set k of a workload requests in queue q, by resource.
func (s *System) requests(q *Queue, set *PodSet) []int64 {
	if s.Pods == None {
		return set.Requests
	}
	of := slices.Clone(set.Requests)
	if of[s.Pods] = 0; q.groupOf(s.Pods) >= 0 {
		of[s.Pods] = set.Count
	}
	return of
}

// assign finds flavors for workload w. It tries those after the last ones that it tried before.
func (s *System) assign(w *state) assignment {
	q := &s.Queues[w.Queue]
	if w.triedAt < s.generation[w.Queue] {
		w.tried = nil
	}
	a := assignment{worst: fit}
	for k := range w.Sets {
		flavors := slices.Repeat([]int{None}, s.Resources)
		tried := slices.Repeat([]int{None}, len(q.Groups))
		of := s.requests(q, &w.Sets[k])
		before := a.usage
		for r, v := range of {
			if v == 0 || flavors[r] != None {
				continue
			}
			g := q.groupOf(r)
			if g < 0 || !s.assignGroup(w, k, g, of, before, &a, flavors, tried) {
				return assignment{worst: noFit, tried: a.tried}
			}
		}
		a.flavors, a.tried = append(a.flavors, flavors), append(a.tried, tried)
	}
	return a
}

// assignGroup adds to a the flavor of the resources of group g for pod set k, which requests of.
// Before is the usage of the pod sets before it. It returns false if no flavor can be assigned.
func (s *System) assignGroup(w *state, k, g int, of []int64, before []use, a *assignment, flavors, tried []int) bool {
	q := &s.Queues[w.Queue]
	group := &q.Groups[g]
	best, bestFlavor, at := choice{mode: noFit}, None, None
	var bestModes, modes []choice
	first := 0
	if k < len(w.tried) {
		first = w.tried[k][g] + 1
	}
	for i := first; i < len(group.Flavors); i++ {
		at = i
		if !w.allowed[k][g][i] {
			continue
		}
		var found choice
		found, modes = s.chooseAll(w, group, group.Flavors[i], of, before, modes[:0])
		if goOn := q.goOn(found); !goOn || q.better(found, best) {
			best, bestFlavor = found, group.Flavors[i]
			bestModes = append(bestModes[:0], modes...)
			if !goOn {
				break
			}
		}
	}
	if bestFlavor == None {
		return false
	}
	if at < len(group.Flavors)-1 {
		tried[g] = at
	}
	if best.mode < fit { // with PreferPreemption a group may fit by its choice although a resource does not
		a.worst = preempt
	}
	for i, r := range group.Resources {
		if of[r] == 0 {
			continue
		}
		p := s.pairOf(bestFlavor, r)
		flavors[r] = bestFlavor
		a.usage = addUse(slices.Clone(a.usage), p, of[r])
		a.distance = max(a.distance, bestModes[i].distance)
		if bestModes[i].mode < fit {
			if at, found := slices.BinarySearch(a.preempts, p); !found {
				a.preempts = slices.Insert(a.preempts, at, p)
			}
		}
	}
	return true
}

// chooseAll says how a flavor can be assigned to all resources of a group, as its worst resource can.
// It appends how each of them can to modes, up to one that cannot.
func (s *System) chooseAll(w *state, group *Group, flavor int, of []int64, before []use, modes []choice) (choice, []choice) {
	worst := choice{mode: fit}
	for _, r := range group.Resources {
		if of[r] == 0 {
			modes = append(modes, choice{})
			continue
		}
		p := s.pairOf(flavor, r)
		c := s.choose(w, p, usageOf(before, p)+of[r])
		modes = append(modes, c)
		if s.Queues[w.Queue].better(worst, c) {
			worst = c
		}
		if worst.mode == noFit {
			break
		}
	}
	return worst, modes
}

// choose says how v of p can be assigned to workload w.
func (s *System) choose(w *state, p pair, v int64) choice {
	q := &s.Queues[w.Queue]
	if v > s.reachable(w.Queue, p) {
		return choice{mode: noFit}
	}
	distance, smaller := s.distance(w.Queue, p, v)
	if v <= max(0, s.available(w.Queue, p)) {
		return choice{fit, distance}
	}
	if v <= s.nodes[w.Queue].nominal[p] || smaller || q.Borrow {
		return s.tryPreemption(w, p, v)
	}
	return choice{noFit, distance}
}

// tryPreemption says what preemption would do for v of p.
func (s *System) tryPreemption(w *state, p pair, v int64) choice {
	victims := s.victims(w, []pair{p}, []use{{p, v}})
	if len(victims) == 0 {
		distance, _ := s.distance(w.Queue, p, v)
		return choice{noCandidates, distance}
	}
	for _, x := range victims {
		s.remove(x.w)
	}
	c := choice{mode: reclaim}
	c.distance, _ = s.distance(w.Queue, p, v)
	for _, x := range victims {
		s.put(x.w)
		if x.w.Queue == w.Queue {
			c.mode = preempt
		}
	}
	return c
}
