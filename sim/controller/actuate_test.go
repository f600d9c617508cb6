package controller

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// TestSteeredLimits holds that no policy raises the limits of the user.
func TestSteeredLimits(t *testing.T) {
	user := policy.Resources{CPU: 8000}
	got := steered(policy.Resources{CPU: 4000, GPU: 1}, user, policy.Resources{CPU: 9000, Memory: simtest.GiB})
	if want := (policy.Resources{CPU: 8000, Memory: simtest.GiB, GPU: 1}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}
