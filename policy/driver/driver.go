// Package driver runs the loop observe, forecast, decide, act. The simulator and the live
// controller both run [Driver.Step]; they differ only in the [Dependencies] passed to [New].
package driver

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spotter-dev/spotter/policy"
)

// An Observer describes the current state of the cluster and its markets. The live observer never
// changes a snapshot that it has returned; the simulator's reuses the memory of the snapshot before
// the last one.
type Observer interface {
	Observe(context.Context) (*policy.Snapshot, error)
}

// A Forecaster sets the Forecast of every market, and the action values of every pool, of a
// snapshot. It reads only its arguments. If it fails, the values that it could not set remain those
// of the closed form, and the error is reported with the plan.
type Forecaster interface {
	Forecast(*policy.Snapshot, *policy.Memory) error
}

// An Actuator changes the cluster and the cloud. Each method may be called again with the same
// argument and must then have no further effect.
type Actuator interface {
	Steer(context.Context, *policy.Snapshot, *policy.Steer) error
	Launch(context.Context, *policy.Snapshot, *policy.Launch) error
	Drain(context.Context, *policy.Snapshot, *policy.Drain) error
}

// A Ranker sets the deletion costs of pods. A call that fails is corrected by a later step, which
// observes the actual costs.
type Ranker interface {
	DeletionCost(context.Context, *policy.Snapshot, *policy.DeletionCost) error
}

// An Enforcer carries out the actions of budgets.
type Enforcer interface {
	Gate(context.Context, *policy.Snapshot, *policy.Gate) error
	Pause(context.Context, *policy.Snapshot, *policy.Pause) error
	Evict(context.Context, *policy.Snapshot, *policy.Evict) error
}

// A Store keeps the memory across restarts. It must copy what it keeps.
type Store interface {
	Save(context.Context, *policy.Memory) error
}

// A Recorder records decisions with their inputs. It must copy what it keeps, except for the tables
// of snapshots that their Observer never changes.
type Recorder interface {
	Record(context.Context, *policy.Snapshot, *policy.Memory, *policy.Plan) error
}

// ErrNoCapacity is returned by Actuator.Launch if the market has no capacity. It is a regular
// outcome and not a failure.
var ErrNoCapacity = errors.New("no capacity")

// A Dependencies contains everything that a driver uses. Forecaster, Ranker, Enforcer and Recorder
// may be nil.
type Dependencies struct {
	Observer   Observer
	Forecaster Forecaster
	Actuator   Actuator
	Ranker     Ranker
	Enforcer   Enforcer
	Store      Store
	Recorder   Recorder
}

// A Driver connects one policy with its dependencies.
type Driver struct {
	deps   Dependencies
	policy policy.Policy
	memory policy.Memory
}

// New returns a driver that starts with memory m.
func New(deps Dependencies, p policy.Policy, m policy.Memory) *Driver {
	return &Driver{deps: deps, policy: p, memory: m}
}

// A Step is the result of one step. Its fields are valid until the Observer changes the snapshot.
type Step struct {
	Snapshot *policy.Snapshot
	Plan     policy.Plan

	// Warning joins the failures that did not stop the step: of the forecaster or of actions. It is
	// nil if there were none.
	Warning error
}

