package eval

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/sim"
)

// Run executes every run of c and returns a report. Failed runs are reported as missing, and gates
// fail because of them. If ctx ends, Run returns within a second with the finished runs, and
// [Report.Stopped] is true. It returns an error if c is invalid ([ErrConfig]), if policies had
// different weather ([ErrWeather]), or if ctx ends before any run has finished.
func Run(ctx context.Context, c Config, runner Runner) (*Report, error) {
	c.Mine = nil // a report contains all runs
	d, err := do(ctx, c.Complete(), runner)
	if err != nil {
		return nil, err
	}
	return d.report()
}

// Interim returns a report of those runs of c for which done returns a result, as [Run] does when
// it is stopped after them. done returns false for all other runs. The report only contains bounds
// that c knows.
func Interim(c Config, done func(Job) (*sim.Result, error, bool)) (*Report, error) {
	c.Mine, c.Progress = nil, nil
	c = c.Complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, err := Cells(context.Background(), &c, func(_ context.Context, j Job) (*sim.Result, error) {
		r, err, ok := done(j)
		if !ok {
			return nil, ErrUnfinished
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return (&Done{Config: c, Runs: runs, Bounds: bounds(ended, &c), Stopped: true}).report()
}

// report returns the report of d.
func (d *Done) report() (*Report, error) {
	c := d.Config
	if d.Stopped {
		keepWhole(&c, d.Runs)
	}
	if err := checkWeather(&c, d.Runs); err != nil {
		return nil, err
	}
	oracles, seeded := gather(&c, d.Bounds)
	r := newReport(&c, d.Runs, oracles, seeded)
	if d.Stopped {
		r.stop()
	}
	return r, nil
}

// A Done contains the finished runs and bounds of a comparison, the input of a report.
type Done struct {
	// Config is complete: defaults are set, and on-demand and the baseline are added.
	Config Config

	// Runs are ordered by case, seed and policy, without Values. Runs are unfinished if there was
	// not enough time or if Config.Mine does not select them.
	Runs []RunRow

	// Bounds are ordered by case and seed. Bounds that were not computed are open.
	Bounds []Bounds

	// Stopped reports whether ctx ended before everything was done.
	Stopped bool
}

// Do executes the runs and computes the bounds that [Config.Mine] selects, one comparison after the
// other. If ctx ends, it yields the finished part of the current comparison and stops. It yields an
// error, and nothing after it, if a configuration is invalid ([ErrConfig]) or if ctx ends before
// any run has finished.
func Do(ctx context.Context, of []Config, runner Runner) iter.Seq2[*Done, error] {
	return func(yield func(*Done, error) bool) {
		for i := range of {
			d, err := do(ctx, of[i].Complete(), runner)
			if i > 0 && err != nil && ctx.Err() != nil {
				return
			}
			if !yield(d, err) || err != nil || d.Stopped {
				return
			}
		}
	}
}

// do executes the runs and computes the bounds of c, which must be complete.
func do(ctx context.Context, c Config, runner Runner) (*Done, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, stopped := Cells(ctx, &c, runner)
	if stopped != nil && !slices.ContainsFunc(runs, func(r RunRow) bool { return !r.Unfinished() }) {
		return nil, stopped
	}
	d := &Done{Config: c, Runs: runs, Bounds: bounds(ctx, &c)}
	d.Stopped = ctx.Err() != nil
	return d, nil
}

// Runs executes every run of c and computes metrics relative to on-demand and the baseline, as
// [Run] does. It does not compute the oracle's bound, which takes longer than many runs, and does
// not check the weather: a caller that uses policies to represent other differences must ensure
// that all have the same weather. If ctx ends, it returns the finished runs with an error.
func Runs(ctx context.Context, c Config, runner Runner) ([]RunRow, error) {
	c = c.Complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, err := Cells(ctx, &c, runner)
	measure(&c, runs, slices.Repeat([]oracle.Bound{{Open: true}}, len(c.Cases)*len(c.Seeds)))
	return runs, err
}

// A RunRow is one run with its metrics. Rows are ordered by case, then seed, then policy, in the
// order of Config.
type RunRow struct {
	Job

	// CaseIndex is an index of Config.Cases.
	CaseIndex int

	// Err is the reason why the run is missing, nil if it is not. Result and Values are undefined
	// if Err is not nil.
	Err    error
	Result *sim.Result

	// Values contains a value per metric, in the order of [Metrics].
	Values []Value
}

// Value returns the value of the metric called name, which must be one of [Metrics]. It is unknown
// if the run is missing.
func (r *RunRow) Value(name string) Value { return r.value(mustMetric(name)) }

// value returns the value of metric m, unknown if the run is missing.
func (r *RunRow) value(m int) Value {
	if r.Err != nil {
		return Value{}
	}
	return r.Values[m]
}

// checkWeather returns an error if policies had different weather in the same case and seed.
func checkWeather(c *Config, runs []RunRow) error {
	n := len(c.Policies)
	for i := 0; i < len(runs); i += n {
		var first *RunRow
		for j := i; j < i+n; j++ {
			r := &runs[j]
			switch {
			case r.Err != nil:
			case first == nil:
				first = r
			case r.Result.Weather != first.Result.Weather:
				return fmt.Errorf("%w: %s, window %d, seed %d: %x under %s, %x under %s", ErrWeather,
					r.Scenario, r.Window, r.Seed, first.Result.Weather[:8], first.Policy, r.Result.Weather[:8], r.Policy)
			}
		}
	}
	return nil
}
