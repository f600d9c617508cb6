package rackspace

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestSteerBound holds that the lower limit of the user and the steer is in force, and that 0 means
// no limit.
func TestSteerBound(t *testing.T) {
	x := steer{CPU: 4000, Memory: 1 << 30}
	got := x.bound(policy.Resources{CPU: 8000, Memory: 1 << 20, GPU: 2})
	if want := (policy.Resources{CPU: 4000, Memory: 1 << 20, GPU: 2}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}
