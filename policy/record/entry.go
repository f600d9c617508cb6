package record

import "github.com/spotter-dev/spotter/policy"

// An Entry is a decision prepared for writing by a Writer, possibly later. It contains the memory
// and the plan as rows.
type Entry struct {
	row  stepRow
	plan []planRow

	// snapshot contains the tables. It belongs to the observer.
	snapshot *policy.Snapshot
}

// NewEntry returns an entry that shares the tables of s, which must not be modified until the entry
// is written. The entry does not refer to m or p.
func NewEntry(s *policy.Snapshot, m *policy.Memory, p *policy.Plan) (*Entry, error) {
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

// Now returns the time of the decision.
func (e *Entry) Now() policy.Time { return e.snapshot.Now }
