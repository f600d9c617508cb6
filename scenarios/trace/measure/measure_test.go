package measure

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// noise is a fixed sequence of numbers that look random, 0…1.
type noise uint64

func (n *noise) next() float64 {
	*n = *n*6364136223846793005 + 1442695040888963407
	return float64(*n>>40) / (1 << 24)
}

// walks makes a trace of markets whose prices walk, the zones of a type partly
// together, with a change about every gap.
func walks(t testing.TB, name string, seed uint64, types, days int, gap time.Duration, momentum float64) *trace.Trace {
	t.Helper()
	n := noise(seed)
	var series []trace.Series
	end := at(1, 0).Add(time.Duration(days) * 24 * time.Hour)
	for k := range types {
		for z := range 3 {
			s := trace.Series{Provider: "aws", Region: "r", Zone: "r" + string(rune('a'+z)), Type: "t" + string(rune('a'+k)) + ".large"}
			level, step := 300_000.0*(1+0.5*n.next()), 0.0
			for when := at(1, 0); when < end; when = when.Add(time.Duration(float64(gap) * (0.5 + n.next()))) {
				s.At = append(s.At, when)
				s.Spot = append(s.Spot, policy.Money(level))
				s.OnDemand = append(s.OnDemand, policy.Dollar)
				if step = momentum*step + (n.next()-0.5)*0.01; step == 0 {
					step = 0.001
				}
				level = min(max(level*(1+step), 100_000), 900_000)
			}
			series = append(series, s)
		}
	}
	return made(t, name, end, series...)
}

// Of a change that is taken back before the next look nothing is seen; one at
// the instant of a look is.
func TestPathOf(t *testing.T) {
	s := &trace.Series{
		At:   []policy.Time{at(1, 1), at(1, 2), at(1, 3), at(1, 12), at(1, 13)},
		Spot: cents(10, 11, 10, 12, -1),
	}
	six := Sampling{Interval: 6 * time.Hour, Period: 6 * time.Hour, Offsets: []time.Duration{0}}
	p := pathOf(s, six.instants(at(1, 0), at(2, 0)), at(2, 0))
	if !slices.Equal(p.at, []policy.Time{at(1, 6), at(1, 12), at(1, 18)}) || !slices.Equal(p.spot, cents(10, 12, -1)) {
		t.Errorf("%v %v", p.at, p.spot)
	}
}

