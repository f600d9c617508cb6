package check_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/check"
	"github.com/spotter-dev/spotter/.ci/tools/lab/fit"
	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

// depthTrace returns a trace of a type in zones of one region in which the
// launches of each change every ten minutes, of 16 requested.
func depthTrace(t testing.TB, zones map[string][]int32) *trace.Trace {
	t.Helper()
	begin := policy.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))
	var series []trace.Series
	to := begin
	for zone, launched := range zones {
		s := trace.Series{Provider: "gcp", Region: "us-central1", Zone: zone, Type: "a3-highgpu-1g"}
		for i, n := range launched {
			s.At = append(s.At, begin+policy.Time(i)*600_000)
			s.Spot = append(s.Spot, policy.Dollar)
			s.Requested, s.Launched, s.Available = append(s.Requested, 16), append(s.Launched, n), append(s.Available, int8(min(n, 1)))
		}
		to = max(to, begin+policy.Time(len(launched))*600_000)
		series = append(series, s)
	}
	tr, err := trace.New("depth", series)
	if err != nil {
		t.Fatal(err)
	}
	tr.To, tr.WholeTo = to, to
	return tr
}

// The figures of depth by hand: of four zones one never, one seldom and two mostly
// hold some, and two move against each other.
func TestDepthFigures(t *testing.T) {
	never, seldom, mostly, against := []int32{}, []int32{}, []int32{}, []int32{}
	for i := range int32(144) {
		never = append(never, 16*(i/72))
		seldom = append(seldom, min(16, i/36*8))
		mostly = append(mostly, 1+i/12)
		against = append(against, 13-i/12)
	}
	d := measure.Measure(depthTrace(t, map[string][]int32{"us-central1-a": never, "us-central1-b": seldom,
		"us-central1-c": mostly, "us-central1-f": against}), measure.Options{}).Depth
	if d == nil || len(d.Zones) != 4 {
		t.Fatalf("%+v", d)
	}
	want := [3]measure.DepthClass{
		{Markets: 1, None: 0.5, All: 0.5},
		{Markets: 1, None: 0.25, Some: 0.25, All: 0.5},
		{Markets: 2, Some: 1},
	}
	for k, c := range d.Classes {
		if c.Markets != want[k].Markets || math.Abs(c.None-want[k].None)+math.Abs(c.Some-want[k].Some)+math.Abs(c.All-want[k].All) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", measure.DepthClasses[k], c, want[k])
		}
	}
	// In the first zone the looks are 72 zeros and 72 ones; an hour later six
	// pairs of 138 differ: 66 are (0, 0), 6 (0, 1) and 66 (1, 1).
	p, q := 66./138, 72./138
	if hour := (p - float64(p*q)) / math.Sqrt(float64(float64(p*(1-p))*float64(q*(1-q)))); math.Abs(d.Zones[0].Hour-hour) > 1e-9 {
		t.Errorf("correlation with an hour later %v, want %v", d.Zones[0].Hour, hour)
	}
	if d.WithinPairs != 6 || d.AcrossPairs != 0 {
		t.Errorf("%d and %d pairs of zones", d.WithinPairs, d.AcrossPairs)
	}
	opposed := measure.Measure(depthTrace(t, map[string][]int32{"us-central1-c": mostly, "us-central1-f": against}), measure.Options{}).Depth
	if math.Abs(opposed.Within+1) > 1e-9 {
		t.Errorf("two zones that move against each other correlate by %v", opposed.Within)
	}
}

