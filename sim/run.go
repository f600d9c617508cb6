package sim

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/fleet"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// A Config says what to run. Stage, Policy and Seed are required.
type Config struct {
	Stage      *Stage
	Policy     policy.Policy
	Forecaster driver.Forecaster // nil leaves forecasts at zero
	Seed       uint64

	// Weather is the weather of (Stage, Seed) if it was drawn before; nil
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

	// Watch is told of everything as it happens; nil is not told.
	Watch Watcher

	// Sample is how often Result.Samples has an entry; 0 leaves it empty, and
	// Result.Taken too. Lowering it makes a run slower and its result larger.
	Sample time.Duration

	// Delays replace DefaultDelays when set.
	Delays *Delays

	// Autoscaler replaces DefaultAutoscaler when set.
	Autoscaler *Autoscaler

	// LowestPrice has the provider launch spot in the cheapest open market, as EC2's
	// allocation strategy lowest-price and Karpenter's kwok provider do. Without it the
	// strategy is price-capacity-optimised, which Karpenter asks EC2 for.
	LowestPrice bool
}

// Run plays cfg.Policy through the stage's warm-up and window.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	r, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	r.begin()
	if err := r.play(ctx); err != nil {
		return nil, fmt.Errorf("%s under %s, seed %d: %w", r.world.Name, cfg.Policy.Name(), cfg.Seed, err)
	}
	return r.finish()
}

// A run is the simulated cluster and market: the observer, the actuator and the
// store of its driver.
type run struct {
	cfg     Config
	watched watched
	stage   *Stage
	world   *scenarios.World
	weather *weather.Weather
	delays  Delays

	// registerMax is the longest that a node of any market takes to join.
	registerMax time.Duration

	window  billing.Span
	q       queue
	log     *journal
	result  *Result
	space   *place.Space
	sched   *scheduler.Scheduler
	driver  *driver.Driver
	saved   policy.Memory
	failure error

	nodes     []policy.Node
	nodeX     []nodeState
	freeNodes []policy.NodeID
	launched  int
	tokens    map[string]policy.NodeID

	pods     []policy.Pod
	podX     []podState
	freePods []policy.PodID
	pending  []policy.PodID
	failed   []bool // by template; this and the next two are scratch of schedule
	stays    []bool // by template: preemption makes no room
	victims  []policy.PodID
	lowest   int32 // the least priority of any template

	work   []workState
	gauges []gauge
	pdbs   []policy.PDB
	pdbOf  [][]policy.WorkloadID

	// budgets are as every snapshot shows them; budgetsOf says by template, and so
	// by workload, which of them count its pods, and suspended which jobs are.
	budgets   []policy.Budget
	budgetX   []budgetState
	budgetsOf [][]int32
	suspended []bool

	jobs     []jobRun
	jobsOf   [][]int32 // by workload, the instances that have work left
	gangs    []gangRun
	gangOf   []int32 // by workload, its gang in the world or -1
	gangOpen []int32 // by gang of the world, its instance of which not all jobs are released, or -1
	drains   []drain
	active   []int32 // drains under way
	market   []marketState
	pools    []policy.Pool // as every snapshot shows them
	poolX    []poolState
	inflight []policy.NodeID // launched and not yet initialized
	auto     *autoscaler     // nil where no pool has Auto Scaling groups
	held     holding
	kept     []kept           // by pool
	account  *billing.Account // of nodes on demand; nil where nothing was paid for in advance
	daemons  []policy.TemplateID

	// What is planned already, so that it is planned once: the scheduler and
	// the provisioner, and when the next look for savings and step are due.
	scheduling             bool
	moved                  bool        // since the scheduler ran last: pods that found no node may find one
	flushAt                policy.Time // of the last try planned for pods that found no node at all
	provisionAt            policy.Time
	fresh                  bool        // pods came since the provisioner looked last
	stepAt, stepped        policy.Time // of the next step, and of the last
	batchFrom, lastPending policy.Time

	// Faults in force.
	down       bool // the controller
	slowFactor float64
	modelDown  scenarios.ModelFailure

	onlyGroups bool // no pool has another provisioner than the Cluster Autoscaler
	readyTimes []int64
	gangWaits  []int64 // milliseconds from release to the first start
	kar        consolidation
	requestBuf []fleet.Offering // scratch
	exotic     []bool           // by instance type: it has accelerators or is bare metal
	batch      place.Batch      // of the provisioner; scratch
	halves     []half           // NodePools that Karpenter serves, in its order
	lives      []lived          // kept for the checkers only
	checked    recount
	pdbsDirty  [2]bool
	view       [2]view
	turn       int
	ended      []policy.EndedPod
	warned     map[string]bool
}

