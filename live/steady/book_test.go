package steady

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
)

// A still policy wants nothing.
type still struct{}

func (still) Name() string { return "still" }

func (still) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
}

// TestNothingIsBookedForAJump has one device run for ten hours under a budget of 20, with
// steps of ten minutes. In the middle the machine's clock is set, or the controller is
// started again on a machine whose clock is wrong: ten hours are booked and the gate stays
// open.
func TestNothingIsBookedForAJump(t *testing.T) {
	for name, happens := range map[string]func(m *machine) *machine{
		"ahead":          func(m *machine) *machine { m.wall = m.wall.Add(day); return m },
		"back":           func(m *machine) *machine { m.wall = m.wall.Add(-day); return m },
		"ahead, restart": func(m *machine) *machine { return start(m.wall.Add(day), m.server) },
		"back, restart":  func(m *machine) *machine { return start(m.wall.Add(-day), m.server) },
	} {
		m, memory := start(noon, noon), policy.Memory{}
		m.answer()
		p := gpubudget.Around(still{}, gpubudget.DefaultConfig())
		s := &policy.Snapshot{
			Templates: []policy.Template{{Namespace: "ml", Workload: policy.None, GPUResource: "nvidia.com/gpu",
				Requests: policy.Resources{GPU: 1}}},
			Nodes: []policy.Node{{Name: "n", Phase: policy.NodeInitialized, Market: policy.None, Pool: policy.None}},
			Pods: []policy.Pod{{Name: "ml/p", Phase: policy.PodReady, Bound: policy.TimeOf(noon), Nominated: policy.None,
				VolumeZone: policy.None}},
			Budgets: []policy.Budget{{Name: "ml/b", Namespace: "ml", Selector: policy.Selector{Everything: true}, Resource: "nvidia.com/gpu",
				HasGPUHours: true, GPUHours: 20, Window: 48 * time.Hour, Gate: true}},
		}
		for i := range 60 {
			if i == 30 {
				m = happens(m)
				m.answer()
			}
			m.pass(10 * time.Minute)
			m.answer()
			s.Now = policy.TimeOf(m.clock.Now())
			var plan policy.Plan
			plan, memory = p.Decide(s, memory)
			if len(plan.Gates) > 0 {
				t.Fatalf("%s: %s", name, plan.Gates[0].Why.Text)
			}
		}
		if used := float64(memory.Budgets[0].Used) / 3.6e9; used < 9.9 || used > 10.1 {
			t.Errorf("%s: %.1f h are booked, want 10.0", name, used)
		}
	}
}
