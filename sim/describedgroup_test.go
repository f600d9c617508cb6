package sim

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// described returns a calm scenario of n pods, two to a node, on one described group.
func described(n int32, g scenarios.ScalingGroup) *builder {
	b := grouped(n)
	g.Types = []string{"t0.large"}
	b.w.ScalingGroups = []*scenarios.ScalingGroup{&g}
	return b
}

// TestDescribedGroup has a group hold what it says: a base on demand and a part of the rest,
// rounded up; no less than its least and no more than its greatest size.
func TestDescribedGroup(t *testing.T) {
	for _, x := range []struct {
		group          scenarios.ScalingGroup
		onDemand, spot float64 // nodes
	}{
		{scenarios.ScalingGroup{Max: 20, OnDemandPercent: 100}, 5, 0},
		{scenarios.ScalingGroup{Max: 20, OnDemandBase: 1, OnDemandPercent: 50}, 3, 2},
		{scenarios.ScalingGroup{Max: 20}, 0, 5},
		{scenarios.ScalingGroup{Min: 7, Max: 20, Desired: 7}, 0, 7},
		{scenarios.ScalingGroup{Max: 3}, 0, 3},
	} {
		b := described(10, x.group)
		first := policy.Spot // the capacity type of the only node at the start
		if x.onDemand > 0 {
			first = policy.OnDemand
		}
		at := slices.IndexFunc(b.w.Markets, func(m policy.Market) bool { return m.Capacity == first })
		b.w.StartCluster = scenarios.StartNodes
		b.w.Seeds = []scenarios.NodeSeed{{Market: policy.MarketID(at), Count: 1}}
		b.w.Pools[0].CapacityTypes = nil
		if x.onDemand > 0 {
			b.w.Pools[0].CapacityTypes = []policy.CapacityType{policy.OnDemand}
		}
		if x.spot > 0 {
			b.w.Pools[0].CapacityTypes = append(b.w.Pools[0].CapacityTypes, policy.Spot)
		}
		res, _ := runScenario(t, b.scenario(), "as-is")
		hours := b.w.Duration.Hours()
		if got := res.NodeHours / hours; got < x.onDemand+x.spot-0.1 || got > x.onDemand+x.spot+0.1 {
			t.Errorf("%+v: %.2f nodes, want %v", x.group, got, x.onDemand+x.spot)
		}
		if got := res.SpotHours / hours; got < x.spot-0.1 || got > x.spot+0.1 {
			t.Errorf("%+v: %.2f nodes on spot, want %v", x.group, got, x.spot)
		}
	}
}
