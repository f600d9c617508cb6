package chance

import "github.com/spotter-dev/spotter/policy/portable"

// NormalCDF returns the probability that a standard normal variable is at most x, to about 15
// digits (Hart 1968 in the form of West, "Better approximations to cumulative normal functions",
// 2005). The functions of the standard library give different results on different machines.
func NormalCDF(x float64) float64 {
	a := max(x, -x)
	if a > 37 {
		if x > 0 {
			return 1
		}
		return 0
	}
	density := portable.Exp(-float64(float64(a*a) / 2))
	var tail float64
	if a < 7.07106781186547 {
		tail = float64(density*polynomial(&cdfNum, a)) / polynomial(&cdfDen, a)
	} else {
		f := a + 1/(a+2/(a+3/(a+4/(a+0.65))))
		tail = density / f / 2.506628274631
	}
	if x > 0 {
		return 1 - tail
	}
	return tail
}

// The coefficients of Hart's rational function, constant term first.
var (
	cdfNum = [8]float64{
		220.206867912376, 221.213596169931, 112.079291497871, 33.912866078383, 6.37396220353165, 0.700383064443688,
		3.52624965998911e-02, 0,
	}
	cdfDen = [8]float64{
		440.413735824752, 793.826512519948, 637.333633378831, 296.564248779674, 86.7807322029461, 16.064177579207,
		1.75566716318264, 8.83883476483184e-02,
	}
)
