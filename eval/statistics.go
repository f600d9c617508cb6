package eval

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

const (
	// resamples is how often the bootstrap is repeated.
	resamples = 2000

	// windowsMin is the least number of windows that are resampled. With
	// fewer of them an interval over windows would be one in name only.
	windowsMin = 8

	// errorRate is the chance, over all policies of a report together, that
	// an interval misses.
	errorRate = 0.05
)

// A Statistic is a way to make one number of the values of many runs.
type Statistic string

// The statistics, as gates write them. Percentiles lie between two values in
// proportion (type 7 of Hyndman and Fan, the default of R and NumPy).
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
	// confidence of the report. Only some metrics have one.
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
	return []Statistic{Mean, Median, P5, P25, P75, P95, Min, Max, Low, High, WindowMin, WindowMedian, WindowMax, WindowsPositive}
}

// A Summary is what the values of one metric over many runs come to. It holds
// nothing when N is 0.
type Summary struct {
	N                            int // runs that have a value
	Mean, Median                 float64
	P5, P25, P75, P95            float64
	Min, Max                     float64
	MedianInterval, MeanInterval *Interval // nil where none is computed
	Windows                      WindowSummary
}

// A WindowSummary is what the medians of windows over their seeds come to. It
// holds nothing when N is 0.
type WindowSummary struct {
	N                int // windows that have a value
	Min, Median, Max float64
	Positive         float64 // share of those above 0

	// First and Last are the places in the list of windows of the one with the
	// least value and of the one with the greatest.
	First, Last int
}

// An Interval holds a statistic with the confidence that its report states.
type Interval struct{ Low, High float64 }

// Of returns the statistic called name; false when there is none of that name,
// or when nothing is known from which it could be had.
func (s *Summary) Of(name Statistic) (float64, bool) {
	if s.N == 0 {
		return 0, false
	}
	switch name {
	case Low, High:
		if s.MedianInterval == nil {
			return 0, false
		}
		if name == Low {
			return s.MedianInterval.Low, true
		}
		return s.MedianInterval.High, true
	case WindowMin:
		return s.Windows.Min, true
	case WindowMedian:
		return s.Windows.Median, true
	case WindowMax:
		return s.Windows.Max, true
	case WindowsPositive:
		return s.Windows.Positive, true
	case Mean:
		return s.Mean, true
	case Median:
		return s.Median, true
	case Min:
		return s.Min, true
	case Max:
		return s.Max, true
	case P5:
		return s.P5, true
	case P25:
		return s.P25, true
	case P75:
		return s.P75, true
	case P95:
		return s.P95, true
	}
	return 0, false
}

// summarize describes values, which may be empty.
func summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return Summary{
		N: len(values), Mean: sum / float64(len(values)), Median: quantile(sorted, 0.5),
		P5: quantile(sorted, 0.05), P25: quantile(sorted, 0.25), P75: quantile(sorted, 0.75), P95: quantile(sorted, 0.95),
		Min: sorted[0], Max: sorted[len(sorted)-1],
	}
}

// summarizeWindows describes the values of windows, of which some may have none.
func summarizeWindows(values []Value) WindowSummary {
	s := WindowSummary{First: -1, Last: -1}
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
	s.Min, s.Median, s.Max = known[0], quantile(known, 0.5), known[s.N-1]
	s.Positive = float64(positive) / float64(s.N)
	return s
}

// quantile returns the q-quantile of a list that is ascending and not empty.
func quantile(sorted []float64, q float64) float64 {
	at := float64(q * float64(len(sorted)-1))
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return between(sorted[i], sorted[i+1], at-float64(i))
}

// between returns the point that lies the share x of the way from a to b.
func between(a, b, x float64) float64 { return a + float64(x*(b-a)) }

// zeroBound returns the exact upper 95 % bound on the rate of an event that
// none of n independent runs showed.
func zeroBound(n int) float64 { return 1 - portable.Pow(0.05, 1/float64(n)) }

// A cluster is one window of one scenario: the unit that is resampled, with
// its seeds inside it.
type cluster struct {
	scenario string
	first    int // index of the run with the window's first seed
}

// A bootstrap holds how often each run was drawn in each resample. The same
// draws serve every policy and every metric, so intervals of two policies
// differ by the policies and not by luck.
type bootstrap struct {
	runs  int
	drawn []uint16 // of resample i: drawn[i*runs:(i+1)*runs]
}

// newBootstrap draws windows with replacement within each scenario that has
// at least windowsMin of them, then seeds within each window drawn. Scenarios
// are never resampled: they are chosen and not found. Draws are keyed by the
// scenario's name, so a scenario has the same ones in any company.
func newBootstrap(clusters []cluster, seeds int) *bootstrap {
	b := &bootstrap{runs: len(clusters) * seeds}
	b.drawn = make([]uint16, resamples*b.runs)
	for _, group := range byScenario(clusters) {
		key := chance.New(0, "bootstrap", group[0].scenario)
		for r := range resamples {
			counts := b.drawn[r*b.runs : (r+1)*b.runs]
			for i := range group {
				w := i
				if len(group) >= windowsMin {
					w = key.At2(uint64(r), uint64(i)).IntN(len(group))
				}
				for s := range seeds {
					counts[group[w].first+key.At3(uint64(r), uint64(i), uint64(s)).IntN(seeds)]++
				}
			}
		}
	}
	return b
}

// byScenario splits clusters by scenario, in order of first appearance.
func byScenario(clusters []cluster) [][]cluster {
	var names []string
	var groups [][]cluster
	for _, c := range clusters {
		i := slices.Index(names, c.scenario)
		if i < 0 {
			i = len(names)
			names, groups = append(names, c.scenario), append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// intervals returns the percentile intervals, at the given level, of median
// and mean over the runs with the given indices and values (equal lengths).
// Both are nil without values.
func (b *bootstrap) intervals(runs []int, values []float64, level float64) (median, mean *Interval) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if values[i] != values[j] {
			if values[i] < values[j] {
				return -1
			}
			return 1
		}
		return i - j
	})
	var medians, means []float64
	for r := range resamples {
		counts := b.drawn[r*b.runs : (r+1)*b.runs]
		if md, mn, ok := weighted(counts, order, runs, values); ok {
			medians, means = append(medians, md), append(means, mn)
		}
	}
	return percentileInterval(medians, level), percentileInterval(means, level)
}

// weighted returns median and mean of values, each taken as often as its run
// was drawn; false when none was. order lists the values ascending.
func weighted(counts []uint16, order, runs []int, values []float64) (median, mean float64, ok bool) {
	total, sum := 0, 0.0
	for i, run := range runs {
		total += int(counts[run])
		sum += float64(float64(counts[run]) * values[i])
	}
	if total == 0 {
		return 0, 0, false
	}
	low, high := (total-1)/2, total/2 // places of the two middle values
	seen, first := 0, 0.0
	for _, i := range order {
		before := seen
		seen += int(counts[runs[i]])
		if before <= low && low < seen {
			first = values[i]
		}
		if high < seen {
			return between(first, values[i], 0.5), sum / float64(total), true
		}
	}
	panic(fmt.Sprintf("eval: %d values drawn, %d found in order", total, seen))
}

func percentileInterval(statistics []float64, level float64) *Interval {
	if len(statistics) == 0 {
		return nil
	}
	slices.Sort(statistics)
	tail := (1 - level) / 2
	return &Interval{quantile(statistics, tail), quantile(statistics, 1-tail)}
}
