package measure

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Statistics are the statistics of a trace. A statistic that could not be computed is NaN and is
// omitted from every output.
type Statistics struct {
	Name      string
	Synthetic bool
	Scripted  bool
	From, To  policy.Time

	// Markets is the number of markets with at least one price or a recorded availability, and Rows
	// the number of their intervals. Zones and Types are the numbers of distinct zones and types.
	Markets, Rows, Zones, Types int

	Prices Prices

	// Available is the share of time in which a node was available, of the time with a recorded
	// availability.
	Available float64

	// NoneLaunched and AllLaunched are the shares of time in which none and all of the nodes
	// requested at once launched, over the DepthMarkets markets with such records.
	NoneLaunched, AllLaunched float64
	DepthMarkets              int
}

// Prices are the statistics of the Spot price.
type Prices struct {
	// Sampling is how the prices were sampled.
	Sampling Sampling

	// Modelled reports that an importer modelled the prices because the recording has none. They
	// are then not properties of the markets.
	Modelled bool

	// Changes is the number of price changes, and MarketDays the time for which markets were
	// offered. A price that differs after an interval without an offer is not a change, since its
	// path was not observed.
	Changes    int
	MarketDays float64

	// RateMean is the mean over markets of the number of changes per day offered, and Rate its
	// percentiles 5, 50 and 95. Markets that were offered for less than a day are excluded. Unmoved
	// is the share of markets without a change.
	RateMean float64
	Rate     [3]float64
	Unmoved  float64

	// GapHours are percentiles 5, 50, 95 and 99 of the hours between changes of a price. For the
	// first change of a market, they are counted from its start in the trace.
	GapHours [4]float64

	// A step is the difference of the logarithms of the price after and before a change.
	// StepMedian, StepP95, StepP99 and StepMax describe its absolute value; StepStd is its standard
	// deviation.
	StepMedian, StepP95, StepP99, StepMax, StepStd float64

	// Autocorrelation is the correlation of a step with the next one of its market, pooled over
	// markets. SameSign is the share of such pairs with the same sign. StepPairs is the number of
	// pairs.
	Autocorrelation, SameSign float64
	StepPairs                 int

	// Ratio are percentiles 1, 5, 25, 50, 75, 95 and 99 of the ratio of Spot to on-demand prices,
	// weighted by the time for which markets were offered. Above90 is the share of time with a
	// ratio above 0.9.
	Ratio   [7]float64
	Above90 float64

	// Spikes is the number of intervals with a ratio above 0.9, and SpikeEntries the number of
	// those that started within the trace, per market-year. SpikeHours are percentiles 5, 50 and 95
	// of their length. The end of the trace truncates the last ones.
	Spikes       int
	SpikeEntries float64
	SpikeHours   [3]float64

	// ZoneCorrelation is the median correlation of daily returns of the price, over the ZonePairs
	// pairs of zones of a region that sell the same type. Markets without a change are excluded.
	ZoneCorrelation float64
	ZonePairs       int

	// Offered is the share of time, from a market's first price to the end of the trace, in which
	// it was offered. Unpriced are the markets without an on-demand price, for which no ratio is
	// known.
	Offered  float64
	Unpriced []string

	// Gaps are the hours between changes and Steps the absolute values of steps, both ascending.
	// Ratios are the ratios of Spot to on-demand prices.
	Gaps, Steps []float64
	Ratios      Sample
}

// The probabilities of the percentiles in Prices.Ratio.
var ratioPercentiles = [7]float64{0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99}

// Measure computes the statistics of t. If sampling is not nil, it uses only the prices at the
// times of sampling. A sampling that is coarser than the trace hides changes.
func Measure(t *trace.Trace, sampling *Sampling) *Statistics {
	s := &Statistics{Name: t.Name, Synthetic: t.Synthetic, Scripted: t.Scripted, From: t.From, To: t.To}
	var zones, types []string
	for i := range t.Series {
		m := &t.Series[i]
		if !EverOffered(m) && m.Available == nil {
			continue
		}
		s.Markets++
		s.Rows += len(m.At)
		if m.Launched != nil {
			s.DepthMarkets++
		}
		zones = append(zones, m.Provider+"/"+m.Region+"/"+m.Zone)
		types = append(types, m.Provider+"/"+m.Type)
	}
	s.Zones, s.Types = len(names(zones)), len(names(types))
	s.Prices = measurePrices(t, sampling)
	s.Available = shareOfTime(t, func(m *trace.Series, i int) int8 { return m.Sample(i).Available })
	launched := func(want func(v trace.Sample) bool) float64 {
		return shareOfTime(t, func(m *trace.Series, i int) int8 {
			switch v := m.Sample(i); {
			case v.Launched < 0:
				return -1
			case want(v):
				return 1
			}
			return 0
		})
	}
	s.NoneLaunched = launched(func(v trace.Sample) bool { return v.Launched == 0 })
	s.AllLaunched = launched(func(v trace.Sample) bool { return v.Launched == v.Requested })
	return s
}

// shareOfTime returns the share of time in which a state is 1, of the time in which it is 0 or 1,
// over all markets. It returns NaN if the state is never 0 or 1.
func shareOfTime(t *trace.Trace, state func(m *trace.Series, i int) int8) float64 {
	var spans [2]policy.Time
	for k := range t.Series {
		m := &t.Series[k]
		for i, at := range m.At {
			end := t.To
			if i+1 < len(m.At) {
				end = m.At[i+1]
			}
			if is := state(m, i); is >= 0 {
				spans[is] += end - at
			}
		}
	}
	return float64(spans[1]) / float64(spans[0]+spans[1])
}

// names sorts all and returns it without duplicates.
func names(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// Days returns the span of the trace in days.
func (s *Statistics) Days() float64 { return s.To.Sub(s.From).Hours() / 24 }

// EverOffered reports whether s has a price in any interval.
func EverOffered(s *trace.Series) bool {
	return slices.ContainsFunc(s.Spot, func(m policy.Money) bool { return m > 0 })
}

func quantiles3(sorted []float64) [3]float64 {
	return [3]float64{portable.Quantile(sorted, 0.05), portable.Quantile(sorted, 0.5), portable.Quantile(sorted, 0.95)}
}

// A Sample is a set of values weighted by time.
type Sample struct {
	// Value is ascending. Hours are the times for which each value applied.
	Value, Hours []float64

	// Total is the sum of Hours.
	Total float64
}

// A weight is a value with the hours for which it applied.
type weight struct{ value, hours float64 }

// newSample returns the sample of all, with equal values merged. It reorders all.
func newSample(all []weight) Sample {
	slices.SortFunc(all, func(a, b weight) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.hours, b.hours))
	})
	var w Sample
	for _, x := range all {
		if n := len(w.Value); n > 0 && w.Value[n-1] == x.value {
			w.Hours[n-1] += x.hours
		} else {
			w.Value, w.Hours = append(w.Value, x.value), append(w.Hours, x.hours)
		}
		w.Total += x.hours
	}
	return w
}

// quantile returns the smallest value such that values up to it have a share of at least q of the
// time; NaN if the sample is empty.
func (w *Sample) quantile(q float64) float64 {
	sum, want := 0.0, float64(q*w.Total)
	for i, h := range w.Hours {
		if sum += h; sum >= want {
			return w.Value[i]
		}
	}
	if n := len(w.Value); n > 0 {
		return w.Value[n-1]
	}
	return math.NaN()
}

// hoursOf returns the time between from and to in hours.
func hoursOf(from, to policy.Time) float64 {
	return float64(to-from) / float64(time.Hour/time.Millisecond)
}
