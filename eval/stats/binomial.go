package stats

import (
	"fmt"
	"math"
	"math/big"

	"github.com/spotter-dev/spotter/policy/portable"
)

// A share is a probability num ÷ den.
type share struct{ num, den int64 }

var (
	half    = share{1, 2}
	quarter = share{1, 4}
)

// atMost returns the largest k with P(B ≤ k) ≤ rate, where B counts the successes of n independent
// trials with probability p, or −1 if even P(B ≤ 0) is larger. Both sides are compared as integers,
// multiplied by den^n and by the power of two that makes rate an integer, so there is no rounding.
func atMost(n int, p share, rate float64) int {
	if n < 0 || !(rate > 0 && rate < 1) {
		panic(fmt.Sprintf("stats: %d trials at the error rate %v", n, rate))
	}
	fraction, exponent := math.Frexp(rate)
	limit := new(big.Int).Exp(big.NewInt(p.den), big.NewInt(int64(n)), nil)
	limit.Mul(limit, big.NewInt(int64(math.Ldexp(fraction, 53))))
	limit.Rsh(limit, uint(53-exponent)) // exponent ≤ 0; the lost fraction does not affect the comparison with integers

	q := p.den - p.num
	term := new(big.Int).Exp(big.NewInt(q), big.NewInt(int64(n)), nil)
	sum := new(big.Int)
	factor := new(big.Int)
	for k := 0; k < n; k++ {
		if sum.Add(sum, term); sum.Cmp(limit) > 0 {
			return k - 1
		}
		term.Mul(term, factor.SetInt64(int64(n-k)*p.num))
		term.Quo(term, factor.SetInt64(int64(k+1)*q)) // exact: the next term is an integer
	}
	return n - 1 // P(B ≤ n) is 1
}

// ZeroBound returns the exact upper 95% bound on the rate of an event that did not occur in n
// independent runs: (1 − rate)^n = 0.05 (Clopper and Pearson, The Use of Confidence or Fiducial
// Limits, 1934).
func ZeroBound(n int) float64 { return 1 - portable.Pow(0.05, 1/float64(n)) }
