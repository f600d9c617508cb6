package backend_test

import (
	"testing"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// TestLimits holds that the lower limit of the user and the steer is in force, and
// that 0 is none.
func TestLimits(t *testing.T) {
	got := backend.Limits(policy.Resources{CPU: 8000, Memory: 1 << 20, GPU: 2}, policy.Resources{CPU: 4000, Memory: 1 << 30})
	if want := (policy.Resources{CPU: 4000, Memory: 1 << 20, GPU: 2}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}
