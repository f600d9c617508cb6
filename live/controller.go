package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// A Controller takes one decision after the other while its replica leads.
type Controller struct {
	cfg   *Config
	parts *Parts

	// settings are those in force; [Controller.Set] replaces them.
	settings atomic.Pointer[Settings]

	store     *Store
	decider   *decider
	publisher *publisher
	driver    *driver.Driver
	alarm     alarm
	waker     *waker
	executor  *executor
	reporter  *statusReporter
	spans     *drainSpans

	// broken is why the process must end; nil while it need not.
	broken atomic.Pointer[error]

	// table is what steps and the reconcilers share, and workers are these.
	table   *table
	workers *workers

	// What follows belongs to the step. memory is what was decided with last.
	memory  policy.Memory
	meter   meter
	current stepState

	// experience is when what was met in the markets was saved.
	experience time.Time
}

// A stepState is what one step saw, by PoolID where it is a slice, and decided.
type stepState struct {
	// plan is what was decided on snapshot and is not saved yet.
	snapshot *policy.Snapshot
	plan     *policy.Plan

	conflicts map[string]string
	counted   []figures
	forecast  error
	kill      permit.Switch
	rival     string      // the namespace of another release that acts; empty without one
	plans     []planState // what persons have approved
	times     phases
}

var (
	_ manager.Runnable               = (*Controller)(nil)
	_ manager.LeaderElectionRunnable = (*Controller)(nil)
)

// New returns a controller that is started by a manager.
func New(cfg Config, parts Parts) (*Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if err := parts.validate(); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if parts.Tracer == nil {
		parts.Tracer = noop.NewTracerProvider().Tracer("spotter")
	}
	t, all := newTable(), &workers{}
	w := &waker{cfg: &cfg, parts: &parts, table: t, wakes: make(chan string, wakesMax)}
	c := &Controller{
		cfg: &cfg, parts: &parts, store: newStore(&cfg, &parts), table: t, workers: all, waker: w,
		executor: &executor{cfg: &cfg, parts: &parts, table: t, workers: all, waker: w},
		reporter: &statusReporter{cfg: &cfg, parts: &parts, table: t, reported: map[string]time.Time{}},
		alarm:    alarm{clock: parts.Clock, collect: cfg.Collect, wakes: w.wakes},
	}
	c.publisher = &publisher{c: c}
	c.spans = &drainSpans{tracer: parts.Tracer, clock: parts.Clock, open: map[string]*drainSpan{}}
	c.settings.Store(&cfg.Settings)
	var err error
	if c.decider, err = newDecider(parts.Policy, c.decided); err != nil {
		return nil, err
	}
	c.meter.observer, _ = parts.Observer.(LifeObserver)
	return c, nil
}

// validate names the first part that is missing.
func (p *Parts) validate() error {
	for _, x := range []struct {
		name  string
		there bool
	}{
		{"Observer", p.Observer != nil}, {"Drains", p.Drains != nil}, {"Policy", p.Policy != nil}, {"Client",
			p.Client != nil},
		{"Reader", p.Reader != nil}, {"Authority", p.Authority != nil}, {"Clock", p.Clock != nil}, {"Log", p.Log != nil},
	} {
		if !x.there {
			return fmt.Errorf("part %s is missing", x.name)
		}
	}
	return nil
}

// Set replaces the settings while the controller runs. The next step is taken soon, so
// that a shorter time between steps does not wait for the longer one.
func (c *Controller) Set(s Settings) {
	c.settings.Store(&s)
	c.waker.wake(wakeSettings)
}

// NeedLeaderElection keeps all replicas but one from deciding.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start takes over from the leader before, and steps until the context ends. It
// returns [ErrSuperseded] when it finds another leader, and has then done nothing
// more; else it finishes or takes back what is half done.
func (c *Controller) Start(ctx context.Context) error {
	c.parts.Metrics.Leads(true)
	defer c.parts.Metrics.Leads(false)
	defer c.spans.left()
	if err := c.takeOver(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	c.startWorkers(running, &all, stop) // drains continue, and notices are obeyed, before the first step
	c.awaitPrices(running)
	var err error
	if c.awaitCluster(running) == nil { // else the process must end
		err = c.loop(running)
	}
	stop(nil)
	if errors.Is(err, errHung) {
		return err // the step that hangs may still use the memory, and drains what it holds
	}
	all.Wait()
	if err != nil {
		return err
	}
	c.shutDown(ctx)
	if cause := context.Cause(running); ctx.Err() == nil && errors.As(cause, new(*workerError)) {
		return cause
	}
	return nil
}

// takeOver reads what is remembered.
func (c *Controller) takeOver(ctx context.Context) error {
	begun := c.parts.Clock.Now()
	memory, experience, err := c.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("taking over: %w", err)
	}
	if c.parts.Experience != nil && len(experience) > 0 {
		if err := c.parts.Experience.Import(experience); err != nil {
			c.parts.Log.Error("the recorded experience of markets is lost", "error", err)
		}
	}
	c.store.head.Writer = c.cfg.Identity
	if err := c.store.saveKey(ctx); err != nil {
		return fmt.Errorf("taking over: %w", err)
	}
	c.parts.Drains.Trust(c.store.head.Key)
	c.memory, c.meter.charged = memory, c.store.head.Charged
	c.parts.Authority.Recall(c.store.head.Stopped)
	c.resumeRamps()
	c.driver = driver.New(driver.Dependencies{
		Observer: observer{c}, Forecaster: forecaster{c}, Actuator: c.publisher, Ranker: c.publisher, Enforcer: c.publisher,
		Store: stateStore{c}, Recorder: recordWriter{c},
	}, c.decider, memory)
	c.parts.Log.Info("leading", "decisions", memory.Decisions, "pools", len(memory.Pools), "took",
		c.parts.Clock.Since(begun))
	return nil
}

