package spotvortex_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/workload"
)

// base is a state in which nothing but the risk scores speaks against growth.
func base() spotvortex.State {
	return spotvortex.State{
		SpotPrice: 0.5, OnDemandPrice: 1, Startup: 30, Penalty: 1,
		MigrationCost: 0.5, Priority: 0.2, Utilization: 0.6, Share: 0.2,
	}
}

func TestEvaluate(t *testing.T) {
	calm := func(*spotvortex.State, *workload.PoolSafety) {}
	for _, c := range []struct {
		name              string
		capacity, runtime float64
		change            func(*spotvortex.State, *workload.PoolSafety)
		action            spotvortex.Action
		reason            string
	}{
		{"emergency at capacity 0.95", 0.95, 0, calm, spotvortex.EmergencyExit, spotvortex.EmergencyRisk},
		{"emergency at runtime 0.80", 0, 0.80, calm, spotvortex.EmergencyExit, spotvortex.EmergencyRisk},
		{"high risk", 0.65, 0, calm, spotvortex.Decrease30, spotvortex.HighRisk},
		{"medium risk", 0.40, 0, calm, spotvortex.Decrease10, spotvortex.MediumRisk},
		{"growth by thirty", 0.1, 0, calm, spotvortex.Increase30, spotvortex.EconomicIncrease3},
		{"growth by ten near the cap", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Share = 0.8
		}, spotvortex.Increase10, spotvortex.EconomicIncrease1},
		{"unusual workload, good offer", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Startup, st.Penalty, st.Utilization = 30, 100, 0.6
			st.Share = 0.05
		}, spotvortex.Increase10, spotvortex.OutsideIncrease10},
		{"unusual workload, risk above its limit", 0.3, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Penalty, st.Share = 100, 0.05
		}, spotvortex.Hold, spotvortex.OutsideHold},
		{"cap by start-up time", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Startup, st.Share = 300, 0.3
		}, spotvortex.Hold, spotvortex.CapReached},
		{"above the cap by little", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Startup, st.Share = 300, 0.4
		}, spotvortex.Decrease10, spotvortex.SafetyGradual},
		{"above the cap by much", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Startup, st.Share = 300, 0.6
		}, spotvortex.Decrease30, spotvortex.SafetyFast},
		{"above the cap with a budget that would break", 0.1, 0, func(st *spotvortex.State, p *workload.PoolSafety) {
			st.Startup, st.Share, p.Slack1 = 300, 0.4, -1
		}, spotvortex.Decrease30, spotvortex.SafetyFast},
		{"frozen for its pods", 0.1, 0, func(_ *spotvortex.State, p *workload.PoolSafety) {
			p.Risk = 0.60
		}, spotvortex.Hold, spotvortex.SafetyFreeze},
		{"nothing to gain", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.SpotPrice = 0.9
		}, spotvortex.Hold, spotvortex.HoldNoEdge},
		{"a move that does not pay back", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.SpotPrice, st.MigrationCost = 0.8, 1.3
		}, spotvortex.Hold, spotvortex.HoldNoEdge},
		{"half a node below the cap is at the cap", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Startup, st.Share, st.Grain = 300, 0.26, 0.1
		}, spotvortex.Hold, spotvortex.CapReached},
		{"less than a node above the cap stays", 0.1, 0, func(st *spotvortex.State, _ *workload.PoolSafety) {
			st.Startup, st.Share, st.Grain = 300, 0.39, 0.1
		}, spotvortex.Hold, spotvortex.CapReached},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, st, safety := spotvortex.DefaultConfig(), base(), workload.DefaultPoolSafety()
			safety.Slack1, safety.Slack2 = 5, 5
			c.change(&st, &safety)
			d := spotvortex.Evaluate(&cfg, st, safety, c.capacity, c.runtime)
			if d.Action != c.action || d.Reason != c.reason {
				t.Errorf("got %v (%s), want %v (%s): %+v", d.Action, d.Reason, c.action, c.reason, d)
			}
		})
	}
}
