package sim

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// twoSizes is 48 calm hours of twelve pods, of which a node of $0.20 on demand holds two and one
// of $0.56 five, with a fee for each node.
func twoSizes(fee policy.Money) *scenarios.BoundScenario {
	b := newBuilder(48 * time.Hour)
	b.w.Intensity = 0
	b.markets(1, 2, false)
	p := b.pool("p")
	p.Consolidation, p.Budgets[0].Nodes.N = policy.WhenEmptyOrUnderutilized, 100
	b.workload("web", policy.KindDeployment, 12, policy.Resources{CPU: 1500, Memory: gib})
	for i := range b.w.Markets {
		if m := &b.w.Markets[i]; m.Type == 1 {
			m.OnDemand = m.OnDemand.Times(1.4)
			b.w.Prices[i].Price[0] = b.w.Prices[i].Price[0].Times(1.4)
		}
	}
	w := b.scenario()
	w.Pools[0].Provisioner, w.Pools[0].Fees = policy.ProvisionerNone, policy.NodeFees{Fee: fee, Volumes: fee / 10}
	return w
}

// TestFees: of three nodes for 48 hours each is charged its fee and its volumes, whatever
// commitments pay of its price; who is billed for nothing has no fee.
func TestFees(t *testing.T) {
	for _, owned := range []int64{0, 2, 5} {
		w := reserve(owned)
		plain, _ := runScenario(t, w, "on-demand")
		w.Pools[0].Fees = policy.NodeFees{Fee: 20_000, Volumes: 2192}
		r, _ := runScenario(t, w, "on-demand")
		want := policy.NodeFees{Fee: 3 * 48 * 20_000, Volumes: 3 * 48 * 2192}
		if r.Fees != want || r.OnDemandFees != want.Total() || r.Bill != plain.Bill+want.Total() ||
			r.OnDemandBill != r.Bill || r.Spared != plain.Spared {
			t.Errorf("%d reserved: fees of %+v, %v of them on demand, in a bill of %v; without fees %v", owned, r.Fees,
				r.OnDemandFees, r.Bill, plain.Bill)
		}
		if plain.Fees != (policy.NodeFees{}) {
			t.Errorf("without fees they are %+v", plain.Fees)
		}
	}
}

// TestFeesAndSizes: with fees, Spotter's policies run fewer and larger nodes; policies that model
// a provisioner ignore fees.
func TestFeesAndSizes(t *testing.T) {
	for spec, notices := range map[string]bool{"portfolio": true, "static": true, "on-demand": true, "karpenter": false, "as-is": false} {
		with, _ := runScenario(t, twoSizes(500_000), spec)
		without, _ := runScenario(t, twoSizes(0), spec)
		if with.Fees.Fee == 0 || notices != (with.NodeHours < without.NodeHours) {
			t.Errorf("%s: %v node-hours with fees, %v without", spec, with.NodeHours, without.NodeHours)
		}
	}
}
