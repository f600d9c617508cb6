package record

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// named returns the name of a cause, and whether it has one.
func named(c policy.EndCause) (name string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return c.String(), true
}

// Every cause for which a pod can end is read as it was written.
func TestEndCauses(t *testing.T) {
	n := 0
	for c := policy.EndUnknown; ; c++ {
		if _, ok := named(c); !ok {
			break
		}
		row := toEndedRow(1, &policy.EndedPod{Name: "default/a-0", Cause: c})
		if back, err := row.ended(); err != nil || back.Cause != c {
			t.Errorf("%v is read as %v, error %v", c, back.Cause, err)
		}
		n++
	}
	if n <= int(policy.EndGang) {
		t.Errorf("%d causes have names", n)
	}
}
