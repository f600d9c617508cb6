package eval

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/sim"
)

// stoppedAfter returns the report on a comparison that does one run at a time and is stopped at
// the end of the last of the given number of runs.
func stoppedAfter(t *testing.T, c Config, runs int64) (*Report, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done atomic.Int64
	c.Parallel = 1
	return Run(ctx, c, fake{slow: func(Job) {
		if done.Add(1) == runs {
			cancel()
		}
	}}.run)
}

// A comparison that is stopped before any run is done gives no report, and starts no
// further run.
func TestStopBeforeTheFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := shown()
	c.Parallel = 1
	started := 0
	f := fake{slow: func(Job) { started++; cancel() }, fail: func(Job) bool { return false }}
	if _, err := Run(ctx, c, func(ctx context.Context, j Job) (r *sim.Result, err error) {
		if _, err = f.run(ctx, j); err == nil {
			err = ctx.Err()
		}
		return nil, err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if started != 1 {
		t.Errorf("%d runs were started", started)
	}
}

// What is finished when a comparison is stopped is reported: the same cells of every
// policy, with the figures that a whole report has of them, and of every window
// something.
func TestStop(t *testing.T) {
	whole, err := Run(t.Context(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stoppedAfter(t, shown(), 14) // three cells of four policies, and half of the next
	if err != nil {
		t.Fatal(err)
	}
	if !r.Stopped || r.Done() != 12 || r.Missing() != 0 || r.ExitCode() != 3 || len(r.Runs) != 40 {
		t.Fatalf("stopped %t, %d done, %d missing, exit code %d", r.Stopped, r.Done(), r.Missing(), r.ExitCode())
	}
	for i := range r.Runs {
		run, same := &r.Runs[i], &whole.Runs[i]
		// Both windows under seed 1, and the first of them under seed 2.
		if want := run.Seed == 1 || run.Seed == 2 && run.Window == 0; run.Unfinished() == want {
			t.Errorf("window %d, seed %d, %s: unfinished %t", run.Window, run.Seed, run.Policy, run.Unfinished())
		}
		if !run.Unfinished() && run.Value("net_savings_delta_pct") != same.Value("net_savings_delta_pct") {
			t.Errorf("window %d, seed %d, %s has other figures than in a whole report", run.Window, run.Seed, run.Policy)
		}
		if run.Value("regret").Known {
			t.Error("there is regret against a bound that was not computed")
		}
	}
	for i := range r.Groups[0].Policies {
		if p := &r.Groups[0].Policies[i]; p.Runs != 10 || p.Missing != 0 || p.Unfinished != 7 || p.Summary("bill_usd").N != 3 {
			t.Errorf("%s: %d runs, %d missing, %d unfinished, %d summed up", p.Policy, p.Runs, p.Missing, p.Unfinished, p.Summary("bill_usd").N)
		}
	}
	for _, g := range r.Gates {
		if g.Pass || g.Missing != 7 || g.Estimated() {
			t.Errorf("gate %s on %s: pass %t, %d missing", g.Gate, g.Policy, g.Pass, g.Missing)
		}
	}
	if _, err := stoppedAfter(t, shown(), 3); err != nil {
		t.Errorf("with a part of one cell: %v", err)
	}
}

// Runs that were done before the stop but after its begin count, those that ended
// with it do not, and one that broke of itself is no unfinished one.
func TestStopSeparatesBrokenFromUnfinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := shown()
	c.Parallel = 1
	n := 0
	r, err := Run(ctx, c, func(ctx context.Context, j Job) (*sim.Result, error) {
		switch n++; n {
		case 2:
			return nil, errCloud
		case 7:
			cancel()
			return nil, ctx.Err()
		}
		return fake{}.run(ctx, j)
	})
	if err != nil || r.Done() != 4 || r.Missing() != 1 || n != 7 {
		t.Fatalf("%v, or %d done, %d broke, %d begun", err, r.Done(), r.Missing(), n)
	}
}

// A stop while bounds are worked out, or while another build is compared with, leaves
// all runs and no result.
func TestStopAfterTheRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := shown()
	c.Gates = []Gate{mustGate(t, "static:net_savings_pct.median >= -1000")}
	bounds := 0
	c.Progress = func(p Progress) {
		if p.Step == StepBounds && p.Done > 0 {
			bounds++
			cancel()
		}
	}
	r, err := Run(ctx, c, fake{}.run)
	if err != nil || !r.Stopped || r.Done() != 40 || bounds != 1 {
		t.Fatalf("%v, or %d done, %d bounds reported", err, r.Done(), bounds)
	}
	if g := &r.Gates[0]; g.Pass || g.Estimated() || !g.Stopped {
		t.Errorf("the gate: %+v", g)
	}
	c.Progress = nil
	if r, err = Run(t.Context(), c, fake{}.run); err != nil || r.Stopped || !r.Gates[0].Pass {
		t.Fatalf("not stopped: %v", err)
	}
	if err := r.Compare(ctx, Against{Other: crashing{}}, fake{}.run); err != nil || !r.Stopped || r.Gates[0].Pass || r.ExitCode() != 3 {
		t.Errorf("stopped while it compared: %v, exit code %d", err, r.ExitCode())
	}
}

// A bound that takes long does not hold up who stops it.
func TestStopDoesNotWaitForBounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	defer close(hold)
	b := &bounding{all: make([]Bounds, 1)}
	done := make(chan []Bounds)
	go func() { done <- b.until(ctx, func() { <-hold }) }()
	cancel()
	select {
	case of := <-done:
		if len(of) != 1 {
			t.Errorf("%v", of)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the bound")
	}
}

// TestProgress: every run and bound is reported, in order and never two at once, with interim
// results of the finished cells.
func TestProgress(t *testing.T) {
	c := shown()
	c.Cases = cases(2, "batch-night", "web-week")
	c.Parallel = 4
	var last Progress
	steps := map[Step]int{}
	c.Progress = func(p Progress) {
		if p.Done > 0 {
			steps[p.Step]++
		}
		if p.Done != steps[p.Step] || p.Total != map[Step]int{StepRuns: 80, StepBounds: 24}[p.Step] {
			t.Errorf("reported %d of %d %s, after %d", p.Done, p.Total, p.Step, steps[p.Step]-1)
		}
		if p.Step == StepRuns {
			last = p
		}
	}
	r, err := Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	if steps[StepRuns] != 80 || steps[StepBounds] != 24 || last.Finished != 20 || last.Cells != 20 || len(last.SoFar) != 8 {
		t.Fatalf("reported %v, at last of %d of %d cells and %d rows", steps, last.Finished, last.Cells, len(last.SoFar))
	}
	for i, x := range last.SoFar {
		p := &r.Groups[i/4].Policies[i%4]
		if x.Scenario != r.Groups[i/4].Scenario || x.Policy != p.Policy ||
			x.Saved.V != p.Summary("net_savings_pct").Median || x.Outage.V != p.Summary("outage_minutes").Median {
			t.Errorf("%+v, and the report has %v, %v", x, p.Summary("net_savings_pct").Median, p.Summary("outage_minutes").Median)
		}
	}
}

// There are figures after the first runs, before a cell is finished, and those are the
// finished cell's in the end.
func TestProgressOfTheFirstCell(t *testing.T) {
	c := shown()
	c.Parallel = 1
	n := len(c.Policies)
	var known []int
	var rows []SoFar
	c.Progress = func(p Progress) {
		if p.Step != StepRuns || p.Done > n {
			return
		}
		count := 0
		for _, x := range p.SoFar {
			if x.Saved.Known && x.Outage.Known {
				count++
			}
		}
		known, rows = append(known, count), p.SoFar
	}
	r, err := Run(t.Context(), c, fake{}.run)
	if err != nil || len(known) != n || known[0] != 1 || known[1] != 2 || known[n-1] != n {
		t.Fatalf("%v, or figures of %v policies after each run", err, known)
	}
	for i, x := range rows {
		if x.Saved != r.Runs[i].Value("net_savings_pct") {
			t.Errorf("%s saves %v, and its run %v", x.Policy, x.Saved, r.Runs[i].Value("net_savings_pct"))
		}
	}
}

// Every case has a run under the first seed before any has one under the second, and
// policies of one cell are next to each other.
func TestOrderOfRuns(t *testing.T) {
	c := shown()
	c.Cases, c.Parallel = cases(2, "batch-night", "web-week"), 1
	var order []Job
	if _, err := Run(t.Context(), c, fake{slow: func(j Job) { order = append(order, j) }}.run); err != nil {
		t.Fatal(err)
	}
	for i, j := range order {
		k := c.Cases[i/4%4]
		if j.Policy != c.Policies[i%4] || j.Seed != c.Seeds[i/16] || j.Scenario != k.Scenario || j.Window != k.Window {
			t.Fatalf("run %d is of %s, window %d, seed %d, %s", i, j.Scenario, j.Window, j.Seed, j.Policy)
		}
	}
}
