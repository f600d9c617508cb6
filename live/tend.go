package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
)

// A stage keeps steps and the tending of the backends, which goes on beside them, out of
// each other's way. A step does not wait for the tending to be done before it looks and
// decides, only before it acts, and then not for long.
type stage struct {
	// seen is held by who needs what the last step saw and counted: a step, all the time.
	seen sync.Mutex

	// acting is held by who changes something in the cluster: a step once its memory is
	// saved, or who tends. Who holds seen may wait for it, and nobody the other way.
	acting sync.Mutex

	// holds says that the step holds acting too. It belongs to who holds seen.
	holds bool

	// cut ends the tending that is under way; nil where none is. cuts is how many in a
	// row were ended so.
	mu   sync.Mutex
	cut  context.CancelFunc
	cuts int
}

// patience is how long a step that is about to act lets the tending go on. It doubles
// with each that was cut short, up to patienceMax, so that one comes to its end at last
// however slow the API server is and however often a step is taken.
const (
	patience    = 500 * time.Millisecond
	patienceMax = 30 * time.Second
)

// tryAct reports whether the step that holds seen may change something now.
func (s *stage) tryAct() bool {
	s.holds = s.holds || s.acting.TryLock()
	return s.holds
}

// act returns when it may. It has who tends stop after a while, or at once.
func (s *stage) act(clock clock.WithTicker, atOnce bool) {
	free := make(chan struct{})
	var watch sync.WaitGroup
	if atOnce {
		s.cutShort()
	} else {
		s.mu.Lock()
		timer := clock.NewTimer(min(patience<<min(s.cuts, 16), patienceMax))
		s.mu.Unlock()
		watch.Go(func() {
			defer timer.Stop()
			select {
			case <-free:
			case <-timer.C():
				s.cutShort()
			}
		})
	}
	s.acting.Lock()
	s.holds = true
	close(free)
	watch.Wait()
}

// leave ends a step.
func (s *stage) leave() {
	if s.holds {
		s.holds = false
		s.acting.Unlock()
	}
	s.seen.Unlock()
}

// tend has the backends tended for as long as no step is to act. The caller holds seen,
// and gives it up.
func (s *stage) tend(ctx context.Context, do func(context.Context)) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	s.acting.Lock()
	s.mu.Lock()
	s.cut = cut
	s.mu.Unlock()
	s.seen.Unlock()
	do(ctx)
	s.mu.Lock()
	s.cut = nil
	if ctx.Err() == nil {
		s.cuts = 0
	}
	s.mu.Unlock()
	s.acting.Unlock()
}

func (s *stage) cutShort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil {
		s.cut()
		s.cut = nil
		s.cuts++
	}
}

// takeStage returns when the step may change something.
func (c *Controller) takeStage(ctx context.Context, atOnce bool) {
	if c.stage.tryAct() {
		return
	}
	_, end := c.times.begin(ctx, phaseWait)
	defer end()
	c.stage.act(c.parts.Clock, atOnce)
}

// tendBeside tends the backends after each step, and between two that are far apart.
func (c *Controller) tendBeside(ctx context.Context) {
	ticker := c.parts.Clock.NewTicker(c.cfg.TendEvery)
	defer ticker.Stop()
	c.beside.Store(true)
	defer c.beside.Store(false)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.stepped:
			c.tendLast(ctx, false)
		case <-ticker.C():
			c.tendLast(ctx, true)
		}
	}
}

// tendLast tends the backends and then the status of pools, with the snapshot of the
// last step. Between two steps it does so only where the last is long ago.
func (c *Controller) tendLast(ctx context.Context, between bool) {
	c.stage.seen.Lock()
	last := c.last
	if last == nil || c.actuator.superseded != nil || between && c.parts.Clock.Since(last.Now.Std()) < c.cfg.TendEvery {
		c.stage.seen.Unlock()
		return
	}
	if between {
		c.parts.Lease.Lower()
	}
	if view := c.tendable(last); view != nil {
		c.stage.tend(ctx, func(ctx context.Context) { c.timeTend(ctx, view) })
		if !c.stage.seen.TryLock() {
			return // a step has begun, and tells of it
		}
		if c.last != last {
			c.stage.seen.Unlock()
			return
		}
	}
	defer c.stage.seen.Unlock()
	if err := c.report(ctx, last); err != nil { // also figures that were not due at the step
		c.parts.Log.Warn("the status of pools is not up to date", "error", err)
	}
}

// timeTend tends the backends beside the steps. The step after tells what it took.
func (c *Controller) timeTend(ctx context.Context, view *policy.Snapshot) {
	times := phases{clock: c.parts.Clock, tracer: c.parts.Tracer, metrics: c.parts.Metrics}
	inner, end := times.begin(ctx, phaseTend)
	c.tend(inner, view)
	end()
	c.tended.Store(int64(times.of(phaseTend)))
}

// tendable returns the snapshot as those see it who tend: with each pool in the mode that
// it may be changed in. It is nil where nothing may be.
func (c *Controller) tendable(s *policy.Snapshot) *policy.Snapshot {
	if c.allowed(policy.ModeActive) != outcomeDone || len(c.parts.Tenders) == 0 {
		return nil
	}
	view := *s
	view.Pools = slices.Clone(s.Pools)
	for i := range view.Pools {
		switch c.verdict(&s.Pools[i]) {
		case outcomeDone:
		case outcomeOff:
			view.Pools[i].Mode = policy.ModeOff
		default:
			view.Pools[i].Mode = policy.ModeShadow
		}
	}
	return &view
}

// tend lets backends do what passes with time, for the pools that may be touched.
func (c *Controller) tend(ctx context.Context, view *policy.Snapshot) {
	for _, t := range c.parts.Tenders {
		err := c.actuator.call(ctx, func() error { return t.Tend(ctx, view) })
		switch {
		case ctx.Err() != nil:
			c.parts.Log.Debug("the next step comes before what the backends are tended for", "decision", decisionID(view))
			return
		case err != nil:
			c.parts.Log.Warn("tending what the backends hold", "decision", decisionID(view), "error", err)
		}
	}
}
