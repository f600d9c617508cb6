package check

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
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

// A region that is rarely without any zone is judged more mildly; one zone
// alone is not judged.
func TestAllDownTolerance(t *testing.T) {
	for _, c := range []struct {
		region measure.RegionAvailability
		want   string
	}{
		{measure.RegionAvailability{Zones: 3, AllDown: 0.28}, tolAllDown},
		{measure.RegionAvailability{Zones: 3, AllDown: 0.04}, tolAllDownRare},
		{measure.RegionAvailability{Zones: 1, AllDown: 0.28}, ""},
	} {
		if got := regionFigures(&measure.Availability{}, &c.region)[1].Tolerance; got != c.want {
			t.Errorf("%+v is judged by %q", c.region, got)
		}
	}
}

// intervals draws 40 days of two zones of a region.
func intervals(t *testing.T, seed uint64, mean float64, gap int32) *trace.Trace {
	n := noise(seed)
	var series []trace.Series
	for _, zone := range []string{"r-1a", "r-1b"} {
		var hours []float64
		for now := 1.0; now < 40*24; {
			hours = append(hours, now)
			u := n.next()
			now += 0.05 + mean*3*u*u
			if len(hours)%2 == 0 {
				now += mean
			}
		}
		s := flips(zone, hours...)
		if gap > 0 {
			s.ProbeGap = make([]int32, len(s.At))
			for i := range s.ProbeGap {
				s.ProbeGap[i] = gap
			}
		}
		series = append(series, s)
	}
	return made(t, "x", at(1, 0).Add(40*24*time.Hour), series...)
}

// Exact availability is probed as the recording was before the two are
// compared; and a figure of another place is no fault.
func TestCompareAvailability(t *testing.T) {
	exact, recorded := intervals(t, 1, 2, 0), intervals(t, 2, 2, 1200)
	c, err := Compare(exact, recorded, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(c.Notes, "\n"), "probed every 20m") || c.A.Availability.Probe != 20*time.Minute {
		t.Errorf("%v", c.Notes)
	}
	if r := row(t, c, "hazard-0-0.5"); r.Judged {
		t.Errorf("%+v", r)
	}
	if r := row(t, c, "hazard-1-2"); !r.Judged {
		t.Errorf("%+v", r)
	}
	slow, err := Compare(intervals(t, 1, 5, 1200), recorded, Options{})
	if err != nil || slow.Passed {
		var b strings.Builder
		slow.WriteTable(&b)
		t.Errorf("hazards of another market pass: %v\n%s", err, b.String())
	}
	for i := range exact.Series {
		exact.Series[i].Region = "elsewhere"
	}
	away, err := Compare(exact, recorded, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := row(t, away, "all-down-aws/r-1"); r.Judged || r.Why != "A has no such place" {
		t.Errorf("%+v", r)
	}
	if r := row(t, away, "state-correlation"); !r.Judged {
		t.Errorf("%+v", r)
	}
	// Without any availability in A, nothing of it is compared.
	for i := range exact.Series {
		exact.Series[i].Available = nil
	}
	bare, err := Compare(exact, recorded, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(bare.Rows, func(r Row) bool { return r.Name == "state-correlation" }) {
		t.Error("A records no availability and is judged by it")
	}
}

// TestExcuse: a figure with few events is shown but not judged, unless it was requested by name.
func TestExcuse(t *testing.T) {
	figure := func(value float64, events int) *Figure {
		return &Figure{Value: value, Events: events, Fewest: eventsMin}
	}
	rate := func(events int, exposure float64) *Figure {
		f := figure(float64(events)/exposure, events)
		f.Exposure = exposure
		return f
	}
	place := figure(1, 40)
	place.Place = true
	for _, c := range []struct {
		a, b  *Figure
		asked bool
		want  string
	}{
		{figure(1, 30), figure(1, 30), false, ""},
		{figure(1, 30), figure(1, 29), false, "B has 29 of the 30 events"},
		{figure(1, 29), figure(1, 30), false, "A has 29 of the 30 events"},
		{rate(3, 10), rate(60, 10), false, ""}, // too few for its size
		{rate(3, 1), rate(60, 10), false, "A has 3 of the 30 events that it takes, and its size lets expect 6"},
		{figure(1, 29), figure(1, 29), true, ""},
		{figure(1, 30), figure(math.NaN(), 30), true, "B has no such figure"},
		{figure(math.NaN(), 0), place, false, "A has no such place"},
		{figure(math.NaN(), 0), figure(1, 30), false, ""},
	} {
		got := excuse(c.a, c.b, c.asked)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v, %+v: %q", c.a, c.b, got)
		}
	}
}
