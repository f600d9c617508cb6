package fit

import (
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// A quantile is that of the sorted values, whatever their order.
func TestMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(-5, 5), func(i int) float64 { return float64(i) }), 1, 60).Draw(t, "values")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		want := interpolate(slices.Sorted(slices.Values(values)), p)
		if got := middle(slices.Clone(values), p); got != want {
			t.Fatalf("quantile %v of %v is %v, want %v", p, values, got, want)
		}
	})
}

// The nearest draw is the first of those that are the least away, and of a long span as
// many fewer are compared as it is longer than two months.
func TestNearest(t *testing.T) {
	for days, want := range map[int]int64{10: 256, 60: 256, 120: 128, 360: 42, 3650: 4} {
		var drawn atomic.Int64
		o := AvailabilityOptions{Days: days}
		best := o.nearest(256, func(draw uint64) float64 {
			drawn.Add(1)
			return float64((draw + 1) % 3)
		})
		if best != 2 || drawn.Load() != want {
			t.Errorf("%d days: draw %d of %d, want 2 of %d", days, best, drawn.Load(), want)
		}
	}
}
