package sim

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// A Config says what to run. Prepared, Policy and Seed are required.
type Config struct {
	Prepared   *Prepared
	Policy     policy.Policy
	Forecaster driver.Forecaster // nil leaves forecasts at zero
	Seed       uint64

	// Weather is the weather of (Prepared, Seed) if it was drawn before; nil
	// draws it.
	Weather *weather.Weather

	// Recorder keeps every step; nil keeps none.
	Recorder driver.Recorder

	// Log gets a line for every event; nil writes none.
	Log io.Writer

	// Check runs the checkers after every event. It is slow.
	Check bool

	// Observed is called with every snapshot, after forecasting and before it
	// may be reused; nil is not called.
	Observed func(*policy.Snapshot, *policy.Plan)

	// Observer is called with everything as it happens; nil is not called.
	Observer RunObserver

	// Sample is how often Result.Samples has an entry; 0 leaves it empty, and
	// Result.Taken too. Lowering it makes a run slower and its result larger.
	Sample time.Duration

	// Delays replace DefaultDelays when set.
	Delays *Delays

	// Autoscaler replaces DefaultAutoscaler when set.
	Autoscaler *Autoscaler

	// OnDemandStart has the nodes that the scenario starts with be on demand where it has
	// them on Spot. It is for the run that others are measured against, which holds no Spot
	// node even where budgets or pods keep nodes from being replaced.
	OnDemandStart bool

	// LowestPrice has the provider launch spot in the cheapest open market, as EC2's
	// allocation strategy lowest-price and Karpenter's kwok provider do. Without it the
	// strategy is price-capacity-optimised, which Karpenter asks EC2 for.
	LowestPrice bool
}

// Run simulates cfg.Policy through the warm-up and the window of the scenario.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	r, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	r.begin()
	if err := r.loop(ctx); err != nil {
		return nil, fmt.Errorf("%s under %s, seed %d: %w", r.scenario.Name, cfg.Policy.Name(), cfg.Seed, err)
	}
	return r.finish()
}

// A run is one simulation of a policy: the parts of it, and what wires them.
type run struct {
	*environment
	market *market.Market
	cluster
	provisioners

	pools    *pools
	bills    *bills
	observer *observer
	decider  *decider
	faults   *faults
	actuator *actuator
	checker  *checker
	watch    *watch
}

// A cluster is what Kubernetes keeps and does.
type cluster struct {
	space     *placement.Space
	sched     *scheduler.Scheduler
	nodes     *nodes
	launches  *launches
	reclaims  *reclaims
	removals  *removals
	pods      *pods
	queue     *schedulingQueue
	workloads *workloads
	pdbs      *disruptionBudgets
	jobs      *jobs
	gangs     *gangs
	serving   *serving
	budgets   *gpuBudgets
	drains    *drains
}

// The provisioners buy nodes and give them back.
type provisioners struct {
	karpenter     *karpenterProvisioner
	consolidation *consolidation
	autoscaler    *autoscaler
	groups        *scalingGroups
	scaleDown     *scaleDown
}

func newRun(cfg Config) (*run, error) {
	e, drawn, err := newEnvironment(cfg)
	if err != nil {
		return nil, err
	}
	r := &run{environment: e}
	r.market = market.New(market.Config{Seed: cfg.Seed, Unavailable: e.delays.Unavailable, AuctionNotice: e.delays.RackspaceNotice,
		LowestPrice: cfg.LowestPrice}, e.prepared.prices, drawn, &e.q)
	r.space = placement.New(e.scenario.Templates, e.scenario.Zones)
	r.sched = scheduler.New(r.space, e.scenario.Templates, e.spreadTogether)
	r.allocate()
	r.wireCluster()
	r.wireProvisioners()
	r.wireDriver()
	r.initialize()
	return r, nil
}

// initialize gives the parts what the scenario says of them.
func (r *run) initialize() {
	r.pools.init()
	r.karpenter.init()
	r.autoscaler.init()
	r.groups.init()
	r.bills.init()
	r.workloads.init()
	r.jobs.init()
	r.gangs.init()
	r.budgets.init()
	r.observer.init()
	r.decider.driver = r.decider.newDriver(policy.Memory{})
}

// begin makes the cluster in which the warm-up starts.
func (r *run) begin() {
	r.q.Add(r.window.From, engine.MeteringBegins, 0, 0, 0)
	r.faults.plan()
	r.bills.plan()
	r.workloads.start()
	r.launches.start()
	r.decider.first()
}

// loop handles events until the end. The end itself is not metered, and what
// is planned for it does not happen: no policy learns when it is.
func (r *run) loop(ctx context.Context) error {
	for n := 0; ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, ok := r.q.Next(r.window.To - 1)
		if !ok {
			break
		}
		r.result.Events++
		r.handle(&e)
		if r.failure == nil && r.cfg.Check {
			r.failure = r.checker.check()
		}
		if r.failure == nil && (r.cfg.Observer != nil || r.cfg.Sample > 0) {
			r.watch.passInstant()
		}
		if r.failure != nil {
			return fmt.Errorf("at %v (%v after start): %w", r.q.Now, r.q.Now.Sub(r.scenario.Start), r.failure)
		}
	}
	return nil
}

