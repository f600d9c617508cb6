package eval

import (
	"encoding/json"
	"slices"

	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/portable"
)

// errorRate is the chance, over all policies of a report together, that an
// interval misses.
const errorRate = 0.05

// A Statistic is a way to make one number of the values of many runs.
type Statistic string

// The statistics, as gates write them. Percentiles interpolate linearly between two values (type 7
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

// The statistics of windows and of confidence. A window's value is the median
// over its seeds, so that these speak of weeks and not of luck within one.
const (
	// Low and High are the ends of the interval of the median, at the
	// confidence of the report. Only some metrics have one, and only where
	// enough was run.
	Low  Statistic = "low"
	High Statistic = "high"

	// WindowMin, WindowMedian and WindowMax are the least, the middle and the
	// greatest of the windows' values.
	WindowMin    Statistic = "window_min"
	WindowMedian Statistic = "window_median"
	WindowMax    Statistic = "window_max"

	// WindowsPositive is the share of the windows whose value is above 0.
	WindowsPositive Statistic = "windows_positive"
)

// Statistics lists them in the order of outputs.
func Statistics() []Statistic {
	return []Statistic{Mean, Median, P5, P25, P75, P95, Min, Max, Low, High, WindowMin, WindowMedian, WindowMax,
		WindowsPositive}
}

// A Summary is the statistics of one metric over many runs. Percentiles are of type 7. Without a
// value in any run it has n alone.
type Summary struct {
	// Runs that have a value.
	N int `json:"n"`
	// Over all runs.
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P5     float64 `json:"p5"`
	P25    float64 `json:"p25"`
	P75    float64 `json:"p75"`
	P95    float64 `json:"p95"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Both ends of the exact interval of the median over units, at the confidence of the report: left
	// out where there are too few units, and where the metric has no intervals.
	MedianInterval *stats.Interval `json:"median_interval,omitempty"`
	// How many units an interval needs, where there are fewer.
	Need int `json:"need,omitempty"`

	// Over says what the units are, empty for a metric without intervals: with one window its seeds,
	// with several the windows, each with the median over its seeds.
	Over string `json:"-"`

	Windows

	// left is true of a metric that JSON leaves out: see [Group.Only].
	left bool
}

// MarshalJSON writes only n where there is no value.
func (s Summary) MarshalJSON() ([]byte, error) {
	type known Summary
	if s.N == 0 {
		return json.Marshal(map[string]int{"n": 0})
	}
	return json.Marshal(known(s))
}

// What the units of intervals are.
const (
	OverWindows = "windows"
	OverSeeds   = "seeds"
)

// Windows are the statistics of windows, each with the median over its seeds. They hold nothing
// when N is 0.
type Windows struct {
	// N is how many windows have a value.
	N int `json:"-"`
	// The least of the windows' values, each the median over its seeds.
	Min float64 `json:"window_min"`
	// Their median.
	Median float64 `json:"window_median"`
	// The greatest of them.
	Max float64 `json:"window_max"`
	// The share of them above 0.
	Positive float64 `json:"windows_positive"`

	// First and Last are the places in the list of windows of the one with the
	// least value and of the one with the greatest.
	First, Last int `json:"-"`
}

// Of returns the statistic called name. It is unknown if no statistic has that name or no value is
// known from which to compute it.
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

// summarize describes values, which may be empty, without windows and interval.
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

// Summarize describes the values of the runs of each window. The interval is
// made for an error rate, 0 for none.
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

// summarizeWindows describes the values of windows, of which some may have none.
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

// windowsMany is how many windows make a table show their median and the worst
// of them in place of each.
const windowsMany = 8

// Many reports whether g has too many windows to list each.
func (g *Group) Many() bool { return g.Windows >= windowsMany }

// errorRate returns that of one interval: a policy's part of what all of them
// share.
func (c *Config) errorRate() float64 { return errorRate / float64(len(c.Policies)) }

// Lacks returns how many units the intervals of g need where there are too few,
// else 0.
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
