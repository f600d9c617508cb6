package eval

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/sim"
)

// TestAlwaysRun: on-demand and the baseline are always among the compared policies.
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
		w := *captured[i].Bound
		w.Captured = true
		captured[i].Bound = &w
	}
	for want, c := range map[string][]Case{"karpenter": made, "as-is": captured} {
		r, err := Run(context.Background(), Config{Policies: []string{"spot"}, Cases: c, Seeds: []uint64{1}}, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		if got := []string{"on-demand", want, "spot"}; r.Config.Baseline != want || !reflect.DeepEqual(r.Config.Policies, got) {
			t.Errorf("captured %v: baseline %q of %v, want %q of %v", c[0].Bound.Captured, r.Config.Baseline, r.Config.Policies, want, got)
		}
	}
	if got := BaselineOf(append(captured, made...)); got != "karpenter" {
		t.Errorf("of a capture and another scenario it is %q, want karpenter", got)
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
		{func(c *Config) { c.Cases[1].Bound = nil }, "web-week, window 1) has no scenario"},
		{func(c *Config) { c.Cases[1].Window = 0 }, "web-week, window 0 is listed twice"},
		{func(c *Config) { c.Seeds = []uint64{1, 2, 1} }, "seed 1 is named twice"},
		{func(c *Config) { c.Discount3y = 1.5 }, "discount3y is 1.5"},
		{func(c *Config) { c.Gates = []Gate{{Policy: "portfolio", Metric: "regret", Statistic: Max, Op: "<"}} },
			`"portfolio" is not compared; compared are on-demand, spot`},
		{func(c *Config) { c.Policies, c.Gates = []string{"spotvortex"}, shown().Gates }, "holds for no policy"},
	} {
		c := shown()
		x.change(&c)
		if _, err := Run(context.Background(), c, fake{}.run); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("error %v, want one saying %q", err, x.says)
		}
	}
}

// TestDifferentWeatherIsRefused: figures of different weather must not stand
// side by side.
func TestDifferentWeatherIsRefused(t *testing.T) {
	runner := func(ctx context.Context, j Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		if j.Policy == "static" && j.Seed == 4 && j.Window == 1 {
			r.Weather[31]++
		}
		return r, err
	}
	_, err := Run(context.Background(), shown(), runner)
	if !errors.Is(err, ErrWeather) || !strings.Contains(err.Error(), "web-week, window 1, seed 4") ||
		!strings.Contains(err.Error(), "under static") {
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
	missing := slices.IndexFunc(r.Runs, func(x RunRow) bool { return x.Err != nil })
	if x := &r.Runs[missing]; r.Missing() != 1 || !strings.HasPrefix(x.Err.Error(), "panic: event before now") ||
		r.Command(missing) != "spotter sim web-week --policy static --seed 4 --from 2026-01-06T00:00:00Z --trace synthetic" {
		t.Errorf("%d runs are missing, %v: %s", r.Missing(), x.Err, r.Command(missing))
	}
	if p := policyReport(r, "static"); p.Runs != 10 || p.Missing != 1 || p.Summary("bill_usd").N != 9 {
		t.Errorf("static has %d runs, %d missing and %d bills; want 10, 1, 9", p.Runs, p.Missing, p.Summary("bill_usd").N)
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

func TestDefaultCommand(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	w.Trace.Name = "/data/my trace.parquet"
	got := DefaultCommand(Job{Case: Case{Scenario: "my world.yaml", Bound: w}, Policy: "static:share=0.3", Seed: 7})
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

// TestNoDiscount: the discount of a commitment may be zero.
func TestNoDiscount(t *testing.T) {
	c := shown()
	c.Discount1y = 0
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	p := policyReport(r, "static")
	if plain, committed := p.Summary("net_savings_usd"), p.Summary("net_savings_vs_1y_usd"); plain.Mean != committed.Mean {
		t.Errorf("net savings %v, against a commitment that saves nothing %v", plain.Mean, committed.Mean)
	}
}
