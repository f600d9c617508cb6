package live

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/share"
)

// stepTimeout is the maximum duration of one step, so that an API server that does not respond
// cannot block all steps.
const stepTimeout = time.Minute

// step makes one decision and reports its result. It returns when the next step is due.
func (c *Controller) step(ctx context.Context, reasons []string) (due time.Time, err error) {
	begun := c.parts.Clock.Now()
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	ctx, span := c.parts.Tracer.Start(ctx, "step", trace.WithAttributes(attribute.StringSlice("spotter.wakes", reasons)))
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("panic: %v\n%s", bug, debug.Stack())
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	c.current.times = phases{clock: c.parts.Clock, tracer: c.parts.Tracer, metrics: c.parts.Metrics}
	c.awaitLaunches(ctx)
	done, err := c.driver.Step(ctx)
	if err != nil {
		return due, err
	}
	span.SetAttributes(attribute.String("spotter.decision", decisionID(done.Snapshot)))
	c.report(ctx, &done, reasons, begun)
	return c.dueAfter(&done.Plan), nil
}

// youngRetry is how soon the next plan is made if a plan waits for nodes to become older, and
// soonRetry how soon if it waits for anything else that may change at any time.
const (
	youngRetry = time.Minute
	soonRetry  = time.Second
)

// dueAfter returns when the next step is due after a plan.
func (c *Controller) dueAfter(p *policy.Plan) time.Time {
	longest := c.settings.Load().StepMax
	latest := c.parts.Clock.Now().Add(longest)
	switch {
	case c.publisher.soon:
		latest = c.parts.Clock.Now().Add(min(longest, soonRetry))
	case c.publisher.young:
		latest = c.parts.Clock.Now().Add(min(longest, youngRetry))
	}
	if wake := p.Wake.Std(); wake.Before(latest) {
		return wake
	}
	return latest
}

// report publishes the result of a step in the statuses of the pools, in metrics and in the log. A
// step is not undone if its result could not be reported.
func (c *Controller) report(ctx context.Context, done *driver.Step, reasons []string, begun time.Time) {
	s, p := done.Snapshot, &done.Plan
	ctx, end := c.current.times.begin(ctx, "tell")
	c.publishReports(s)
	c.writePlans(ctx)
	c.saveExperience(ctx, false)
	c.notifySavings(s)
	end()
	took := c.parts.Clock.Since(begun)
	c.parts.Metrics.Draining(draining(c.parts.Drains.Status()))
	c.parts.Metrics.Step(&metrics.Step{
		Snapshot: s, Memory: &c.memory, Plan: p, Pools: c.poolMetrics(s), Took: took, Wakes: reasons,
		Stopped: c.current.kill.On, Unreadable: c.current.kill.Unreadable, Active: c.cfg.Mode == policy.ModeActive,
	})
	log, level := c.parts.Log, slog.LevelInfo
	if done.Warning != nil {
		log, level = log.With("warning", done.Warning), slog.LevelWarn
	}
	log.Log(ctx, level, "step", "decision", decisionID(s), "wakes", strings.Join(reasons, ","), "nodes", liveNodes(s),
		"steers", len(p.Steers),
		"launches", len(p.Launches), "drains", len(p.Drains), "holds", len(p.Holds), "next", p.Wake, "took", took, c.current.times.log())
}

// draining counts the drains of each pool by phase.
func draining(all []drain.Status) []metrics.Draining {
	var counts []metrics.Draining
	for _, d := range all {
		i := slices.IndexFunc(counts, func(x metrics.Draining) bool { return x.Pool == d.Pool && x.Phase == string(d.Phase) })
		if i < 0 {
			i = len(counts)
			counts = append(counts, metrics.Draining{Pool: d.Pool, Phase: string(d.Phase)})
		}
		counts[i].Nodes++
	}
	return counts
}

func liveNodes(s *policy.Snapshot) int {
	n := 0
	for i := range s.Nodes {
		if s.Nodes[i].Live() {
			n++
		}
	}
	return n
}

// poolMetrics returns the metrics of each pool.
func (c *Controller) poolMetrics(s *policy.Snapshot) []metrics.Pool {
	all, settings := make([]metrics.Pool, len(s.Pools)), c.settings.Load()
	for i := range s.Pools {
		p, b, f := &s.Pools[i], c.store.book(s.Pools[i].Name), c.current.counted[i]
		h := share.Of(s, p.ID)
		all[i] = metrics.Pool{
			Name: p.Name, Active: c.publisher.outcomes.pools[i] == outcomeDone, Share: h.Share(), Spot: int(f.spot), OnDemand: int(f.onDemand),
			SavingPerHour: f.saving, Paid: b.Savings.Total.Paid, AtOnDemand: b.Savings.Total.OnDemand,
			Saved: map[string]policy.Money{
				"on-demand":     b.Savings.Total.Saved(),
				"commitment-1y": b.Savings.Total.SavedAgainst(settings.Discount1y),
				"commitment-3y": b.Savings.Total.SavedAgainst(settings.Discount3y),
			},
			Namespaces: make(map[string]policy.Money,
				len(b.Savings.Namespaces)), ShadowSaved: b.Shadow.Saved, ShadowMoves: len(b.Shadow.Moves),
		}
		if loss := &b.Memory.Loss; loss.Kept(s.Now) {
			left := loss.Left
			all[i].LossLeft, all[i].LossUsedUp = &left, loss.UsedUp(s.Now)
		}
		for _, n := range b.Savings.Namespaces {
			all[i].Namespaces[n.Name] = n.Saved()
		}
	}
	return all
}

