package scheduler

import (
	"github.com/spotter-dev/spotter/policy"
)

// An outcome is the result of preemption by pods of one template on a node.
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
// changes (Scheduler.Changed), or a budget in a way that a node can show (pdbStates.changed).
// A template for whose pods other nodes matter keeps nothing from one pod to the next.
type memory struct {
	read  int    // entries of the scheduler's changes that were read
	drops uint64 // Scheduler.drops when it was last used

	outcomes []outcome // by node
	ranks    []rank    // by node, where a pod fits
}

// remember readies the memory of p's template for p: what still holds stays.
func (m *memory) remember(s *Scheduler, p *policy.Pod, pdbs []policy.PDB) {
	if s.pdbStates.changed(pdbs) {
		s.drops++
	}
	follows := s.changes.since(&m.read, func(n policy.NodeID) {
		if int(n) < len(m.outcomes) {
			m.outcomes[n] = unknown
		}
	})
	if !follows || m.drops != s.drops || !s.indexes[p.Template].local {
		clear(m.outcomes)
		m.drops = s.drops
	}
	if more := s.space.Nodes() - len(m.outcomes); more > 0 {
		m.outcomes, m.ranks = append(m.outcomes, make([]outcome, more)...), append(m.ranks, make([]rank, more)...)
	}
	if n := s.Nominated(p.ID); n != policy.None {
		s.Changed(n) // to others than p: its own nomination is not in its way
		m.outcomes[n] = unknown
	}
}

// pdbStates are what is known of the PodDisruptionBudgets.
type pdbStates []pdbState

type pdbState struct {
	allowed int32 // disruptions, when a pod last asked
	most    int32 // pods of it that were met on one node
	used    int32 // disruptions counted on one node
}

func (x *pdbStates) grow(pdbs []policy.PDB) {
	for len(*x) < len(pdbs) {
		*x = append(*x, pdbState{})
	}
}

// changed reports whether what budgets allow changed so that a node can be another
// candidate than it was: it makes no difference of those that allow more than they have pods
// on any node.
func (x *pdbStates) changed(pdbs []policy.PDB) (changed bool) {
	x.grow(pdbs)
	for i := range pdbs {
		b, now := &(*x)[i], pdbs[i].Allowed
		changed = changed || min(b.allowed, b.most) != min(now, b.most)
		b.allowed = now
	}
	return changed
}
