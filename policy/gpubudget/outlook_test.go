package gpubudget

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TestLook counts the pods that hold devices, and predicts when a gate opens whose pods are
// evicted, or continue.
func TestLook(t *testing.T) {
	const hour = policy.Time(msPerHour)
	now := 100 * hour
	s := &policy.Snapshot{
		Now: now,
		Templates: []policy.Template{{Namespace: "ml", Requests: policy.Resources{GPU: 2}, GPUResource: "nvidia.com/gpu"},
			{Namespace: "web", Requests: policy.Resources{GPU: 1}, GPUResource: "nvidia.com/gpu"}},
		Nodes: []policy.Node{{Market: policy.None, Pool: policy.None}},
		Pods: []policy.Pod{
			{Phase: policy.PodReady, Bound: 1}, {Phase: policy.PodTerminating, Bound: 1},
			{Phase: policy.PodPending, Node: policy.None}, {Template: 1, Phase: policy.PodReady, Bound: 1},
		},
	}
	b := policy.Budget{Namespace: "ml", Selector: policy.Selector{Everything: true}, Resource: "nvidia.com/gpu",
		GPUHours: 10, HasGPUHours: true,
		Window: 24 * time.Hour, Action: policy.BudgetEvict}
	// Ten device-hours, all used in the hour that began 20 hours ago. A tenth is
	// free when a tenth of that hour has left the window, 4 h 6 min from now.
	m := policy.BudgetMemory{Buckets: []policy.BudgetBucket{{Hour: now - 20*hour, Used: 10_000 * msPerHour}}, DevicePrice: 3 * policy.Dollar}
	look := func() Outlook {
		return Look(DefaultConfig(), s, []policy.Budget{b}, func(string) *policy.BudgetMemory { return &m })[0]
	}
	got := look()
	if got.Pods != 2 || got.Devices != 4000 || got.PerHour != 12*policy.Dollar {
		t.Errorf("%+v", got)
	}
	if want := now + 4*hour + hour/10; got.Reopens < want || got.Reopens > want+2 {
		t.Errorf("it opens at %v, want %v", got.Reopens, want)
	}
	// Devices of which the number is not known are reported for those that hold them.
	s.Templates[0].Uncounted, s.Pods[0].Name, s.Pods[1].Name = true, "ml/b", "ml/a"
	if got := look(); got.Uncounted != 2 || got.Such != "ml/a" || got.Pods != 2 {
		t.Errorf("%+v", got)
	}
	// Four devices that stay in use consume 96 device-hours a day: the gate never opens.
	b.Action = policy.BudgetAlert
	if got := look(); got.Reopens != 0 {
		t.Errorf("it opens at %v though its pods go on", got.Reopens)
	}
}
