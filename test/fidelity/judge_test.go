package fidelity

import (
	"math"
	"testing"
	"time"
)

// TestJudge: what is within a bar meets it, what may be is open, what is beyond fails
// unless it is known, and then by no more than is known.
func TestJudge(t *testing.T) {
	relative := bar{Relative: .02, Known: map[string]gap{"old": {Most: .1}}}
	sampling := bar{Known: map[string]gap{"old": {Most: 12}}}
	for _, x := range []struct {
		bar             bar
		day             string
		difference, err float64
		want            standing
	}{
		{relative, "new", 1.9, 0, met},
		{relative, "new", -1.9, 50, met},
		{relative, "new", -2.1, .2, open},
		{relative, "new", 2.1, .05, failing},
		{relative, "old", 9, 1, missed},
		{relative, "old", -11.5, 1, failing},
		{sampling, "new", 3, 3.5, met},
		{sampling, "new", 3, 2.5, failing},
		{sampling, "old", -12, 1, missed},
		{sampling, "old", -14, 1, failing},
	} {
		c := comparison{real: sample{100}, difference: x.difference, err: x.err}
		if got := x.bar.judge(x.day, &c); got != x.want {
			t.Errorf("a difference of %v ± %v on a day that is %s, bar %v: %v, want %v", x.difference, x.err, x.day, x.bar.Relative, got, x.want)
		}
	}
}

// TestCompareFigure: weathers are compared each with its own draws, so that what differs
// between them does not widen the interval; of few weathers the draws tell it too.
func TestCompareFigure(t *testing.T) {
	// Differences 1, 2 and 1: s² = 1/3 with two degrees of freedom, in addition to draws
	// with s² = 0, 2 and 0 with one each.
	c := compareFigure("x", []float64{10, 20, 30}, [][]float64{{11, 11}, {21, 23}, {31, 31}})
	if want := 4.0 / 3; math.Abs(c.difference-want) > 1e-12 {
		t.Errorf("the difference is %v, want %v", c.difference, want)
	}
	if want := 1.96 * math.Sqrt((2.0/3+2)/5/3*1.5); math.Abs(c.err-want) > 1e-9 {
		t.Errorf("its error is %v, want %v", c.err, want)
	}
	// One weather, draws 9 and 11: s² = 2, and one real run compared with the mean of two.
	c = compareFigure("x", []float64{10}, [][]float64{{9, 11}})
	if want := 3 * math.Sqrt(2*1.5); c.difference != 0 || math.Abs(c.err-want) > 1e-9 {
		t.Errorf("of one weather: %v ± %v, want 0 ± %v", c.difference, c.err, want)
	}
	// Eight weathers speak for themselves: differences 1 and −1, four times each, whatever
	// the draws spread. s² = 8/7, t = 2.365.
	var real []float64
	var simulated [][]float64
	for i := range 8 {
		real = append(real, float64(100*i))
		simulated = append(simulated, []float64{float64(100*i+2*(i%2)-1) - 50, float64(100*i+2*(i%2)-1) + 50})
	}
	c = compareFigure("x", real, simulated)
	if want := 2.365 * math.Sqrt(8.0/7/8); math.Abs(c.difference) > 1e-9 || math.Abs(c.err-want) > 1e-9 {
		t.Errorf("of eight weathers: %v ± %v, want 0 ± %v", c.difference, c.err, want)
	}
}

// TestFigures counts what a record made by hand says.
func TestFigures(t *testing.T) {
	s := load(t, "growth")
	minute := time.Minute.Milliseconds()
	shrunk := s.shrinks().Milliseconds()
	const onDemand, spot = "m5.large/us-east-1a/on-demand", "m5.large/us-east-1b/spot"
	r := &record{
		Nodes: []nodeLife{
			{Market: onDemand, From: minute},
			{Market: spot, From: minute, Until: 3 * minute, Ended: byReclaim},
			{Market: spot, From: 2 * minute, Until: shrunk + 90_000, Ended: byConsolidation},
			{Market: onDemand, From: 2 * minute, Until: 2*minute + 1000, Ended: byConsolidation}, // billed for a minute
		},
		Pods: []podLife{
			{Workload: "a", Created: 1000, Ready: 11_000},
			{Workload: "a", Created: 1000, Ready: 21_000, Node: 1, Gone: 3 * minute},
			{Workload: "a", Created: 2000, Node: -1},
			{Workload: "b", Created: 2000, Ready: 33_000, Node: 2},
		},
		Evictions: []eviction{{1, byReclaim}, {2, byConsolidation}, {3, byConsolidation}, {4, byOther}},
	}
	all, err := s.figures(r)
	if err != nil {
		t.Fatal(err)
	}
	end := s.bound.Duration
	spotTime := 2*time.Minute + s.shrinks() + 90*time.Second - 2*time.Minute
	price := map[string]float64{onDemand: s.priceAt(onDemand, 1), spot: s.priceAt(spot, 1)}
	want := map[string]float64{
		figureBill:                          price[onDemand]*(end.Hours()-1.0/60+1.0/60) + price[spot]*spotTime.Hours(),
		"node-hours":                        (end - time.Minute + spotTime + time.Second).Hours(),
		"node-hours on spot":                spotTime.Hours(),
		"nodes launched":                    4,
		"nodes at the peak":                 4,
		"nodes at the end":                  1,
		"cost of the nodes at the end, $/h": price[onDemand],
		"scale-down begins after, s":        90,
		"nodes taken by the provider":       1,
		figureEvictions:                     2,
		figureReclaimed:                     1,
		"other evictions":                   1,
		"time to ready, median, s":          20,
		"time to ready, 95th percentile, s": 31,
		"pods never ready":                  1,
	}
	for _, f := range all {
		if math.Abs(f.value-want[f.name]) > 2e-6 {
			t.Errorf("%s: %v, want %v", f.name, f.value, want[f.name])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d figures, want %d", len(all), len(want))
	}
	if got, want := r.placement(), "a: 1 a on 1 nodes; b: 1 b on 1 nodes"; got != want {
		t.Errorf("placement %q, want %q", got, want)
	}
}
