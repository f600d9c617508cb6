package sim

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/controller"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/groups"
	"github.com/spotter-dev/spotter/sim/machines"
	"github.com/spotter-dev/spotter/sim/market"
	"github.com/spotter-dev/spotter/sim/nodepools"
	"github.com/spotter-dev/spotter/sim/setup"
)

// A Config specifies a run. Prepared, Policy and Seed are required.
type Config struct {
	Prepared   *Prepared
	Policy     policy.Policy
	Forecaster driver.Forecaster // nil leaves forecasts at zero
	Seed       uint64

	// Weather is the weather of (Prepared, Seed) if it was already drawn. If it is nil, Run draws
	// it.
	Weather *weather.Weather

	// Recorder records every step; nil records none.
	Recorder driver.Recorder

	// Log receives a line for every event; nil writes none.
	Log io.Writer

	// Check enables the checks of invariants after every event, which are slow.
	Check bool

	// Observed, if not nil, is called with every snapshot and its plan, after forecasting. The
	// snapshot may be reused after the call.
	Observed func(*policy.Snapshot, *policy.Plan)

	// Observer, if not nil, is called with everything as it happens.
	Observer RunObserver

	// Sample is the interval between the entries of Result.Samples. If it is 0, Samples and
	// Result.Taken are empty. A smaller interval makes a run slower and its result larger.
	Sample time.Duration

	// Delays, if not nil, replace DefaultDelays.
	Delays *Delays

	// OnDemandStart replaces the Spot nodes with which the scenario starts by on-demand nodes. It
	// is for the baseline run, which has no Spot node even if budgets or pods prevent nodes from
	// being replaced. Kueue's flavors of Spot nodes have on-demand nodes there, too.
	OnDemandStart bool

	// LowestPrice makes the provider launch in the cheapest open market that a NodeClaim allows, of
	// either capacity type, as Karpenter's kwok provider does. Otherwise, Karpenter requests one
	// capacity type, and the strategy for Spot is price-capacity-optimised, as on EC2.
	LowestPrice bool
}

// Run simulates cfg.Policy through the warm-up and the window of the scenario.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	r, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	r.begin(cfg.OnDemandStart)
	if err := r.loop(ctx); err != nil {
		return nil, fmt.Errorf("%s under %s, seed %d: %w", r.Scenario.Name, cfg.Policy.Name(), cfg.Seed, err)
	}
	return r.finish()
}

// A run is one simulation of a policy. Each part depends only on those above it, and reacts to
// others through the events that they publish.
type run struct {
	*setup.Run
	market     *market.Market
	cluster    *cluster.Cluster
	machines   *machines.Machines
	karpenter  *nodepools.Karpenter
	autoscaler *groups.Autoscaler
	controller *controller.Controller
	faults     *faults
	watch      *watch
}

func newRun(cfg Config) (*run, error) {
	p := cfg.Prepared
	if err := cfg.checkSample(p.Window); err != nil {
		return nil, err
	}
	shared, drawn, err := setup.NewRun(p, setup.Config{Policy: cfg.Policy.Name(), Seed: cfg.Seed, Weather: cfg.Weather,
		Delays: cfg.Delays, Check: cfg.Check, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	if cfg.OnDemandStart {
		shared.Scenario = shared.Scenario.OnDemandFlavors()
	}
	if cfg.Observer != nil {
		shared.Log.Watch = cfg.Observer.Happened
	}
	r := &run{Run: shared}
	r.market = market.New(market.Config{Seed: cfg.Seed, Unavailable: r.Delays.Unavailable,
		AuctionNotice: r.Delays.RackspaceNotice,
		LowestPrice:   cfg.LowestPrice}, p.Market, drawn, r.Clock)
	r.cluster = cluster.New(shared)
	r.machines = machines.New(r.cluster, r.market)
	r.karpenter = nodepools.New(r.machines)
	r.autoscaler = groups.New(r.machines)
	r.controller = controller.New(controller.Config{Policy: cfg.Policy, Forecaster: cfg.Forecaster, Recorder: cfg.Recorder,
		Observed: cfg.Observed}, r.machines, r.karpenter, r.autoscaler)
	r.faults = &faults{Run: shared, karpenter: r.karpenter, autoscaler: r.autoscaler, controller: r.controller}
	r.Clock.On(engine.FaultChanges, func(e *engine.Event) { r.faults.change(int(e.A), e.B == 0) })
	r.watch = &watch{Run: shared, cluster: r.cluster, machines: r.machines, controller: r.controller,
		observer: cfg.Observer,
		every:    cfg.Sample}
	r.watch.subscribe()
	return r, nil
}

// begin creates the cluster at the start of the warm-up.
func (r *run) begin(onDemand bool) {
	r.Clock.Add(r.Window.From, engine.MeteringBegins, 0, 0, 0)
	r.faults.plan()
	r.machines.Bills.Start()
	r.cluster.Workloads.Start()
	r.machines.Launches.Start(onDemand)
	r.karpenter.Start()
	r.cluster.Queue.Start()
	r.controller.Start()
}

// loop handles events until the end of the window, exclusive. Events that are planned for the end
// or later do not happen, so no policy learns when the window ends.
func (r *run) loop(ctx context.Context) error {
	watched := r.watch.observer != nil || r.watch.every > 0
	for n := 0; ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, ok := r.Clock.Next(r.Window.To - 1)
		if !ok {
			break
		}
		r.Result.Events++
		r.Clock.CarryOut(&e)
		if r.Failure == nil && r.Check {
			r.Failure = r.check()
		}
		if r.Failure == nil && watched {
			r.watch.passInstant()
		}
		if r.Failure != nil {
			return fmt.Errorf("at %v (%v after start): %w", r.Clock.Now, r.Clock.Now.Sub(r.Scenario.Start), r.Failure)
		}
	}
	return nil
}

// check checks the invariants of all parts.
func (r *run) check() error {
	for _, check := range [...]func() error{r.cluster.CheckAll, r.machines.CheckAll, r.karpenter.CheckAll,
		r.autoscaler.CheckAll} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// finish accounts for everything that is still open at the end of the window, and returns the
// result.
func (r *run) finish() (*Result, error) {
	end := r.Window.To
	r.cluster.Jobs.Settle(end)
	r.machines.Bills.Settle(end)
	r.controller.Settle(end)
	r.cluster.FillResult(r.controller.Saved())
	r.machines.Pools.FillViolations()
	if r.Check {
		if err := r.machines.CheckMoney(); err != nil {
			return nil, err
		}
	}
	for i := range r.Result.Workloads {
		w := &r.Result.Workloads[i]
		r.Log.Add(end, engine.RecordIncident, w.Name, "", w.Outage.Milliseconds())
	}
	r.Log.Add(end, engine.RecordBill, "", "", int64(r.Result.Bill))
	r.watch.passEnd()
	var err error
	r.Result.Hash, err = r.Log.Digest()
	if err != nil {
		return nil, fmt.Errorf("writing the event log: %w", err)
	}
	return r.Result, nil
}
