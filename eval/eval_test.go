package eval

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// TestParallelChangesNothing compares every output of one worker with that of
// many which finish in another order.
func TestParallelChangesNothing(t *testing.T) {
	outputs := func(parallel int) string {
		c := shown()
		c.Parallel = parallel
		var started atomic.Int64
		r, err := Run(context.Background(), c, fake{slow: func(Job) { time.Sleep(time.Duration(started.Add(1)*7%5) * time.Millisecond) }}.run)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, f := range Formats() {
			if err := r.Write(&out, f, 100); err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	}
	if outputs(1) != outputs(7) {
		t.Error("the report depends on the number of workers")
	}
}

// TestAlwaysRun: on-demand and the baseline are compared whoever asks for what.
func TestAlwaysRun(t *testing.T) {
	for _, x := range []struct {
		policies []string
		baseline string
		want     []string
	}{
		{[]string{"spot"}, "", []string{"on-demand", "karpenter", "spot"}},
		{[]string{"spot", "on-demand"}, "spot", []string{"spot", "on-demand"}},
		{[]string{"spot"}, "on-demand", []string{"on-demand", "spot"}},
		{[]string{"spot"}, "static:share=0.3", []string{"on-demand", "static:share=0.3", "spot"}},
		{nil, "", DefaultPolicies()},
	} {
		c := Config{Policies: x.policies, Baseline: x.baseline, Cases: cases(1, "web-week"), Seeds: []uint64{1}}
		r, err := Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(r.Config.Policies, x.want) {
			t.Errorf("policies %v with baseline %q gives %v, want %v", x.policies, x.baseline, r.Config.Policies, x.want)
		}
	}
}

// TestBaselineOf: what a cluster has without us, and what runs in it where every case is
// a cluster that was captured.
func TestBaselineOf(t *testing.T) {
	made, captured := cases(1, "web-week"), cases(2, "mine")
	for i := range captured {
		w := *captured[i].World
		w.Captured = true
		captured[i].World = &w
	}
	for want, c := range map[string][]Case{"karpenter": made, "as-is": captured} {
		r, err := Run(context.Background(), Config{Policies: []string{"spot"}, Cases: c, Seeds: []uint64{1}}, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		if got := []string{"on-demand", want, "spot"}; r.Config.Baseline != want || !reflect.DeepEqual(r.Config.Policies, got) {
			t.Errorf("captured %v: baseline %q of %v, want %q of %v", c[0].World.Captured, r.Config.Baseline, r.Config.Policies, want, got)
		}
	}
	if got := BaselineOf(append(captured, made...)); got != "karpenter" {
		t.Errorf("of a capture and another world it is %q, want karpenter", got)
	}
}

// TestConfigErrors: what is wrong is said, with its value.
func TestConfigErrors(t *testing.T) {
	for _, x := range []struct {
		change func(*Config)
		says   string
	}{
		{func(c *Config) { c.Policies = []string{"spot", " "} }, "policies["},
		{func(c *Config) { c.Policies = []string{"spot", "spot"} }, `policy "spot" is named twice`},
		{func(c *Config) { c.Policies = []string{"oracle"} }, "is a bound and no policy"},
		{func(c *Config) { c.Cases = nil }, "there is no scenario to run"},
		{func(c *Config) { c.Cases[1].World = nil }, "web-week, window 1) has no world"},
		{func(c *Config) { c.Cases[1].Window = 0 }, "web-week, window 0 stands twice"},
		{func(c *Config) { c.Seeds = []uint64{1, 2, 1} }, "seed 1 is named twice"},
		{func(c *Config) { c.Discount3y = 1.5 }, "discount3y is 1.5"},
		{func(c *Config) { c.Gates = []Gate{{Policy: "portfolio", Metric: "regret", Statistic: Max, Op: "<"}} }, `"portfolio" is not compared; compared are on-demand, spot`},
		{func(c *Config) { c.Policies, c.Gates = []string{"spotvortex"}, StandingGates() }, "holds for no policy"},
	} {
		c := shown()
		x.change(&c)
		if _, err := Run(context.Background(), c, fake{}.run); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("error %v, want one saying %q", err, x.says)
		}
	}
}

// TestDifferentWeatherIsRefused: figures of different weather must not stand
// beside each other.
func TestDifferentWeatherIsRefused(t *testing.T) {
	runner := func(ctx context.Context, j Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		if j.Policy == "static" && j.Seed == 4 && j.Window == 1 {
			r.Weather[31]++
		}
		return r, err
	}
	_, err := Run(context.Background(), shown(), runner)
	if !errors.Is(err, ErrWeather) || !strings.Contains(err.Error(), "web-week, window 1, seed 4") || !strings.Contains(err.Error(), "under static") {
		t.Errorf("error %v, want one naming the run", err)
	}
}

// TestPanicIsOneMissingRun: a run that panics is named, and the others count.
func TestPanicIsOneMissingRun(t *testing.T) {
	runner := func(ctx context.Context, j Job) (*sim.Result, error) {
		if j.Policy == "static" && j.Seed == 4 && j.Window == 1 {
			panic("event before now")
		}
		return fake{}.run(ctx, j)
	}
	r, err := Run(context.Background(), shown(), runner)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.WriteTable(&out, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Missing runs: 1", "panic: event before now", "spotter sim web-week --policy static --seed 4 --from 2026-01-06T00:00:00Z"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q", want)
		}
	}
	if p := policyReport(r, "static"); p.Runs != 10 || p.Missing != 1 || p.summary("bill_usd").N != 9 {
		t.Errorf("static has %d runs, %d missing and %d bills; want 10, 1, 9", p.Runs, p.Missing, p.summary("bill_usd").N)
	}
}