func newRun(cfg Config) (*run, error) {
	st := cfg.Stage
	r := &run{cfg: cfg, stage: st, world: st.world, window: st.window, delays: DefaultDelays(),
		tokens: make(map[string]policy.NodeID), warned: make(map[string]bool), slowFactor: 1}
	if cfg.Delays != nil {
		r.delays = *cfg.Delays
	}
	if err := cfg.checkSample(st.window); err != nil {
		return nil, err
	}
	r.weather = cfg.Weather
	if r.weather == nil {
		w, err := st.NewWeather(cfg.Seed)
		if err != nil {
			return nil, fmt.Errorf("drawing the weather of %s: %w", r.world.Name, err)
		}
		r.weather = w
	}
	r.result = &Result{Scenario: r.world.Name, Policy: cfg.Policy.Name(), Seed: cfg.Seed, Window: st.window, Weather: r.weather.Digest()}
	r.log = newJournal(r.header(), cfg.Log)
	r.log.watch = cfg.Watch
	r.watched.sampleAt = st.window.From
	r.space = place.New(r.world.Templates, r.world.Zones)
	r.sched = scheduler.New(r.space, r.world.Templates, r.spreadTogether)
	r.q.now = st.begin
	r.newMarkets()
	r.newKept()
	r.newGroups()
	r.newAccount()
	r.newWorkloads()
	r.newGangs()
	r.newBudgets()
	r.newViews()
	r.driver = r.newDriver(policy.Memory{})
	return r, nil
}

// newDriver returns a driver of the run's policy that starts from memory m.
func (r *run) newDriver(m policy.Memory) *driver.Driver {
	w := driver.World{Observer: r, Actuator: r, Ranker: r, Enforcer: r, Store: r, Recorder: r.cfg.Recorder}
	if r.cfg.Forecaster != nil {
		w.Forecaster = faultyForecaster{r}
		if slices.ContainsFunc(r.world.Signals, func(c scenarios.SignalCurve) bool { return c.Hazard != nil }) {
			w.Forecaster = recordedForecaster{r, w.Forecaster}
		}
	}
	return driver.New(w, r.cfg.Policy, m)
}

// header is what the hash covers before the first event.
func (r *run) header() []byte {
	var b []byte
	b = append(b, r.world.Digest[:]...)
	b = append(b, r.world.TraceDigest[:]...)
	b = fmt.Appendf(b, "%s\x00%d\x00%d\x00%d\x00", r.cfg.Policy.Name(), r.cfg.Seed, r.window.From, r.window.To)
	return append(b, r.result.Weather[:]...)
}

// begin puts up the cluster as it is when warm-up begins.
func (r *run) begin() {
	r.q.add(r.window.From, evMeter, 0, 0, 0)
	r.planFaults()
	r.startWorkloads()
	r.startNodes()
	r.planStep(r.q.now)
}

// play handles events until the end. The end itself is not metered, and what
// is planned for it does not happen: no policy learns when it is.
func (r *run) play(ctx context.Context) error {
	for n := 0; ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, ok := r.q.next(r.window.To - 1)
		if !ok {
			break
		}
		r.result.Events++
		r.handle(&e)
		if r.failure == nil && r.cfg.Check {
			r.failure = r.check()
		}
		if r.failure == nil && (r.cfg.Watch != nil || r.cfg.Sample > 0) {
			r.passInstant()
		}
		if r.failure != nil {
			return fmt.Errorf("at %v (%v after start): %w", r.q.now, r.q.now.Sub(r.world.Start), r.failure)
		}
	}
	return nil
}

