package measure

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// flips makes a market that is up and down in turn, beginning down at hour 0
// and changing at the given hours.
func flips(zone string, hours ...float64) trace.Series {
	s := trace.Series{
		Provider: "aws", Region: zone[:len(zone)-1], Zone: zone, Type: "g.large",
		At: []policy.Time{at(1, 0)}, Spot: cents(10), OnDemand: cents(30), Available: []int8{0},
	}
	for i, h := range hours {
		s.At = append(s.At, at(1, 0).Add(time.Duration(h*float64(time.Hour))))
		s.Spot = append(s.Spot, cents(10)[0])
		s.OnDemand = append(s.OnDemand, cents(30)[0])
		s.Available = append(s.Available, int8(1-i%2))
	}
	return s
}

// The market is down for 1 h, up for 3, down for 2, up for ¼, down for 1¾, and then up for 4 h
// until the end, which does not count as a loss.
func TestIntervals(t *testing.T) {
	tr := made(t, "x", at(1, 12), flips("r-1a", 1, 4, 6, 6.25, 8))
	a := Measure(tr, Options{}).Availability
	if a.Losses != 2 || a.Share != 7.25/12 || a.MeanUp != 7.25/2 || a.MeanDown != 4.75/3 {
		t.Errorf("%+v", a)
	}
	want := []Bucket{
		{0, 0.5, 1, 0.5 + 0.25 + 0.5}, {0.5, 1, 0, 1}, {1, 2, 0, 2}, {2, 4, 1, 1 + 2},
		{4, 8, 0, 0}, {8, 24, 0, 0}, {24, math.Inf(1), 0, 0},
	}
	if !slices.Equal(a.Hazard[:], want) {
		t.Errorf("%v", a.Hazard)
	}
	if !slices.Equal(a.Ups, []float64{0.25, 3}) || !slices.Equal(a.Downs, []float64{1.75, 2}) {
		t.Errorf("up %v, down %v", a.Ups, a.Downs)
	}
}

// An interval of unknown state ends nothing, and what follows has no known age.
func TestUnknownState(t *testing.T) {
	s := flips("r-1a", 1, 4, 6)
	s.Available[2] = -1
	a := Measure(made(t, "x", at(1, 12), s), Options{}).Availability
	if a.Losses != 0 || a.Share != 9.0/10 || a.Hazard[3].Exposure != 1 || len(a.Ups) != 0 {
		t.Errorf("%+v", a)
	}
}

// Zone b is down whenever a is and one hour more; c fails on its own.
func TestTogether(t *testing.T) {
	tr := made(t, "x", at(1, 10),
		flips("r-1a", 2, 6, 7),
		flips("r-1b", 2, 6, 8),
		flips("r-2a", 5, 9),
	)
	a := Measure(tr, Options{}).Availability
	if len(a.Regions) != 2 || a.Regions[0].Zones != 2 || a.Regions[1].Zones != 1 {
		t.Fatalf("%+v", a.Regions)
	}
	r := a.Regions[0]
	// a is up for 7 of 10 hours, b for 6, both for 6.
	want := (0.6 - 0.7*0.6) / math.Sqrt(0.7*0.3*0.6*0.4)
	if math.Abs(r.Correlation-want) > 1e-12 || math.Abs(r.AllDown-0.3) > 1e-12 || math.Abs(r.Independent-0.12) > 1e-12 ||
		r.AllDownEvents != 2 {
		t.Errorf("%+v, want %v", r, want)
	}
	if a.AcrossPairs != 2 || a.Within != r.Correlation || !math.IsNaN(a.Regions[1].Correlation) {
		t.Errorf("%+v", a)
	}
}

// What lasts less than a probe is not seen, and the rest is seen late.
func TestProbed(t *testing.T) {
	s := flips("r-1a", 1, 4, 6, 6.25, 8)
	tr := trackOf(&s, at(1, 12)).probed(at(1, 0), 30*time.Minute)
	if !slices.Equal(tr.up, []int8{0, 1, 0, 1, 0, 1}) {
		t.Errorf("%v", tr.up)
	}
	hour := trackOf(&s, at(1, 12)).probed(at(1, 0).Add(-30*time.Minute), time.Hour)
	want := []policy.Time{at(1, 0), at(1, 1), at(1, 4), at(1, 8)}
	for i := range want[1:] {
		want[i+1] = want[i+1].Add(30 * time.Minute)
	}
	if want[0] = at(1, 0).Add(30 * time.Minute); !slices.Equal(hour.at, want) || !slices.Equal(hour.up, []int8{0, 1, 0, 1}) {
		t.Errorf("%v %v", hour.at, hour.up)
	}
}

// An interval that ends at the instant of a look is not seen by it.
func TestProbedAtTheInstant(t *testing.T) {
	tr := (track{at: []policy.Time{at(1, 0), at(1, 3), at(1, 4)}, up: []int8{0, 1, 0}, end: at(1, 9)}).probed(at(1, 0), 2*time.Hour)
	if !slices.Equal(tr.up, []int8{0}) {
		t.Errorf("%v at %v", tr.up, tr.at)
	}
}

// While the state of one zone is unknown, nothing is known of both.
func TestTogetherUnknown(t *testing.T) {
	b := flips("r-1b", 4)
	b.Available[1] = -1
	a := Measure(made(t, "x", at(1, 10), flips("r-1a", 2), b), Options{}).Availability
	if r := a.Regions[0]; r.AllDown != 0.5 || r.AllDownEvents != 1 {
		t.Errorf("%+v", r)
	}
}
