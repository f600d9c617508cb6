package eval

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
)

// Bounds are the bounds of a case and a seed. Case applies to every weather, Seed to the weather of
// the seed. Case.Slots is 0, and Case.Short does not include the bounds of seeds.
type Bounds struct{ Case, Seed oracle.Bound }

// bounds returns the bounds of every case and seed, ordered by case. It computes those that c
// requires and does not know. Cases that cannot be run have zero bounds. When ctx ends, bounds
// returns the results so far with the rest open, and abandons the current computation, because a
// bound of a large scenario takes longer than a user who interrupts the program wants to wait.
func bounds(ctx context.Context, c *Config) []Bounds {
	b := &bounding{c: c, all: make([]Bounds, len(c.Cases)*len(c.Seeds)), left: make([][]int, len(c.Cases))}
	for i := range b.all {
		job := Job{Case: c.Cases[i/len(c.Seeds)], Policy: OracleName, Seed: c.Seeds[i%len(c.Seeds)]}
		b.all[i].Case.Open, b.all[i].Seed.Open = true, true
		if c.Mine != nil && !c.Mine(job) {
			continue
		}
		if c.Known != nil {
			if known, ok := c.Known(job); ok {
				b.all[i] = known
				continue
			}
		}
		k := i / len(c.Seeds)
		b.left[k] = append(b.left[k], i)
	}
	if ctx.Err() != nil {
		return b.all
	}
	return b.until(ctx, func() { b.work(ctx) })
}

// A bounding is a computation of bounds in progress.
type bounding struct {
	c    *Config
	left [][]int // by case: the indexes in all of the bounds to compute

	mu   sync.Mutex
	all  []Bounds
	done int
}

// until returns the bounds when work has finished, or the current ones when ctx ends.
func (b *bounding) until(ctx context.Context, work func()) []Bounds {
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
	return slices.Clone(b.all)
}

func (b *bounding) work(ctx context.Context) {
	c, seeded := b.c, slices.Concat(b.left...)
	total := len(seeded)
	for _, of := range b.left {
		total += min(len(of), 1)
	}
	report := func() {
		if c.Progress != nil && ctx.Err() == nil && total > 0 {
			c.Progress(Progress{Step: StepBounds, Done: b.done, Total: total})
		}
	}
	note := func(set func()) {
		b.mu.Lock()
		defer b.mu.Unlock()
		set()
		b.done++
		report()
	}
	report()
	all := make([]*oracle.Oracle, len(c.Cases))
	parallel(c.workers(), len(c.Cases), func(k int) {
		if len(b.left[k]) == 0 || ctx.Err() != nil {
			return
		}
		bound := oracle.Bound{}
		if o, err := oracle.New(c.Cases[k].Bound); err == nil {
			all[k], bound = o, o.Every()
		}
		note(func() {
			for _, i := range b.left[k] {
				b.all[i].Case = bound
			}
		})
	})
	parallel(c.workers(), len(seeded), func(turn int) {
		if ctx.Err() != nil {
			return
		}
		i := seeded[turn]
		k, of := i/len(c.Seeds), b.all[i].Case
		bound := oracle.Bound{Cost: of.Cost, OnDemand: of.OnDemand, Slots: of.Cost}
		if all[k] != nil {
			if under, err := all[k].Under(c.Seeds[i%len(c.Seeds)]); err == nil {
				bound.Cost = max(bound.Cost, under.Cost)
				bound.Slots, bound.Short = max(bound.Cost, under.Slots), under.Short
			}
		}
		note(func() { b.all[i].Seed = bound })
	})
}

// gather returns the bounds of every case, and of every case and seed, ordered by case. Slots of a
// case is the minimum of its seeds, and Short the sum. Open bounds of a seed are replaced by those
// of its case.
func gather(c *Config, all []Bounds) (of, seeded []oracle.Bound) {
	n := len(c.Seeds)
	for k := range c.Cases {
		cell := all[k*n : (k+1)*n]
		bound := oracle.Bound{Open: true}
		for i := range cell {
			if bound.Open {
				bound = cell[i].Case
			}
		}
		least, cost := policy.Money(math.MaxInt64), bound.Cost
		for i := range cell {
			b := cell[i].Seed
			if b.Open {
				b.Slots = cost
			}
			least = min(least, b.Slots)
			bound.Short += b.Short
			seeded = append(seeded, b)
		}
		bound.Slots = least
		of = append(of, bound)
	}
	return of, seeded
}
