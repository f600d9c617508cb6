package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// burstable is 48 calm hours of three pods on nodes of 4 vCPU of which 40% may be used for ever.
func burstable(use int64, standard bool) *scenarios.BoundScenario {
	b := newBuilder(48 * time.Hour)
	b.w.Intensity = 0
	b.markets(1, 1, false)
	b.pool("p")
	b.workload("web", policy.KindDeployment, 3, policy.Resources{CPU: 3000, Memory: gib}).CPUUse = use
	b.w.Types[0].Credits = policy.CPUCredits{Baseline: 1600, Surplus: 50_000, Standard: standard}
	return b.scenario()
}

// TestCredits: three nodes use two vCPUs beyond their baseline. After a day of warm-up each has a
// debt of 24 × 1.6 vCPU-hours; it is charged 48 × 2 of them in the window, and its debt at the end.
func TestCredits(t *testing.T) {
	plain := burstable(3600, false)
	plain.Types[0].Credits = policy.CPUCredits{}
	for _, spec := range []string{"on-demand", "karpenter"} {
		r, log := runScenario(t, burstable(3600, false), spec)
		without, _ := runScenario(t, plain, spec)
		want := 3 * policy.Money((96+38.4)*50_000)
		if r.Fees != (policy.NodeFees{Credits: want}) || r.Bill != without.Bill+want || r.Slowed != 0 || count(log, "credits") != 3 {
			t.Errorf("%s: fees of %+v in a bill of %v, want %v more than %v", spec, r.Fees, r.Bill, want, without.Bill)
		}
	}
}

// TestCreditsWithoutUse: within its baseline a burstable type is as any other, for every policy.
func TestCreditsWithoutUse(t *testing.T) {
	for _, spec := range []string{"on-demand", "karpenter", "portfolio", "karpetrack", "spotvortex"} {
		plain := burstable(0, false)
		plain.Types[0].Credits = policy.CPUCredits{}
		want, _ := runScenario(t, plain, spec)
		for _, use := range []int64{0, 1200} {
			for _, standard := range []bool{false, true} {
				if r, _ := runScenario(t, burstable(use, standard), spec); r.Hash != want.Hash || r.Fees.Credits != 0 || r.Slowed != 0 {
					t.Errorf("%s: with a use of %dm the run differs from one on another type", spec, use)
				}
			}
		}
	}
}

// TestCreditsOfStandard: nodes of the standard mode are slowed down and not charged, and the run
// says so.
func TestCreditsOfStandard(t *testing.T) {
	r, _ := runScenario(t, burstable(3600, true), "on-demand")
	if r.Slowed != 3*48*time.Hour || r.Fees.Credits != 0 || !strings.Contains(strings.Join(r.Warnings, "\n"),
		"slowed down to their baseline for 144.0 node-hours") {
		t.Errorf("slowed down for %v, charged %v; %q", r.Slowed, r.Fees.Credits, r.Warnings)
	}
}

// TestCreditsAreSeen has a burstable type with a lower price, which costs more when its CPU is
// used. Policies that model a provisioner buy it. A policy that compares the cost of nodes buys
// larger nodes of the other type, and one burstable node for the two pods that are left: $5
// instead of $30.
func TestCreditsAreSeen(t *testing.T) {
	scenario := func(use int64) *scenarios.BoundScenario {
		w := twoSizes(0)
		w.Pools[0].Fees = policy.NodeFees{}
		w.Types[0].Credits = policy.CPUCredits{Baseline: 1600, Surplus: 50_000}
		for i := range w.Markets {
			if m := &w.Markets[i]; m.Type == 0 {
				m.OnDemand = m.OnDemand.Times(0.6)
				w.Prices[i].Price[0] = w.Prices[i].Price[0].Times(0.6)
			}
		}
		w.Templates[0].CPUUse = use
		return w
	}
	for spec, sees := range map[string]bool{"portfolio": true, "static": true, "on-demand": true, "karpenter": false, "as-is": false} {
		idle, _ := runScenario(t, scenario(0), spec)
		busy, _ := runScenario(t, scenario(1500), spec)
		if moved := busy.NodeHours < idle.NodeHours; moved != sees || (busy.Fees.Credits < 6*policy.Dollar) != sees {
			t.Errorf("%s: %.0f node-hours of busy pods and %.0f of idle ones; %v charged", spec, busy.NodeHours, idle.NodeHours, busy.Fees.Credits)
		}
	}
}
