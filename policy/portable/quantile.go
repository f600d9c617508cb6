package portable

import "math"

// Quantile returns the q-quantile, with q in [0, 1], of an ascending list. It returns NaN for an
// empty list. It interpolates linearly between two values (type 7 of Hyndman and Fan, Sample
// Quantiles in Statistical Packages, 1996; the default of R and NumPy).
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := float64(q * float64(len(sorted)-1))
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + float64((at-float64(i))*(sorted[i+1]-sorted[i]))
}
