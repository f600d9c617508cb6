package check

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// A Curve is a distribution function: Y[i] is the share at or below X[i].
type Curve struct{ X, Y []float64 }

// curvePoints bounds the points of a curve. More than that is finer than a
// picture.
const curvePoints = 400

// CurveOf returns the distribution function of w, at some of its values where
// they are many.
func CurveOf(w measure.Sample) Curve {
	var c Curve
	sum, next := 0.0, 0.0
	for i, v := range w.Value {
		sum += w.Hours[i]
		y := sum / w.Total
		if i > 0 && y < next && i+1 < len(w.Value) {
			continue
		}
		c.X, c.Y = append(c.X, v), append(c.Y, y)
		next = y + 1.0/curvePoints
	}
	return c
}

// Unweighted returns the distribution function of sorted, each value of which
// counts the same.
func Unweighted(sorted []float64) Curve { return CurveOf(unweighted(sorted)) }

// An Interval is a time in which a market had one price, or one state of
// availability.
type Interval struct {
	From, To policy.Time
	Price    policy.Money // NoPrice where not offered
	Ratio    float64      // of Price to that on demand; NaN where unknown
	State    int8         // 1 available, 0 unavailable, -1 unknown
}

// PriceIntervals returns what s, a series of t, cost.
func PriceIntervals(t *trace.Trace, s *trace.Series) []Interval {
	fallback, _ := measure.OnDemand(s)
	intervals := make([]Interval, len(s.At))
	for i, at := range s.At {
		end := t.To
		if i+1 < len(s.At) {
			end = s.At[i+1]
		}
		intervals[i] = Interval{From: at, To: end, Price: s.Spot[i], Ratio: math.NaN(), State: -1}
		onDemand := fallback
		if s.OnDemand != nil && s.OnDemand[i] > 0 {
			onDemand = s.OnDemand[i]
		}
		if s.Spot[i] > 0 && onDemand > 0 {
			intervals[i].Ratio = float64(s.Spot[i]) / float64(onDemand)
		}
	}
	return intervals
}

// StateIntervals returns when nodes of s could be had, nil where it does not record it.
func StateIntervals(t *trace.Trace, s *trace.Series) []Interval {
	var intervals []Interval
	for i, state := range s.Available {
		if n := len(intervals); n > 0 {
			if intervals[n-1].State == state {
				continue
			}
			intervals[n-1].To = s.At[i]
		}
		intervals = append(intervals, Interval{From: s.At[i], To: t.To, Price: policy.NoPrice, Ratio: math.NaN(),
			State: state})
	}
	return intervals
}
