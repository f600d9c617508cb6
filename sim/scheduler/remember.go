package scheduler

import (
	"github.com/spotter-dev/spotter/policy"
)

// An outcome is the result of preemption by pods of one template on a node.
type outcome uint8

const (
	unknown    outcome = iota
	helpless           // no pod of the node may be preempted, or without them there is still too little room
	unexamined         // without the preemptible pods, the requests fit
	unfit              // like unexamined, but a pod does not fit for another reason
	fit                // a pod fits without the victims
)

// A memory caches the outcome of preemption by pods of one template on each node, since many of
// them are tried at one instant and each changes only one node. An outcome is valid until its node
// changes (Scheduler.Changed), or a PodDisruptionBudget changes in a way that matters to a node
// (pdbStates.changed). For a template whose pods depend on other nodes, nothing is kept from one
// pod to the next.
type memory struct {
	read  int    // number of entries of the scheduler's changes that were read
	drops uint64 // value of Scheduler.drops at the last use

	outcomes []outcome // by node
	ranks    []rank    // by node, valid if a pod fits
}

// remember prepares the memory of p's template for p. It keeps the outcomes that are still valid.
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
		s.Changed(n) // for pods other than p, which is not limited by its own nomination
		m.outcomes[n] = unknown
	}
}

// pdbStates are the states of the PodDisruptionBudgets.
type pdbStates []pdbState

type pdbState struct {
	allowed int32 // allowed disruptions at the last call of changed
	most    int32 // highest number of its pods observed on one node
	used    int32 // number of disruptions counted on the current node
}

func (x *pdbStates) grow(pdbs []policy.PDB) {
	for len(*x) < len(pdbs) {
		*x = append(*x, pdbState{})
	}
}

// changed reports whether the allowed disruptions of budgets changed in a way that can change the
// rank of a node. Allowances above the number of a budget's pods on any node make no difference.
func (x *pdbStates) changed(pdbs []policy.PDB) (changed bool) {
	x.grow(pdbs)
	for i := range pdbs {
		b, now := &(*x)[i], pdbs[i].Allowed
		changed = changed || min(b.allowed, b.most) != min(now, b.most)
		b.allowed = now
	}
	return changed
}
