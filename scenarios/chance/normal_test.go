package chance

import (
	"math"
	"testing"
)

// The distribution agrees with the error function of the standard library, out
// to the far tails, and is the inverse of the quantile.
func TestNormalCDF(t *testing.T) {
	for x := -12.0; x <= 12; x += 0.0371 {
		want := math.Erfc(-x/math.Sqrt2) / 2
		if got := NormalCDF(x); math.Abs(got-want) > 1e-8*want {
			t.Fatalf("NormalCDF(%v) = %v, want %v", x, got, want)
		}
	}
	for _, p := range []float64{1e-9, 0.001, 0.2, 0.5, 0.77, 0.999} {
		if got := NormalCDF(NormalQuantile(p)); math.Abs(got-p) > 1e-12 {
			t.Errorf("the distribution at the quantile of %v is %v", p, got)
		}
	}
	if NormalCDF(40) != 1 || NormalCDF(-40) != 0 {
		t.Errorf("beyond 37 deviations: %v and %v, want 1 and 0", NormalCDF(40), NormalCDF(-40))
	}
}
