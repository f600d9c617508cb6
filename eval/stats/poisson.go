package stats

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy/portable"
)

// PoissonInterval returns the exact confidence interval of the mean of a Poisson distribution from
// which n was drawn, with an error rate of at most rate (Garwood, Fiducial Limits for the Poisson
// Distribution, 1936). For n = 0, its lower end is 0.
func PoissonInterval(n int64, rate float64) Interval {
	if n < 0 || !(rate > 0 && rate < 1) {
		panic(fmt.Sprintf("stats: %d events at the error rate %v", n, rate))
	}
	x := Interval{High: meanWhere(n, rate/2)}
	if n > 0 {
		x.Low = meanWhere(n-1, 1-rate/2)
	}
	return x
}

// meanWhere returns the mean of the Poisson distribution for which the probability of n or less is
// p.
func meanWhere(n int64, p float64) float64 {
	logs := make([]float64, n+1) // logarithms of the factorials
	for k := int64(1); k <= n; k++ {
		logs[k] = logs[k-1] + portable.Log(float64(k))
	}
	low, high := 0.0, 2*float64(n)+40
	for range 100 {
		mean := (low + high) / 2
		sum, log := 0.0, portable.Log(mean)
		for k := range logs {
			sum += portable.Exp(float64(float64(k)*log) - mean - logs[k])
		}
		if sum > p { // the probability decreases as the mean increases
			low = mean
		} else {
			high = mean
		}
	}
	return (low + high) / 2
}
