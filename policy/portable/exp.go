package portable

import (
	"math"
	"time"
)

// The methods and coefficients of Exp and Log are those of FreeBSD's
// /usr/src/lib/msun/src/e_exp.c and e_log.c, which came with this notice:
//
// ====================================================
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this
// software is freely granted, provided that this notice
// is preserved.
// ====================================================

// The natural logarithm of 2 in two parts. The first part has enough trailing zero bits that its
// product with an exponent is exact.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	log2e = 1.44269504088896338700e+00
)

// Exp overflows for arguments above expMax, and underflows to 0 below expMin.
const (
	expMax = 7.09782712893383973096e+02
	expMin = -7.45133219101941108420e+02
)

// Exp returns e to the power x with an error below one unit in the last place.
// Exp(NaN) is NaN, Exp(+Inf) is +Inf and Exp(-Inf) is 0.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > expMax:
		return math.Inf(1)
	case x < expMin:
		return 0
	}
	half := 0.5
	if x < 0 {
		half = -0.5
	}
	// e^x = 2^k · e^r with r = hi − lo and |r| ≤ ln 2 / 2.
	k := int(float64(log2e*x) + half)
	hi := x - float64(float64(k)*ln2Hi)
	lo := float64(float64(k) * ln2Lo)
	return scale(expReduced(hi, lo), k)
}

// expReduced returns e to the power hi − lo for |hi − lo| ≤ ln 2 / 2.
func expReduced(hi, lo float64) float64 {
	const (
		p1 = 1.66666666666666657415e-01
		p2 = -2.77777777770155933842e-03
		p3 = 6.61375632143793436117e-05
		p4 = -1.65339022054652515390e-06
		p5 = 4.13813679705723846039e-08
	)
	r := hi - lo
	t := float64(r * r)
	c := p4 + float64(t*p5)
	c = p3 + float64(t*c)
	c = p2 + float64(t*c)
	c = p1 + float64(t*c)
	c = r - float64(t*c)
	return 1 - ((lo - float64(float64(r*c)/(2-c))) - hi)
}

// scale returns y × 2^k for y in [1/2, 2] and k in [−1080, 1024].
func scale(y float64, k int) float64 {
	switch {
	case k < -1020:
		return float64(float64(y*math.Float64frombits(uint64(k+64+1023)<<52)) * 0x1p-64)
	case k > 1020:
		return float64(float64(y*math.Float64frombits(uint64(k-64+1023)<<52)) * 0x1p64)
	}
	return float64(y * math.Float64frombits(uint64(k+1023)<<52))
}

// Expm1 returns e to the power x, minus 1, with an error of a few units in the last place, even if
// x is near zero.
func Expm1(x float64) float64 {
	u := Exp(x)
	switch {
	case u == 1:
		return x
	case u-1 == -1 || x > 40 || math.IsNaN(u):
		return u - 1 // the 1 is below the precision of u
	}
	// Kahan's formula: Log(u) has the same rounding error as u, so the errors cancel.
	return float64((u-1)*x) / Log(u)
}

// Decay returns the fraction that remains after age of a quantity that halves every halfLife.
func Decay(age, halfLife time.Duration) float64 {
	return Exp(-float64(math.Ln2*age.Hours()) / halfLife.Hours())
}
