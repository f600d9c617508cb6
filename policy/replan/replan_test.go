package replan

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// TestWanted holds that a requested share stays within the range of its pool, and that without one
// the largest share of the range is wanted.
func TestWanted(t *testing.T) {
	for _, c := range []struct {
		x    policy.ShareRange
		want float64
	}{
		{policy.ShareRange{Min: 0.2, Max: 0.8}, 0.8},
		{policy.ShareRange{Min: 0.2, Max: 0.8, HasTarget: true, Target: 0.5}, 0.5},
		{policy.ShareRange{Min: 0.2, Max: 0.8, HasTarget: true, Target: 0.1}, 0.2},
		{policy.ShareRange{Min: 0.2, Max: 0.8, HasTarget: true, Target: 0.9}, 0.8},
	} {
		if got := Wanted(&policy.Pool{Share: c.x}); got != c.want {
			t.Errorf("of %+v %v is wanted, want %v", c.x, got, c.want)
		}
	}
}

// TestMarkets has room for two nodes of 4 cores below a limit of 8: the third is not
// bought, and a market above the cheapest by more than is to spare is not named.
func TestMarkets(t *testing.T) {
	s := &policy.Snapshot{
		Types:   []policy.InstanceType{{Capacity: policy.Resources{CPU: 4000}}},
		Markets: []policy.Market{{ID: 0}, {ID: 1}, {ID: 2}},
		Pools:   []policy.Pool{{Limits: policy.Resources{CPU: 8000}}},
	}
	offers := []placement.Offer{{Market: 0, Price: 100}, {Market: 1, Price: 110}, {Market: 2, Price: 111}}
	bins := []placement.Bin{{Offers: []int{0, 1, 2}}, {Offers: []int{0, 1, 2}}}
	nodes, ok := Markets(s, placement.HeadroomOf(s, 0), offers, bins, 10)
	if !ok || len(nodes) != 2 || !slices.Equal(nodes[0], []policy.MarketID{0, 1}) {
		t.Errorf("two nodes may be bought in %v, %v", nodes, ok)
	}
	if nodes, ok := Markets(s, placement.HeadroomOf(s, 0), offers, append(bins, bins[0]), 10); ok {
		t.Errorf("a third node is bought above the limit: %v", nodes)
	}
}
