package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Each fault is found by its name and said to be a failure or not; a good trace
// has none.
func TestInspect(t *testing.T) {
	good := func() trace.Series {
		return trace.Series{
			Provider: "p", Region: "r", Zone: "z", Type: "t", At: []policy.Time{at(1, 0), at(2, 0), at(3, 0)},
			Spot: cents(50, 40, 45), OnDemand: cents(100, 100, 100),
		}
	}
	for _, c := range []struct {
		name    string
		failure bool
		change  func(*trace.Series)
		whole   func(*trace.Trace)
	}{
		{"price-zero", false, func(s *trace.Series) { s.Spot[1] = 0 }, nil},
		{"price-impossible", true, func(s *trace.Series) { s.Spot[1] = 51 * policy.Dollar }, nil},
		{"step-impossible", true, func(s *trace.Series) { s.Spot[1], s.OnDemand = 400*policy.Dollar+1, nil; s.Spot[0] = s.Spot[1] / 2000 }, nil},
		{"on-demand-free", true, func(s *trace.Series) { s.OnDemand[1] = 11 * policy.Dollar }, nil},
		{"before-spot", true, func(s *trace.Series) { s.At[0] = 1_260_000_000 }, nil},
		{"truth-recorded", true, func(s *trace.Series) { s.TrueHazard = []float64{0.1, 0.2, 0.1} }, nil},
		{"nothing-priced", true, func(s *trace.Series) { s.OnDemand = nil }, nil},
		{"above-on-demand", false, func(s *trace.Series) { s.Spot[1] = 2 * policy.Dollar }, nil},
		{"without-on-demand", false, func(s *trace.Series) { s.OnDemand = nil }, nil},
		{"never-offered", false, func(s *trace.Series) { s.Spot = cents(-1, -1, -1); s.OnDemand = cents(1, 2, 1) }, nil},
		{"available-unsold", false, func(s *trace.Series) { s.Spot[1] = policy.NoPrice; s.Available = []int8{1, 1, 1} }, nil},
		{"seed-unknown", false, nil, func(t *trace.Trace) { t.Synthetic = true }},
		{"origin-unknown", false, nil, func(t *trace.Trace) { t.Unmarked = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good()
			if found := Inspect(made(t, "x", at(5, 0), s)); len(found) > 0 {
				t.Fatalf("a good trace: %v", found)
			}
			s = good()
			if c.change != nil {
				c.change(&s)
			}
			tr := made(t, "x", at(5, 0), s)
			if c.whole != nil {
				c.whole(tr)
			}
			found := Inspect(tr)
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Name == c.name })
			if i < 0 || found[i].Failure != c.failure || found[i].Count != 1 {
				t.Fatalf("%+v", found)
			}
			if c.failure != slices.ContainsFunc(Failures(found), func(f Finding) bool { return f.Name == c.name }) {
				t.Error("Failures does not agree")
			}
			if text := FindingsText(found); !strings.Contains(text, c.name) {
				t.Error(text)
			}
		})
	}
}

// A day on which nothing was recorded shows among days with many changes.
func TestSilentDays(t *testing.T) {
	tr := walks(t, "x", 1, 8, 10, time.Hour, 0)
	if found := Inspect(tr); len(found) > 0 {
		t.Fatalf("%+v", found)
	}
	for i := range tr.Series {
		s := &tr.Series[i]
		for j := range s.At {
			if s.At[j] >= at(4, 0) && s.At[j] < at(5, 0) && j > 0 {
				s.Spot[j] = s.Spot[j-1]
			}
		}
	}
	found := Inspect(tr)
	if len(found) != 1 || found[0].Name != "silent-days" || !strings.Contains(found[0].Text, "2026-01-04") || found[0].Failure {
		t.Errorf("%+v", found)
	}
}

// Rackspace publishes no on-demand price. Runs put a modelled one in its place,
// so that such a trace is no failure, and a price level that is off shows.
func TestModelledOnDemand(t *testing.T) {
	class := func(factor float64) *trace.Trace {
		var all []trace.Series
		for _, kind := range []string{"gp.vs1.medium-iad", "gp.vs1.large-iad", "ch.vs1.large-iad"} {
			all = append(all, trace.Series{
				Provider: "rackspace", Region: "us-east-iad-1", Zone: "us-east-iad-1", Type: kind,
				At:   []policy.Time{at(1, 0), at(2, 0)},
				Spot: []policy.Money{policy.Dollars(0.005 * factor), policy.Dollars(0.006 * factor)},
			})
		}
		return made(t, "auction", at(5, 0), all...)
	}
	found := Inspect(class(1))
	if len(found) != 1 || found[0].Name != "on-demand-modelled" || found[0].Failure || found[0].Count != 3 {
		t.Errorf("%+v", found)
	}
	for factor, passed := range map[float64]bool{1: true, 1.2: false, 0.8: false} {
		c, err := Compare(class(factor), class(1), Options{})
		if err != nil || c.Passed != passed {
			t.Errorf("prices × %v: passed is %v, %v", factor, c.Passed, err)
		}
	}
	s := &class(1).Series[0]
	if intervals := PriceIntervals(class(1), s); !(intervals[0].Ratio > 0) {
		t.Errorf("no ratio to draw: %+v", intervals)
	}
}
