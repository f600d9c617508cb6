package policy_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestBudgetCountsDaemonSets: a pod counts by what it requests, whoever made it, so that a
// DaemonSet cannot bypass a budget.
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

// TestBudgetCountsParts adds the devices that a pod holds under other names to those that it
// requests, and charges them by the devices of the instance type where the node shows fewer.
func TestBudgetCountsParts(t *testing.T) {
	b := policy.Budget{Namespace: "ml", Resource: "nvidia.com/gpu", Selector: policy.Selector{Everything: true}}
	pod := policy.Template{Namespace: "ml", GPUResource: "nvidia.com/gpu", Requests: policy.Resources{GPU: 1},
		Devices: []policy.DeviceUse{{Resource: "amd.com/gpu", Amount: 4000}, {Resource: "nvidia.com/gpu", Amount: 429}}}
	if got := b.Counts(&pod); got != 1429 {
		t.Errorf("%d thousandths count, want 1429", got)
	}
	eight := policy.InstanceType{GPUResource: "nvidia.com/gpu", Allocatable: policy.Resources{CPU: 96_000, GPU: 8}}
	for _, c := range []struct {
		node policy.Node
		want float64
	}{
		{policy.Node{}, 0.25}, // all devices are slices, or handed out by claims
		{policy.Node{GPUResource: "nvidia.com/gpu", Allocatable: policy.Resources{GPU: 4}}, 0.25},
		{policy.Node{GPUResource: "nvidia.com/gpu", Allocatable: policy.Resources{GPU: 80}}, 0.025}, // replicas under the plain name
	} {
		if got := b.Share(2000, &c.node, &eight); got != c.want {
			t.Errorf("node with %d: share %v, want %v", c.node.Allocatable.GPU, got, c.want)
		}
	}
	b.Resource = "cpu"
	if got := b.Share(1000, &policy.Node{Allocatable: policy.Resources{CPU: 4000}}, &eight); got != 0.25 {
		t.Errorf("of the cores of the node: %v, want 0.25", got)
	}
}
