package record

import (
	"fmt"
	"math"
	"reflect"

	"github.com/spotter-dev/spotter/policy"
)

// A Difference is a difference between a recorded decision and the repeated one.
type Difference struct {
	Step int64
	Now  policy.Time

	// Recorded and Again are the differing entries. One of them is empty if the other has no
	// counterpart.
	Recorded, Again string
}

// String formats the difference as a header and two lines.
func (d Difference) String() string {
	return fmt.Sprintf("step %d at %v\n- %s\n+ %s\n", d.Step, d.Now, orNothing(d.Recorded), orNothing(d.Again))
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

// sameMemory reports whether two memories are equal in storage: an empty list equals a missing one.
func sameMemory(a, b *policy.Memory) bool {
	if a.Decisions != b.Decisions || len(a.Pools) != len(b.Pools) || len(a.Budgets) != len(b.Budgets) {
		return false
	}
	for i := range a.Budgets {
		if !reflect.DeepEqual(a.Budgets[i], b.Budgets[i]) {
			return false
		}
	}
	for i := range a.Pools {
		x, y := a.Pools[i], b.Pools[i]
		if len(x.Idle) == 0 && len(y.Idle) == 0 {
			x.Idle, y.Idle = nil, nil
		}
		if len(x.Backoff) == 0 && len(y.Backoff) == 0 {
			x.Backoff, y.Backoff = nil, nil
		}
		if len(x.Depths) == 0 && len(y.Depths) == 0 {
			x.Depths, y.Depths = nil, nil
		}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// diff compares the recorded plan of s with another plan for the same snapshot, entry by entry in
// order, without the explanatory text. a and b are the rows of the two plans.
func diff(s *Step, again *policy.Plan, a, b []planRow) (out []Difference) {
	add := func(recorded, again string) {
		out = append(out, Difference{Step: s.Number, Now: s.Snapshot.Now, Recorded: recorded, Again: again})
	}
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			add("", b[i].String())
		case i >= len(b):
			add(a[i].String(), "")
		case !samePlanRow(&a[i], &b[i]):
			add(a[i].String(), b[i].String())
		}
	}
	if s.Plan.Wake != again.Wake {
		add(fmt.Sprintf("wake %v", s.Plan.Wake), fmt.Sprintf("wake %v", again.Wake))
	}
	return out
}

// samePlanRow reports whether two rows are the same decision. It compares the share bit by bit, so
// that -0 and 0 differ. It ignores the explanatory text, which may change between versions.
func samePlanRow(a, b *planRow) bool {
	x, y := *a, *b
	x.Share, y.Share = 0, 0
	x.Text, y.Text = "", ""
	x.RunnerUp, y.RunnerUp = "", ""
	return x == y && math.Float64bits(a.Share) == math.Float64bits(b.Share)
}
