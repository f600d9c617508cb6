package stats

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestZeroBound(t *testing.T) {
	// With 59 good runs of 59 the bad ones are under 5% at 95%: 0.95^59 is the first power below
	// 0.05.
	for _, x := range []struct {
		n    int
		want float64
	}{{1, 0.95}, {20, 0.1391083}, {58, 0.0503393}, {59, 0.0495076}, {300, 0.0099361}} {
		if got := ZeroBound(x.n); math.Abs(got-x.want) > 1e-6 {
			t.Errorf("bound with none of %d is %.7f, want %.7f", x.n, got, x.want)
		}
	}
}

// TestAtMost compares with the plain sum of fractions, and with rates that are
// met exactly: P(B(3, ½) ≤ 0) is 1/8.
func TestAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		p := rapid.SampledFrom([]share{half, quarter}).Draw(t, "p")
		rate := rapid.SampledFrom([]float64{0.5, 0.25, 0.125, 1.0 / 16, 0.05, 0.05 / 7, 1e-3, 1e-9, 0.9}).Draw(t, "rate")
		want, sum := -1, new(big.Rat)
		for k := 0; k < n; k++ {
			term := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(k)))
			for i := range n {
				if i < k {
					term.Mul(term, big.NewRat(p.num, p.den))
				} else {
					term.Mul(term, big.NewRat(p.den-p.num, p.den))
				}
			}
			if sum.Add(sum, term); sum.Cmp(new(big.Rat).SetFloat64(rate)) > 0 {
				break
			}
			want = k
		}
		if got := atMost(n, p, rate); got != want {
			t.Fatalf("of %d trials of %v at most %d are rarer than %v, want %d", n, p, got, rate, want)
		}
	})
	if at, below := atMost(3, half, 0.125), atMost(3, half, math.Nextafter(0.125, 0)); at != 0 || below != -1 {
		t.Errorf("at 1/8 %d and just below %d, want 0 and -1", at, below)
	}
}

// TestMedianInterval has figures of tables of the sign test (Conover, table A3) for 95%, and the
// least number of values for the levels of 1 to 12 policies.
func TestMedianInterval(t *testing.T) {
	for _, x := range []struct{ n, low int }{{5, 0}, {6, 1}, {8, 1}, {9, 2}, {12, 3}, {20, 6}, {25, 8}, {50, 18}} {
		list := make([]float64, x.n)
		for i := range list {
			list[i] = float64(i + 1)
		}
		i, ok := MedianInterval(list, 0.05)
		if want := (Interval{float64(x.low), float64(x.n + 1 - x.low)}); ok != (x.low > 0) || ok && i != want {
			t.Errorf("of 1…%d it is %v, %v, want %v", x.n, i, ok, want)
		}
	}
	for policies, want := range map[int]int{1: 6, 2: 7, 4: 8, 6: 8, 7: 9, 12: 9, 13: 10} {
		if got := UnitsMin(0.05 / float64(policies)); got != want {
			t.Errorf("with %d policies %d values are needed, want %d", policies, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1e-6, 0.5).Draw(t, "rate")
		need := UnitsMin(rate)
		if _, ok := MedianInterval(make([]float64, need), rate); !ok {
			t.Fatalf("%d values have no interval at %v", need, rate)
		}
		if _, ok := MedianInterval(make([]float64, need-1), rate); ok {
			t.Fatalf("%d values have an interval at %v", need-1, rate)
		}
	})
}

// TestLooks: the looks spend no more than there is.
func TestLooks(t *testing.T) {
	sum := 0.0
	for i := range LooksMax {
		sum += LookRate(0.05, i)
	}
	if sum > 0.05 {
		t.Errorf("the looks spend %v of 0.05", sum)
	}
}

// TestPaired has the results of twenty pairs at 1%, some of which lose or gain.
func TestPaired(t *testing.T) {
	some := func(n int, loss float64, rest float64) []float64 {
		list := make([]float64, 20)
		for i := range list {
			if list[i] = rest; i < n {
				list[i] = loss
			}
		}
		return list
	}
	for _, x := range []struct {
		name            string
		losses          []float64
		rarely          bool
		exceeds, within bool
	}{
		{"nothing", some(0, 0, 0), true, false, true},
		{"all lose within the tolerance", some(20, 0.15, 0), true, false, true},
		{"all lose", some(20, 1, 0), false, true, false},
		{"all but three lose", some(17, 1, 0), false, true, false},
		{"all but four lose, none gains", some(16, 1, 0), false, true, false},
		{"all but four lose, four gain", some(16, 1, -1), false, false, false},
		// 2^−8 is less than half of 1%, 2^−7 is more.
		{"eight lose much", some(8, 9, 0), false, true, false},
		{"eight lose much, all others gain a little", some(8, 9, -0.01), false, false, false},
		{"eight lose less than twice the tolerance", some(8, 0.3, 0.15), false, false, false},
		{"seven lose much", some(7, 9, 0), false, false, false},
		{"three lose little", some(3, 0.3, 0), false, false, true},
		{"three lose little, where a quarter counts", some(3, 0.3, 0), true, false, false},
		// P(B(20, ¼) ≤ 0) is 0.3%, P(B(20, ¼) ≤ 1) is 2.4%.
		{"one loses little, where a quarter counts", some(1, 0.4, 0), true, false, false},
		{"one loses much", some(1, 9, 0), false, false, false},
		{"all gain", some(20, -5, 0), true, false, true},
		{"five pairs", some(20, 1, 0)[:5], false, false, false},
	} {
		p := Test{0.2, 0.01, 0.01, x.rarely}.Paired(x.losses)
		if p.Exceeds != x.exceeds || p.Within != x.within {
			t.Errorf("%s: %+v", x.name, p)
		}
	}
	if p := (Test{0.2, 0.01, 0.01, false}).Paired(make([]float64, 7)); p.Interval != nil || p.Need != 8 {
		t.Errorf("seven pairs: %+v", p)
	}
}
