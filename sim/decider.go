package sim

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
	*environment
	actuator *actuator
	budgets  *gpuBudgets
	faults   *faults
	observer *observer

	driver *driver.Driver
	saved  policy.Memory

	// stepAt is when the next step is due, 0 for none, and stepped when the last was.
	stepAt, stepped policy.Time
	warned          map[string]bool
}

// newDriver returns a driver of the run's policy that starts from memory m.
func (dc *decider) newDriver(m policy.Memory) *driver.Driver {
	w := driver.Dependencies{Observer: dc.observer, Actuator: dc.actuator, Ranker: dc.actuator, Enforcer: dc.budgets, Store: dc, Recorder: dc.cfg.Recorder}
	if dc.cfg.Forecaster != nil {
		w.Forecaster = faultyForecaster{dc.cfg.Forecaster, dc.faults}
		if slices.ContainsFunc(dc.scenario.Signals, func(c scenarios.SignalCurve) bool { return c.Hazard != nil }) {
			w.Forecaster = recordedForecaster{dc.scenario.Signals, w.Forecaster}
		}
	}
	return driver.New(w, dc.cfg.Policy, m)
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
	dc.q.Add(t, engine.Step, 0, 0, 0)
}

// first takes the first step, before any provisioner looks at the pending pods: what the policy
// orders of its pools holds for the first nodes, too.
func (dc *decider) first() {
	dc.stepAt = dc.q.Now
	dc.step(0)
}

// collect is how long refused launches and unschedulable pods are collected
// before the policy is asked.
const collect = 10 * time.Second

// step lets the policy decide, unless this event was overtaken by an earlier
// step, or the controller is down.
func (dc *decider) step(int32) {
	if dc.stepAt != dc.q.Now {
		return
	}
	dc.stepAt = 0
	if dc.faults.down {
		return
	}
	dc.stepped = dc.q.Now
	dc.result.Decisions++
	step, err := dc.driver.Step(context.Background())
	if err != nil {
		dc.failure = err
		return
	}
	if step.Warning != nil && !dc.warned[step.Warning.Error()] && len(dc.warned) < 20 {
		dc.warned[step.Warning.Error()] = true
		dc.result.Warnings = append(dc.result.Warnings, step.Warning.Error())
	}
	if dc.cfg.Observed != nil {
		dc.cfg.Observed(step.Snapshot, &step.Plan)
	}
	dc.log.Add(dc.q.Now, engine.RecordStep, "", "", int64(len(step.Plan.Launches)+len(step.Plan.Drains)))
	dc.plan(step.Plan.Wake)
}

// Save keeps the memory, as a store that survives the controller does.
func (dc *decider) Save(_ context.Context, m *policy.Memory) error {
	dc.saved = *m
	dc.budgets.note(m)
	return nil
}
