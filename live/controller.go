package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// A Controller takes one decision after the other while its replica leads.
type Controller struct {
	cfg   Config
	parts Parts

	// settings are those in force; [Controller.Set] replaces them.
	settings atomic.Pointer[Settings]

	store    *Store
	decider  *decider
	actuator *actuator
	driver   *driver.Driver
	herald   *herald
	kill     killSwitch
	alarm    alarm

	// obeySwitch waits for the kill switch to be read in this step, and does what it
	// says; no more than once.
	obeySwitch func()

	// poll takes what the controller itself finds between two steps. on mirrors
	// kill.stopped for who watches the switch meanwhile.
	poll chan string
	on   atomic.Bool

	// memory is what was decided with last.
	memory policy.Memory

	// What the step saw, by PoolID where it is a slice.
	meter     meter
	conflicts map[string]string
	counted   []figures
	forecast  error
	times     phases

	// stage keeps a step and what tends the backends apart. last is the snapshot of the
	// last step, nil while one is taken.
	stage stage
	last  *policy.Snapshot

	// beside says that the backends are tended beside the steps, and stepped that one
	// was taken. tended is how long that took, until a step has told it.
	beside  atomic.Bool
	stepped chan struct{}
	tended  atomic.Int64

	// ended is the last drain of each pool that came to an end, fruitless the nodes of
	// those that came to nothing since the ramps were told.
	results   sync.Mutex
	ended     map[string]endedDrain
	fruitless map[string]bool

	// reported is when the status of a pool was last written, experience when what
	// was met in the markets was saved, settled what the kill switch undid and left.
	reported   map[string]time.Time
	experience time.Time
	settled    string
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
	c := &Controller{
		cfg: cfg, parts: parts, store: newStore(&cfg, &parts), poll: make(chan string, 1), stepped: make(chan struct{}, 1), reported: map[string]time.Time{}, ended: map[string]endedDrain{}, fruitless: map[string]bool{},
		herald: newHerald(&parts),
		kill:   killSwitch{reader: parts.Reader, key: client.ObjectKey{Namespace: cfg.Namespace, Name: cfg.KillSwitch}},
		alarm:  alarm{clock: parts.Clock, collect: cfg.Collect, wakes: parts.Wakes},
	}
	c.settings.Store(&cfg.Settings)
	var err error
	if c.decider, err = newDecider(parts.Policy, c.decided); err != nil {
		return nil, err
	}
	c.actuator = &actuator{parts: &c.parts, fence: parts.Lease.Fence, refused: c.drainRefused}
	c.meter.witness, _ = parts.Observer.(Witness)
	return c, nil
}

// validate names the first part that is missing.
func (p *Parts) validate() error {
	for _, x := range []struct {
		name  string
		there bool
	}{
		{"Observer", p.Observer != nil}, {"Drains", p.Drains != nil}, {"Policy", p.Policy != nil}, {"Client", p.Client != nil},
		{"Reader", p.Reader != nil}, {"Clock", p.Clock != nil}, {"Log", p.Log != nil},
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
	select {
	case c.poll <- wakeSettings:
	default: // a step is asked for already
	}
}

// NeedLeaderElection keeps all replicas but one from deciding.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start takes over from the leader before, and steps until the context ends. It
// returns [ErrSuperseded] when it finds another leader, and has then done nothing
// more; else it finishes or takes back what is half done.
func (c *Controller) Start(ctx context.Context) error {
	c.parts.Metrics.Leads(true)
	defer c.parts.Metrics.Leads(false)
	if err := c.takeOver(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.awaitPrices(ctx)
	running, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for _, work := range append([]func(context.Context) error{c.parts.Drains.Run}, c.parts.Workers...) {
		all.Go(func() {
			if err := work(running); err != nil && running.Err() == nil {
				c.parts.Log.Error("what runs beside the steps has stopped", "error", err)
			}
		})
	}
	all.Go(func() { c.herald.run(running) })
	all.Go(func() { c.watchSwitch(running) })
	all.Go(func() { c.tendBeside(running) })
	var err error
	if c.awaitCluster(ctx) == nil { // else the process is to end
		err = c.loop(ctx)
	}
	stop()
	all.Wait()
	if err != nil {
		return err
	}
	c.shutDown(ctx)
	return nil
}

// Enforcing reports whether anything that spans pools, such as a budget, may be
// enforced now. It is called from within a step.
func (c *Controller) Enforcing() bool { return c.allowed(policy.ModeActive) == outcomeDone }

// takeOver reads what is remembered and settles what is half done.
func (c *Controller) takeOver(ctx context.Context) error {
	begun := c.parts.Clock.Now()
	memory, experience, err := c.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("taking over: %w", err)
	}
	if c.parts.Experience != nil && len(experience) > 0 {
		if err := c.parts.Experience.Import(experience); err != nil {
			c.parts.Log.Error("what was met in the markets is lost", "error", err)
		}
	}
	c.store.head.Writer = c.cfg.Identity
	c.memory, c.meter.charged = memory, c.store.head.Charged
	c.kill.stopped = c.store.head.Stopped
	c.resumeRamps()
	c.driver = driver.New(driver.World{
		Observer: eyes{c}, Forecaster: foresight{c}, Actuator: c.actuator, Ranker: c.actuator, Enforcer: c.actuator,
		Store: keeper{c}, Recorder: scribe{c},
	}, c.decider, memory)
	var settled drain.Settled
	if c.cfg.Mode == policy.ModeActive { // in shadow no node is written, not even to undo
		if settled, err = c.parts.Drains.Recover(ctx); err != nil {
			c.parts.Log.Error("settling what the leader before left", "error", err)
		}
	}
	c.parts.Log.Info("leading", "decisions", memory.Decisions, "pools", len(memory.Pools), "undone", settled.Undone, "left", settled.Left,
		"took", c.parts.Clock.Since(begun))
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
		c.parts.Log.Warn("the first step does not wait any longer for prices", "waited", c.cfg.PricesWait)
	}
}

