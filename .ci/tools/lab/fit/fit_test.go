package fit

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/check"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// recorded imports a recording of prices.
func recorded(t *testing.T, file string) *trace.Trace {
	t.Helper()
	tr, _, err := importer.Import([]string{filepath.Join(policytest.Recording(t, "prices"), file)}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func fit(t *testing.T, tr *trace.Trace) *Fitted {
	t.Helper()
	f, err := Fit(tr)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// like draws what the fit says.
func like(t *testing.T, f *Fitted, seed uint64) *trace.Trace {
	t.Helper()
	return generated(t, generate.Config{Seed: f.Seed(seed), From: f.From, To: f.To, Markets: f.Markets, Law: f.Law})
}

// passes compares a with b by the tolerances of trace check.
func passes(t *testing.T, a, b *trace.Trace) (missed []string) {
	t.Helper()
	c, err := check.Compare(a, b, check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Rows {
		if r.Judged && !r.Pass {
			missed = append(missed, r.Name)
		}
	}
	return missed
}

// What is drawn like a recording passes the check against it. The auction of
// 2016 has fifty markets, of which two stand above on-demand all the time and
// make its 95th percentile: it is fitted, but not held to that.
func TestFitRecordings(t *testing.T) {
	for file, seeds := range map[string]uint64{
		"aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz": 2,
		"aws_api_us-east-1_2021-03-02_2021-04-30.csv.gz": 1,
		"aws_skypilot_us-east-2_2023-11_2024-02.csv.gz":  1,
	} {
		tr := recorded(t, file)
		f := fit(t, tr)
		if f.Law.Kind != generate.Walk || len(f.Left) > 0 {
			t.Errorf("%s: kind %s, %d markets left", file, f.Law.Kind, len(f.Left))
		}
		for seed := uint64(1); seed <= seeds; seed++ {
			if missed := passes(t, like(t, f, seed), tr); len(missed) > 0 {
				t.Errorf("%s, seed %d: missed %v", file, seed, missed)
			}
		}
	}
}

// Presets are held to what --preset promises: drawn with as many markets and
// days as the recording they are named after has, at least four of five seeds
// pass the check against it.
func TestPresetsLikeRecordings(t *testing.T) {
	for name, file := range map[string]string{
		"aws-2021":       "aws_api_us-east-1_2021-03-02_2021-04-30.csv.gz",
		"aws-quiet-2020": "aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz",
		"aws-2024":       "aws_skypilot_us-east-2_2023-11_2024-02.csv.gz",
	} {
		tr := recorded(t, file)
		days := int((tr.To - tr.From + day - 1) / day)
		missed := map[uint64][]string{}
		for seed := uint64(1); seed <= 5; seed++ {
			c := byPreset(t, name, seed, len(tr.Series), days)
			if names := passes(t, generated(t, c), tr); len(names) > 0 {
				missed[seed] = names
			}
		}
		if len(missed) > 1 {
			t.Errorf("%s: seeds missed %v", name, missed)
		}
	}
}

// A law that is fitted to a draw of a known law has its figures again, also
// where the draw was looked at four times a day only, which hides a part of
// the changes and mixes neighbouring steps. The sizes of single draws of ninety
// markets scatter by a tenth about those of their law, so it is the mean of
// some draws that is compared; what is left is the scatter of the one draw that
// the fit saw.
func TestFitRecovers(t *testing.T) {
	c := byPreset(t, "aws-2021", 11, 90, 30)
	truth := generated(t, c)
	want := measure.Measure(truth, nil).Prices
	views := map[string]*trace.Trace{"four looks a day": polled(t, truth), "every change": truth}
	for name, tr := range views {
		law := fit(t, tr).Law
		var mean [7]float64
		const draws = 6
		for seed := uint64(1); seed <= draws; seed++ {
			// Unseen, the draws must be like the truth, of which the fit saw less.
			s := measure.Measure(generated(t, generate.Config{Seed: seed, From: c.From, To: c.To, Markets: c.Markets,
				Law: law}), nil).Prices
			for i, v := range [...]float64{s.RateMean, s.Unmoved, s.Ratio[3], s.Ratio[5], s.Autocorrelation, s.ZoneCorrelation, s.StepMedian} {
				mean[i] += v / draws
			}
		}
		for i, x := range [...]struct {
			name      string
			want, off float64
		}{
			{"changes a day", want.RateMean, 0.1 * want.RateMean},
			{"unmoved", want.Unmoved, 0.05},
			{"ratio p50", want.Ratio[3], 0.05 * want.Ratio[3]},
			{"ratio p95", want.Ratio[5], 0.05 * want.Ratio[5]},
			{"autocorrelation", want.Autocorrelation, 0.1},
			{"zones", want.ZoneCorrelation, 0.05},
			{"median step", want.StepMedian, 0.2 * want.StepMedian},
		} {
			if !(math.Abs(mean[i]-x.want) <= x.off) {
				t.Errorf("%s: %s is %.4f, want %.4f ± %.4f", name, x.name, mean[i], x.want, x.off)
			}
		}
	}
}

// A law that is fitted for other, cheaper markets than those of a trace, whose
// prices hide most moves in the unit, has the rate of the trace on them.
func TestFitForOtherMarkets(t *testing.T) {
	c := byPreset(t, "aws-2021", 3, 60, 20)
	for i := range c.Law.Still {
		c.Law.Still[i] = 0
	}
	c.Law.Activity = constant(1)
	truth := generated(t, c)
	cheap := slices.Clone(c.Markets)
	for i := range cheap {
		cheap[i].OnDemand = max(4000, cheap[i].OnDemand/20)
	}
	rate := func(markets []generate.Market, law generate.Law) float64 {
		const draws = 8
		mean := 0.0
		for seed := uint64(1); seed <= draws; seed++ {
			d := generate.Config{Seed: seed, From: c.From, To: c.To, Markets: markets, Law: law}
			mean += measure.Measure(generated(t, d), nil).Prices.RateMean / draws
		}
		return mean
	}
	want := measure.Measure(truth, nil).Prices.RateMean
	fitted, err := Of(truth, cheap)
	if err != nil {
		t.Fatal(err)
	}
	if got := rate(cheap, fitted.Law); !(math.Abs(got/want-1) < 0.2) {
		t.Errorf("%.3f changes a day, want about %.3f", got, want)
	}
	if got := rate(cheap, fit(t, truth).Law); got/want > 0.8 {
		t.Errorf("a fit for the markets of the trace has %.3f changes a day on cheap ones, of %.3f", got, want)
	}
}

// A law goes above on-demand only where its trace did.
func TestFitBound(t *testing.T) {
	for name, x := range map[string]struct {
		last  policy.Money
		above bool
	}{"at on-demand": {96_000, false}, "above on-demand": {96_100, true}} {
		s := trace.Series{Provider: "aws", Region: "us-east-1", Zone: "us-east-1a", Type: "m5.large"}
		for i, p := range []policy.Money{95_000, 95_500, x.last, x.last - 500} {
			s.At = append(s.At, begin+policy.Time(i)*7*hour)
			s.Spot, s.OnDemand = append(s.Spot, p), append(s.OnDemand, 96_000)
		}
		tr, err := trace.New(name, []trace.Series{s})
		if err != nil {
			t.Fatal(err)
		}
		tr.To = begin + 20*day
		if most := fit(t, tr).Law.Most; most > 1 != x.above {
			t.Errorf("%s: the law goes up to %v", name, most)
		}
	}
}

// polled returns tr as a fetcher sees it that looks every six hours.
func polled(t *testing.T, tr *trace.Trace) *trace.Trace {
	t.Helper()
	var series []trace.Series
	for i := range tr.Series {
		s := tr.Series[i]
		w := s
		w.At, w.Spot, w.OnDemand = nil, nil, nil
		j := 0
		for at := tr.From; at < tr.To; at += 6 * hour {
			for j < len(s.At) && s.At[j] <= at {
				j++
			}
			if j > 0 {
				w.At, w.Spot, w.OnDemand = append(w.At, at), append(w.Spot, s.Spot[j-1]), append(w.OnDemand, s.OnDemand[j-1])
			}
		}
		series = append(series, w)
	}
	out, err := trace.New("polled", series)
	if err != nil {
		t.Fatal(err)
	}
	out.From, out.To = tr.From, tr.To
	if measure.SamplingOf(out).Interval != 6*time.Hour {
		t.Fatalf("the sampling is taken to be %v", measure.SamplingOf(out).Interval)
	}
	return out
}

// A fit finds of which kind a trace is, and in which units its prices are.
func TestFitKinds(t *testing.T) {
	for name, size := range map[string][2]int{"aws-auction-2016": {8, 6}, "gcp-2024": {120, 500}, "aws-2023": {12, 15}} {
		c := byPreset(t, name, 2, size[0], size[1])
		f, err := newFitter(generated(t, c))
		if err != nil {
			t.Fatal(err)
		}
		if f.Law.Kind != c.Law.Kind {
			t.Errorf("%s: the fit takes it for %s", name, f.Law.Kind)
		}
		if f.Law.Unit != c.Law.Unit {
			t.Errorf("%s: unit %v, want %v", name, f.Law.Unit, c.Law.Unit)
		}
	}
}

// Whatever a trace holds, the fit gives a law that can be drawn from, or an
// error that says what is missing.
func TestFitOdd(t *testing.T) {
	begin := begin
	market := func(zone string, prices ...policy.Money) trace.Series {
		s := trace.Series{Provider: "aws", Region: "us-east-1", Zone: zone, Type: "m5.large"}
		for i, p := range prices {
			s.At = append(s.At, begin+policy.Time(i)*7*hour)
			s.Spot = append(s.Spot, p)
		}
		return s
	}
	none := policy.NoPrice
	for name, x := range map[string]struct {
		series []trace.Series
		days   policy.Time
		want   string
	}{
		"one that never moves":  {[]trace.Series{market("a", 30_000)}, 20, ""},
		"one change":            {[]trace.Series{market("a", 30_000, 31_000)}, 20, ""},
		"two, gone for a while": {[]trace.Series{market("a", 30_000, none, 31_000, 31_500, 31_000), market("b", 29_000)}, 20, ""},
		"above on-demand":       {[]trace.Series{market("a", 300_000, 310_000, 320_000, 290_000)}, 20, ""},
		"never offered":         {[]trace.Series{market("a", none)}, 20, "no market has a price"},
		"a day":                 {[]trace.Series{market("a", 30_000, 31_000)}, 1, "less than two days"},
		"unknown type": {[]trace.Series{{Provider: "aws", Region: "us-east-1", Zone: "a", Type: "z9.huge",
			At: []policy.Time{begin}, Spot: []policy.Money{1}}}, 20, "no market has a price"},
	} {
		tr, err := trace.New(name, x.series)
		if err != nil {
			t.Fatal(err)
		}
		tr.To = begin + x.days*day
		f, err := Fit(tr)
		if x.want != "" {
			if !errors.Is(err, trace.ErrEmpty) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		g := like(t, f, 1)
		if len(g.Series) != len(x.series) || g.From != begin {
			t.Errorf("%s: %d markets from %v", name, len(g.Series), g.From)
		}
	}
}

// Equal traces give equal laws.
func TestFitIsAFunction(t *testing.T) {
	tr := generated(t, byPreset(t, "aws-2021", 5, 20, 12))
	a, b := fit(t, tr), fit(t, tr)
	x, y := like(t, a, 3), like(t, b, 3)
	if x.Digest != y.Digest || x.Meta["law"] != y.Meta["law"] {
		t.Errorf("%x, %x", x.Digest[:8], y.Digest[:8])
	}
}

// More markets than a trace has come from the catalog, and change none.
func TestMore(t *testing.T) {
	f := fit(t, generated(t, byPreset(t, "aws-2021", 5, 10, 5)))
	few, err := f.More(4)
	if err != nil || len(few) != 4 {
		t.Fatal(len(few), err)
	}
	many, err := f.More(40)
	if err != nil || len(many) != 40 {
		t.Fatal(len(many), err)
	}
	names := map[string]bool{}
	for i := range many {
		names[many[i].Name()] = true
	}
	if len(names) != 40 || many[9] != f.Markets[9] {
		t.Errorf("%d names", len(names))
	}
	if _, err := f.More(10_000_000); !errors.Is(err, generate.ErrMarkets) {
		t.Error(err)
	}
}
