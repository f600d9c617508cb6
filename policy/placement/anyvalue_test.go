package placement

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestAnyValue meets every requirement with a label whose value is open, but for one that it be absent.
func TestAnyValue(t *testing.T) {
	labels := []policy.Label{{Key: "unit", Value: policy.AnyValue}}
	for op, want := range map[policy.Operator]bool{
		policy.OpIn: true, policy.OpNotIn: true, policy.OpExists: true, policy.OpGt: true, policy.OpLt: true, policy.OpDoesNotExist: false,
	} {
		if got := Meets(&policy.Requirement{Key: "unit", Op: op, Values: []string{"7"}}, labels); got != want {
			t.Errorf("operator %d: %v, want %v", op, got, want)
		}
	}
	if Meets(&policy.Requirement{Key: "other", Op: policy.OpExists}, labels) {
		t.Error("a label that is not there")
	}
}
