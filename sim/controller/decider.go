package controller

import (
	"context"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
)

// A decider lets the policy decide when something has happened or when the policy's plan requested
// it. It is the store of its driver.
type decider struct {
	*Controller

	driver *driver.Driver
	saved  policy.Memory

	// stepAt is the time of the next step, or 0 if none is planned. stepped is the time of the last
	// step.
	stepAt, stepped policy.Time
	warned          map[string]bool

	// barred is the number of pools that have been on demand since the last decision because their
	// loss budgets are used up. Their time has been added to the result up to barredUntil.
	barred      int
	barredUntil policy.Time

	// down reports whether a fault has stopped the controller. modelFails is how the model fails
	// because of a fault.
	down       bool
	modelFails scenarios.ModelFailure
}

// newDriver returns a driver of the run's policy with the given memory.
func (dc *decider) newDriver(m policy.Memory) *driver.Driver {
	w := driver.Dependencies{Observer: dc.Observer, Actuator: dc.Actuator, Ranker: dc.Actuator,
		Enforcer: dc.GPUBudgets, Store: dc, Recorder: dc.Recorder}
	if dc.Forecaster != nil {
		failure := func() scenarios.ModelFailure { return dc.modelFails }
		w.Forecaster = faultyForecaster{dc.Forecaster, failure}
		if slices.ContainsFunc(dc.Scenario.Signals, func(c scenarios.SignalCurve) bool { return c.Hazard != nil }) {
			w.Forecaster = recordedForecaster{dc.Scenario.Signals, w.Forecaster}
		}
	}
	return driver.New(w, dc.Policy, m)
}

// plan plans a step at t unless an earlier one is planned. There is at most one step at an instant.
// Events at the instant of the last step, including effects of its plan, are left to the next step.
func (dc *decider) plan(t policy.Time) {
	t = max(t, dc.stepped+1)
	if dc.stepAt != 0 && dc.stepAt <= t {
		return
	}
	dc.stepAt = t
	dc.Clock.Add(t, engine.Step, 0, 0, 0)
}

// collect is the time for which refused launches and unschedulable pods are collected before the
// policy decides.
const collect = 10 * time.Second

// step lets the policy decide, unless an earlier step replaced this event or the controller is
// down.
func (dc *decider) step() {
	if dc.stepAt != dc.Clock.Now {
		return
	}
	dc.stepAt = 0
	if dc.down {
		return
	}
	dc.stepped = dc.Clock.Now
	dc.Result.Decisions++
	step, err := dc.driver.Step(context.Background())
	if err != nil {
		dc.Failure = err
		return
	}
	if step.Warning != nil && !dc.warned[step.Warning.Error()] && len(dc.warned) < 20 {
		dc.warned[step.Warning.Error()] = true
		dc.Result.Warnings = append(dc.Result.Warnings, step.Warning.Error())
	}
	if dc.Observed != nil {
		dc.Observed(step.Snapshot, &step.Plan)
	}
	dc.Log.Add(dc.Clock.Now, engine.RecordStep, "", "", int64(len(step.Plan.Launches)+len(step.Plan.Drains)))
	dc.plan(step.Plan.Wake)
}

// Save stores the memory, like a store that survives the controller.
func (dc *decider) Save(_ context.Context, m *policy.Memory) error {
	dc.saved = *m
	dc.GPUBudgets.Note(m)
	dc.countBarred(dc.Clock.Now)
	dc.barred = 0
	for i := range m.Pools {
		if m.Pools[i].Loss.UsedUp(dc.Clock.Now) {
			dc.barred++
		}
	}
	return nil
}

// countBarred adds the metered time until to, for which pools were on demand because their loss
// budgets were used up, to the result.
func (dc *decider) countBarred(to policy.Time) {
	if from := max(dc.barredUntil, dc.Window.From); to > from {
		dc.Result.SpotBarred += time.Duration(dc.barred) * to.Sub(from)
	}
	dc.barredUntil = to
}
