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

// A Run is what the parts of one run share and none of them owns: the configuration, the clock, and
// the log and the result that all add to.
type Run struct {
	Prepared *Prepared
	Scenario *scenarios.BoundScenario
	Delays   Delays
	Window   billing.Span // what is metered
	Seed     uint64
	Check    bool // the invariants are held after every event

	Clock  *engine.Queue
	Log    *engine.Log
	Result *result.Result

	// Failure ends the run.
	Failure error

	// SlowFactor is how many times longer nodes and pods take to start: 1 but for a fault.
	SlowFactor float64

	// Shifted says, by zone, from which a zonal shift leads away; nil before the first.
	Shifted []bool
}

// A Config says what is drawn and written in a run.
type Config struct {
	Policy string // its name
	Seed   uint64

	// Weather is the weather of the scenario and Seed if it was drawn before; nil draws it.
	Weather *weather.Weather

	Delays *Delays // nil are the default ones
	Check  bool
	Log    io.Writer // nil writes none
}

// NewRun returns what the parts of a run share, and its weather.
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

// header is what the hash covers before the first event.
func (r *Run) header() []byte {
	var b []byte
	b = append(b, r.Scenario.Digest[:]...)
	b = append(b, r.Scenario.TraceDigest[:]...)
	b = fmt.Appendf(b, "%s\x00%d\x00%d\x00%d\x00%v\x00", r.Result.Policy, r.Seed, r.Window.From, r.Window.To,
		r.Scenario.StartCluster)
	return append(b, r.Result.Weather[:]...)
}

// Away reports whether a zonal shift leads away from the zone of market m: Karpenter then
// buys nothing there, and ends no instance.
func (r *Run) Away(pool policy.PoolID, m policy.MarketID) bool {
	return r.Shifted != nil && r.Shifted[r.Scenario.Markets[m].Zone] &&
		r.Scenario.Pools[pool].Provisioner == policy.ProvisionerKarpenter
}

// Metered reports whether what happens now is counted.
func (r *Run) Metered() bool { return r.Clock.Now >= r.Window.From }

// Warn says something of the run that did not stop it, once.
func (r *Run) Warn(text string) {
	if !slices.Contains(r.Result.Warnings, text) {
		r.Result.Warnings = append(r.Result.Warnings, text)
	}
}

// Fail ends the run with the first error that is found.
func (r *Run) Fail(err error) {
	if r.Failure == nil {
		r.Failure = err
	}
}
