package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// poolsAtOnce is the number of pools whose backends are called concurrently, so that a slow backend
// does not delay other pools.
const poolsAtOnce = 16

// tendMax is the maximum duration of one call of a [Tender].
const tendMax = 2 * time.Minute

// The first and the longest wait before a failed reconciler runs again. The wait doubles with every
// failure.
const (
	backoff    = time.Second
	backoffMax = time.Minute
)

// workers are the reconcilers that carry out what steps publish. The fields are nil until the
// controller starts.
type workers struct {
	pools    *worker[string] // by name of the CapacityPool: NodePools and launches
	budgets  *worker[string] // by name of the GPUBudget; the empty key writes the statuses of all
	backends *worker[int]    // by index in Parts.Tenders
	status   *worker[string] // by name of the CapacityPool: its status
}

// A worker is a controller-runtime reconciler and its queue.
type worker[K comparable] struct {
	queue priorityqueue.PriorityQueue[K]
	controller.TypedController[K]
}

func newWorker[K comparable](name string, log *slog.Logger, atOnce int, do reconcile.TypedFunc[K]) *worker[K] {
	sink := logr.FromSlogHandler(log.Handler())
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](backoff, backoffMax)
	queue := priorityqueue.New(name, func(o *priorityqueue.Opts[K]) { o.Log, o.RateLimiter = sink, limiter })
	run, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[K]{
		Reconciler: do, MaxConcurrentReconciles: atOnce, SkipNameValidation: new(true), Logger: sink,
		NewQueue: func(string, workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] { return queue },
	})
	if err != nil {
		panic(fmt.Sprintf("live: worker %q: %v", name, err))
	}
	return &worker[K]{queue, run}
}

// add queues keys for reconciliation. A key that is already in the queue is not added again.
func (w *worker[K]) add(priority int, keys ...K) {
	if w != nil {
		w.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	}
}

// A workerError is the error of a background worker that ended although its context had not.
type workerError struct{ err error }

func (w *workerError) Error() string {
	if w.err == nil {
		return "a background worker has ended"
	}
	return "a background worker has ended: " + w.err.Error()
}

func (w *workerError) Unwrap() error { return w.err }

// startWorkers runs all work between the steps until ctx ends; running waits for it. A controller
// without one of its workers would decide and not act, or not receive notices, so fail is called
// with the error of a worker that ends early.
func (c *Controller) startWorkers(ctx context.Context, running *sync.WaitGroup, fail context.CancelCauseFunc) {
	*c.workers = workers{
		pools:    newWorker("pool", c.parts.Log, poolsAtOnce, c.executor.reconcilePool),
		budgets:  newWorker("budget", c.parts.Log, 1, c.executor.reconcileBudget),
		backends: newWorker("backend", c.parts.Log, max(1, len(c.parts.Tenders)), c.executor.reconcileBackend),
		status:   newWorker("status", c.parts.Log, 1, c.reporter.reconcile),
	}
	all := append([]func(context.Context) error{
		c.workers.pools.Start, c.workers.budgets.Start, c.workers.backends.Start, c.workers.status.Start, c.waker.relay, c.waker.watchSwitch,
	}, c.parts.Workers...)
	if c.cfg.Mode == policy.ModeActive { // in shadow mode nothing is undone either
		all = append(all, c.parts.Drains.Run)
	}
	for _, run := range all {
		running.Go(func() {
			err := run(ctx)
			if ctx.Err() == nil {
				err = &workerError{err}
				c.parts.Log.Error("this process ends", "error", err)
				c.broken.Store(&err)
				fail(err)
			}
		})
	}
}

// An executor carries out what steps publish.
type executor struct {
	cfg     *Config
	parts   *Parts
	table   *table
	workers *workers
	waker   *waker
}

// reconcilePool carries out the part of the last plan for a pool: its steer, its launches, drains
// of nodes that are not under notice, and the deletion costs of pods on its nodes.
func (x *executor) reconcilePool(ctx context.Context, pool string) (reconcile.Result, error) {
	err := x.carryOut(permit.Act(ctx, pool), target{pool: pool})
	if x.table.settle(pool, err) {
		x.workers.status.add(priorityPlan, pool)
	}
	return reconcile.Result{}, err
}

