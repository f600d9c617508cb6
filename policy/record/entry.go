package record

import "github.com/spotter-dev/spotter/policy"

// An Entry is one decision prepared to be written, by the Writer or later by another one: it holds
// memory and plan as the rows that they become.
type Entry struct {
	row  stepRow
	plan []planRow

	// snapshot has the tables. It is the observer's.
	snapshot *policy.Snapshot
}

// NewEntry returns an entry that shares the tables of s, which must not be written until it is
// written, and that holds nothing of m and p.
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

// Now returns the instant of the decision.
func (e *Entry) Now() policy.Time { return e.snapshot.Now }