// Zones of a trace are of the classes that they have in the one it is compared
// with, and what differs is missed.
func TestDepthIsJudged(t *testing.T) {
	whole, half := []int32{}, []int32{}
	for i := range int32(1440) {
		whole, half = append(whole, i/7%2*16), append(half, i/7%2*8)
	}
	a := depthTrace(t, map[string][]int32{"us-central1-a": half})
	b := depthTrace(t, map[string][]int32{"us-central1-a": whole})
	for _, c := range []struct {
		a, b   *trace.Trace
		missed []string
	}{
		{b, b, nil},
		{a, b, []string{"depth-some-never", "depth-all-never"}},
		{b, a, []string{"depth-some-seldom", "depth-all-seldom"}},
	} {
		got, err := check.Compare(c.a, c.b, check.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var missed []string
		for _, r := range got.Rows {
			if r.Judged && !r.Pass && strings.HasPrefix(r.Name, "depth-") {
				missed = append(missed, r.Name)
			}
		}
		if !slices.Equal(missed, c.missed) {
			t.Errorf("missed %v, want %v", missed, c.missed)
		}
	}
}

func recordedDepth(t *testing.T) *trace.Trace {
	t.Helper()
	path := policytest.Recording(t, "availability/gcp_h100_depth_2025-10-04_2025-10-13.csv.gz")
	tr, _, err := importer.Import([]string{path}, importer.Options{Type: "a3-highgpu-1g"})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// drawn returns a draw of a law with the markets and the prices of a trace.
func drawn(t testing.TB, tr *trace.Trace, law fit.AvailabilityLaw, seed uint64, alike int) *trace.Trace {
	t.Helper()
	var series []trace.Series
	for i := range tr.Series {
		s := &tr.Series[i]
		series = append(series, trace.Series{
			Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type, At: []policy.Time{tr.From}, Spot: []policy.Money{policy.Dollar},
		})
	}
	plain, err := trace.New("drawn", series)
	if err != nil {
		t.Fatal(err)
	}
	plain.To, plain.WholeTo = tr.To, tr.To
	days := int(math.Ceil(tr.To.Sub(tr.From).Hours() / 24))
	out, err := fit.Join(plain, law, fit.AvailabilityOptions{Seed: seed, From: tr.From, Days: days, Gap: law.Gap, Alike: alike})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A draw that is like the recording of depth agrees with it in every judged figure
// of depth.
func TestDrawnDepth(t *testing.T) {
	tr := recordedDepth(t)
	law, err := fit.Estimate(tr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := check.Compare(drawn(t, tr, law, 1, 64), tr, check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, r := range c.Rows {
		if !r.Judged || !strings.HasPrefix(r.Name, "depth-") {
			continue
		}
		judged++
		if !r.Pass {
			t.Errorf("%s is %.3f, recorded %.3f", r.Name, r.A, r.B)
		}
	}
	if judged != 14 {
		t.Errorf("%d figures of depth were judged", judged)
	}
}

// span returns the part of a trace between two instants.
func span(t testing.TB, tr *trace.Trace, from, to policy.Time) *trace.Trace {
	t.Helper()
	var series []trace.Series
	for i := range tr.Series {
		s := tr.Series[i]
		first, _ := slices.BinarySearch(s.At, from+1)
		last, _ := slices.BinarySearch(s.At, to)
		s.Cut(max(0, first-1), last)
		s.At, s.ProbeGap = slices.Clone(s.At), slices.Clone(s.ProbeGap)
		s.At[0] = max(s.At[0], from)
		series = append(series, s)
	}
	out, err := trace.New(tr.Name, series)
	if err != nil {
		t.Fatal(err)
	}
	out.To, out.WholeTo = to, to
	return out
}

// What a law fitted to the first seven days says of the last three, which it has
// not seen: classes and correlations, as means over many draws. The bounds are wide
// since the days themselves differ; the figures are in the log.
func TestHeldOutDays(t *testing.T) {
	tr := recordedDepth(t)
	cut := tr.From + 7*24*3600_000
	early, late := span(t, tr, tr.From, cut), span(t, tr, cut, tr.To)
	middle := tr.From + (tr.To-tr.From)/2
	halves := [2]*measure.Depth{
		measure.Measure(span(t, tr, tr.From, middle), measure.Options{}).Depth, measure.Measure(span(t, tr, middle, tr.To),
			measure.Options{}).Depth,
	}
	law, err := fit.Estimate(early)
	if err != nil {
		t.Fatal(err)
	}
	fitted := measure.Measure(early, measure.Options{}).Depth
	classes := map[string]int{}
	for _, z := range fitted.Zones {
		classes[z.Market] = z.Class
	}
	by := func(d *measure.Depth) (out [3][4]float64) {
		var n, moving [3]float64
		for _, z := range d.Zones {
			k := classes[z.Market]
			n[k]++
			out[k][0], out[k][1], out[k][2] = out[k][0]+z.None, out[k][1]+z.Some, out[k][2]+z.All
			if max(z.None, z.Some, z.All) < 0.98 && !math.IsNaN(z.Hour) {
				out[k][3] += z.Hour
				moving[k]++
			}
		}
		for k := range out {
			out[k][0], out[k][1], out[k][2], out[k][3] = out[k][0]/n[k], out[k][1]/n[k], out[k][2]/n[k], out[k][3]/moving[k]
		}
		return out
	}
	const draws = 40
	var mean [3][4]float64
	within := 0.0
	for seed := range uint64(draws) {
		d := measure.Measure(drawn(t, late, law, seed+1, 0), measure.Options{}).Depth
		for k, row := range by(d) {
			for i, x := range row {
				if !math.IsNaN(x) {
					mean[k][i] += x / draws
				}
			}
		}
		within += d.Within / draws
	}
	held := measure.Measure(late, measure.Options{}).Depth
	got, first, second := by(held), by(halves[0]), by(halves[1])
	for k, class := range measure.DepthClasses {
		t.Logf("%s: held-out none/some/all/hour %.3f, drawn by the law of the first days %.3f, first days %.3f; halves %.3f and %.3f",
			class, got[k], mean[k], by(fitted)[k], first[k], second[k])
		for i := range 3 {
			if math.Abs(got[k][i]-mean[k][i]) > 0.25 {
				t.Errorf("%s: figure %d is %.3f in the days held out and %.3f by the law", class, i, got[k][i], mean[k][i])
			}
		}
	}
	t.Logf("between zones: held out %.3f, drawn %.3f, halves %.3f and %.3f; an hour later, all: %.3f, halves %.3f and %.3f",
		held.Within, within, halves[0].Within, halves[1].Within, held.Hour, halves[0].Hour, halves[1].Hour)
	if math.Abs(mean[1][3]-got[1][3]) > 0.2 || math.Abs(mean[2][3]-got[2][3]) > 0.2 {
		t.Errorf("an hour later: %.3f and %.3f by the law, %.3f and %.3f in the days held out", mean[1][3], mean[2][3], got[1][3], got[2][3])
	}
}
