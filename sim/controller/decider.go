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

// A decider lets the policy decide when something happened, or when it asked to. It
// is the store of its driver.
type decider struct {
	*Controller

	driver *driver.Driver
	saved  policy.Memory

	// stepAt is when the next step is due, 0 for none, and stepped when the last was.
	stepAt, stepped policy.Time
	warned          map[string]bool

	// barred is how many pools are on demand since the last decision because their loss budgets
	// are used up. It is counted up to barredUntil.
	barred      int
	barredUntil policy.Time

	// down says that a fault has stopped the controller, and modelFails how one has the model
	// fail.
	down       bool
	modelFails scenarios.ModelFailure
}

// newDriver returns a driver of the run's policy that starts from memory m.
func (dc *decider) newDriver(m policy.Memory) *driver.Driver {
	w := driver.Dependencies{Observer: dc.Observer, Actuator: dc.Actuator, Ranker: dc.Actuator,
		Enforcer: dc.GPUBudgets, Store: dc, Recorder: dc.Recorder}
	if dc.Forecaster != nil {
		w.Forecaster = faultyForecaster{dc.Forecaster, dc}
		if slices.ContainsFunc(dc.Scenario.Signals, func(c scenarios.SignalCurve) bool { return c.Hazard != nil }) {
			w.Forecaster = recordedForecaster{dc.Scenario.Signals, w.Forecaster}
		}
	}
	return driver.New(w, dc.Policy, m)
}

// plan makes the policy decide at t unless it does so before. An instant has one
// step: what happens in that of the last one, also by what its plan does, is for the
// next.
func (dc *decider) plan(t policy.Time) {
	t = max(t, dc.stepped+1)
	if dc.stepAt != 0 && dc.stepAt <= t {
		return
	}
	dc.stepAt = t
	dc.Clock.Add(t, engine.Step, 0, 0, 0)
}

// collect is how long refused launches and unschedulable pods are collected
// before the policy is asked.
const collect = 10 * time.Second

// step lets the policy decide, unless this event was overtaken by an earlier
// step, or the controller is down.
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

// Save keeps the memory, as a store that survives the controller does.
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

// countBarred adds the metered time up to to for which pools were on demand because their loss
// budgets were used up.
func (dc *decider) countBarred(to policy.Time) {
	if from := max(dc.barredUntil, dc.Window.From); to > from {
		dc.Result.SpotBarred += time.Duration(dc.barred) * to.Sub(from)
	}
	dc.barredUntil = to
}
