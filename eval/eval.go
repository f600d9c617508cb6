package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spotter-dev/spotter/sim"
)

// Run does every run of c and reports on them. Runs that fail are reported as
// missing, and gates fail with them. An error comes back when c is wrong
// ([ErrConfig]), when the weather of policies to be compared differs
// ([ErrWeather]), and when ctx ends.
func Run(ctx context.Context, c Config, runner Runner) (*Report, error) {
	c = c.complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, err := play(ctx, &c, runner)
	if err != nil {
		return nil, err
	}
	if err := checkWeather(&c, runs); err != nil {
		return nil, err
	}
	oracles, seeded := bounds(ctx, &c)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("comparing: %w", err)
	}
	return newReport(&c, runs, oracles, seeded), nil
}

// bounds returns the bounds of every case, and of every case and seed, ordered
// by case, those that hold in the weather of the seed. Cases that cannot be run
// have none. Slots of a case is the least of its seeds, and Short counts over all.
func bounds(ctx context.Context, c *Config) (of []Bound, seeded []Bound) {
	of, seeded = make([]Bound, len(c.Cases)), make([]Bound, len(c.Cases)*len(c.Seeds))
	all := make([]*oracle, len(c.Cases))
	parallel(c.workers(), len(c.Cases), func(i int) {
		if o, err := newOracle(c.Cases[i].World); err == nil {
			all[i], of[i] = o, o.every()
		}
	})
	parallel(c.workers(), len(seeded), func(i int) {
		k := i / len(c.Seeds)
		seeded[i] = Bound{Cost: of[k].Cost, OnDemand: of[k].OnDemand, Slots: of[k].Cost}
		if all[k] == nil || ctx.Err() != nil {
			return
		}
		if b, err := all[k].under(c.Seeds[i%len(c.Seeds)]); err == nil {
			seeded[i].Cost = max(seeded[i].Cost, b.Cost)
			seeded[i].Slots, seeded[i].Short = max(seeded[i].Cost, b.Slots), b.Short
		}
	})
	gather(of, seeded)
	return of, seeded
}

// gather adds to the bounds of cases what those of their seeds come to.
func gather(of, seeded []Bound) {
	for i := range of {
		n := len(seeded) / len(of)
		own := seeded[i*n : (i+1)*n]
		of[i].Slots = slices.MinFunc(own, func(a, b Bound) int { return cmp.Compare(a.Slots, b.Slots) }).Slots
		for _, b := range own {
			of[i].Short += b.Short
		}
	}
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

// value returns the value of metric m, unknown where the run is missing.
func (r *RunRow) value(m int) Value {
	if r.Err != nil {
		return Value{}
	}
	return r.Values[m]
}

// workers is how many runs are done at once.
func (c *Config) workers() int {
	if c.Parallel > 0 {
		return c.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// play does all runs. It fails only when ctx ends.
func play(ctx context.Context, c *Config, runner Runner) ([]RunRow, error) {
	runs := make([]RunRow, 0, len(c.Cases)*len(c.Seeds)*len(c.Policies))
	for i, k := range c.Cases {
		for _, s := range c.Seeds {
			for _, p := range c.Policies {
				runs = append(runs, RunRow{Job: Job{Case: k, Policy: p, Seed: s}, CaseIndex: i})
			}
		}
	}
	var told sync.Mutex
	done := 0
	parallel(c.workers(), len(runs), func(i int) {
		if ctx.Err() != nil {
			return
		}
		runs[i].Result, runs[i].Err = guarded(ctx, runs[i].Job, runner)
		told.Lock()
		defer told.Unlock()
		done++
		if c.Progress != nil {
			c.Progress(done, len(runs))
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("comparing: stopped after %d of %d runs: %w", done, len(runs), err)
	}
	return runs, nil
}

// parallel calls f with 0…n−1, on so many workers.
func parallel(workers, n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// guarded does one run. A panic in it becomes its error, so that one bad run
// of hundreds is named with the command that repeats it and the others count.
func guarded(ctx context.Context, j Job, runner Runner) (r *sim.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r, err = runner(ctx, j)
	if err == nil && r == nil {
		err = errors.New("the run gave no result")
	}
	if err != nil {
		return nil, err
	}
	return r, nil
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

// measure fills the values of all runs.
func measure(c *Config, runs []RunRow, seeded []Bound) {
	n := len(c.Policies)
	for i := 0; i < len(runs); i += n {
		bound := seeded[i/n]
		m := match{oracle: bound.Cost, slotsOracle: bound.Slots, onDemandOracle: bound.OnDemand, discount1y: c.Discount1y, discount3y: c.Discount3y}
		for j := i; j < i+n; j++ {
			if runs[j].Policy == OnDemand {
				m.onDemand = runs[j].Result
			}
			if runs[j].Policy == c.Baseline {
				m.baseline = runs[j].Result
			}
		}
		for j := i; j < i+n; j++ {
			if runs[j].Err == nil {
				m.run = runs[j].Result
				runs[j].Values = m.measure()
			}
		}
	}
}
