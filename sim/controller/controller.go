// Package controller simulates Spotter's own controller: it shows the policy the observable state,
// lets it decide when something has happened, and carries out its decisions.
package controller

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/groups"
	"github.com/spotter-dev/spotter/sim/machines"
	"github.com/spotter-dev/spotter/sim/nodepools"
)

// A Config contains the policy of a run and the observers of its decisions.
type Config struct {
	Policy     policy.Policy
	Forecaster driver.Forecaster // nil leaves forecasts at zero

	// Recorder records every step; nil records none.
	Recorder driver.Recorder

	// Observed, if not nil, is called with every snapshot and its plan, after forecasting. The
	// snapshot may be reused after the call.
	Observed func(*policy.Snapshot, *policy.Plan)
}

// A Controller runs a policy in a run.
type Controller struct {
	Config
	*machines.Machines
	karpenter  *nodepools.Karpenter
	autoscaler *groups.Autoscaler

	Observer *Observer
	Actuator *Actuator
	decider  *decider
}

// New returns the controller of a run.
func New(cfg Config, ms *machines.Machines, k *nodepools.Karpenter, a *groups.Autoscaler) *Controller {
	c := &Controller{Config: cfg, Machines: ms, karpenter: k, autoscaler: a}
	c.Observer = &Observer{Controller: c}
	c.decider = &decider{Controller: c, warned: make(map[string]bool)}
	c.Actuator = &Actuator{Controller: c}
	c.Observer.init()
	c.decider.driver = c.decider.newDriver(policy.Memory{})
	c.watch()
	return c
}

// watch subscribes to the events that make the policy decide, either at once or after a short delay
// in which further events are collected.
func (c *Controller) watch() {
	c.Clock.On(engine.Step, func(*engine.Event) { c.decider.step() })
	after := func(t time.Duration) func() { return func() { c.decider.plan(c.Clock.Now.Add(t)) } }
	now, soon := after(0), after(collect)
	c.PodsWait.Subscribe(func(int) { soon() })
	c.PoolRefused.Subscribe(func(policy.PoolID) { soon() })
	c.Noticed.Subscribe(func(policy.NodeID) { now() })
	c.Recommended.Subscribe(func(policy.NodeID) { now() })
	c.NodeGone.Subscribe(func(n policy.NodeID) {
		if c.Nodes.State[n].Lost {
			now()
		}
	})
}

// Start runs the first step, before a provisioner considers the pending pods, so that the policy's
// steers apply to the first nodes.
func (c *Controller) Start() {
	c.decider.stepAt = c.Clock.Now
	c.decider.step()
}

// Saved returns the saved memory of the policy.
func (c *Controller) Saved() *policy.Memory { return &c.decider.saved }

// LossBudget returns the loss budget of a pool after the last decision, and whether the policy
// keeps one.
func (c *Controller) LossBudget(pool string) (policy.LossBudget, bool) {
	m := c.decider.saved.Pool(pool)
	return m.Loss, m.Loss.Kept(c.decider.stepped)
}

// Settle adds the intervals that are still open at the end of the window to the result.
func (c *Controller) Settle(end policy.Time) { c.decider.countBarred(end) }

// SetDown stops the controller, or starts a new process of it, which has only the saved memory.
func (c *Controller) SetDown(down bool) {
	if c.decider.down && !down {
		c.decider.driver = c.decider.newDriver(c.decider.saved)
		c.decider.plan(c.Clock.Now)
	}
	c.decider.down = down
}

// SetModel sets how the model fails from now on.
func (c *Controller) SetModel(f scenarios.ModelFailure) { c.decider.modelFails = f }