// reconcileBudget carries out the part of the last plan for a GPUBudget. With an empty name, it
// writes the statuses of all GPUBudgets. The two share one worker, so that no other goroutine
// writes these objects at the same time.
func (x *executor) reconcileBudget(ctx context.Context, budget string) (reconcile.Result, error) {
	if budget != "" {
		return reconcile.Result{}, x.carryOut(permit.Enforce(ctx), target{budget: budget})
	}
	s := x.table.snapshot()
	if s == nil {
		return reconcile.Result{}, nil
	}
	var errs []error
	for _, r := range x.parts.Reporters {
		errs = append(errs, r.Report(ctx, s))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// carryOut carries out the remaining entries of an intent, in order. It continues after a failed
// entry, and returns the first error.
func (x *executor) carryOut(ctx context.Context, of target) error {
	var failed error
	for _, e := range x.table.remaining(of) {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the process must end
		}
		if !x.table.begin(of, e) {
			continue // a later plan has replaced it
		}
		v, why, err := x.act(ctx, e)
		x.table.end(of, e, v, why)
		x.parts.Metrics.Entry(e.kind, of.pool, string(v))
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", e.kind, err)
		}
		if errors.Is(err, ErrSuperseded) {
			x.waker.wake(wakeLease)
			break
		}
	}
	return failed
}

// act carries out one entry if it is permitted at present.
func (x *executor) act(ctx context.Context, e *entry) (outcome, held, error) {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.CallMax)
	defer cancel()
	if err := x.parts.Authority.Check(ctx); err != nil {
		return resultOf(err)
	}
	return resultOf(e.do(ctx))
}

// reconcileBackend calls the Tender of a backend, after each step and every Config.TendEvery.
func (x *executor) reconcileBackend(ctx context.Context, i int) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: x.cfg.TendEvery}
	s := x.table.snapshot()
	if s == nil || x.cfg.Mode != policy.ModeActive { // in shadow mode nothing is written, not even to undo changes
		return again, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tendMax)
	defer cancel()
	view, err := x.tendable(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	times := phases{clock: x.parts.Clock, tracer: x.parts.Tracer, metrics: x.parts.Metrics}
	inner, end := times.begin(ctx, phaseTend)
	err = x.parts.Tenders[i].Tend(inner, view)
	end()
	for p := range s.Pools { // the conditions of a backend may have changed
		x.workers.status.add(priorityReport, s.Pools[p].Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("maintaining the backends' objects: %w", err)
	}
	return again, nil
}

// tendable returns a copy of s in which each pool has the mode that is permitted at present.
func (x *executor) tendable(ctx context.Context, s *policy.Snapshot) (*policy.Snapshot, error) {
	view := *s
	view.Pools = slices.Clone(s.Pools)
	for i := range view.Pools {
		v, err := x.parts.Authority.Pool(ctx, view.Pools[i].Name)
		if err != nil {
			return nil, err
		}
		switch v {
		case permit.Active:
			view.Pools[i].Mode = policy.ModeActive
		case permit.Off, permit.Gone:
			view.Pools[i].Mode = policy.ModeOff
		default:
			view.Pools[i].Mode = policy.ModeShadow
		}
	}
	return &view, nil
}

// snapshot returns the snapshot of the last step, nil before the first.
func (t *table) snapshot() *policy.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// launchWait is the maximum time that a step waits for launches of the previous plan. A launch that
// is then still in progress may or may not be in the snapshot of the step, so its pool launches
// nothing more.
const launchWait = 2 * time.Second

// awaitLaunches withdraws the launches that have not started and waits for the others.
func (c *Controller) awaitLaunches(ctx context.Context) {
	c.publisher.soon = false
	c.table.withdraw()
	busy, ended := c.table.launching()
	defer func() { c.publisher.busy = busy }()
	if len(busy) == 0 {
		return
	}
	ctx, end := c.current.times.begin(ctx, phaseWait)
	defer end()
	timer := c.parts.Clock.NewTimer(launchWait)
	defer timer.Stop()
	for len(busy) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			return
		case <-ended:
		}
		busy, ended = c.table.launching()
	}
}