// TestWorstRun: it is the one with most outage over the baseline, then the one
// that saves least.
func TestWorstRun(t *testing.T) {
	r, err := Run(context.Background(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	outage, delta := mustMetric("outage_delta"), mustMetric("net_savings_delta_pct")
	for p, name := range r.Config.Policies {
		worst := &r.Runs[policyReport(r, name).Worst]
		for i := p; i < len(r.Runs); i += len(r.Config.Policies) {
			run := &r.Runs[i]
			if run.value(outage).V > worst.value(outage).V ||
				run.value(outage).V == worst.value(outage).V && run.value(delta).V < worst.value(delta).V {
				t.Errorf("%s: seed %d of window %d is worse than the worst run", name, run.Seed, run.Window)
			}
		}
	}
}

// TestManyWindows: from eight windows on the report speaks of other weeks too,
// and says so; below it says that it does not.
func TestManyWindows(t *testing.T) {
	for _, x := range []struct {
		windows    int
		over, says string
	}{
		{1, "seeds", "the result holds for this window only"},
		{7, "windows", "There are no intervals, which need ≥ 8 windows at 98.8 %: the result holds for these windows only"},
		{8, "windows", "Intervals are of the median over windows"},
	} {
		c := shown()
		c.Cases = cases(x.windows, "web-week")
		r, err := Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		var table, js bytes.Buffer
		if err := errors.Join(r.WriteTable(&table, 160), r.WriteJSON(&js)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(table.String(), x.says) || !strings.Contains(js.String(), `"intervals_over": "`+x.over+`"`) {
			t.Errorf("%d windows: the outputs do not say that intervals are over %s", x.windows, x.over)
		}
		if perWindow := strings.Contains(table.String(), "CHANGE ON *, %"); perWindow != (x.windows == 7) {
			t.Errorf("%d windows: medians of each are printed: %v", x.windows, perWindow)
		}
	}
}

func TestDefaultCommand(t *testing.T) {
	w := smallWorld("w", 0)
	w.Trace.Name = "/data/my trace.parquet"
	got := DefaultCommand(Job{Case: Case{Scenario: "my world.yaml", World: w}, Policy: "static:share=0.3", Seed: 7})
	want := `spotter sim 'my world.yaml' --policy static:share=0.3 --seed 7 --from 2026-01-05T00:00:00Z --trace '/data/my trace.parquet'`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// BenchmarkReport sums up 7,200 runs: 12 windows, 100 seeds, 6 policies.
func BenchmarkReport(b *testing.B) {
	c := shown()
	c.Policies = append(c.Policies, "static:share=0.3", "static:share=0.7")
	c.Cases, c.Seeds = cases(12, "web-week"), DefaultSeeds(100)
	for b.Loop() {
		if _, err := Run(context.Background(), c, fake{}.run); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNeed: where there are too few units every output says how many an interval
// needs.
func TestNeed(t *testing.T) {
	for _, x := range []struct {
		windows, seeds int
		need           string
	}{{1, 1, "need ≥ 8 seeds"}, {1, 7, "need ≥ 8 seeds"}, {1, 8, ""}, {7, 9, "need ≥ 8 windows"}, {8, 1, ""}} {
		c := shown()
		c.Cases, c.Seeds = cases(x.windows, "web-week"), DefaultSeeds(x.seeds)
		c.Gates = []Gate{mustGate(t, "static:bill_usd.low >= 0")}
		r, err := Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		s := policyReport(r, "static").summary("net_savings_delta_pct")
		if (s.MedianInterval == nil) != (x.need != "") || s.NeedWords() != x.need {
			t.Errorf("%d windows, %d seeds: interval %v, %q", x.windows, x.seeds, s.MedianInterval, s.NeedWords())
		}
		g := r.Gates[0]
		if g.Pass != (x.need == "") || g.Estimated() != g.Pass || x.need != "" && g.Reason != x.need+" for 98.8 %" {
			t.Errorf("%d windows, %d seeds: the gate is %+v", x.windows, x.seeds, g)
		}
		for _, f := range []Format{Table, Markdown, JSON, JUnit, SARIF} {
			var out bytes.Buffer
			if err := r.Write(&out, f, 160); err != nil {
				t.Fatal(err)
			}
			for _, says := range []string{x.need + " for 98.8 %", x.need} {
				if strings.Contains(out.String(), says) != (x.need != "") && x.need != "" {
					t.Errorf("%d windows, %d seeds: %s does not say %q", x.windows, x.seeds, f, says)
				}
			}
			if x.need == "" && strings.Contains(out.String(), "need ≥") {
				t.Errorf("%d windows, %d seeds: %s needs more", x.windows, x.seeds, f)
			}
		}
		var js bytes.Buffer
		if err := r.WriteJSON(&js); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(js.String(), `"need": 8`) != (x.need != "") {
			t.Errorf("%d windows, %d seeds: the JSON output has need wrongly", x.windows, x.seeds)
		}
	}
}

// TestNoDiscount: a commitment that saves nothing can be asked for.
func TestNoDiscount(t *testing.T) {
	c := shown()
	c.Discount1y = 0
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	p := policyReport(r, "static")
	if plain, committed := p.summary("net_savings_usd"), p.summary("net_savings_vs_1y_usd"); plain.Mean != committed.Mean {
		t.Errorf("net savings %v, against a commitment that saves nothing %v", plain.Mean, committed.Mean)
	}
}

// TestReclaimsSaidAsTheyAre: a trace may have the availability of every spot
// market, of some or of none.
func TestReclaimsSaidAsTheyAre(t *testing.T) {
	samples := scenarios.AvailabilityCurve{At: []policy.Time{1}, Available: []bool{true}}
	for _, x := range []struct {
		available []scenarios.AvailabilityCurve
		want      string
	}{
		{nil, "modelled"},
		{[]scenarios.AvailabilityCurve{{}, samples, samples}, "recorded"},
		{[]scenarios.AvailabilityCurve{{}, samples, {}}, "recorded in part and modelled elsewhere"},
	} {
		c := shown()
		c.Cases = cases(1, "web-week")
		w := c.Cases[0].World
		w.Markets = append(w.Markets, policy.Market{ID: 2, Name: "aws/r/b/m5.large/spot", Capacity: policy.Spot})
		w.Prices = append(w.Prices, w.Prices[1])
		w.Available, w.Trace.Availability, w.Trace.Synthetic = x.available, x.available != nil, false
		r, err := Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Formats() {
			var out bytes.Buffer
			if err := r.Write(&out, f, 200); err != nil {
				t.Fatal(err)
			}
			want := map[Format]string{CSV: "," + x.want + ",", JSON: `"reclaims": "` + x.want + `"`}[f]
			if want == "" {
				want = "reclaims are " + x.want + "."
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not say %q", f, want)
			}
		}
	}
}