// Step observes once, decides once and acts on the plan.
//
// The memory is saved before the first action. A crash between the two loses a plan, which the next
// step makes up for; with the other order, two different launches could get the same token.
//
// An action that fails does not stop the following ones: a refused launch must not keep a node
// under notice from being drained.
func (d *Driver) Step(ctx context.Context) (Step, error) {
	snap, err := d.deps.Observer.Observe(ctx)
	if err != nil {
		return Step{}, fmt.Errorf("observing: %w", err)
	}
	snap.EstimateUse()
	var warnings []error
	if d.deps.Forecaster != nil {
		if err := d.deps.Forecaster.Forecast(snap, &d.memory); err != nil {
			warnings = append(warnings, fmt.Errorf("forecasting: %w", err))
		}
		roundForecasts(snap)
	}
	before := d.memory
	plan, memory := d.policy.Decide(snap, before)
	if plan.Wake <= snap.Now {
		return Step{}, fmt.Errorf("policy %s at %v wakes at %v, which is not later", d.policy.Name(), snap.Now, plan.Wake)
	}
	if err := d.deps.Store.Save(ctx, &memory); err != nil {
		return Step{}, fmt.Errorf("saving memory: %w", err)
	}
	d.memory = memory
	warnings = d.act(ctx, snap, &plan, warnings)
	if d.deps.Recorder != nil {
		if err := d.deps.Recorder.Record(ctx, snap, &before, &plan); err != nil {
			return Step{}, fmt.Errorf("recording: %w", err)
		}
	}
	return Step{Snapshot: snap, Plan: plan, Warning: errors.Join(warnings...)}, nil
}

func (d *Driver) act(ctx context.Context, s *policy.Snapshot, p *policy.Plan, errs []error) []error {
	a := d.deps.Actuator
	for i := range p.Steers {
		if err := a.Steer(ctx, s, &p.Steers[i]); err != nil {
			errs = append(errs, fmt.Errorf("steering %s: %w", s.Pools[p.Steers[i].Pool].Name, err))
		}
	}
	for i := range p.Launches {
		if err := a.Launch(ctx, s, &p.Launches[i]); err != nil && !errors.Is(err, ErrNoCapacity) {
			errs = append(errs, fmt.Errorf("launching in %s: %w", s.Pools[p.Launches[i].Pool].Name, err))
		}
	}
	for i := range p.Drains {
		if err := a.Drain(ctx, s, &p.Drains[i]); err != nil {
			errs = append(errs, fmt.Errorf("draining %s: %w", s.Nodes[p.Drains[i].Node].Name, err))
		}
	}
	if d.deps.Ranker != nil {
		for i := range p.DeletionCosts {
			if err := d.deps.Ranker.DeletionCost(ctx, s, &p.DeletionCosts[i]); err != nil {
				errs = append(errs, fmt.Errorf("ranking the pods of %s: %w", s.Nodes[p.DeletionCosts[i].Node].Name, err))
			}
		}
	}
	if d.deps.Enforcer == nil {
		return errs
	}
	return d.enforce(ctx, s, p, errs)
}

// enforce carries out the actions of budgets.
func (d *Driver) enforce(ctx context.Context, s *policy.Snapshot, p *policy.Plan, errs []error) []error {
	for i := range p.Gates {
		if err := d.deps.Enforcer.Gate(ctx, s, &p.Gates[i]); err != nil {
			errs = append(errs, fmt.Errorf("gating %s: %w", p.Gates[i].Budget, err))
		}
	}
	for i := range p.Pauses {
		if err := d.deps.Enforcer.Pause(ctx, s, &p.Pauses[i]); err != nil {
			errs = append(errs, fmt.Errorf("pausing %s: %w", s.Workloads[p.Pauses[i].Workload].Name, err))
		}
	}
	for i := range p.Evicts {
		if err := d.deps.Enforcer.Evict(ctx, s, &p.Evicts[i]); err != nil {
			errs = append(errs, fmt.Errorf("evicting %s: %w", s.Pods[p.Evicts[i].Pod].Name, err))
		}
	}
	return errs
}

// forecastGrid is the reciprocal of the step to which forecasts are rounded, so that the last bits
// of a model's arithmetic do not affect decisions.
const forecastGrid = 65536

func roundForecasts(s *policy.Snapshot) {
	for i := range s.Markets {
		f := &s.Markets[i].Forecast
		f.Hazard, f.Capacity = onGrid(f.Hazard), onGrid(f.Capacity)
		f.Runtime, f.Confidence = onGrid(f.Runtime), onGrid(f.Confidence)
	}
	for i := range s.Pools {
		for j, q := range s.Pools[i].Actions {
			s.Pools[i].Actions[j] = onGrid(q)
		}
	}
}

func onGrid(x float64) float64 { return math.Round(x*forecastGrid) / forecastGrid }
