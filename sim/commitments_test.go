package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

// randomCommitments lets some scenarios own up to three commitments of every sort.
func (b *builder) randomCommitments(rnd *rand.Rand) {
	if rnd.IntN(3) > 0 {
		return
	}
	for i := range 1 + rnd.IntN(3) {
		typ := &b.w.Types[rnd.IntN(len(b.w.Types))]
		c := policy.Commitment{Name: fmt.Sprintf("c%d", i), Unit: policy.CoverUnit(rnd.IntN(3)),
			Amount: int64(1 + rnd.IntN(4)), Fee: policy.NoPrice}
		switch c.Unit {
		case policy.CoverNodes:
			c.Type = typ.Name
			if rnd.IntN(2) == 0 {
				c.Zone = b.w.Zones[0]
			}
		case policy.CoverSizes:
			c.Family = typ.Family
			c.Amount *= 7
		case policy.CoverDollars:
			c.Amount *= 123_457
		}
		c.Unused = c.Amount
		b.w.Commitments = append(b.w.Commitments, c)
	}
}

// reserve gives the calm scenario n reserved instances of its type at $0.12 an hour
// each.
func reserve(n int64) *scenarios.BoundScenario {
	w := calmScenario()
	w.Commitments = []policy.Commitment{{Name: "r", Type: "t0.large", Amount: n, Unused: n, Fee: policy.Money(n) * 120_000}}
	return w
}

// TestCommitments: of three nodes at $0.20 for 48 hours the reserved ones cost nothing, and their
// fee is reported separately.
func TestCommitments(t *testing.T) {
	for _, x := range []struct{ owned, billed, spared int64 }{{0, 3, 0}, {1, 2, 1}, {3, 0, 3}, {5, 0, 3}} {
		res, _ := runScenario(t, reserve(x.owned), "on-demand")
		if want := policy.Money(x.billed) * 48 * 200_000; res.Bill != want || res.OnDemandBill != want {
			t.Errorf("%d reserved: the bill is %v, want %v", x.owned, res.Bill, want)
		}
		if want := policy.Money(x.spared) * 48 * 200_000; res.Spared != want {
			t.Errorf("%d reserved: spared are %v, want %v", x.owned, res.Spared, want)
		}
		if want := policy.Money(x.owned) * 48 * 120_000; res.CommitmentFee != want {
			t.Errorf("%d reserved: the fee is %v, want %v", x.owned, res.CommitmentFee, want)
		}
	}
}

// TestCommitmentsAreNotForSpot: all on spot, what was paid for is wasted.
func TestCommitmentsAreNotForSpot(t *testing.T) {
	with, _ := runScenario(t, reserve(3), "spot")
	without, _ := runScenario(t, reserve(0), "spot")
	if with.Bill != without.Bill || with.Spared != 0 || with.Bill == 0 {
		t.Errorf("spot is billed %v with reserved instances and %v without; spared are %v", with.Bill, without.Bill, with.Spared)
	}
}

// TestCommitmentsMoveNothing: commitments change no decision of a policy that does not consider
// prices, and nothing of the weather.
func TestCommitmentsMoveNothing(t *testing.T) {
	with, _ := runScenario(t, reserve(2), "on-demand")
	without, _ := runScenario(t, reserve(0), "on-demand")
	if with.Weather != without.Weather || with.Launches != without.Launches || with.NodeHours != without.NodeHours {
		t.Errorf("with reserved instances %d launches and %v node-hours, without %d and %v",
			with.Launches, with.NodeHours, without.Launches, without.NodeHours)
	}
}

// TestSnapshotShowsUnused: a snapshot says what of a commitment covers no node, as
// of its own instant.
func TestSnapshotShowsUnused(t *testing.T) {
	b := one(2, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 6})
	b.w.Commitments = []policy.Commitment{{Name: "r", Type: "t0.large", Amount: 2, Unused: 2}}
	seen := map[int64]bool{}
	_, err := Run(t.Context(), Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"),
		Forecaster: mustForecaster(t), Seed: 1, Check: true,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			nodes := int64(0)
			for i := range s.Nodes {
				if s.Nodes[i].Phase != policy.NodeGone {
					nodes++
				}
			}
			if got, want := s.Commitments[0].Unused, max(0, 2-nodes); got != want {
				t.Errorf("%v: %d are unused with %d nodes, want %d", s.Now, got, nodes, want)
			}
			if got := billing.CoverageOf(s).Marginal(0) == 0; got != (nodes < 2) {
				t.Errorf("%v: one more is free: %v, with %d nodes", s.Now, got, nodes)
			}
			seen[s.Commitments[0].Unused] = true
		}})
	if err != nil {
		t.Fatal(err)
	}
	if !seen[0] || !seen[1] {
		t.Errorf("seen were %v", seen)
	}
}