// decided records a plan before the memory is saved.
func (c *Controller) decided(s *policy.Snapshot, p *policy.Plan) {
	c.current.times.end("decide")
	c.current.snapshot, c.current.plan = s, p
	if c.decider.panicked == "" {
		return
	}
	c.parts.Metrics.Panicked()
	c.parts.Log.Error("the policy panicked: only nodes under notice are drained", "decision", decisionID(s), "panic",
		c.decider.panicked)
	if c.parts.Panics == nil {
		return
	}
	if err := c.parts.Panics.Record(context.Background(), s, &c.memory, p); err != nil {
		c.parts.Log.Error("the snapshot on which the policy panicked is not saved", "decision", decisionID(s), "error", err)
	}
}

// observer is the driver's Observer. It also updates the accounts with the time since the last
// snapshot.
type observer struct{ c *Controller }

func (e observer) Observe(ctx context.Context) (*policy.Snapshot, error) {
	c := e.c
	ctx, end := c.current.times.begin(ctx, "observe")
	defer end()
	s, err := c.parts.Observer.Observe(ctx)
	if err != nil {
		return nil, err
	}
	c.claim(s)
	if err := c.readPlans(ctx, s); err != nil {
		return nil, err
	}
	c.seen(s)
	return s, nil
}

// claim marks the nodes that Spotter drains in the snapshot. The annotations on the nodes show this
// too, but later: a drain is checked before its start, and the watch lags. A node that Spotter
// drains only because of a notice is marked as not drained until a plan has considered it, so that
// the plan buys the capacity that its pods need. Nodes that Karpenter may have nominated for pods
// are marked as not to be disrupted: if a policy chose one, its drain would be held, and the policy
// would start its cooldown in vain.
func (c *Controller) claim(s *policy.Snapshot) {
	drains := c.parts.Drains.Status()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		if n.Pool >= 0 && nominated(s, n.ID) {
			n.DoNotDisrupt = true
		}
		at, ours := slices.BinarySearchFunc(drains, n.Name, func(d drain.Status,
			name string) int {
			return strings.Compare(d.Node, name)
		})
		switch {
		case !ours || n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs:
		case !drains[at].Unplanned:
			n.ActedBy = policy.ActorUs
		default:
			n.ActedBy = policy.ActorNone
			if n.Phase == policy.NodeDraining {
				n.Phase = policy.NodeInitialized
			}
		}
	}
}

// seen updates the state of the controller with a snapshot.
func (c *Controller) seen(s *policy.Snapshot) {
	c.parts.Drains.Hurry(s)
	c.current.conflicts = nil
	if c.parts.Referee != nil {
		c.current.conflicts = c.parts.Referee.Conflicts()
	}
	savings := make([]*Savings, len(s.Pools))
	wanted := map[string]*policy.Node{}
	for i := range s.Pools {
		b := c.store.book(s.Pools[i].Name)
		savings[i] = &b.Savings
		for _, m := range b.Ramp.Moving {
			wanted[m.Node] = nil
		}
		for _, m := range b.Shadow.Moves {
			wanted[m.Node] = nil
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && len(wanted) > 0 {
			if _, is := wanted[n.Name]; is {
				wanted[n.Name] = n
			}
		}
	}
	c.watchRamps(s, wanted)
	for i := range s.Pools {
		c.store.book(s.Pools[i].Name).Shadow.observe(wanted, s.Now)
	}
	c.meter.read(s, savings)
	for _, t := range c.meter.ended {
		c.parts.Log.Info("node ended", "pool", s.Pools[slices.Index(savings, t.book)].Name, "node", t.Key, "market", t.Market,
			"launched", t.Launched, "ended", t.Ended)
	}
	c.store.head.Metered, c.store.head.Charged = s.Now, c.meter.charged
}

// forecaster is the driver's Forecaster.
type forecaster struct{ c *Controller }

func (f forecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	c := f.c
	c.current.forecast = nil
	if c.parts.Forecaster != nil {
		c.current.forecast = c.parts.Forecaster.Forecast(s, m)
	}
	c.current.times.end("forecast")
	return c.current.forecast
}

// stateStore is the driver's Store. It judges the plan before it saves the memory, so that admitted
// changes are stored before they are made.
type stateStore struct{ c *Controller }

func (k stateStore) Save(ctx context.Context, m *policy.Memory) error {
	c := k.c
	inner, end := c.current.times.begin(ctx, "judge")
	err := c.judge(inner, c.current.snapshot, c.current.plan)
	end()
	if err != nil {
		return fmt.Errorf("reading the modes of pools: %w", err)
	}
	ctx, end = c.current.times.begin(ctx, "save")
	defer end()
	if err := c.store.forget(ctx, c.current.snapshot.Pools, c.current.snapshot.Now); err != nil {
		return err
	}
	if err := c.store.Save(ctx, m); err != nil {
		return err
	}
	c.memory = *m
	return nil
}

// recordWriter is the driver's Recorder. It is called after the whole plan has been published, and
// commits it to the reconcilers. It records the decision, whatever part of it was admitted. An
// error of the recorder does not fail the step: it is logged.
type recordWriter struct{ c *Controller }

func (r recordWriter) Record(ctx context.Context, s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	c := r.c
	c.publisher.commit(s)
	c.current.times.end("publish")
	if c.parts.Recorder == nil {
		return nil
	}
	ctx, end := c.current.times.begin(ctx, "record")
	defer end()
	if err := c.parts.Recorder.Record(ctx, s, m, p); err != nil {
		c.parts.Log.Error("the decision is not recorded", "decision", decisionID(s), "error", err)
	}
	return nil
}
