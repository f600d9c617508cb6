package oracle

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestOracleCommitted: committed capacity is free, up to its amount.
func TestOracleCommitted(t *testing.T) {
	w := evaltest.Scenario("w", 0) // 4 pods on 2 nodes: on demand $0.10 an hour, spot $0.04, 24 h
	w.Markets[0].OnDemand = 100_000
	own := func(c ...policy.Commitment) { w.Commitments = c }
	own(policy.Commitment{Name: "r", Type: "m5.large", Amount: 1})
	near(t, "one of two nodes", Of(w).Cost, policy.Dollars(24*0.04))
	near(t, "one of two nodes, the other on demand too", Of(w).OnDemand, policy.Dollars(24*0.10))
	own(policy.Commitment{Name: "r", Type: "m5.large", Amount: 2})
	near(t, "both", Of(w).Cost, 0)
	own(policy.Commitment{Name: "r", Type: "m5.large", Amount: 50})
	near(t, "more than are needed", Of(w).Cost, 0)
	own(policy.Commitment{Name: "r", Type: "c5.large", Amount: 2})
	near(t, "of another type", Of(w).Cost, policy.Dollars(2*24*0.04))
	own(policy.Commitment{Name: "p", Unit: policy.CoverDollars, Amount: 50_000})
	near(t, "half a node by a plan", Of(w).Cost, policy.Dollars(1.5*24*0.04))
	own(policy.Commitment{Name: "p", Unit: policy.CoverDollars, Amount: 50_000}, policy.Commitment{Name: "r", Type: "m5.large", Amount: 1})
	near(t, "and one more", Of(w).Cost, policy.Dollars(0.5*24*0.04))
	own(policy.Commitment{Name: "f", Family: "m5", Unit: policy.CoverSizes, Amount: policy.SizeUnits("m5.large")})
	w.Types[0].Family = "m5"
	near(t, "as large as one, in its family", Of(w).Cost, policy.Dollars(24*0.04))

	own(policy.Commitment{Name: "r", Type: "m5.large", Amount: 1})
	w.Workloads[0].Schedule = []scenarios.ReplicaStep{{At: 1, Replicas: 4}, {At: w.Start.Add(12 * time.Hour), Replicas: 2}}
	near(t, "what is unused cannot be kept for later", Of(w).Cost, policy.Dollars(12*0.04))
}

// TestOracleCommittedIsBound: nothing that can be done in a tiny scenario where some
// is paid for costs less than the bound, and the bound is not far below.
func TestOracleCommittedIsBound(t *testing.T) {
	var least, found float64
	rapid.Check(t, func(t *rapid.T) {
		w := drawTiny(t)
		for i := range w.Markets {
			w.Markets[i].OnDemand = w.Prices[i&^1].Price[0] // the on-demand market comes before that of Spot
		}
		drawCommitments(t, w)
		o, err := New(w)
		if err != nil {
			t.Skip("a pod fits nowhere")
		}
		b := brute{w: w, value: o.value, job: -1}
		best, bound := b.cost(6, 0, 0), o.Every()
		if float64(bound.Cost) > best {
			t.Fatalf("the bound %v is above %.6f, which can be had with %+v: %s", bound, best/1e6, w.Commitments, sketch(w))
		}
		least, found = least+float64(bound.Cost), found+best
	})
	if least < 0.6*found {
		t.Errorf("the bounds are %.0f %% of the best that can be had, want 60 at least", least/found*100)
	}
}

// drawCommitments gives a scenario up to three commitments of every sort.
func drawCommitments(t *rapid.T, w *scenarios.BoundScenario) {
	for i := range max(0, rapid.IntRange(-1, 3).Draw(t, "commitments")) {
		c := policy.Commitment{Name: fmt.Sprintf("c%d", i), Fee: policy.NoPrice, Amount: int64(rapid.IntRange(1, 3).Draw(t, "owned"))}
		typ := &w.Types[rapid.IntRange(0, len(w.Types)-1).Draw(t, "owned type")]
		switch c.Unit = policy.CoverUnit(rapid.IntRange(0, 2).Draw(t, "owned unit")); c.Unit {
		case policy.CoverNodes:
			c.Type = typ.Name
			if rapid.Bool().Draw(t, "zonal") {
				c.Zone = w.Zones[0]
			}
		case policy.CoverSizes:
			c.Family = typ.Family
			c.Amount *= 8
		case policy.CoverDollars:
			c.Amount *= 54_321
		}
		c.Unused = c.Amount
		w.Commitments = append(w.Commitments, c)
	}
}

// paid returns what commitments pay per hour of a fleet.
func (b *brute) paid(nodes []policy.MarketID) float64 {
	c := billing.NewCoverage(b.w.Types, b.w.Zones, b.w.Markets, b.w.Commitments)
	sum := policy.Money(0)
	for _, m := range nodes {
		c.Add(m, 1)
	}
	for m := range b.w.Markets {
		sum += c.Paid(policy.MarketID(m))
	}
	return float64(sum)
}
