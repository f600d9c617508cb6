package setup

import (
	"fmt"
	"io"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/result"
)

// A Run is the state that the parts of one run share and that none of them owns: the configuration,
// the clock, and the log and the result to which all add.
type Run struct {
	Prepared *Prepared
	Scenario *scenarios.BoundScenario
	Delays   Delays
	Window   billing.Span // metered window
	Seed     uint64
	Check    bool // invariants are checked after every event

	Clock  *engine.Queue
	Log    *engine.Log
	Result *result.Result

	// Failure, if not nil, ends the run.
	Failure error

	// SlowFactor is the factor by which a fault slows down the start of nodes and pods; 1 without a
	// fault.
	SlowFactor float64

	// Shifted reports, by zone, whether a zonal shift avoids it; nil before the first shift.
	Shifted []bool
}

// A Config contains the settings of a Run.
type Config struct {
	Policy string // name of the policy
	Seed   uint64

	// Weather is the weather of the scenario and Seed if it was already drawn. If it is nil, NewRun
	// draws it.
	Weather *weather.Weather

	Delays *Delays // nil means the default delays
	Check  bool
	Log    io.Writer // nil writes none
}

// NewRun returns the shared state of a run, and its weather.
func NewRun(p *Prepared, cfg Config) (*Run, *weather.Weather, error) {
	r := &Run{Prepared: p, Scenario: p.scenario, Window: p.Window, Delays: DefaultDelays(), Seed: cfg.Seed,
		Check: cfg.Check,
		Clock: &engine.Queue{Now: p.Begin}, SlowFactor: 1}
	if cfg.Delays != nil {
		r.Delays = *cfg.Delays
	}
	drawn := cfg.Weather
	if drawn == nil {
		var err error
		if drawn, err = p.DrawWeather(cfg.Seed); err != nil {
			return nil, nil, fmt.Errorf("drawing the weather of %s: %w", p.scenario.Name, err)
		}
	}
	r.Result = &result.Result{Scenario: p.scenario.Name, Policy: cfg.Policy, Seed: cfg.Seed, Window: p.Window,
		Weather:       drawn.Digest(),
		Unschedulable: p.Warnings()}
	r.Result.Warnings = slices.Clone(r.Result.Unschedulable)
	r.Log = engine.NewLog(r.header(), cfg.Log)
	return r, drawn, nil
}

// header returns the bytes that the hash covers before the first event.
func (r *Run) header() []byte {
	var b []byte
	b = append(b, r.Scenario.Digest[:]...)
	b = append(b, r.Scenario.TraceDigest[:]...)
	b = fmt.Appendf(b, "%s\x00%d\x00%d\x00%d\x00%v\x00", r.Result.Policy, r.Seed, r.Window.From, r.Window.To,
		r.Scenario.StartCluster)
	return append(b, r.Result.Weather[:]...)
}

// Away reports whether a zonal shift avoids the zone of market m for a pool of Karpenter, which
// then launches and terminates nothing there.
func (r *Run) Away(pool policy.PoolID, m policy.MarketID) bool {
	return r.Shifted != nil && r.Shifted[r.Scenario.Markets[m].Zone] &&
		r.Scenario.Pools[pool].Provisioner == policy.ProvisionerKarpenter
}

// Metered reports whether the metered window has started, so that what happens now is counted.
func (r *Run) Metered() bool { return r.Clock.Now >= r.Window.From }

// Warn adds a warning to the result, unless it already contains the same one.
func (r *Run) Warn(text string) {
	if !slices.Contains(r.Result.Warnings, text) {
		r.Result.Warnings = append(r.Result.Warnings, text)
	}
}

// Fail ends the run. Only the first error is kept.
func (r *Run) Fail(err error) {
	if r.Failure == nil {
		r.Failure = err
	}
}
