package eval

import (
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

// Jobs yields the jobs of c, ordered by case, seed and policy: each policy or variant in each case
// with each seed.
func (c *Config) Jobs(yield func(Job) bool) {
	for _, k := range c.Cases {
		for _, s := range c.Seeds {
			for _, p := range c.Policies {
				if !yield(Job{Case: k, Policy: p, Seed: s}) {
					return
				}
			}
		}
	}
}

// job returns the job of a row. For a variant, it has the variant's policy and case.
func (c *Config) job(r *RunRow) Job {
	for i := range c.Variants {
		if v := &c.Variants[i]; v.Name == r.Policy {
			return Job{Case: v.Cases[r.CaseIndex], Policy: v.Policy, Seed: r.Seed}
		}
	}
	return r.Job
}

// Cells executes the runs of c that [Config.Mine] selects, of exactly the policies in c. It returns
// all runs ordered by case, seed and policy, without Values. Policies of the same case and seed run
// one after another, so that they can share the runner's preparation. All cases run with the first
// seed before any runs with the second, so that the finished runs cover all cases if ctx ends
// early. The other runs are then unfinished, and the error wraps that of ctx.
func Cells(ctx context.Context, c *Config, runner Runner) ([]RunRow, error) {
	runs := make([]RunRow, 0, len(c.Cases)*len(c.Seeds)*len(c.Policies))
	for j := range c.Jobs {
		runs = append(runs, RunRow{Job: j, CaseIndex: len(runs) / (len(c.Seeds) * len(c.Policies)), Err: ErrUnfinished})
	}
	var turns []int // indexes in runs
	for turn := range runs {
		if i := c.inTurn(turn); c.Mine == nil || c.Mine(runs[i].Job) {
			turns = append(turns, i)
		}
	}
	p := newProgress(c, len(turns))
	parallel(c.workers(), len(turns), func(turn int) {
		if ctx.Err() != nil {
			return
		}
		i := turns[turn]
		r, err := guarded(ctx, c.job(&runs[i]), runner)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return
		}
		p.ran(runs, i, r, err)
	})
	if err := ctx.Err(); err != nil {
		return runs, fmt.Errorf("comparing: stopped after %d of %d runs: %w", p.state.Done, len(turns), err)
	}
	return runs, nil
}

// Broken returns the first run that failed, nil if none did. An unfinished run did not fail.
func Broken(runs []RunRow) *RunRow {
	i := slices.IndexFunc(runs, func(r RunRow) bool { return r.Err != nil && !r.Unfinished() })
	if i < 0 {
		return nil
	}
	return &runs[i]
}

// workers returns the number of runs that are executed in parallel.
func (c *Config) workers() int {
	if c.Parallel > 0 {
		return c.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// inTurn returns the index of the run that is executed as number turn. Runs are ordered by case,
// seed and policy, and executed by seed, case and policy.
func (c *Config) inTurn(turn int) int {
	cell, policy := turn/len(c.Policies), turn%len(c.Policies)
	seed, k := cell/len(c.Cases), cell%len(c.Cases)
	return (k*len(c.Seeds)+seed)*len(c.Policies) + policy
}

// parallel calls f with 0 to n−1 from several goroutines, and returns when all calls have returned.
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

// guarded executes one run. It returns a panic as an error, so that a faulty run does not affect
// the others and is reported with the command that repeats it.
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
