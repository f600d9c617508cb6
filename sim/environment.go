package sim

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
)

// An environment is what the parts of a run share and none of them owns: what was
// asked for, the clock, the log and the result that all add to.
type environment struct {
	cfg      Config
	prepared *Prepared
	scenario *scenarios.BoundScenario
	delays   Delays
	window   billing.Span // what is metered
	q        engine.Queue
	log      *engine.Log
	result   *Result

	// failure ends the run.
	failure error

	// shifted says, by zone, from which a zonal shift leads away; nil before the first.
	shifted []bool
}

// away reports whether a zonal shift leads away from the zone of market m: Karpenter then
// buys nothing there, and ends no instance.
func (e *environment) away(pool policy.PoolID, m policy.MarketID) bool {
	return e.shifted != nil && e.shifted[e.scenario.Markets[m].Zone] && e.scenario.Pools[pool].Provisioner == policy.ProvisionerKarpenter
}

// newEnvironment returns the environment of a run and the weather that is drawn for it.
func newEnvironment(cfg Config) (*environment, *weather.Weather, error) {
	p := cfg.Prepared
	e := &environment{cfg: cfg, prepared: p, scenario: p.scenario, window: p.window, delays: DefaultDelays()}
	e.q.Now = p.begin
	if cfg.Delays != nil {
		e.delays = *cfg.Delays
	}
	if err := cfg.checkSample(p.window); err != nil {
		return nil, nil, err
	}
	drawn := cfg.Weather
	if drawn == nil {
		var err error
		if drawn, err = p.DrawWeather(cfg.Seed); err != nil {
			return nil, nil, fmt.Errorf("drawing the weather of %s: %w", e.scenario.Name, err)
		}
	}
	e.result = &Result{Scenario: e.scenario.Name, Policy: cfg.Policy.Name(), Seed: cfg.Seed, Window: p.window, Weather: drawn.Digest()}
	e.result.Unschedulable = p.Warnings()
	e.result.Warnings = slices.Clone(e.result.Unschedulable)
	e.log = engine.NewLog(e.header(), cfg.Log)
	if cfg.Observer != nil {
		e.log.Watch = cfg.Observer.Happened
	}
	return e, drawn, nil
}

// header is what the hash covers before the first event.
func (e *environment) header() []byte {
	var b []byte
	b = append(b, e.scenario.Digest[:]...)
	b = append(b, e.scenario.TraceDigest[:]...)
	b = fmt.Appendf(b, "%s\x00%d\x00%d\x00%d\x00%v\x00", e.cfg.Policy.Name(), e.cfg.Seed, e.window.From, e.window.To, e.scenario.StartCluster)
	return append(b, e.result.Weather[:]...)
}

// spreadTogether reports whether kube-scheduler's default constraints spread pods of
// t and u together: those of one ReplicaSet or StatefulSet. Scenarios have no
// Services, so that pods of Jobs and bare pods are not spread.
func (e *environment) spreadTogether(t, u *policy.Template) bool {
	if t.Workload != u.Workload || t.Workload < 0 {
		return false
	}
	kind := e.scenario.Workloads[t.Workload].Kind
	return kind == policy.KindDeployment || kind == policy.KindStatefulSet
}
