package stats

import (
	"math"
	"testing"
)

// TestPoissonInterval holds the intervals against published ones (Garwood's table, to
// three digits), and a large count against the normal distribution.
func TestPoissonInterval(t *testing.T) {
	for _, c := range []struct {
		n         int64
		low, high float64
	}{{0, 0, 3.689}, {1, 0.0253, 5.572}, {2, 0.242, 7.225}, {10, 4.795, 18.39}, {30, 20.24, 42.83}, {100, 81.36, 121.6}} {
		x := PoissonInterval(c.n, 0.05)
		if math.Abs(x.Low-c.low) > 0.001*c.low+1e-9 || math.Abs(x.High-c.high) > 0.001*c.high {
			t.Errorf("%d: %+v, want %v to %v", c.n, x, c.low, c.high)
		}
	}
	x := PoissonInterval(10_000, 0.05)
	if math.Abs(x.Low-9804.97) > 1 || math.Abs(x.High-10197.95) > 1 {
		t.Errorf("of 10000: %+v", x)
	}
}