// loop steps whenever a step is due.
func (c *Controller) loop(ctx context.Context) error {
	due, reason, delay := c.parts.Clock.Now(), wakeStart, c.cfg.Retry
	for {
		reasons, err := c.alarm.wait(ctx, due, reason, c.poll)
		if err != nil {
			return nil //nolint:nilerr // the process is to end
		}
		wake, err := c.step(ctx, reasons)
		switch {
		case errors.Is(err, ErrSuperseded):
			c.parts.Log.Error("another replica leads: nothing more is done", "error", err)
			return err
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the process is to end
		case err != nil:
			c.parts.Metrics.Failed()
			c.parts.Log.Error("step failed", "error", err, "retry", delay)
			due, reason, delay = c.parts.Clock.Now().Add(delay), wakeRetry, min(2*delay, c.cfg.RetryMax)
		default:
			due, reason, delay = wake, wakePlan, c.cfg.Retry
		}
	}
}

// watchSwitch reads the kill switch between steps, so that it does not wait for
// the next of them.
func (c *Controller) watchSwitch(ctx context.Context) {
	ticker := c.parts.Clock.NewTicker(c.cfg.SwitchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		probe := killSwitch{reader: c.kill.reader, key: c.kill.key, stopped: c.on.Load()}
		if probe.read(ctx) {
			select {
			case c.poll <- "kill-switch":
			default: // it has been said
			}
		}
	}
}

// readSwitch begins to read the kill switch and returns what obeys it. It is read beside
// what the step looks at and decides, and obeyed before anything is saved or done.
func (c *Controller) readSwitch(ctx context.Context) (obey func()) {
	next, read, changed := c.kill, make(chan struct{}), false
	go func() {
		defer close(read)
		changed = next.read(ctx)
	}()
	return sync.OnceFunc(func() {
		ctx, end := c.times.begin(ctx, "switch")
		defer end()
		<-read
		c.kill.stopped, c.kill.missing = next.stopped, next.missing // who watches it reads the rest
		c.turnSwitch(ctx, changed)
	})
}

// turnSwitch does what the kill switch says to what is half done. What could not be
// taken back is tried again at the next step, and so it is when this replica comes to
// lead while the switch is on.
func (c *Controller) turnSwitch(ctx context.Context, changed bool) {
	c.store.head.Stopped = c.kill.stopped
	switch {
	case c.kill.stopped && !c.on.Load():
		c.takeStage(ctx, true)
		settled, err := c.halt(ctx)
		c.settled = says(settled)
		c.on.Store(err == nil)
		c.parts.Log.Warn("the kill switch is on", "undone", settled.Undone, "left", settled.Left, "error", err)
	case changed && !c.kill.stopped:
		c.settled = ""
		c.on.Store(false)
		c.parts.Drains.Resume()
		c.parts.Log.Warn("the kill switch is released")
	}
}

// halt takes back what is half done, if this replica still leads.
func (c *Controller) halt(ctx context.Context) (drain.Settled, error) {
	if c.cfg.Mode != policy.ModeActive {
		return drain.Settled{}, nil
	}
	if err := c.parts.Lease.Fence(ctx); err != nil {
		return drain.Settled{}, err
	}
	return c.parts.Drains.Halt(ctx)
}

// says tells what was taken back and what was left.
func says(s drain.Settled) string {
	var parts []string
	if len(s.Undone) > 0 {
		parts = append(parts, "undone: "+strings.Join(s.Undone, ", "))
	}
	if len(s.Left) > 0 {
		parts = append(parts, "left: "+strings.Join(s.Left, ", "))
	}
	return strings.Join(parts, "; ")
}

// shutDown saves what is remembered and finishes or takes back drains, while the lease
// is still held.
func (c *Controller) shutDown(ctx context.Context) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Shutdown)
	defer cancel()
	c.parts.Lease.Lower()
	if err := c.parts.Lease.Fence(ending); err != nil {
		c.parts.Log.Error("stopping without settling drains", "error", err)
		return
	}
	if err := c.store.save(ending, &c.memory, true); err != nil {
		c.parts.Log.Error("saving the memory before the end", "error", err)
	}
	if c.parts.Ledger != nil {
		if err := c.parts.Ledger.Flush(ending); err != nil {
			c.parts.Log.Error("saving the ledgers of budgets before the end", "error", err)
		}
	}
	c.saveExperience(ending, true)
	var settled drain.Settled
	var err error
	if c.cfg.Mode == policy.ModeActive { // last, since it may take all of the time that is left
		if settled, err = c.parts.Drains.Shutdown(ending); err != nil {
			c.parts.Log.Error("settling drains before the end", "error", err)
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
		c.parts.Log.Error("saving what was met in the markets", "error", err)
	}
}
