package record

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Entry is one decision made ready to be written, by the Writer or later by
// somebody else: memory and plan stand in it as the rows that they become.
type Entry struct {
	row  stepRow
	plan []planRow

	// snapshot has the tables. It is the observer's, or a copy.
	snapshot *policy.Snapshot
}

// newEntry returns an entry that shares the tables of s.
func newEntry(s *policy.Snapshot, m *policy.Memory, p *policy.Plan) (*Entry, error) {
	row, err := toStepRow(0, s, m, p.Wake)
	if err != nil {
		return nil, err
	}
	plan, err := toPlanRows(0, s, p)
	if err != nil {
		return nil, err
	}
	return &Entry{row: row, plan: plan, snapshot: s}, nil
}

// NewEntry returns an entry that holds nothing which an observer or a policy may
// write again, so that it can be written while the next steps are taken.
func NewEntry(s *policy.Snapshot, m *policy.Memory, p *policy.Plan) (*Entry, error) {
	e, err := newEntry(s, m, p)
	if err != nil {
		return nil, err
	}
	e.snapshot = &policy.Snapshot{
		Now: s.Now, Types: slices.Clone(s.Types), Markets: copied(s.Markets, keepMarket),
		Pools: copied(s.Pools, keepPool), Nodes: copied(s.Nodes, keepNode),
		Templates: slices.Clone(s.Templates), Workloads: slices.Clone(s.Workloads),
		PDBs: slices.Clone(s.PDBs), Pods: slices.Clone(s.Pods), Ended: slices.Clone(s.Ended),
	}
	return e, nil
}

// Now returns the instant of the decision.
func (e *Entry) Now() policy.Time { return e.snapshot.Now }

func copied[E any](table []E, keep func(*E) E) []E {
	out := make([]E, len(table))
	for i := range table {
		out[i] = keep(&table[i])
	}
	return out
}
