package placement_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy/placement"
)

// TestSpotRoomFor leaves room for whole nodes, each at the largest size that it may have. Their
// number brings the pool nearest to its share with the other nodes on demand.
func TestSpotRoomFor(t *testing.T) {
	small := placement.Purchase{Size: 4, Largest: 4}
	large := placement.Purchase{Size: 16, Largest: 16}
	either := placement.Purchase{Size: 4, Largest: 16}
	for _, c := range []struct {
		why  string
		room placement.SpotRoom
		buy  []placement.Purchase
		want int64
	}{
		{"12 vCPU of pods get a node of 16: 56 of 56 are nearer to 50.4 than 40",
			placement.SpotRoom{Share: 0.9, Spot: 40, Total: 40}, []placement.Purchase{large}, 16},
		{"of 96 vCPU 86.4 may be Spot: 88 are nearer than 72", placement.SpotRoom{Share: 0.9, Spot: 40, Total: 48},
			[]placement.Purchase{large, large, large}, 48},
		{"a node that may be larger counts as that until it is launched", placement.SpotRoom{Share: 0.5, Total: 4},
			[]placement.Purchase{either, either, either}, 32},
		{"of two numbers of nodes that are as near the larger", placement.SpotRoom{Share: 0.5}, []placement.Purchase{small, small, small}, 8},
		{"too much is Spot already", placement.SpotRoom{Share: 0.25, Spot: 16, Total: 16}, []placement.Purchase{small, small}, 0},
	} {
		if got := c.room.For(c.buy); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
}

// TestSpotRoomAhead: with all that may come on Spot a pool is at most half of the largest node above its
// share, and with one unit more it is above that or nothing may come.
func TestSpotRoomAhead(t *testing.T) {
	if got := (&placement.SpotRoom{Share: 0.5}).Ahead(4); got != 4 {
		t.Errorf("half of an empty pool: %d, want the first node", got)
	}
	if got := (&placement.SpotRoom{Share: 0.25}).Ahead(4); got >= 4 {
		t.Errorf("a quarter of an empty pool: %d, want less than a node", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := placement.SpotRoom{Share: float64(rapid.IntRange(1, 99).Draw(t, "share")) / 100, Spot: rapid.Int64Range(0, 1000).Draw(t, "spot")}
		largest, fixed := rapid.Int64Range(1, 96).Draw(t, "largest"), rapid.Int64Range(0, 1000).Draw(t, "fixed")
		r.Total = r.Spot + fixed
		above := func(spot int64) float64 { return float64(spot) - r.Share*float64(spot+fixed) }
		room, most := r.Ahead(largest), float64(largest)/2
		if room > 0 && above(r.Spot+room) > most+1e-4 {
			t.Fatalf("%+v leaves %d, and is %v above the share then", r, room, above(r.Spot+room))
		}
		if above(r.Spot+room+1) < most-1e-4 {
			t.Fatalf("%+v leaves only %d: with one more it is %v above the share", r, room, above(r.Spot+room+1))
		}
	})
}
