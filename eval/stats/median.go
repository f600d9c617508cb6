package stats

import (
	"encoding/json"
	"fmt"
)

// An Interval contains the estimated quantity, except with the probability of its error rate.
type Interval struct{ Low, High float64 }

// MarshalJSON encodes both ends as an array, such as [1.5, 2].
func (i Interval) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{i.Low, i.High}) }

// MedianInterval returns a confidence interval of the median of the distribution from which the
// values were drawn independently; sorted must be ascending. The probability that it does not
// contain the median is at most rate, for any distribution, also if values are equal. Its ends are
// the (k+1)-th values from either side for the largest k with 2·P(B(n, ½) ≤ k) ≤ rate, because each
// end fails only if at most k values are beyond the median (Thompson, On Confidence Ranges for the
// Median, 1936; David and Nagaraja, Order Statistics, §7.1). It returns false for fewer than
// [UnitsMin](rate) values.
func MedianInterval(sorted []float64, rate float64) (Interval, bool) {
	n := len(sorted)
	k := atMost(n, half, rate/2)
	if k < 0 {
		return Interval{}, false
	}
	return Interval{sorted[k], sorted[n-1-k]}, true
}

// UnitsMin returns the minimum number of values for an interval of the median at an error rate: the
// smallest n with 2·2^−n ≤ rate. For 5% it is 6. It panics unless rate is in (0, 1).
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
