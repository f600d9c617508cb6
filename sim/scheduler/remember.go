package scheduler

import (
	"github.com/spotter-dev/spotter/policy"
)

// An outcome is what preemption by pods of one template comes to on a node.
type outcome uint8

const (
	unknown    outcome = iota
	helpless           // no pod there may be ended, or all of them leave too little room
	unexamined         // those that may be ended leave room enough by their requests
	unfit              // and a pod would not fit for another reason
	fit                // a pod fits once others have ended
)

// A memory keeps what preemption by pods of one template came to on each node, since
// many of them ask at one instant and each changes one node. It holds until that node
// changes (Changed), or a budget in a way that a node can show (heed). A template for
// whose pods other nodes matter keeps nothing from one pod to the next.
type memory struct {
	read  int    // entries of the scheduler's log that were read
	drops uint64 // Scheduler.drops when it was last used

	outcomes []outcome // by node
	ranks    []rank    // by node, where a pod fits
}

// A budget is what is known of a PodDisruptionBudget.
type budget struct {
	allowed int32 // disruptions, when a pod last asked
	most    int32 // pods of it that were met on one node
	used    int32 // disruptions counted on one node
}

func (s *Scheduler) countBudgets(pdbs []policy.PDB) {
	for len(s.budgets) < len(pdbs) {
		s.budgets = append(s.budgets, budget{})
	}
}

// heed drops all memories if what budgets allow changed so that a node can be another
// candidate than it was: those that allow more than they have pods on any node do not tell.
func (s *Scheduler) heed(pdbs []policy.PDB) {
	s.countBudgets(pdbs)
	for i := range pdbs {
		b, now := &s.budgets[i], pdbs[i].Allowed
		if min(b.allowed, b.most) != min(now, b.most) {
			s.drops++
		}
		b.allowed = now
	}
}

// remembered returns the memory of p's template, with what still holds.
func (s *Scheduler) remembered(p *policy.Pod, pdbs []policy.PDB) *memory {
	s.heed(pdbs)
	m, end := &s.memories[p.Template], s.base+len(s.log)
	if m.read < s.base || m.drops != s.drops || !s.indexes[p.Template].local {
		clear(m.outcomes)
		m.read, m.drops = end, s.drops
	}
	for ; m.read < end; m.read++ {
		if n := s.log[m.read-s.base]; int(n) < len(m.outcomes) {
			m.outcomes[n] = unknown
		}
	}
	if more := s.space.Nodes() - len(m.outcomes); more > 0 {
		m.outcomes, m.ranks = append(m.outcomes, make([]outcome, more)...), append(m.ranks, make([]rank, more)...)
	}
	if n := s.Nominated(p.ID); n != policy.None {
		s.Changed(n) // to others than p: its own nomination is not in its way
		m.outcomes[n] = unknown
	}
	return m
}

// outcomeOn returns what the pods on n and their requests tell of the outcome there.
func (s *Scheduler) outcomeOn(p *policy.Pod, n policy.NodeID, pods []policy.Pod) outcome {
	t := &s.templates[p.Template]
	if x := s.preemptibleOn(n, t.Priority, pods); x.lowest >= t.Priority || !enough(&t.Requests, &x.freed) {
		return helpless
	}
	return unexamined
}
