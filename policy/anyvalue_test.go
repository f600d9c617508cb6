package policy

import "testing"

// TestAnyValue meets every requirement with a label whose value is open, but for one that it be absent.
func TestAnyValue(t *testing.T) {
	labels := []Label{{Key: "unit", Value: AnyValue}}
	for op, want := range map[Operator]bool{OpIn: true, OpNotIn: true, OpExists: true, OpGt: true, OpLt: true, OpDoesNotExist: false} {
		r := Requirement{Key: "unit", Op: op, Values: []string{"7"}}
		if got := r.MetByLabels(labels); got != want {
			t.Errorf("operator %d: %v, want %v", op, got, want)
		}
	}
	if r := (Requirement{Key: "other", Op: OpExists}); r.MetByLabels(labels) {
		t.Error("a label that is not there")
	}
}
