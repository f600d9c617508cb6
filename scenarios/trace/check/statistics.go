package check

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Statistics are a trace in figures. A figure that nothing could be computed
// for is NaN inside and is left out of every output.
type Statistics struct {
	Name      string
	Synthetic bool
	Scripted  bool
	From, To  policy.Time

	// Markets have had a price at least once, Rows are their spells, Zones and
	// Types how many of each there are.
	Markets, Rows, Zones, Types int

	Prices Prices

	// Availability is nil when no market of the trace tells whether a node
	// could be had.
	Availability *Availability

	// Depth is nil when no market records how many nodes came up.
	Depth *Depth
}

// Prices are the figures of the spot price.
type Prices struct {
	// Sampling is how they were seen.
	Sampling Sampling

	// Modelled says that the prices were put in by an importer, because what
	// was recorded has none. They are then no property of a market.
	Modelled bool

	// Changes is their number, and MarketDays the time in which markets were
	// offered. A price that differs after a spell without offer is no change:
	// how it came there was not seen.
	Changes    int
	MarketDays float64

	// RateMean is the mean over markets of changes per day offered, and Rate
	// its percentiles 5, 50 and 95. Markets that were offered for less than a
	// day are left out. Unmoved is the share of markets without a change.
	RateMean float64
	Rate     [3]float64
	Unmoved  float64

	// GapHours are percentiles 5, 50, 95 and 99 of the hours for which a price
	// had held when it changed. The first price of a market counts from when
	// the trace begins to know it.
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

	// Spikes are the spells above 0.9 × on-demand, and SpikeEntries how many
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

	gaps, steps []float64 // sorted
	ratios      weighted
}

// percentiles of Prices.Ratio.
var ratioPercentiles = [7]float64{0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99}

// Measure computes the statistics of t.
func Measure(t *trace.Trace, o Options) *Statistics {
	s := &Statistics{Name: t.Name, Synthetic: t.Synthetic, Scripted: t.Scripted, From: t.From, To: t.To}
	var zones, types []string
	for i := range t.Series {
		m := &t.Series[i]
		if !everOffered(m) && m.Available == nil {
			continue
		}
		s.Markets++
		s.Rows += len(m.At)
		zones = append(zones, m.Provider+"/"+m.Region+"/"+m.Zone)
		types = append(types, m.Provider+"/"+m.Type)
	}
	s.Zones, s.Types = len(names(zones)), len(names(types))
	s.Prices = measurePrices(t, o.Sampling)
	s.Availability = measureAvailability(t, o.Probe)
	s.Depth = measureDepth(t, o.classes)
	return s
}

// Days is the span of the trace.
func (s *Statistics) Days() float64 { return s.To.Sub(s.From).Hours() / 24 }

func everOffered(s *trace.Series) bool {
	return slices.ContainsFunc(s.Spot, func(m policy.Money) bool { return m > 0 })
}

// quantile returns the value below which a share q of sorted lies, between two
// values in proportion.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := float64(q * float64(len(sorted)-1))
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + float64((at-float64(i))*(sorted[i+1]-sorted[i]))
}

func quantiles3(sorted []float64) [3]float64 {
	return [3]float64{quantile(sorted, 0.05), quantile(sorted, 0.5), quantile(sorted, 0.95)}
}

// A weighted is a sample of which some values count more: ascending by value,
// with the hours for which each held.
type weighted struct {
	value []float64
	hours []float64
	total float64
}

// A weight is one value of a sample, with the hours for which it held.
type weight struct{ value, hours float64 }

// newWeighted sorts and joins equal values. All gets another order.
func newWeighted(all []weight) weighted {
	slices.SortFunc(all, func(a, b weight) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.hours, b.hours))
	})
	var w weighted
	for _, x := range all {
		if n := len(w.value); n > 0 && w.value[n-1] == x.value {
			w.hours[n-1] += x.hours
		} else {
			w.value, w.hours = append(w.value, x.value), append(w.hours, x.hours)
		}
		w.total += x.hours
	}
	return w
}

// quantile returns the least value at or below which a share q of the time is.
func (w *weighted) quantile(q float64) float64 {
	sum, want := 0.0, float64(q*w.total)
	for i, h := range w.hours {
		if sum += h; sum >= want {
			return w.value[i]
		}
	}
	if n := len(w.value); n > 0 {
		return w.value[n-1]
	}
	return math.NaN()
}

// unweighted makes each value of sorted count the same.
func unweighted(sorted []float64) weighted {
	w := weighted{value: sorted, hours: make([]float64, len(sorted)), total: float64(len(sorted))}
	for i := range w.hours {
		w.hours[i] = 1
	}
	return w
}

// ks is the greatest distance between the distribution functions of a and b,
// NaN if either has no value.
func ks(a, b *weighted) float64 {
	if a.total <= 0 || b.total <= 0 {
		return math.NaN()
	}
	i, j := 0, 0
	fa, fb, most := 0.0, 0.0, 0.0
	for i < len(a.value) && j < len(b.value) {
		x := min(a.value[i], b.value[j])
		for ; i < len(a.value) && a.value[i] == x; i++ {
			fa += a.hours[i]
		}
		for ; j < len(b.value) && b.value[j] == x; j++ {
			fb += b.hours[j]
		}
		most = max(most, math.Abs(fa/a.total-fb/b.total))
	}
	return most
}

// hoursOf is d in hours.
func hoursOf(from, to policy.Time) float64 {
	return float64(to-from) / float64(time.Hour/time.Millisecond)
}
