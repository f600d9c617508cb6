package eval

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/sim"
)

// Run does every run of c and reports on them. Runs that fail are reported as
// missing, and gates fail with them. When ctx ends it reports what is finished
// within a second, as [Report.Stopped] says. An error comes back when c is wrong
// ([ErrConfig]), when the weather of policies to be compared differs
// ([ErrWeather]), and when ctx ends before any run is done.
func Run(ctx context.Context, c Config, runner Runner) (*Report, error) {
	c.Mine = nil // a report is of all
	d, err := do(ctx, c.Complete(), runner)
	if err != nil {
		return nil, err
	}
	return d.report()
}

// Interim reports on those runs of c that done has a result of, as [Run] does when it is stopped
// after them. Done returns false for the others. Of bounds it has those that c knows.
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

// report sums up d.
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

// A Done has the finished runs and bounds of a comparison, from which a report is made.
type Done struct {
	// Config is complete: defaults filled in, on-demand and baseline added.
	Config Config

	// Runs are ordered by case, seed and policy, without Values. Those that were not done, for
	// want of time or since Config.Mine leaves them out, are unfinished.
	Runs []RunRow

	// Bounds are ordered by case and seed. Those not computed are open.
	Bounds []Bounds

	// Stopped says that ctx ended before all was done.
	Stopped bool
}

// Do does the runs and bounds of comparisons that [Config.Mine] selects, one comparison after the
// other. When ctx ends it yields the finished part of the current comparison and no further one. It
// yields an error, and nothing after it, if a configuration is wrong ([ErrConfig]) or if ctx ends
// before any run is done.
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

// do does the runs and bounds of c, which is complete.
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

// Runs does every run of c and measures each, against on-demand and the baseline as [Run] does but
// not against the oracle, which takes longer than many runs. A caller whose policies represent more
// than policies must ensure that all have the same weather. Like [Run] it ends with ctx, and then
// returns the finished runs with the error.
func Runs(ctx context.Context, c Config, runner Runner) ([]RunRow, error) {
	c = c.Complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, err := Cells(ctx, &c, runner)
	measure(&c, runs, slices.Repeat([]oracle.Bound{{Open: true}}, len(c.Cases)*len(c.Seeds)))
	return runs, err
}

// A RunRow is one run with its figures. Rows are ordered by case, then seed,
// then policy, as Config has them.
type RunRow struct {
	Job

	// CaseIndex is the place of the case in Config.Cases.
	CaseIndex int

	// Err is why the run is missing; nil if it is not. Result and Values are
	// then not to be read.
	Err    error
	Result *sim.Result

	// Values has a value per metric, in the order of [Metrics].
	Values []Value
}

// Value returns the value of the metric called name, which must be one of
// [Metrics]; unknown where the run is missing.
func (r *RunRow) Value(name string) Value { return r.value(mustMetric(name)) }

// value returns the value of metric m, unknown where the run is missing.
func (r *RunRow) value(m int) Value {
	if r.Err != nil {
		return Value{}
	}
	return r.Values[m]
}

// checkWeather compares the weather of the policies of each case and seed.
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
