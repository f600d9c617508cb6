package fidelity

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/test/golden"
)

// TestDrawDay: a seed draws one day, another seed another; each day binds and has pods, and
// together the days have all features.
func TestDrawDay(t *testing.T) {
	features := map[string]bool{
		"kind: PodDisruptionBudget": false, "priorityClassName": false, "do-not-disrupt": false, "tolerations": false, "taints": false,
		"DoNotSchedule": false, "ScheduleAnyway": false, "podAntiAffinity": false, "podAffinity": false, "nodeAffinity": false, "nodeSelector": false,
		"Balanced": false, "WhenEmpty\n": false, "WhenEmptyOrUnderutilized": false, "reasons": false, "limits": false, "weight: 50": false,
		"expireAfter: 150s": false, "kind: squeeze": false, "kind: price-ramp": false, "kind: on-demand-refused": false, "minAvailable": false,
		"- spot": false, "- on-demand": false, "topology.kubernetes.io/zone": false,
	}
	seen := map[string]uint64{}
	for seed := range uint64(200) {
		text, err := drawDay(seed, 14)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := drawDay(seed, 14); !bytes.Equal(text, again) {
			t.Fatalf("seed %d draws two days", seed)
		}
		if other, twice := seen[string(text)]; twice {
			t.Errorf("seeds %d and %d draw one day", other, seed)
		}
		seen[string(text)] = seed
		for f := range features {
			features[f] = features[f] || strings.Contains(string(text), f)
		}
		if seed >= 25 {
			continue // to bind a day takes longer than to draw it
		}
		s := parse(t, "random", fmt.Sprintf("day %d", seed), text)
		if n := len(s.bound.Workloads); n < 2 || n > 5 {
			t.Errorf("day %d has %d workloads", seed, n)
		}
		if len(s.markets()) == 0 {
			t.Errorf("day %d may buy nothing", seed)
		}
		for i := range s.bound.Workloads {
			for _, step := range s.bound.Workloads[i].Schedule[1:] {
				if at := step.At.Sub(s.bound.Start); at <= 0 || at >= s.bound.Duration || step.Replicas < 1 || step.Replicas > 24 {
					t.Errorf("day %d: %d replicas of %s at %v", seed, step.Replicas, s.bound.Workloads[i].Name, at)
				}
			}
		}
	}
	for f, there := range features {
		if !there {
			t.Errorf("no day has %q", f)
		}
	}
}

// TestDrawDayVersion: Balanced came with 1.14, and the day states its version.
func TestDrawDayVersion(t *testing.T) {
	for v := scenarios.OldestKarpenter; v <= scenarios.NewestKarpenter; v++ {
		balanced := false
		for seed := range uint64(15) {
			text, err := drawDay(seed, v)
			if err != nil {
				t.Fatal(err)
			}
			balanced = balanced || bytes.Contains(text, []byte("Balanced"))
			if seed > 0 {
				continue
			}
			if s := parse(t, "random", "day", text); s.bound.Karpenter != v {
				t.Fatalf("day %d for Karpenter %v is bound to %v", seed, v, s.bound.Karpenter)
			}
		}
		if balanced != (v >= 14) {
			t.Errorf("Karpenter %v: Balanced is drawn: %v", v, balanced)
		}
	}
}

// TestTrajectory: the distance between two runs is the area between their numbers of nodes.
func TestTrajectory(t *testing.T) {
	const hour = 3_600_000
	a := &record{Nodes: []nodeLife{{From: 1 * hour}, {From: 2 * hour, Until: 4 * hour}}}
	b := &record{Nodes: []nodeLife{{From: 2 * hour, Until: 5 * hour}, {From: 5 * hour}, {From: 2 * hour, Until: 3 * hour}}}
	// a: 0 1 2 2 1 1 nodes by hour, b: 0 0 2 1 1 1.
	if got := trajectory(a, b, 6*hour); got != 2 || trajectory(b, a, 6*hour) != 2 || trajectory(a, a, 6*hour) != 0 {
		t.Errorf("%v and %v node-hours apart, want 2; from itself %v", got, trajectory(b, a, 6*hour), trajectory(a, a, 6*hour))
	}
	if got := b.nodeHours(6 * hour); got != 5 {
		t.Errorf("%v node-hours, want 5", got)
	}
}

