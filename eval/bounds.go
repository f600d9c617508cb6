package eval

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
)

// bounds returns the bounds of every case, and of every case and seed, ordered by
// case, those that hold in the weather of the seed. Cases that cannot be run have
// none. Slots of a case is the least of its seeds, and Short counts over all. When
// ctx ends they are what is computed by then, and the rest is open: a bound of a
// large scenario takes longer than a user who stops it waits, so the computation
// under way is abandoned.
func bounds(ctx context.Context, c *Config) (of, seeded []oracle.Bound) {
	b := &bounding{of: make([]oracle.Bound, len(c.Cases)), seeded: make([]oracle.Bound, len(c.Cases)*len(c.Seeds))}
	for i := range b.of {
		b.of[i].Open = true
	}
	for i := range b.seeded {
		b.seeded[i].Open = true
	}
	if ctx.Err() != nil {
		return b.of, b.seeded
	}
	return b.until(ctx, func() { b.work(ctx, c) })
}

// A bounding is the bounds as far as they are computed.
type bounding struct {
	mu         sync.Mutex
	of, seeded []oracle.Bound
	done       int
}

// until returns the bounds when work is done, or as they are when ctx ends.
func (b *bounding) until(ctx context.Context, work func()) (of, seeded []oracle.Bound) {
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
	report := func() {
		if c.Progress != nil && ctx.Err() == nil {
			c.Progress(Progress{Step: StepBounds, Done: b.done, Total: len(b.of) + len(b.seeded)})
		}
	}
	note := func(to *oracle.Bound, bound oracle.Bound) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*to = bound
		b.done++
		report()
	}
	report()
	all := make([]*oracle.Oracle, len(c.Cases))
	parallel(c.workers(), len(c.Cases), func(i int) {
		if ctx.Err() != nil {
			return
		}
		bound := oracle.Bound{}
		if o, err := oracle.New(c.Cases[i].Bound); err == nil {
			all[i], bound = o, o.Every()
		}
		note(&b.of[i], bound)
	})
	parallel(c.workers(), len(b.seeded), func(i int) {
		if ctx.Err() != nil {
			return
		}
		k := i / len(c.Seeds)
		bound := oracle.Bound{Cost: b.of[k].Cost, OnDemand: b.of[k].OnDemand, Slots: b.of[k].Cost}
		if all[k] != nil {
			if of, err := all[k].Under(c.Seeds[i%len(c.Seeds)]); err == nil {
				bound.Cost = max(bound.Cost, of.Cost)
				bound.Slots, bound.Short = max(bound.Cost, of.Slots), of.Short
			}
		}
		note(&b.seeded[i], bound)
	})
}

// gather adds to the bounds of cases what those of their seeds come to. For a seed
// whose bounds are open those of its case hold.
func gather(of, seeded []oracle.Bound) {
	n := len(seeded) / len(of)
	for i := range of {
		least := policy.Money(math.MaxInt64)
		for _, b := range seeded[i*n : (i+1)*n] {
			if b.Open {
				b.Slots = of[i].Cost
			}
			least = min(least, b.Slots)
			of[i].Short += b.Short
		}
		of[i].Slots = least
	}
}
