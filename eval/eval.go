package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// Run does every run of c and reports on them. Runs that fail are reported as
// missing, and gates fail with them. When ctx ends it reports what is finished
// within a second, as [Report.Stopped] says. An error comes back when c is wrong
// ([ErrConfig]), when the weather of policies to be compared differs
// ([ErrWeather]), and when ctx ends before any run is done.
func Run(ctx context.Context, c Config, runner Runner) (*Report, error) {
	c = c.complete()
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, stopped := play(ctx, &c, runner)
	if stopped != nil && !slices.ContainsFunc(runs, func(r RunRow) bool { return !r.Unfinished() }) {
		return nil, stopped
	}
	if err := checkWeather(&c, runs); err != nil {
		return nil, err
	}
	oracles, seeded := bounds(ctx, &c)
	r := newReport(&c, runs, oracles, seeded)
	if ctx.Err() != nil {
		r.stop()
	}
	return r, nil
}

// bounds returns the bounds of every case, and of every case and seed, ordered
// by case, those that hold in the weather of the seed. Cases that cannot be run
// have none. Slots of a case is the least of its seeds, and Short counts over all.
// When ctx ends they are what is worked out by then, and the rest is open: a bound
// of a large world takes longer than who stops it waits, so what is being worked
// out then is left to itself.
func bounds(ctx context.Context, c *Config) (of []Bound, seeded []Bound) {
	b := &bounding{of: make([]Bound, len(c.Cases)), seeded: make([]Bound, len(c.Cases)*len(c.Seeds))}
	for i := range b.of {
		b.of[i].open = true
	}
	for i := range b.seeded {
		b.seeded[i].open = true
	}
	if ctx.Err() != nil {
		return b.of, b.seeded
	}
	return b.until(ctx, func() { b.work(ctx, c) })
}

// A bounding is the bounds as far as they are worked out.
type bounding struct {
	mu         sync.Mutex
	of, seeded []Bound
	done       int
}

// until returns the bounds when work is done, or as they are when ctx ends.
func (b *bounding) until(ctx context.Context, work func()) (of, seeded []Bound) {
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		work()
	}()
	select {
	case <-ready:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	of, seeded = slices.Clone(b.of), slices.Clone(b.seeded)
	gather(of, seeded)
	return of, seeded
}

func (b *bounding) work(ctx context.Context, c *Config) {
	tell := func() {
		if c.Progress != nil && ctx.Err() == nil {
			c.Progress(Progress{Step: StepBounds, Done: b.done, Total: len(b.of) + len(b.seeded)})
		}
	}
	note := func(to *Bound, bound Bound) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*to = bound
		b.done++
		tell()
	}
	tell()
	all := make([]*oracle, len(c.Cases))
	parallel(c.workers(), len(c.Cases), func(i int) {
		if ctx.Err() != nil {
			return
		}
		bound := Bound{}
		if o, err := newOracle(c.Cases[i].World); err == nil {
			all[i], bound = o, o.every()
		}
		note(&b.of[i], bound)
	})
	parallel(c.workers(), len(b.seeded), func(i int) {
		if ctx.Err() != nil {
			return
		}
		k := i / len(c.Seeds)
		bound := Bound{Cost: b.of[k].Cost, OnDemand: b.of[k].OnDemand, Slots: b.of[k].Cost}
		if all[k] != nil {
			if of, err := all[k].under(c.Seeds[i%len(c.Seeds)]); err == nil {
				bound.Cost = max(bound.Cost, of.Cost)
				bound.Slots, bound.Short = max(bound.Cost, of.Slots), of.Short
			}
		}
		note(&b.seeded[i], bound)
	})
}

// gather adds to the bounds of cases what those of their seeds come to. For a seed
// whose bounds are open those of its case hold.
func gather(of, seeded []Bound) {
	n := len(seeded) / len(of)
	for i := range of {
		least := policy.Money(math.MaxInt64)
		for _, b := range seeded[i*n : (i+1)*n] {
			if b.open {
				b.Slots = of[i].Cost
			}
			least = min(least, b.Slots)
			of[i].Short += b.Short
		}
		of[i].Slots = least
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

// play does all runs. When ctx ends it returns those that are done with the error,
// and the others as unfinished. All policies of a cell follow each other, and every
// case has a cell with the first seed before any has one with the second: what is
// done by then can be compared, and speaks of all cases.
func play(ctx context.Context, c *Config, runner Runner) ([]RunRow, error) {
	runs := make([]RunRow, 0, len(c.Cases)*len(c.Seeds)*len(c.Policies))
	for i, k := range c.Cases {
		for _, s := range c.Seeds {
			for _, p := range c.Policies {
				runs = append(runs, RunRow{Job: Job{Case: k, Policy: p, Seed: s}, CaseIndex: i, Err: ErrUnfinished})
			}
		}
	}
	p := newProgress(c)
	parallel(c.workers(), len(runs), func(turn int) {
		if ctx.Err() != nil {
			return
		}
		i := c.inTurn(turn)
		r, err := guarded(ctx, runs[i].Job, runner)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return
		}
		runs[i].Result, runs[i].Err = r, err
		p.ran(runs, i)
	})
	if err := ctx.Err(); err != nil {
		keepWhole(c, runs)
		return runs, fmt.Errorf("comparing: stopped after %d of %d runs: %w", p.state.Done, len(runs), err)
	}
	return runs, nil
}

// inTurn returns the place of the run that is done in a turn: runs are ordered by
// case, seed and policy, and done by seed, case and policy.
func (c *Config) inTurn(turn int) int {
	cell, policy := turn/len(c.Policies), turn%len(c.Policies)
	seed, k := cell/len(c.Cases), cell%len(c.Cases)
	return (k*len(c.Seeds)+seed)*len(c.Policies) + policy
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
				if bound.open {
					forgetBounds(runs[j].Values)
				}
			}
		}
	}
}

// boundMetrics are those that say something of the oracle.
var boundMetrics = []string{
	"oracle_usd", "oracle_on_demand_usd", "oracle_slots_usd", "packing_overhead", "regret", "regret_slots", "attainable_share", "attainable_share_slots",
}

// forgetBounds makes what is measured against the oracle unknown.
func forgetBounds(values []Value) {
	for _, name := range boundMetrics {
		values[mustMetric(name)] = Value{}
	}
}