// TestMeanReady: pods that wait at the end count until then, others that never were ready do
// not.
func TestMeanReady(t *testing.T) {
	r := &record{Pods: []podLife{{Created: 1000, Ready: 3000}, {Created: 2000}, {Created: 5000, Gone: 6000},
		{Created: 1000, Ready: 2000, Gone: 9000}}}
	if got, want := r.meanReady(8000), 3.0; got != want {
		t.Errorf("%v s, want %v", got, want)
	}
}

// drawn returns a day of a bill, in which other figures are those of nothing.
func drawn(real, simulated []float64, trajectory drawnFigure) *drawnDay {
	d := &drawnDay{Karpenter: "1.14"}
	for _, name := range []string{drawnBill, drawnHours, drawnEvictions, drawnReady} {
		d.Figures = append(d.Figures, drawnFigure{name, real, simulated})
	}
	trajectory.Name = drawnTrajectory
	d.Figures = append(d.Figures, trajectory)
	return d
}

// TestTotals sums two days up by hand.
func TestTotals(t *testing.T) {
	days := []*drawnDay{
		drawn([]float64{10, 12}, []float64{11, 15}, drawnFigure{Real: []float64{1}, Simulated: []float64{1, 3}}),
		drawn([]float64{30, 26}, []float64{27, 29}, drawnFigure{Real: []float64{2}, Simulated: []float64{3, 3}}),
	}
	all := totals(days)
	bill, course := all[0], all[len(all)-1]
	// Means of 13 for 11 and of 28 for 28: 2 of 39. The residuals are ±(2 − 11 × 2/39).
	e := 2 - 11*2.0/39
	if want := (ratio{2.0 / 39, 12.706 * math.Sqrt(2*e*e/1/2) / 19.5}); math.Abs(bill.err.value-want.value) > 1e-12 ||
		math.Abs(bill.err.err-want.err) > 1e-9 {
		t.Errorf("the bill is off by %v, want %v", bill.err, want)
	}
	// Runs apart: (1+1+5+3)/4 = 2.5 and (3+1+1+3)/4 = 2, of real ones 2 and 4.
	for name, x := range map[string][2]float64{
		"simulated": {bill.simulated.value, 4.5 / 39}, "real": {bill.real.value, 6.0 / 39}, "beyond": {bill.beyond.value, -1.5 / 39},
		"trajectory": {course.simulated.value, 5.0 / 39}, "real trajectory": {course.real.value,
			3.0 / 39}, "trajectory beyond": {course.beyond.value, 2.0 / 39},
	} {
		if math.Abs(x[0]-x[1]) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	// 12 is within 11 and 15; 30 and 26 are outside 27 and 29.
	if bill.covered != 1 || bill.runs != 4 {
		t.Errorf("%d of %d real runs are covered, want 1 of 4", bill.covered, bill.runs)
	}
	if one := totals(days[:1])[0]; !math.IsInf(one.err.err, 1) || one.err.percent(true) != "+18.2%" {
		t.Errorf("one day is off by %v, %s", one.err, one.err.percent(true))
	}
}

// TestKeptDays: the kept days were drawn by the current code, and each has both its runs
// and figures that follow from them; the current simulator gives the same bills within
// their spread. With -rewrite days are kept as they are simulated now.
func TestKeptDays(t *testing.T) {
	bars := readBars(t)
	for v := scenarios.OldestKarpenter; v <= scenarios.NewestKarpenter; v++ {
		days := keptDays(t, v)
		for _, d := range days {
			s := loadDrawn(t, d.Seed, v)
			if s.digest != d.Script || len(d.Runs) != realRuns || d.Commit == "" {
				t.Errorf("day %d of Karpenter %v, of commit %q with %d runs, is one of other parameters (%s, now %s)", d.Seed, v,
					d.Commit, len(d.Runs), d.Script, s.digest)
				continue
			}
			now := *d
			now.simulate(t, s)
			for i := range d.Figures {
				if f, g := d.Figures[i], now.Figures[i]; f.Name != g.Name || len(f.Simulated) != draws || !slices.Equal(f.Real, g.Real) {
					t.Errorf("day %d of Karpenter %v: %s of its runs is %v, and %v is kept", d.Seed, v, f.Name, g.Real, f.Real)
				}
			}
			*d = now
			if d.Again = os.Getenv(randomCommit); golden.Rewrite() && d.Again != "" && d.Again != d.Commit {
				if err := d.write(dayFile(randomKept, v, d.Seed)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(days) == 0 {
			continue
		}
		t.Logf("the simulator as it is now:\n%s", totalsTable(v, days))
		for _, x := range totals(days) {
			for _, text := range bars.failures(v, &x) {
				t.Errorf("Karpenter %v, %d random days: %s", v, len(days), text)
			}
		}
	}
}

// TestHoldTotal: a total beyond its bar by more than its interval fails, of a trajectory what is
// beyond the distance of real runs, and of real runs too many outside the simulated ones.
func TestHoldTotal(t *testing.T) {
	for _, x := range []struct {
		name string
		of   total
		want bool
	}{
		{"a bill within", total{name: drawnBill, err: ratio{.009, .001}}, true},
		{"a bill that may be within", total{name: drawnBill, err: ratio{-.03, .025}}, true},
		{"a bill beyond", total{name: drawnBill, err: ratio{-.03, .015}}, false},
		{"evictions beyond", total{name: drawnEvictions, err: ratio{.08, .02}}, false},
		{"a figure without a bar", total{name: drawnReady, err: ratio{.5, .01}}, true},
		{"a trajectory within", total{name: drawnTrajectory, simulated: ratio{.2, 0}, beyond: ratio{.02, .005}}, true},
		{"a trajectory beyond", total{name: drawnTrajectory, beyond: ratio{.05, .01}}, false},
		{"a trajectory nearer than real ones", total{name: drawnTrajectory, beyond: ratio{-.05, .01}}, true},
		{"runs covered", total{name: drawnBill, covered: 54, runs: 60}, true},
		{"runs not covered", total{name: drawnBill, covered: 40, runs: 60}, false},
		{"runs not covered of so few days that they may be", total{name: drawnBill, covered: 2, runs: 4}, true},
	} {
		if got := readBars(t).failures(unpublished, &x.of); (len(got) == 0) != x.want {
			t.Errorf("%s: %q", x.name, got)
		}
	}
	known := bars{{Figure: drawnEvictions, Relative: .05, Known: map[string]gap{"1.14": {Most: .2, Covered: .7}}}}
	for _, x := range []struct {
		name string
		of   total
		want bool
	}{
		{"off by what is known", total{name: drawnEvictions, err: ratio{-.4, .25}}, true},
		{"off by more", total{name: drawnEvictions, err: ratio{-.5, .25}}, false},
		{"covered as is known", total{name: drawnEvictions, covered: 38, runs: 60}, true},
		{"covered less", total{name: drawnEvictions, covered: 28, runs: 60}, false},
	} {
		if got := known.failures(14, &x.of); (len(got) == 0) != x.want {
			t.Errorf("%s: %q", x.name, got)
		}
	}
}

// unpublished is a version of Karpenter of which nothing is known.
const unpublished scenarios.KarpenterVersion = 99

// TestWilson: the interval of a share, by the formula.
func TestWilson(t *testing.T) {
	if from, to := wilson(.9, 10); math.Abs(from-0.5958) > 1e-3 || math.Abs(to-0.9821) > 1e-3 {
		t.Errorf("9 of 10: %v to %v, want 0.596 to 0.982", from, to)
	}
}
