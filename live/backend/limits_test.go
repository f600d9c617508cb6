package backend_test

import (
	"testing"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// TestLimits holds that the lower of the limits of the user and the steer applies, and that 0
// means no limit.
func TestLimits(t *testing.T) {
	got := backend.Limits(policy.Resources{CPU: 8000, Memory: 1 << 20, GPU: 2}, policy.Resources{CPU: 4000, Memory: 1 << 30})
	if want := (policy.Resources{CPU: 4000, Memory: 1 << 20, GPU: 2}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}
