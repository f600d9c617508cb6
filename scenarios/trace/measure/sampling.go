package measure

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A Sampling is the set of times at which prices were observed. The zero value means that every
// change was observed.
type Sampling struct {
	// Interval is the median time between two observations; 0 means that every change was observed
	// at the time at which it happened.
	Interval time.Duration

	// Period is the period with which Offsets repeat.
	Period time.Duration

	// Offsets are the times of observations within a period, ascending and below Period.
	Offsets []time.Duration
}

// A recording is considered sampled if its rows are at few, approximately evenly spaced times, with
// a mean of at least instantRowsMin rows per time, or of a tenth of the number of markets if that
// is less.
const (
	instantRowsMin = 8
	shortest       = 10 * time.Minute
	longest        = 10 * 24 * time.Hour

	// unevenMax is the maximum ratio of the 90th percentile to the median of the time between
	// observations. Dates at which a price list changes are less even.
	unevenMax = 2.5
)

// SamplingOf detects how the prices of t were sampled.
func SamplingOf(t *trace.Trace) Sampling {
	var all []policy.Time
	rows := 0
	for i := range t.Series {
		s := &t.Series[i]
		for j, at := range s.At {
			if j == 0 || s.Spot[j] != s.Spot[j-1] {
				all = append(all, at)
				rows++
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	rowsMin := max(1.5, min(instantRowsMin, float64(len(t.Series))/10))
	if len(all) < 3 || float64(rows) < rowsMin*float64(len(all)) {
		return Sampling{}
	}
	gaps := make([]time.Duration, len(all)-1)
	for i := range gaps {
		gaps[i] = all[i+1].Sub(all[i])
	}
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	if median < shortest || median > longest || gaps[len(gaps)*9/10] > time.Duration(float64(median)*unevenMax) {
		return Sampling{}
	}
	s := Sampling{Interval: median, Period: all[len(all)-1].Sub(all[0]) + median}
	for _, at := range all {
		s.Offsets = append(s.Offsets, at.Sub(all[0]))
	}
	return s
}

// instants returns the times of observations in [from, to].
func (s *Sampling) instants(from, to policy.Time) []policy.Time {
	var all []policy.Time
	for base := from; base <= to; base = base.Add(s.Period) {
		for _, o := range s.Offsets {
			if at := base.Add(o); at <= to {
				all = append(all, at)
			}
		}
	}
	return all
}

// A path is the observed price of a market over time: at[i] starts an interval at spot[i], and the
// last interval ends at end.
type path struct {
	at       []policy.Time
	spot     []policy.Money
	onDemand []policy.Money // nil when not recorded
	end      policy.Time
}

// pathOf returns the prices of s observed at the times looks, or all prices if looks is nil.
func pathOf(s *trace.Series, looks []policy.Time, end policy.Time) path {
	if looks == nil {
		return path{s.At, s.Spot, s.OnDemand, end}
	}
	p := path{end: end}
	i := 0
	for _, look := range looks {
		for i < len(s.At) && s.At[i] <= look {
			i++
		}
		if i == 0 {
			continue
		}
		spot, onDemand := s.Spot[i-1], policy.Money(0)
		if s.OnDemand != nil {
			onDemand = s.OnDemand[i-1]
		}
		if n := len(p.at); n > 0 && p.spot[n-1] == spot && (s.OnDemand == nil || p.onDemand[n-1] == onDemand) {
			continue
		}
		p.at, p.spot = append(p.at, look), append(p.spot, spot)
		if s.OnDemand != nil {
			p.onDemand = append(p.onDemand, onDemand)
		}
	}
	return p
}
