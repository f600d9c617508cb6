package scheduler

import (
	"slices"
	"sort"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A nomination reserves the room that preemption frees on a node for the pod that preempted
// (status.nominatedNodeName). Only pods of lower priority must respect it.
type nomination struct {
	pod     policy.Pod
	node    policy.NodeID
	victims []policy.PodID
}

// Nominate reserves a place on n for p, after victims have ended, until Withdraw is called. Pods of
// lower priority that are nominated to n lose their nomination
// (pkg/scheduler/framework/preemption/preemption.go, prepareCandidate).
func (s *Scheduler) Nominate(p *policy.Pod, n policy.NodeID, victims []policy.PodID) {
	s.Withdraw(p.ID)
	priority := s.templates[p.Template].Priority
	s.drop(n, func(x *nomination) bool { return s.templates[x.pod.Template].Priority < priority })
	for int(p.ID) >= len(s.nominated) {
		s.nominated = append(s.nominated, 0)
	}
	s.nominated[p.ID] = n + 1
	s.nominations = slices.Insert(s.nominations, s.firstTo(n+1), nomination{*p, n, victims})
	s.Changed(n)
}

// firstTo returns the index of the first nomination to n or a node with a higher id.
func (s *Scheduler) firstTo(n policy.NodeID) int {
	return sort.Search(len(s.nominations), func(i int) bool { return s.nominations[i].node >= n })
}

// nominatedTo returns the nominations to n.
func (s *Scheduler) nominatedTo(n policy.NodeID) []nomination {
	return s.nominations[s.firstTo(n):s.firstTo(n+1)]
}

// drop removes the nominations to n for which out returns true.
func (s *Scheduler) drop(n policy.NodeID, out func(*nomination) bool) {
	for i := s.firstTo(n); i < len(s.nominations) && s.nominations[i].node == n; {
		x := &s.nominations[i]
		if !out(x) {
			i++
			continue
		}
		s.nominated[x.pod.ID] = 0
		s.nominations = slices.Delete(s.nominations, i, i+1)
		s.Changed(n)
	}
}

// Withdraw drops the nomination of pod id, if it has one.
func (s *Scheduler) Withdraw(id policy.PodID) {
	if n := s.Nominated(id); n != policy.None {
		s.drop(n, func(x *nomination) bool { return x.pod.ID == id })
	}
}

// Removed records that node n is gone, and drops all nominations to it.
func (s *Scheduler) Removed(n policy.NodeID) {
	s.Changed(n)
	s.drop(n, func(*nomination) bool { return true })
}

// Nominated returns the node that pod id is nominated to, or None.
func (s *Scheduler) Nominated(id policy.PodID) policy.NodeID {
	if int(id) >= len(s.nominated) || id < 0 {
		return policy.None
	}
	return s.nominated[id] - 1
}

// Fits reports whether p passes all filters on n, both with the nominated pods of the same or a
// higher priority on n and without them, since they may be bound elsewhere
// (pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods).
func (s *Scheduler) Fits(p *policy.Pod, n policy.NodeID) bool {
	free := s.space.Free(n)
	return s.fitsInto(p, n, &free)
}

// fitsInto is like Fits, but uses free as the free resources of n. It subtracts from free the
// requests of the pods nominated to n that take precedence over p.
func (s *Scheduler) fitsInto(p *policy.Pod, n policy.NodeID, free *policy.Resources) bool {
	if s.space.CheckInto(p, n, free) != placement.OK {
		return false
	}
	nominated := s.nominatedTo(n)
	if len(nominated) == 0 {
		return true
	}
	priority, concerned := s.templates[p.Template].Priority, false
	ahead := func(x *nomination) bool {
		return x.pod.ID != p.ID && s.templates[x.pod.Template].Priority >= priority
	}
	for i := range nominated {
		if x := &nominated[i]; ahead(x) {
			*free = free.Minus(s.templates[x.pod.Template].Requests)
			concerned = concerned || s.space.Scoring().Concerns(p.Template, x.pod.Template)
		}
	}
	if !concerned {
		return s.space.Scoring().FitsInto(p.Template, n, free)
	}
	repels := s.space.Topology().Repels(p.Template)
	for i := range nominated {
		if x := &nominated[i]; ahead(x) {
			s.space.Bind(&x.pod, n)
		}
	}
	v := s.space.CheckInto(p, n, free)
	for i := range nominated {
		if x := &nominated[i]; ahead(x) {
			s.space.Unbind(&x.pod, n)
		}
	}
	// The anti-affinity of pods that are not bound yet counts only if p itself has anti-affinity.
	return v == placement.OK || v == placement.RepelledByPod && !repels
}
