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

// A Controller makes one decision after another while its replica leads.
type Controller struct {
	cfg   *Config
	parts *Parts

	// settings are the current settings; [Controller.Set] replaces them.
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

	// broken is the reason that the process must end; nil if it need not end.
	broken atomic.Pointer[error]

	// table is the state that the step shares with the workers.
	table   *table
	workers *workers

	// The following fields belong to the step. memory is the memory of the last decision.
	memory  policy.Memory
	meter   meter
	current stepState

	// experience is the time at which the experience of markets was last saved.
	experience time.Time
}

// A stepState contains the observations and the decision of one step. Slices are indexed by PoolID.
type stepState struct {
	// plan is the decision on snapshot that has not been saved yet.
	snapshot *policy.Snapshot
	plan     *policy.Plan

	conflicts map[string]string
	counted   []figures
	forecast  error
	kill      permit.Switch
	rival     string      // namespace of another release that acts; empty if no other release acts
	plans     []planState // approvals by users
	times     phases
}

var (
	_ manager.Runnable               = (*Controller)(nil)
	_ manager.LeaderElectionRunnable = (*Controller)(nil)
)

// New returns a controller, which a manager starts.
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

// validate returns an error that names the first missing part.
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

// Set replaces the settings while the controller runs. It requests a step soon, so that a shorter
// time between steps takes effect at once.
func (c *Controller) Set(s Settings) {
	c.settings.Store(&s)
	c.waker.wake(wakeSettings)
}

// NeedLeaderElection returns true: only one replica decides.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start takes over from the previous leader, and runs steps until the context ends. It returns
// [ErrSuperseded] if it finds another leader, and then stops acting at once. Otherwise it finishes
// or undoes unfinished drains before it returns.
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
	c.startWorkers(running, &all, stop) // drains continue and notices are handled before the first step
	c.awaitPrices(running)
	var err error
	if c.awaitCluster(running) == nil { // otherwise the process must end
		err = c.loop(running)
	}
	stop(nil)
	if errors.Is(err, errHung) {
		return err // the hung step may still use the memory, and the drains may depend on it
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

// takeOver loads the stored state.
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

// awaitCluster waits until the whole cluster has been read once.
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

// awaitPrices waits until every source of prices was queried, for at most PricesWait: a source that
// hangs must not delay the response to notices.
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

// loop runs a step whenever one is due.
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

// errHung is the error of a step that does not return, for example because a policy or a model
// computes forever. No context can end such a step, so the process must end.
var errHung = errors.New("the step has not ended")

// boundedStep runs a step. It returns errHung if the step takes longer than Config.StepHung.
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

// Healthy returns the reason that the process must end: a background worker that failed or a step
// that hangs. Such a process ends by itself; if it hangs, the kubelet restarts it.
func (c *Controller) Healthy(*http.Request) error {
	if err := c.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// shutDown saves the state, and finishes or undoes drains, while the lease is still held.
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
	if c.cfg.Mode == policy.ModeActive { // last, since it may take all of the remaining time
		if settled, err = c.parts.Drains.Shutdown(ending); err != nil {
			c.parts.Log.Error("finishing drains before shutdown", "error", err)
		}
	}
	c.parts.Log.Info("stopped", "undone", settled.Undone, "left", settled.Left)
}

// saveExperience saves the experience of markets if ExperienceEvery has passed or now is true.
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
