package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	prices "github.com/spotter-dev/spotter/scenarios/trace/measure"
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

func row(t testing.TB, c *Comparison, name string) *Row {
	t.Helper()
	i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no figure %s", name)
	}
	return &c.Rows[i]
}

// A trace is like itself: every distance is 0, and everything judged passes.
func TestCompareWithItself(t *testing.T) {
	tr := walks(t, "x", 1, 8, 30, 6*time.Hour, 0.4)
	c, err := Compare(tr, tr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Passed || c.Judged < 7 {
		t.Errorf("passed %v, %d judged", c.Passed, c.Judged)
	}
	for _, r := range c.Rows {
		if r.Distance != 0 && !math.IsNaN(r.Distance) {
			t.Errorf("%s is %v away", r.Name, r.Distance)
		}
		if r.Judged && r.Why == "" {
			t.Errorf("nothing defends the tolerance of %s", r.Name)
		}
	}
}

// Each judged figure of prices moves beyond its tolerance when what it measures
// does, and only then.
func TestCompareFindsFaults(t *testing.T) {
	base := walks(t, "base", 1, 8, 60, 6*time.Hour, 0.4)
	alike, err := Compare(walks(t, "alike", 2, 8, 60, 6*time.Hour, 0.4), base, Options{})
	if err != nil || !alike.Passed {
		t.Fatalf("another seed: %v\n%s", err, alike.Summary())
	}
	still := walks(t, "still", 3, 8, 60, 6*time.Hour, 0.4)
	for i := range still.Series {
		if s := &still.Series[i]; i%6 == 0 {
			s.At, s.Spot, s.OnDemand = s.At[:1], s.Spot[:1], s.OnDemand[:1]
		}
	}
	dear := walks(t, "dear", 3, 8, 60, 6*time.Hour, 0.4)
	for i := range dear.Series {
		for j := range dear.Series[i].Spot {
			dear.Series[i].Spot[j] = dear.Series[i].Spot[j] * 5 / 4
		}
	}
	// Series are by zone and then by type, of which there are eight.
	together := walks(t, "together", 3, 8, 60, 6*time.Hour, 0.4)
	for i := range together.Series {
		one := &together.Series[i%8]
		together.Series[i].At, together.Series[i].Spot, together.Series[i].OnDemand = one.At, one.Spot, one.OnDemand
	}
	for _, c := range []struct {
		name   string
		tr     *trace.Trace
		missed []string
	}{
		{"too often", walks(t, "often", 3, 8, 60, 5*time.Hour, 0.4), []string{"change-rate-p50"}},
		{"no momentum", walks(t, "plain", 3, 8, 60, 6*time.Hour, 0), []string{"autocorrelation"}},
		{"still", still, []string{"unmoved"}},
		{"together", together, []string{"zone-correlation"}},
		{"too dear", dear, []string{"ratio-p5", "ratio-p50", "ratio-p95"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Compare(c.tr, base, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.missed {
				if r := row(t, got, name); r.Pass || !r.Judged || got.Passed {
					t.Errorf("%s: %+v", name, r)
				}
			}
			if !strings.Contains(got.Summary(), c.missed[0]) {
				t.Error(got.Summary())
			}
		})
	}
}

func TestTolerances(t *testing.T) {
	a, b := walks(t, "a", 1, 8, 30, 6*time.Hour, 0.4), walks(t, "b", 1, 8, 30, 5*time.Hour, 0.4)
	for _, c := range []struct {
		given  map[string]float64
		figure string
		judged bool
		pass   bool
		kind   Kind
	}{
		{nil, "change-rate-p50", true, false, Relative},
		{map[string]float64{"change-rate": 0.5}, "change-rate-p50", true, true, Relative},
		{map[string]float64{"change-rate-p50": 0.5}, "change-rate-p50", true, true, Relative},
		{nil, "gap-ks", false, true, KS},
		{map[string]float64{"gap-ks": 0.01}, "gap-ks", true, false, KS},
		{map[string]float64{"gap-ks": 1}, "gap-ks", true, true, KS},
		{map[string]float64{"same-sign": 0.001}, "same-sign", true, false, Absolute},
	} {
		got, err := Compare(a, b, Options{Tolerances: c.given})
		if err != nil {
			t.Fatal(err)
		}
		if r := row(t, got, c.figure); r.Judged != c.judged || r.Pass != c.pass || r.Kind != c.kind {
			t.Errorf("%v: %+v", c.given, r)
		}
	}
	for _, given := range []map[string]float64{{"ratios": 0.1}, {"ratio": -1}, {"ratio": math.NaN()}, {"ratio": math.Inf(1)}} {
		if _, err := Compare(a, b, Options{Tolerances: given}); !errors.Is(err, ErrTolerance) {
			t.Errorf("%v: %v", given, err)
		}
	}
	for _, tol := range DefaultTolerances() {
		if tol.Why == "" || tol.Kind == Shown || !(tol.Value > 0) {
			t.Errorf("%+v", tol)
		}
	}
}

// Two markets are too few for any figure but the ratio to be judged; where
// prices are modelled, even that is not.
func TestNothingJudged(t *testing.T) {
	tr := made(t, "x", at(9, 0), trace.Series{
		Provider: "p", Region: "r", Zone: "z", Type: "t", At: []policy.Time{at(1, 0)}, Spot: cents(50), OnDemand: cents(100),
	})
	c, err := Compare(tr, tr, Options{})
	if err != nil || c.Judged != 3 || !c.Passed {
		t.Fatalf("%v %+v", err, c)
	}
	tr.Meta = map[string]string{trace.MetaModelled: "prices"}
	if _, err := Compare(tr, tr, Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("two traces without figures: %v", err)
	}
	bare := made(t, "bare", at(9, 0), trace.Series{
		Provider: "p", Region: "r", Zone: "z", Type: "t", At: []policy.Time{at(1, 0)}, Spot: cents(50),
	})
	c, err = Compare(bare, bare, Options{})
	if err != nil || c.Judged != 0 || c.Passed || !strings.Contains(c.Summary(), "no pass") {
		t.Errorf("%v %+v", err, c)
	}
}

func TestDistance(t *testing.T) {
	value := func(v float64) *Figure { return &Figure{Value: v} }
	for _, c := range []struct {
		a, b float64
		kind Kind
		want float64
	}{
		{1.1, 1, Relative, 0.1}, {0.9, 1, Relative, 0.1}, {0, 0, Relative, 0}, {1, 0, Relative, math.Inf(1)},
		{math.NaN(), 0, Relative, math.NaN()}, {-0.2, -0.4, Relative, 0.5},
		{-0.2, 0.1, Absolute, 0.3}, {1, 2, Shown, math.NaN()},
	} {
		got := distance(value(c.a), value(c.b), c.kind)
		if !(math.Abs(got-c.want) < 1e-12 || got == c.want || math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v, %v by %v: %v", c.a, c.b, c.kind, got)
		}
	}
}

// slowKS compares the distribution functions at every value.
func slowKS(a, b []float64) float64 {
	most := 0.0
	share := func(list []float64, x float64) float64 {
		n := 0
		for _, v := range list {
			if v <= x {
				n++
			}
		}
		return float64(n) / float64(len(list))
	}
	for _, x := range slices.Concat(a, b) {
		most = max(most, math.Abs(share(a, x)-share(b, x)))
	}
	return most
}

func TestKS(t *testing.T) {
	draw := rapid.SliceOfN(rapid.Float64Range(0, 4), 1, 12)
	rapid.Check(t, func(r *rapid.T) {
		round := func(list []float64) []float64 { // ties find bugs
			for i := range list {
				list[i] = math.Round(list[i])
			}
			slices.Sort(list)
			return list
		}
		a, b := round(draw.Draw(r, "a")), round(draw.Draw(r, "b"))
		wa, wb := unweighted(a), unweighted(b)
		if got, want := ks(&wa, &wb), slowKS(a, b); math.Abs(got-want) > 1e-12 {
			r.Fatalf("%v and %v: %v instead of %v", a, b, got, want)
		}
	})
}

// TestOutputs: outputs name what they contain, and no output contains NaN.
func TestOutputs(t *testing.T) {
	a, b := walks(t, "left", 1, 8, 30, 6*time.Hour, 0.4), walks(t, "right", 2, 8, 30, 5*time.Hour, 0.4)
	b.Synthetic = true
	c, err := Compare(a, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var table, markdown, stats, statsMarkdown bytes.Buffer
	for _, err := range []error{
		c.WriteTable(&table), c.WriteMarkdown(&markdown), Report{c.A}.WriteTable(&stats), Report{c.A}.WriteMarkdown(&statsMarkdown),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{table.String(), markdown.String()} {
		for _, want := range []string{"left (recorded)", "right (synthetic)", "change-rate-p50", "MISSED", "the halves of", "missed: "} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	for _, text := range []string{stats.String(), statsMarkdown.String()} {
		if !strings.Contains(text, "zone-correlation") || strings.Contains(text, "ratio-ks") {
			t.Error(text)
		}
	}
	for _, text := range []string{table.String(), markdown.String(), stats.String(), statsMarkdown.String()} {
		if strings.Contains(text, "NaN") {
			t.Errorf("NaN in\n%s", text)
		}
	}
	for _, v := range []any{c, Report{c.A}} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) || !bytes.Contains(data, []byte("change-rate-p50")) {
			t.Errorf("%s", data)
		}
	}
}

func TestCoarser(t *testing.T) {
	for _, c := range []struct {
		a, b time.Duration
		want bool
	}{{0, 0, false}, {time.Hour, 0, true}, {0, time.Hour, false}, {6 * time.Hour, 4 * time.Hour, false}, {6 * time.Hour,
		3 * time.Hour, true}, {6 * time.Hour, 7 * time.Hour, false}} {
		if got := coarser(&measure.Sampling{Interval: c.a}, &measure.Sampling{Interval: c.b}); got != c.want {
			t.Errorf("%v coarser than %v: %v", c.a, c.b, got)
		}
	}
}

// Where most markets stand still the mean rate is judged, else the median.
func TestJudgedRate(t *testing.T) {
	for rate, want := range map[float64]string{0: "change-rate-mean", 2: "change-rate-p50"} {
		s := &measure.Statistics{Statistics: &prices.Statistics{Prices: measure.Prices{Rate: [3]float64{0, rate, 3}}}}
		var judged []string
		for _, f := range Figures(s) {
			if f.Tolerance == tolRate {
				judged = append(judged, f.Name)
			}
		}
		if !slices.Equal(judged, []string{want}) {
			t.Errorf("median %v: %v are judged", rate, judged)
		}
	}
}

// A distribution function rises by the share of each value.
func TestCurve(t *testing.T) {
	c := CurveOf(measure.Sample{Value: []float64{1, 2, 3}, Hours: []float64{2, 6, 2}, Total: 10})
	if !slices.Equal(c.X, []float64{1, 2, 3}) || !slices.Equal(c.Y, []float64{0.2, 0.8, 1}) {
		t.Errorf("%+v", c)
	}
}

// What lists every change is seen as what was fetched four times a day was.
func TestSampling(t *testing.T) {
	fine := walks(t, "fine", 1, 8, 30, 2*time.Hour, 0.4)
	var series []trace.Series
	for i := range fine.Series {
		s := &fine.Series[i]
		seen := trace.Series{Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type}
		for look, j := fine.From, 0; look <= fine.To; look = look.Add(6 * time.Hour) {
			for j < len(s.At) && s.At[j] <= look {
				j++
			}
			seen.At, seen.Spot, seen.OnDemand = append(seen.At, look), append(seen.Spot, s.Spot[j-1]), append(seen.OnDemand, s.OnDemand[j-1])
		}
		series = append(series, seen)
	}
	coarse := made(t, "coarse", fine.To, series...)
	for _, pair := range [][2]*trace.Trace{{fine, coarse}, {coarse, fine}} {
		c, err := Compare(pair[0], pair[1], Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Rows {
			if r.Distance > 1e-12 {
				t.Errorf("%s against %s: %s is %v away", pair[0].Name, pair[1].Name, r.Name, r.Distance)
			}
		}
		if len(c.Notes) == 0 || !strings.Contains(c.Notes[0], "fine are seen as coarse") {
			t.Errorf("notes: %v", c.Notes)
		}
	}
}