func (r *run) handle(e *engine.Event) {
	switch e.Kind() {
	case engine.MeteringBegins:
		// The integrals cut themselves at the window's edge; nothing to do but
		// to let the queue stop here.
	case engine.FaultChanges:
		r.faults.change(int(e.A), e.B == 0)
	case engine.CommitmentEnds:
		r.bills.account.Lapse(int(e.A), r.q.Now)
		r.consolidation.noteChange()
	case engine.ReplicasChange:
		r.workloads.stepReplicas(policy.WorkloadID(e.A), int(e.B))
	case engine.RollsOut:
		r.workloads.rollOut(policy.WorkloadID(e.A))
	case engine.GrowthCounts:
		r.workloads.countGrowth(policy.WorkloadID(e.A))
	case engine.PodsRetried:
		r.workloads.retry(policy.WorkloadID(e.A))
	case engine.JobReleased:
		r.jobs.release(policy.WorkloadID(e.A), int(e.B))
	case engine.JobDue:
		r.jobs.settle(int(e.A), r.q.Now)
	case engine.NodeRegistered, engine.NodeInitialized, engine.NodeNotice, engine.NodeRecommendation, engine.NodeReclaimed, engine.NodeGone, engine.NodeExpires:
		if r.nodes.state[e.A].gen == e.Gen {
			r.handleNode(e.Kind(), policy.NodeID(e.A), e.B)
		}
	case engine.PodsWritten:
		r.workloads.write()
	case engine.PodReady, engine.PodGone, engine.PodFinished, engine.PodUnprotected:
		if r.pods.state[e.A].gen == e.Gen {
			r.pods.handle(e.Kind(), policy.PodID(e.A), e.B)
		}
	case engine.GangTimer:
		r.gangs.handle(e.A, e.B, e.Gen)
	case engine.DrainContinues:
		r.drains.proceed(int(e.A), e.Gen)
	case engine.Schedule:
		r.queue.schedule()
	case engine.Provision:
		r.karpenter.provision()
	case engine.ClaimGone:
		r.consolidation.noteChange()
	case engine.Disrupt:
		r.consolidation.disrupt()
	case engine.Scan:
		r.autoscaler.scan()
	case engine.GroupFills:
		r.groups.fill(e.A)
	case engine.ReplicasFill:
		r.karpenter.fillReplicas(policy.PoolID(e.A))
	case engine.Step:
		r.decider.step(e.Gen)
	}
}

func (r *run) handleNode(kind engine.Kind, n policy.NodeID, b int32) {
	switch kind {
	case engine.NodeRegistered:
		r.launches.register(n)
	case engine.NodeInitialized:
		r.launches.initialize(n)
	case engine.NodeNotice:
		at := r.reclaims.fates[n].reclaim
		if b != 0 {
			at = r.reclaims.fates[n].outbid
		}
		r.reclaims.notice(n, at)
	case engine.NodeRecommendation:
		r.reclaims.recommend(n)
	case engine.NodeReclaimed:
		r.reclaims.reclaim(n)
	case engine.NodeGone:
		r.removals.forget(n)
		r.consolidation.noteChange()
	case engine.NodeExpires:
		r.removals.expire(n)
	}
}

func (ps *pods) handle(kind engine.Kind, p policy.PodID, cause int32) {
	switch kind {
	case engine.PodReady:
		ps.ready(p)
	case engine.PodGone:
		ps.remove(p, policy.EndCause(cause))
	case engine.PodFinished:
		ps.jobs.podFinished(p)
	case engine.PodUnprotected:
		ps.unprotect(p)
	}
}

// finish settles what is still open at the end of the window.
func (r *run) finish() (*Result, error) {
	end := r.window.To
	for i := range r.jobs.all {
		r.jobs.settle(i, end)
	}
	for i := range r.nodes.all {
		if r.nodes.all[i].Phase != policy.NodeGone && !r.nodes.state[i].billed {
			r.bills.charge(policy.NodeID(i), end)
		}
	}
	if r.result.Slowed > 0 {
		r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("nodes without CPU credits were slowed down to their baseline for %.1f node-hours", r.result.Slowed.Hours()))
	}
	r.fillFigures()
	r.budgets.fill()
	r.gangs.fill()
	r.pools.fillViolations()
	if r.cfg.Check {
		if err := r.checker.checkMoney(); err != nil {
			return nil, err
		}
	}
	for i := range r.result.Workloads {
		w := &r.result.Workloads[i]
		r.log.Add(end, engine.RecordIncident, w.Name, "", w.Outage.Milliseconds())
	}
	r.log.Add(end, engine.RecordBill, "", "", int64(r.result.Bill))
	r.watch.passEnd()
	var err error
	r.result.Hash, err = r.log.Digest()
	if err != nil {
		return nil, fmt.Errorf("writing the event log: %w", err)
	}
	return r.result, nil
}
