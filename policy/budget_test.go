package policy_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestBudgetCountsDaemonSets: a pod counts by what it requests, whoever made it, so that
// nobody gets around a budget by a DaemonSet.
func TestBudgetCountsDaemonSets(t *testing.T) {
	b := policy.Budget{Namespace: "ml", Resource: "nvidia.com/gpu", Selector: policy.Selector{Everything: true}}
	one := policy.Template{Namespace: "ml", GPUResource: "nvidia.com/gpu", Requests: policy.Resources{GPU: 1}}
	for _, daemon := range []bool{false, true} {
		one.DaemonSet = daemon
		if got := b.Counts(&one); got != 1000 {
			t.Errorf("DaemonSet %t: %d thousandths of a device count, want 1000", daemon, got)
		}
	}
	elsewhere := one
	elsewhere.Namespace = "web"
	if got := b.Counts(&elsewhere); got != 0 {
		t.Errorf("in another namespace: %d", got)
	}
}
