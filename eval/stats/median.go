package stats

import (
	"encoding/json"
	"fmt"
)

// An Interval holds what it is of, but for the error rate that it was made for.
type Interval struct{ Low, High float64 }

// MarshalJSON writes both ends, as [1.5, 2].
func (i Interval) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{i.Low, i.High}) }

// MedianInterval returns the interval of the median of the distribution from which sorted was drawn
// independently; sorted is ascending. It fails at most at rate, whatever the distribution,
// including ties among the values. Its ends are the (k+1)-th value from either side, with the
// greatest k for which 2·P(B(n, ½) ≤ k) ≤ rate, since each end fails only if at most k values are
// beyond the median (Thompson, On Confidence Ranges for the Median, 1936; David and Nagaraja, Order
// Statistics, §7.1). It is false with fewer than [UnitsMin](rate) values.
func MedianInterval(sorted []float64, rate float64) (Interval, bool) {
	n := len(sorted)
	k := atMost(n, half, rate/2)
	if k < 0 {
		return Interval{}, false
	}
	return Interval{sorted[k], sorted[n-1-k]}, true
}

// UnitsMin returns the least number of values that have an interval of the median at an error rate:
// the least n with 2·2^−n ≤ rate. For 5% it is 6.
func UnitsMin(rate float64) int {
	if !(rate > 0 && rate < 1) {
		panic(fmt.Sprintf("stats: the error rate %v", rate))
	}
	n := 0
	for miss := 2.0; miss > rate; miss /= 2 {
		n++
	}
	return n
}
