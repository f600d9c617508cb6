package portable

import "math"

// Pow returns x to the power y for x ≥ 0, with an error below 1 + |y| units in the last place.
// Pow(x, 0) is 1. Otherwise, if x is negative or either argument is NaN, the result is NaN.
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case math.IsNaN(x) || math.IsNaN(y) || x < 0:
		return math.NaN()
	case y == 1:
		return x
	case y == 2:
		return float64(x * x)
	case y == 0.5:
		return math.Sqrt(x)
	case x == 0 || math.IsInf(x, 1) || math.Abs(y) >= 0x1p64:
		return powLimit(x, y)
	}
	m, k := split(x)
	// x^y = 2^(k·y) · e^(y·ln m). The product k·y is computed in two parts, since rounding it once
	// would cost hundreds of units in the last place.
	hi, lo := product(float64(k), y)
	if math.Abs(hi) > 4096 {
		return powLimit(x, y)
	}
	n := math.Floor(hi + 0.5)
	frac := (hi - n) + lo
	e := float64(frac*math.Ln2) + float64(y*Log(m))
	if shift := math.Floor(float64(e*log2e) + 0.5); shift != 0 && math.Abs(shift+n) < 4096 {
		n += shift
		e -= float64(shift * ln2Hi)
		e -= float64(shift * ln2Lo)
	}
	return powScale(Exp(e), n)
}

// powLimit returns x to the power y if the result is 0 or infinite. x must not be 1.
func powLimit(x, y float64) float64 {
	if (x > 1) == (y > 0) {
		return math.Inf(1)
	}
	return 0
}

// powScale returns v × 2^n for v in [0, +Inf] and an integer n.
func powScale(v, n float64) float64 {
	if math.IsInf(v, 1) || v == 0 {
		return v
	}
	switch {
	case n > 1100:
		return math.Inf(1)
	case n < -1200:
		return 0
	case n < -1020:
		return float64(float64(v*scale(1, int(n)+200)) * 0x1p-200)
	case n > 1020:
		return float64(float64(v*scale(1, int(n)-200)) * 0x1p200)
	}
	return float64(scale(1, int(n)) * v)
}

// product returns a × b exactly, as the sum of the rounded product and the rounding error (Dekker
// 1971). It is exact unless the partial products overflow or underflow.
func product(a, b float64) (hi, lo float64) {
	hi = float64(a * b)
	ah, al := halves(a)
	bh, bl := halves(b)
	lo = float64(ah*bh) - hi
	lo += float64(ah * bl)
	lo += float64(al * bh)
	lo += float64(al * bl)
	return hi, lo
}

// halves returns a as the sum of two numbers of at most 26 bits each.
func halves(a float64) (hi, lo float64) {
	c := float64(a * (1<<27 + 1))
	hi = c - (c - a)
	return hi, a - hi
}
