package portable

import "math"

// Log returns the natural logarithm of x with an error below one unit in the last place. Log(0) is
// -Inf. If x is negative or NaN, the result is NaN.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	m, k := split(x)
	// ln x = k · ln 2 + ln(1+f).
	f, s := m-1, logSeries(m-1)
	half := float64(float64(0.5*f) * f)
	q := float64(f / (2 + f))
	tail := float64(q*(half+s)) + float64(float64(k)*ln2Lo)
	return float64(float64(k)*ln2Hi) - ((half - tail) - f)
}

// logSeries returns the remainder of ln(1+f) after f − f²/2 and its first quotient, for √½ ≤ 1+f <
// √2.
func logSeries(f float64) float64 {
	const (
		l1 = 6.666666666666735130e-01
		l2 = 3.999999999940941908e-01
		l3 = 2.857142874366239149e-01
		l4 = 2.222219843214978396e-01
		l5 = 1.818357216161805012e-01
		l6 = 1.531383769920937332e-01
		l7 = 1.479819860511658591e-01
	)
	s := float64(f / (2 + f))
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	odd := l5 + float64(s4*l7)
	odd = l3 + float64(s4*odd)
	odd = l1 + float64(s4*odd)
	even := l4 + float64(s4*l6)
	even = l2 + float64(s4*even)
	return float64(s2*odd) + float64(s4*even)
}

// split returns m in [√½, √2) and k such that x = m × 2^k, for finite x > 0.
func split(x float64) (m float64, k int) {
	if x < 0x1p-1022 {
		x *= 0x1p54
		k = -54
	}
	bits := math.Float64bits(x)
	k += int(bits>>52) - 1023
	m = math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	if m >= math.Sqrt2 {
		return m / 2, k + 1
	}
	return m, k
}

// Log1p returns the natural logarithm of 1 + x with an error of two units in the last place, even
// if x is near zero.
func Log1p(x float64) float64 {
	u := 1 + x
	switch {
	case u == 1:
		return x
	case u <= 0 || math.IsInf(u, 1) || math.IsNaN(u):
		return Log(u)
	}
	// The quotient corrects the rounding error of 1 + x.
	return Log(u) - float64(((u-1)-x)/u)
}
