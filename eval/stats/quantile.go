package stats

import "slices"

// Quantile returns the q-quantile, q in [0, 1], of a list that is ascending and
// not empty. It lies between two values in proportion (type 7 of Hyndman and
// Fan, Sample Quantiles in Statistical Packages, 1996; the default of R and
// NumPy).
func Quantile(sorted []float64, q float64) float64 {
	at := float64(q * float64(len(sorted)-1))
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + float64((at-float64(i))*(sorted[i+1]-sorted[i]))
}

// Median returns the median of values, which stay as they are and are not
// empty.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return Quantile(sorted, 0.5)
}

// Mean returns the mean of values, which are not empty, summed in their order.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
