package placement_test

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// TestQuotasAreShared buys for two pools under one quota of the provider, which has
// room for one machine: what the first takes is gone for the second.
func TestQuotasAreShared(t *testing.T) {
	for vcpu, want := range map[int64]int{4: 1, 7: 1, 8: 2} {
		s := parse(t, `type b.4 4
market z b.4 spot 0.06
pool one none taint=one
pool two none taint=two
app first 3 tolerates=one
app second 3 tolerates=two
pod first pending
pod second pending
`)
		s.Quotas = []policy.Quota{{Name: "spot", Region: "region", Capacity: policy.Spot, VCPU: vcpu}}
		launches, holds := placement.Shortages(s, func(policy.PoolID) float64 { return 1 })
		if len(launches) != want || len(holds) != 2-want {
			t.Errorf("%d vCPUs: %d launches and %d holds, want %d and %d", vcpu, len(launches), len(holds), want, 2-want)
		}
	}
}

// TestHeadroomIsCountedDown takes the largest of the markets of a launch, and leaves a
// clone's original as it is.
func TestHeadroomIsCountedDown(t *testing.T) {
	s := parse(t, `type a.2 2
type b.4 4
market z a.2 spot 0.03
market z b.4 spot 0.06
pool web none
`)
	s.Pools[0].Limits.CPU = 7_000
	room := placement.HeadroomOf(s, 0)
	left := room.Clone()
	left.Take([]policy.MarketID{0, 1})
	if !room.Has(1) || left.Has(1) || !left.Has(0) {
		t.Errorf("of 7 vCPUs a node of 2 or 4 leaves room for one of 2 (%v) and not for one of 4 (%v); before there was (%v)", left.Has(0), left.Has(1), room.Has(1))
	}
	left.Take([]policy.MarketID{0})
	if left.Has(0) {
		t.Error("6 of 7 vCPUs leave room for 2")
	}
}

// A pool whose limit is reached says which one, and not that nothing is offered.
func TestReachedLimitIsNamed(t *testing.T) {
	s := parse(t, `type a.4 4
market z a.4 on-demand 0.20
pool web none
app one 3
pod one pending`)
	s.Pools[0].Limits.CPU = 2000
	launches, holds := placement.Shortages(s, at(0))
	if len(launches) != 0 || len(holds) != 1 || !strings.Contains(holds[0].Why.Text, "limits.cpu is reached in pool web") {
		t.Errorf("launches %+v, holds %+v", launches, holds)
	}
}