func (r *run) handle(e *event) {
	switch e.kind() {
	case evMeter:
		// The integrals cut themselves at the window's edge; nothing to do but
		// to let the queue stop here.
	case evFault:
		r.fault(int(e.a), e.b == 0)
	case evReplicas:
		r.stepReplicas(policy.WorkloadID(e.a), int(e.b))
	case evGrace:
		r.countGrowth(policy.WorkloadID(e.a))
	case evRetry:
		r.retryPods(policy.WorkloadID(e.a))
	case evRelease:
		r.releaseJob(policy.WorkloadID(e.a), int(e.b))
	case evJobDeadline:
		r.settleJob(int(e.a), r.q.now)
	case evRegistered, evInitialized, evNotice, evRecommend, evReclaim, evNodeGone, evExpire:
		if r.nodeX[e.a].gen == e.gen {
			r.handleNode(e.kind(), policy.NodeID(e.a), e.b)
		}
	case evPodReady, evPodGone, evPodFinished:
		if r.podX[e.a].gen == e.gen {
			r.handlePod(e.kind(), policy.PodID(e.a), e.b)
		}
	case evGang:
		r.handleGang(e.a, e.b, e.gen)
	case evDrain:
		r.continueDrain(int(e.a), e.gen)
	case evSchedule:
		r.schedule()
	case evProvision:
		r.provision()
	case evConsolidate:
		r.disrupt()
	case evScan:
		r.scan()
	case evFill:
		r.fill(e.a)
	case evStep:
		r.step(e.gen)
	}
}

func (r *run) handleNode(kind eventKind, n policy.NodeID, b int32) {
	switch kind {
	case evRegistered:
		r.register(n)
	case evInitialized:
		r.initialize(n)
	case evNotice:
		at := r.nodeX[n].reclaim
		if b != 0 {
			at = r.nodeX[n].outbid
		}
		r.notice(n, at)
	case evRecommend:
		r.recommend(n)
	case evReclaim:
		r.reclaim(n)
	case evNodeGone:
		r.forgetNode(n)
	case evExpire:
		r.expire(n)
	}
}

func (r *run) handlePod(kind eventKind, p policy.PodID, cause int32) {
	switch kind {
	case evPodReady:
		r.podReady(p)
	case evPodGone:
		r.podGone(p, policy.EndCause(cause))
	case evPodFinished:
		r.podFinished(p)
	}
}

// planStep makes the policy decide at t unless it does so before. An instant has one
// step: what happens in that of the last one, also by what its plan does, is for the
// next.
func (r *run) planStep(t policy.Time) {
	t = max(t, r.stepped+1)
	if r.stepAt != 0 && r.stepAt <= t {
		return
	}
	r.stepAt = t
	r.q.add(t, evStep, 0, 0, 0)
}

// collect is how long refused launches and unschedulable pods are collected
// before the policy is asked.
const collect = 10 * time.Second

// step lets the policy decide, unless this event was overtaken by an earlier
// step, or the controller is down.
func (r *run) step(int32) {
	if r.stepAt != r.q.now {
		return
	}
	r.stepAt = 0
	if r.down {
		return
	}
	r.stepped = r.q.now
	r.result.Decisions++
	step, err := r.driver.Step(context.Background())
	if err != nil {
		r.failure = err
		return
	}
	if step.Warning != nil && !r.warned[step.Warning.Error()] && len(r.warned) < 20 {
		r.warned[step.Warning.Error()] = true
		r.result.Warnings = append(r.result.Warnings, step.Warning.Error())
	}
	if r.cfg.Observed != nil {
		r.cfg.Observed(step.Snapshot, &step.Plan)
	}
	r.log.add(r.q.now, logStep, "", "", int64(len(step.Plan.Launches)+len(step.Plan.Drains)))
	r.planStep(step.Plan.Wake)
}

// Save keeps the memory, as a store that survives the controller does.
func (r *run) Save(_ context.Context, m *policy.Memory) error {
	r.saved = *m
	r.noteBudgets(m)
	return nil
}

// finish settles what is still open at the end of the window.
func (r *run) finish() (*Result, error) {
	end := r.window.To
	for i := range r.jobs {
		r.settleJob(i, end)
	}
	for i := range r.nodes {
		if r.nodes[i].Phase != policy.NodeGone && !r.nodeX[i].billed {
			r.bill(policy.NodeID(i), end)
		}
	}
	r.fillFigures()
	r.fillBudgets()
	r.fillGangs()
	r.fillViolations()
	if r.cfg.Check {
		if err := r.checkMoney(); err != nil {
			return nil, err
		}
	}
	for i := range r.result.Workloads {
		w := &r.result.Workloads[i]
		r.log.add(end, logIncident, w.Name, "", w.Outage.Milliseconds())
	}
	r.log.add(end, logBill, "", "", int64(r.result.Bill))
	r.passEnd()
	var err error
	r.result.Hash, err = r.log.digest()
	if err != nil {
		return nil, fmt.Errorf("writing the event log: %w", err)
	}
	return r.result, nil
}
