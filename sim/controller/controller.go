// Package controller simulates Spotter's own controller: it shows the policy what can be seen, has it
// decide when something happened, and carries out what it decides.
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

// A Config says who decides, and who sees each decision.
type Config struct {
	Policy     policy.Policy
	Forecaster driver.Forecaster // nil leaves forecasts at zero

	// Recorder keeps every step; nil keeps none.
	Recorder driver.Recorder

	// Observed is called with every snapshot, after forecasting and before it
	// may be reused; nil is not called.
	Observed func(*policy.Snapshot, *policy.Plan)
}

// A Controller has a policy decide in a run.
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

// watch says what has the policy decide: at once, or with what else happens within a while.
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

// Start takes the first step, before any provisioner looks at the pending pods: what the policy
// orders of its pools holds for the first nodes, too.
func (c *Controller) Start() {
	c.decider.stepAt = c.Clock.Now
	c.decider.step()
}

// Saved returns what the policy keeps.
func (c *Controller) Saved() *policy.Memory { return &c.decider.saved }

// LossBudget returns the loss budget of a pool as the last decision left it, and whether the policy
// keeps one.
func (c *Controller) LossBudget(pool string) (policy.LossBudget, bool) {
	m := c.decider.saved.Pool(pool)
	return m.Loss, m.Loss.Kept(c.decider.stepped)
}

// Settle counts what is still open at the end of the window.
func (c *Controller) Settle(end policy.Time) { c.decider.countBarred(end) }

// SetDown stops the controller, or starts a new process of it, to which nothing is left but what was
// saved.
func (c *Controller) SetDown(down bool) {
	if c.decider.down && !down {
		c.decider.driver = c.decider.newDriver(c.decider.saved)
		c.decider.plan(c.Clock.Now)
	}
	c.decider.down = down
}

// SetModel says how the model fails from now on.
func (c *Controller) SetModel(f scenarios.ModelFailure) { c.decider.modelFails = f }
