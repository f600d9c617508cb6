package eval

import (
	"encoding/json"
	"slices"

	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/portable"
)

// errorRate is the maximum probability that any interval of a report, over all policies together,
// does not contain its true value.
const errorRate = 0.05

// A Statistic is a function from the values of several runs to one number.
type Statistic string

// The statistics, as written in gates. Percentiles interpolate linearly between two values (type 7
// of Hyndman and Fan, the default of R and NumPy).
const (
	Mean   Statistic = "mean"
	Median Statistic = "median"
	Min    Statistic = "min"
	Max    Statistic = "max"
	P5     Statistic = "p5"
	P25    Statistic = "p25"
	P75    Statistic = "p75"
	P95    Statistic = "p95"
)

// The statistics of windows and of confidence. The value of a window is the median over its seeds,
// so these statistics measure differences between windows rather than chance within one.
const (
	// Low and High are the ends of the confidence interval of the median, at the confidence level
	// of the report. Only some metrics have one, and only with a sufficient number of units.
	Low  Statistic = "low"
	High Statistic = "high"

	// WindowMin, WindowMedian and WindowMax are the minimum, the median and the maximum of the
	// windows' values.
	WindowMin    Statistic = "window_min"
	WindowMedian Statistic = "window_median"
	WindowMax    Statistic = "window_max"

	// WindowsPositive is the fraction of windows with a positive value.
	WindowsPositive Statistic = "windows_positive"
)

// Statistics returns all statistics in the order of outputs.
func Statistics() []Statistic {
	return []Statistic{Mean, Median, P5, P25, P75, P95, Min, Max, Low, High, WindowMin, WindowMedian, WindowMax,
		WindowsPositive}
}

// A Summary contains the statistics of one metric over several runs. Percentiles are of type 7. If
// no run has a value, it only contains n.
type Summary struct {
	// Number of runs with a value.
	N int `json:"n"`
	// Statistics over all runs.
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P5     float64 `json:"p5"`
	P25    float64 `json:"p25"`
	P75    float64 `json:"p75"`
	P95    float64 `json:"p95"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Both ends of the exact interval of the median over units, at the confidence level of the
	// report. Omitted if there are too few units, or if the metric has no intervals.
	MedianInterval *stats.Interval `json:"median_interval,omitempty"`
	// Number of units that an interval requires, if there are fewer.
	Need int `json:"need,omitempty"`

	// Over is the kind of units, empty for a metric without intervals: the seeds of a single
	// window, or several windows, each with the median over its seeds.
	Over string `json:"-"`

	Windows

	// left is true of a metric that JSON leaves out: see [Group.Only].
	left bool
}

// MarshalJSON encodes only n if there are no values.
func (s Summary) MarshalJSON() ([]byte, error) {
	type known Summary
	if s.N == 0 {
		return json.Marshal(map[string]int{"n": 0})
	}
	return json.Marshal(known(s))
}

// The kinds of units of intervals.
const (
	OverWindows = "windows"
	OverSeeds   = "seeds"
)

// Windows contains statistics of windows, each with the median over its seeds. They are undefined
// if N is 0.
type Windows struct {
	// N is the number of windows with a value.
	N int `json:"-"`
	// Minimum of the windows' values, each of which is the median over its seeds.
	Min float64 `json:"window_min"`
	// Median of the windows' values.
	Median float64 `json:"window_median"`
	// Maximum of the windows' values.
	Max float64 `json:"window_max"`
	// Fraction of the windows with a positive value.
	Positive float64 `json:"windows_positive"`

	// First and Last are the indexes of the windows with the minimum and the maximum.
	First, Last int `json:"-"`
}

// Of returns the statistic called name. It is unknown if there is no such statistic, or no value to
// compute it from.
func (s *Summary) Of(name Statistic) Value {
	if s.N == 0 {
		return Value{}
	}
	switch name {
	case Low, High:
		if s.MedianInterval == nil {
			return Value{}
		}
		if name == Low {
			return Value{s.MedianInterval.Low, true}
		}
		return Value{s.MedianInterval.High, true}
	case WindowMin:
		return Value{s.Windows.Min, true}
	case WindowMedian:
		return Value{s.Windows.Median, true}
	case WindowMax:
		return Value{s.Windows.Max, true}
	case WindowsPositive:
		return Value{s.Windows.Positive, true}
	case Mean:
		return Value{s.Mean, true}
	case Median:
		return Value{s.Median, true}
	case Min:
		return Value{s.Min, true}
	case Max:
		return Value{s.Max, true}
	case P5:
		return Value{s.P5, true}
	case P25:
		return Value{s.P25, true}
	case P75:
		return Value{s.P75, true}
	case P95:
		return Value{s.P95, true}
	}
	return Value{}
}

// summarize returns statistics of values, which may be empty, without windows and interval.
func summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	at := func(q float64) float64 { return portable.Quantile(sorted, q) }
	return Summary{
		N: len(values), Mean: stats.Mean(values), Median: at(0.5), P5: at(0.05), P25: at(0.25), P75: at(0.75), P95: at(0.95),
		Min: sorted[0], Max: sorted[len(sorted)-1],
	}
}

// Summarize returns statistics of the values of the runs of each window. The interval has error
// rate rate; 0 means no interval.
func Summarize(windows [][]float64, rate float64) Summary {
	s := summarize(slices.Concat(windows...))
	medians := make([]Value, len(windows))
	for i, values := range windows {
		if len(values) > 0 {
			medians[i] = Value{stats.Median(values), true}
		}
	}
	s.Windows = summarizeWindows(medians)
	if rate == 0 || s.N == 0 {
		return s
	}
	s.Over = OverSeeds
	units := windows[0]
	if len(windows) > 1 {
		s.Over, units = OverWindows, nil
		for _, v := range medians {
			if v.Known {
				units = append(units, v.V)
			}
		}
	}
	units = slices.Sorted(slices.Values(units))
	if i, ok := stats.MedianInterval(units, rate); ok {
		s.MedianInterval = &i
	} else {
		s.Need = stats.UnitsMin(rate)
	}
	return s
}

// summarizeWindows returns statistics of the values of windows, some of which may be unknown.
func summarizeWindows(values []Value) Windows {
	s := Windows{First: -1, Last: -1}
	var known []float64
	positive := 0
	for i, v := range values {
		if !v.Known {
			continue
		}
		known = append(known, v.V)
		if v.V > 0 {
			positive++
		}
		if s.First < 0 || v.V < values[s.First].V {
			s.First = i
		}
		if s.Last < 0 || v.V > values[s.Last].V {
			s.Last = i
		}
	}
	if s.N = len(known); s.N == 0 {
		return s
	}
	slices.Sort(known)
	s.Min, s.Median, s.Max = known[0], portable.Quantile(known, 0.5), known[s.N-1]
	s.Positive = float64(positive) / float64(s.N)
	return s
}

// windowsMany is the number of windows from which tables show their median and worst instead of
// each window.
const windowsMany = 8

// Many reports whether g has too many windows to list each of them.
func (g *Group) Many() bool { return g.Windows >= windowsMany }

// errorRate returns the error rate of one interval: each policy has an equal part of errorRate.
func (c *Config) errorRate() float64 { return errorRate / float64(len(c.Policies)) }

// Lacks returns the number of units that the intervals of g require if there are too few, else 0.
func (r *Report) Lacks(g *Group) int {
	units := len(r.Config.Seeds)
	if len(g.Cases) > 1 {
		units = len(g.Cases)
	}
	if need := stats.UnitsMin(r.Config.errorRate()); units < need {
		return need
	}
	return 0
}
