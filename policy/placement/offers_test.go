package placement_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestTagsKeepsLabels: offers with labels that were kept equal offers with rebuilt labels, whatever
// snapshots came before.
func TestTagsKeepsLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept placement.Tags
		s := policytest.Snapshot().Draw(t, "snapshot")
		pool := policy.PoolID(rapid.IntRange(0, len(s.Pools)-1).Draw(t, "pool"))
		for range 6 {
			markets := s.Pools[pool].Markets
			if got, want := kept.OffersIn(s, pool, markets), placement.OffersIn(s, pool, markets); !reflect.DeepEqual(got, want) {
				t.Fatalf("kept %+v, want %+v", got, want)
			}
			next := *s
			name := rapid.StringMatching("[a-c]{2}").Draw(t, "name")
			some := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				next = *policytest.Snapshot().Filter(func(x *policy.Snapshot) bool { return len(x.Pools) > int(pool) }).Draw(t, "other")
			case 1:
				next.Pools = append([]policy.Pool(nil), s.Pools...)
				next.Pools[pool].Labels = []policy.Label{{Key: "team", Value: name}}
			case 2:
				next.Types = append([]policy.InstanceType(nil), s.Types...)
				next.Types[some(len(s.Types))].Labels = []policy.Label{{Key: "size", Value: name}}
			case 3:
				next.Zones = append([]string(nil), s.Zones...)
				next.Zones[some(len(s.Zones))] = name
			case 4:
				next.Types = append([]policy.InstanceType(nil), s.Types...)
				k := some(len(s.Types))
				if rapid.Bool().Draw(t, "arch") {
					next.Types[k].Arch = name
				} else {
					next.Types[k].Name = name
				}
			case 5:
				next.Markets = append([]policy.Market(nil), s.Markets...)
				k := some(len(s.Markets))
				if rapid.Bool().Draw(t, "region") {
					next.Markets[k].Region = name
				} else {
					next.Markets[k].Capacity = policy.Spot + policy.OnDemand - next.Markets[k].Capacity
				}
			case 6:
				next.Pools = append([]policy.Pool(nil), s.Pools...)
				next.Pools[pool].Name = name
			}
			s = &next
		}
	})
}

// TestSales: sales are offers without labels and taints.
func TestSales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		for _, capacity := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
			for i := range s.Pools {
				got, want := placement.Sales(s, policy.PoolID(i), capacity), placement.Offers(s, policy.PoolID(i), capacity)
				for k := range want {
					want[k].Labels, want[k].Taints = nil, nil
				}
				if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Fatalf("%v of pool %d: %+v, want %+v", capacity, i, got, want)
				}
			}
		}
	})
}
