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

// Statistics are a trace in figures. A figure that nothing could be computed
// for is NaN inside and is left out of every output.
type Statistics struct {
	Name      string
	Synthetic bool
	Scripted  bool
	From, To  policy.Time

	// Markets have had a price at least once, Rows are their intervals, Zones and
	// Types how many of each there are.
	Markets, Rows, Zones, Types int

	Prices Prices

	// Available is the share of time in which a node could be had, of the time for which that is
	// recorded.
	Available float64

	// NoneLaunched and AllLaunched are the shares of time in which none and all of the nodes
	// requested at once came up, in DepthMarkets markets that record it.
	NoneLaunched, AllLaunched float64
	DepthMarkets              int
}

// Prices are the statistics of the Spot price.
type Prices struct {
	// Sampling is how they were seen.
	Sampling Sampling

	// Modelled says that the prices were put in by an importer, because what
	// was recorded has none. They are then no property of a market.
	Modelled bool

	// Changes is their number, and MarketDays the time in which markets were
	// offered. A price that differs after an interval without offer is no change:
	// how it came there was not seen.
	Changes    int
	MarketDays float64

	// RateMean is the mean over markets of changes per day offered, and Rate
	// its percentiles 5, 50 and 95. Markets that were offered for less than a
	// day are left out. Unmoved is the share of markets without a change.
	RateMean float64
	Rate     [3]float64
	Unmoved  float64

	// GapHours are percentiles 5, 50, 95 and 99 of the hours for which a price had held when it
	// changed. The first price of a market counts from its start in the trace.
	GapHours [4]float64

	// A step is the difference of the logarithms before and after a change.
	// StepMedian, StepP95, StepP99 and StepMax are of its size, StepStd is its
	// standard deviation.
	StepMedian, StepP95, StepP99, StepMax, StepStd float64

	// Autocorrelation is that of a step with the next one of its market,
	// pooled over markets; SameSign how often the two have one direction.
	// StepPairs are the pairs that both are computed of.
	Autocorrelation, SameSign float64
	StepPairs                 int

	// Ratio are percentiles 1, 5, 25, 50, 75, 95 and 99 of spot over on-demand,
	// each market weighted by the time it was offered. Above90 is the share of
	// time above 0.9.
	Ratio   [7]float64
	Above90 float64

	// Spikes are the intervals above 0.9 × on-demand, and SpikeEntries how many
	// of them began within the trace, for each market-year. SpikeHours are
	// percentiles 5, 50 and 95 of their length, which the end of the trace may
	// cut.
	Spikes       int
	SpikeEntries float64
	SpikeHours   [3]float64

	// ZoneCorrelation is the median, over the ZonePairs pairs of zones of a
	// region that sell one type, of the correlation of daily returns of the
	// price. Markets that never moved are left out.
	ZoneCorrelation float64
	ZonePairs       int

	// Offered is the share of time, from a market's first price to the end of
	// the trace, in which it had a price. Unpriced are the markets without an
	// on-demand price, which no ratio is known of.
	Offered  float64
	Unpriced []string

	// Gaps are the hours for which prices had held, Steps the sizes of steps, both
	// sorted. Ratios are spot over on-demand.
	Gaps, Steps []float64
	Ratios      Sample
}

// percentiles of Prices.Ratio.
var ratioPercentiles = [7]float64{0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99}

// Measure computes the statistics of t. Sampling, unless nil, is how prices are seen: only what is
// in force at its instants. One that is coarser than the trace hides changes.
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

// shareOfTime returns the share of time in which a state is 1, of the time in which it is 1 or 0,
// over all markets; NaN where it never is.
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

// names returns each of all once, in order.
func names(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// Days is the span of the trace.
func (s *Statistics) Days() float64 { return s.To.Sub(s.From).Hours() / 24 }

// EverOffered reports whether s has had a price.
func EverOffered(s *trace.Series) bool {
	return slices.ContainsFunc(s.Spot, func(m policy.Money) bool { return m > 0 })
}

func quantiles3(sorted []float64) [3]float64 {
	return [3]float64{portable.Quantile(sorted, 0.05), portable.Quantile(sorted, 0.5), portable.Quantile(sorted, 0.95)}
}

// A Sample is a sample of which some values count more than others.
type Sample struct {
	// Value ascends, and Hours are those for which each value held.
	Value, Hours []float64

	// Total is the sum of Hours.
	Total float64
}

// A weight is one value of a sample, with the hours for which it held.
type weight struct{ value, hours float64 }

// newSample sorts and joins equal values. All gets another order.
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

// quantile returns the least value at or below which a share q of the time is.
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

// hoursOf is d in hours.
func hoursOf(from, to policy.Time) float64 {
	return float64(to-from) / float64(time.Hour/time.Millisecond)
}
