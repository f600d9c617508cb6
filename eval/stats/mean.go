package stats

import (
	"slices"

	"github.com/spotter-dev/spotter/policy/portable"
)

// Median returns the median of values, which must not be empty. It does not modify values.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return portable.Quantile(sorted, 0.5)
}

// Mean returns the mean of values, which must not be empty. It sums them in order.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