// BenchmarkMeasure measures 960 markets with 600,000 changes.
func BenchmarkMeasure(b *testing.B) {
	tr := walks(b, "x", 1, 26, 210, 27*time.Minute, 0.4)
	rows := 0
	for i := range tr.Series {
		rows += len(tr.Series[i].At)
	}
	for b.Loop() {
		Measure(tr, nil)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// A market starts above 0.9, which does not count as a rise; it rises twice, once after an interval
// without an offer, which does not count either, and is above until the end.
func TestSpikes(t *testing.T) {
	tr := made(t, "x", at(11, 0), trace.Series{
		Provider: "p", Region: "r", Zone: "z", Type: "t",
		At:       []policy.Time{at(1, 0), at(2, 0), at(4, 0), at(4, 12), at(5, 0), at(6, 0), at(7, 0), at(9, 0)},
		Spot:     cents(95, 90, 91, 99, 50, -1, 92, 93),
		OnDemand: cents(100, 100, 100, 100, 100, 100, 100, 100),
	})
	p := Measure(tr, nil).Prices
	years := 9.0 / 365.25
	if p.Spikes != 3 || math.Abs(p.SpikeEntries-1/years) > 1e-9 || p.SpikeHours[1] != 24 || math.Abs(p.Above90-6.0/9) > 1e-12 {
		t.Errorf("%d spikes, %v entries, %v h, %v above", p.Spikes, p.SpikeEntries, p.SpikeHours, p.Above90)
	}
	if p.Changes != 5 || p.StepPairs != 3 {
		t.Errorf("%d changes, %d pairs", p.Changes, p.StepPairs)
	}
}

// A market that was offered for some hours has no rate: one change in them
// would count as many a day.
func TestRateNeedsADay(t *testing.T) {
	series := func(zone string, hours ...int) trace.Series {
		s := trace.Series{Provider: "p", Region: "r", Zone: zone, Type: "t"}
		for i, h := range hours {
			s.At = append(s.At, at(1, h))
			s.Spot = append(s.Spot, cents(10+i)...)
		}
		return s
	}
	p := Measure(made(t, "x", at(3, 0), series("a", 0, 24), series("b", 42, 43, 44)), nil).Prices
	if p.RateMean != 0.5 || p.Changes != 3 {
		t.Errorf("%v a day, %d changes", p.RateMean, p.Changes)
	}
}

// Two zones that move as one and a third that stands still: only the two count.
// Fewer common days than ten are no correlation.
func TestZoneCorrelation(t *testing.T) {
	for days, want := range map[int]int{30: 1, 8: 0} {
		tr := walks(t, "x", 5, 1, days, 20*time.Hour, 0)
		for i := range tr.Series {
			s := &tr.Series[i]
			if s.At, s.Spot, s.OnDemand = tr.Series[0].At, tr.Series[0].Spot, tr.Series[0].OnDemand; i == 2 {
				s.At, s.Spot, s.OnDemand = s.At[:1], s.Spot[:1], s.OnDemand[:1]
			}
		}
		p := Measure(tr, nil).Prices
		if p.ZonePairs != want || want == 1 && math.Abs(p.ZoneCorrelation-1) > 1e-9 {
			t.Errorf("%d days: %d pairs, %v", days, p.ZonePairs, p.ZoneCorrelation)
		}
	}
	if returns := dailyReturns(&path{at: []policy.Time{at(1, 0)}, spot: cents(5), end: at(30, 0)}, at(1, 0), at(30, 0)); returns != nil {
		t.Errorf("a market that never moved has returns: %v", returns)
	}
}

// Prices fetched four times a day are distinguished from a list of every change.
func TestSampling(t *testing.T) {
	fine := walks(t, "fine", 1, 8, 30, 2*time.Hour, 0.4)
	if s := SamplingOf(fine); s.Interval != 0 {
		t.Errorf("every change is taken for one look each %v", s.Interval)
	}
	six := Sampling{Interval: 6 * time.Hour, Period: 6 * time.Hour, Offsets: []time.Duration{0}}
	var series []trace.Series
	for i := range fine.Series {
		s := &fine.Series[i]
		p := pathOf(s, six.instants(fine.From, fine.To), fine.To)
		series = append(series, trace.Series{
			Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type, At: p.at, Spot: p.spot, OnDemand: p.onDemand,
		})
	}
	coarse := made(t, "coarse", fine.To, series...)
	found := SamplingOf(coarse)
	if found.Interval != 6*time.Hour {
		t.Fatalf("sampling of %v found instead of 6 h", found.Interval)
	}
	if a, b := Measure(fine, nil).Prices.Changes, Measure(coarse, nil).Prices.Changes; a < 2*b {
		t.Errorf("%d changes and %d seen every 6 h", a, b)
	}
}

// One market at half of on-demand for one day and at a quarter for three.
func TestFigures(t *testing.T) {
	tr := made(t, "x", at(7, 0), trace.Series{
		Provider: "p", Region: "r", Zone: "z", Type: "t",
		At:       []policy.Time{at(1, 0), at(2, 0), at(5, 0), at(7, 0)},
		Spot:     cents(50, 25, -1, 25),
		OnDemand: cents(100, 100, 100, 100),
	})
	p := Measure(tr, nil).Prices
	if p.Changes != 1 || p.Rate[1] != 1.0/4 || p.RateMean != 1.0/4 || p.Unmoved != 0 || math.Abs(p.StepMedian-math.Ln2) > 1e-12 {
		t.Errorf("%+v", p)
	}
	if p.Ratio[0] != 0.25 || p.Ratio[3] != 0.25 || p.Ratio[5] != 0.5 || math.Abs(p.Offered-4.0/6) > 1e-12 || p.Above90 != 0 {
		t.Errorf("ratio %v, offered %v, above %v", p.Ratio, p.Offered, p.Above90)
	}
	if p.GapHours[1] != 24 || p.StepPairs != 0 || !math.IsNaN(p.Autocorrelation) {
		t.Errorf("gap %v, %d pairs, autocorrelation %v", p.GapHours, p.StepPairs, p.Autocorrelation)
	}
}

func TestSample(t *testing.T) {
	w := newSample([]weight{{3, 1}, {1, 2}, {3, 1}, {2, 6}})
	for q, want := range map[float64]float64{0: 1, 0.2: 1, 0.21: 2, 0.5: 2, 0.8: 2, 0.81: 3, 1: 3} {
		if got := w.quantile(q); got != want {
			t.Errorf("%v: %v instead of %v", q, got, want)
		}
	}
	if empty := (&Sample{}).quantile(0.5); !math.IsNaN(empty) {
		t.Error(empty)
	}
}