// awaitCluster waits until the whole cluster was read once.
func (c *Controller) awaitCluster(ctx context.Context) error {
	r, is := c.parts.Observer.(Awaited)
	if !is {
		return nil
	}
	begun := c.parts.Clock.Now()
	if err := r.Await(ctx); err != nil {
		return err
	}
	c.parts.Log.Info("the cluster is read", "took", c.parts.Clock.Since(begun))
	return nil
}

// awaitPrices waits until every source of prices was asked, but not for ever: one
// that hangs must not keep nodes under notice waiting.
func (c *Controller) awaitPrices(ctx context.Context) {
	if c.parts.Priced == nil {
		return
	}
	timer := c.parts.Clock.NewTimer(c.cfg.PricesWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-c.parts.Priced:
	case <-timer.C():
		c.parts.Log.Warn("the first step no longer waits for prices", "waited", c.cfg.PricesWait)
	}
}

// loop steps whenever a step is due.
func (c *Controller) loop(ctx context.Context) error {
	due, reason, delay := c.parts.Clock.Now(), wakeStart, c.cfg.Retry
	for {
		reasons, err := c.alarm.wait(ctx, due, reason)
		if err != nil {
			return nil //nolint:nilerr // the process must end
		}
		wake, err := c.boundedStep(ctx, reasons)
		switch {
		case errors.Is(err, errHung):
			c.parts.Log.Error("a step does not end: this process gives up the lease", "error", err)
			return err
		case errors.Is(err, ErrSuperseded):
			c.parts.Log.Error("another replica leads: this one stops acting", "error", err)
			return err
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the process must end
		case err != nil:
			c.parts.Metrics.Failed()
			c.parts.Log.Error("step failed", "error", err, "retry", delay)
			due, reason, delay = c.parts.Clock.Now().Add(delay), wakeRetry, min(2*delay, c.cfg.RetryMax)
		default:
			due, reason, delay = wake, wakePlan, c.cfg.Retry
		}
	}
}

// errHung is the error of a step that does not return, such as of a policy or a model that
// computes for ever. No context can end it: the process must.
var errHung = errors.New("the step has not ended")

// boundedStep takes a step, and returns errHung once that lasts for Config.StepHung.
func (c *Controller) boundedStep(ctx context.Context, reasons []string) (time.Time, error) {
	type result struct {
		due time.Time
		err error
	}
	ended := make(chan result, 1)
	timer := c.parts.Clock.NewTimer(c.cfg.StepHung)
	defer timer.Stop()
	go func() {
		due, err := c.step(ctx, reasons)
		ended <- result{due, err}
	}()
	select {
	case r := <-ended:
		return r.due, r.err
	case <-timer.C():
		err := fmt.Errorf("after %v: %w", c.cfg.StepHung, errHung)
		c.broken.Store(&err)
		return time.Time{}, err
	}
}

// Healthy returns why the process must end: a background worker or a step that does not.
// Such a process ends by itself; should that hang too, the kubelet ends it.
func (c *Controller) Healthy(*http.Request) error {
	if err := c.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// shutDown saves what is remembered and finishes or takes back drains, while the lease
// is still held.
func (c *Controller) shutDown(ctx context.Context) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Shutdown)
	defer cancel()
	if _, err := c.parts.Lease.Fence(ending); err != nil {
		c.parts.Log.Error("stopping without finishing drains", "error", err)
		return
	}
	if err := c.store.save(ending, &c.memory, true); err != nil {
		c.parts.Log.Error("saving the memory before shutdown", "error", err)
	}
	if c.parts.Ledger != nil {
		if err := c.parts.Ledger.Flush(ending); err != nil {
			c.parts.Log.Error("saving the ledgers of budgets before shutdown", "error", err)
		}
	}
	c.saveExperience(ending, true)
	var settled drain.Settled
	var err error
	if c.cfg.Mode == policy.ModeActive { // last, since it may take all of the time that is left
		if settled, err = c.parts.Drains.Shutdown(ending); err != nil {
			c.parts.Log.Error("finishing drains before shutdown", "error", err)
		}
	}
	c.parts.Log.Info("stopped", "undone", settled.Undone, "left", settled.Left)
}

// saveExperience saves what was met in the markets when it is time to.
func (c *Controller) saveExperience(ctx context.Context, now bool) {
	at := c.parts.Clock.Now()
	if c.parts.Experience == nil || !now && at.Sub(c.experience) < c.cfg.ExperienceEvery {
		return
	}
	c.experience = at
	if err := c.store.SaveExperience(ctx, c.parts.Experience.Export()); err != nil {
		c.parts.Log.Error("saving the experience of markets", "error", err)
	}
}
