// Package model is the policy that does what a trained network values most: to
// hold a pool's spot share, to raise or lower it by ten or thirty points, or to
// leave spot.
//
// The values are data of the snapshot, so that a decision can be taken again
// without the network. A pool without values, because its markets are out of
// the network's scope or the network failed, is left at its share: notices,
// pending pods and what is not needed are dealt with all the same.
//
// A change counts from the share that is held and is a node at least; the share
// stays within the pool's bounds and below what its pods can bear to lose.
package model

import (
	"fmt"
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/policy/workload"
)

// Reasons of this policy alone.
const (
	// ReasonValued is that of what the network values most.
	ReasonValued policy.Reason = "most-valued"

	// ReasonUnvalued is that of a pool without values.
	ReasonUnvalued policy.Reason = "no-values"
)

// The actions, numbered as the network's outputs are.
const (
	hold = iota
	decrease10
	decrease30
	increase10
	increase30
	exit
	actions
)

// changes are by how much of the share each action moves it, names what they
// are called.
var (
	changes = [actions]float64{0, -0.10, -0.30, 0.10, 0.30, -1}
	names   = [actions]string{"hold", "ten points less", "thirty points less", "ten points more", "thirty points more", "leave spot"}
)

// A Policy follows action values. It does not change after [New], so one policy
// may serve any number of goroutines.
type Policy struct {
	cfg  Config
	name string
}

// New returns the policy, or says which parameter is out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Policy{cfg: cfg, name: cfg.name()}, nil
}

// Name returns "model" with the parameters that are not the default ones.
func (e *Policy) Name() string { return e.name }

// Decide does with each pool what is valued most.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	t := turn{cfg: &e.cfg, s: s, memory: m}
	t.plan = policy.Plan{Drains: place.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	features := workload.Collect(s, workload.Options{}, new(workload.Scratch))
	for i := range s.Pools {
		if s.Pools[i].Mode != policy.ModeOff {
			t.decide(&s.Pools[i], &features[i])
		}
	}
	launches, holds := place.Shortages(s, t.share)
	t.plan.Launches = append(launches, t.plan.Launches...)
	t.plan.Holds = append(t.plan.Holds, holds...)
	t.memory.Decisions++
	return place.Consolidate(s, t.plan, t.memory, t.share)
}

// A turn is one decision on its way.
type turn struct {
	cfg    *Config
	s      *policy.Snapshot
	memory policy.Memory
	plan   policy.Plan
}

// A course is the decision of one pool.
type course struct {
	pool   *policy.Pool
	memory policy.PoolMemory
	action int

	// held is the spot share with moves under way counted as done, grain the
	// part of the pool that one node is, most the largest share allowed.
	held, grain, most float64
	standing          place.Standing
}

// decide decides one pool.
func (t *turn) decide(p *policy.Pool, f *workload.Features) {
	c := course{pool: p, memory: t.memory.Pool(p.Name), standing: place.Balance(t.s, p.ID), most: p.Share.Max}
	if c.standing.Total > 0 {
		c.held = float64(c.standing.Spot) / float64(c.standing.Total)
	}
	if c.standing.Nodes > 0 {
		c.grain = 1 / float64(c.standing.Nodes)
	}
	if t.cfg.Cap {
		c.most = max(p.Share.Min, min(c.most, f.StableShare()))
	}
	was := c.memory
	if !c.memory.HasTarget {
		c.memory.Target, c.memory.HasTarget = c.start(), true
	}
	c.action = t.most(p)
	drains := len(t.plan.Drains)
	wait, text := t.retarget(&c)
	t.steer(&c)
	switch {
	case wait != "":
		t.hold(&c, wait, text)
	case p.Share.Exact || c.action != hold:
		t.shift(&c)
	}
	if len(t.plan.Drains) > drains {
		c.memory.Moved = t.s.Now
	}
	if c.memory.Target != was.Target || c.memory.HasTarget != was.HasTarget || c.memory.Moved != was.Moved || c.memory.Steered != was.Steered {
		t.memory = t.memory.With(c.memory)
	}
}

// start returns the target of a pool that never had one: what its owner states,
// else what it was told last, else what it holds.
func (c *course) start() float64 {
	switch {
	case c.pool.Share.HasTarget || c.pool.Share.Exact:
		return c.pool.Share.Target
	case c.pool.Steer.Set:
		return c.bounded(c.pool.Steer.Share)
	}
	return c.bounded(c.held)
}

// bounded returns share within what the pool allows and its pods can bear.
func (c *course) bounded(share float64) float64 {
	return math.Round(max(c.pool.Share.Min, min(c.most, share))*1000) / 1000
}

// most returns the action with the largest value; holding still unless another
// one exceeds it by the margin, and also without values.
func (t *turn) most(p *policy.Pool) int {
	best := hold
	if len(p.Actions) != actions {
		return best
	}
	for a, q := range p.Actions {
		if q > p.Actions[best] {
			best = a
		}
	}
	if p.Actions[best] <= p.Actions[hold]+t.cfg.Margin {
		return hold
	}
	return best
}

// retarget moves the target as the action asks. It returns why the pool is left
// alone, if it is.
func (t *turn) retarget(c *course) (wait policy.Reason, text string) {
	m, change := &c.memory, changes[c.action]
	target := m.Target
	switch {
	case c.pool.Share.Exact:
		target = c.pool.Share.Target
	case len(c.pool.Actions) != actions:
		wait, text = ReasonUnvalued, "no trained model values what can be done here: the share stays"
	case c.action == exit:
		target = c.pool.Share.Min
	case c.action == hold:
		wait, text = ReasonValued, "to hold is valued most"
	case t.soon(c):
		return policy.ReasonCooldown, "the pool was changed a short while ago"
	case change < 0:
		target = min(target, c.held-max(-change, c.grain))
	default:
		target = max(target, c.held+max(change, c.grain))
	}
	if !c.pool.Share.Exact {
		target = c.bounded(target)
	}
	if target != m.Target {
		m.Target, m.Steered = target, t.s.Now
	}
	return wait, text
}

// soon reports whether the pool was changed so lately that it must wait.
func (t *turn) soon(c *course) bool {
	last := max(c.memory.Moved, c.memory.Steered)
	return last != 0 && t.s.Now.Sub(last) < max(t.cfg.Cooldown, c.pool.Cooldown)
}

// steer tells the pool the share that it may buy, if that is news.
func (t *turn) steer(c *course) {
	share := c.memory.Target
	if c.pool.Steer.Set && c.pool.Steer.Share == share {
		return
	}
	text := fmt.Sprintf("%s; the share goes from %.2f to %.2f", t.said(c), c.held, share)
	if c.action == hold && !c.pool.Share.Exact {
		text = fmt.Sprintf("%s; the pool keeps to the share of %.2f", t.said(c), share)
	}
	t.plan.Steers = append(t.plan.Steers, policy.Steer{
		Pool: c.pool.ID, Share: share, Exact: c.pool.Share.Exact, Fallback: c.pool.OnDemandFallback, Bid: place.Bid(t.s, c.pool.ID),
		Why: t.why(c, text),
	})
}

// said says what was valued most.
func (t *turn) said(c *course) string {
	switch {
	case c.pool.Share.Exact:
		return "the pool's owner states an exact ratio"
	case len(c.pool.Actions) != actions:
		return "no trained model values what can be done here"
	}
	return "valued most is to " + verb(c.action)
}

// verb returns an action as something that is done.
func verb(action int) string {
	if action == hold || action == exit {
		return names[action]
	}
	return "hold " + names[action] + " on spot"
}

// why returns the reason of an entry, with the action that is valued second.
func (t *turn) why(c *course, text string) policy.Why {
	w := policy.Why{Reason: ReasonValued, Text: text, RunnerUp: "hold"}
	switch {
	case c.pool.Share.Exact:
		w.Reason = policy.ReasonConfigured
	case len(c.pool.Actions) != actions:
		w.Reason = ReasonUnvalued
	default:
		second := -1
		for a, q := range c.pool.Actions {
			if a != c.action && (second < 0 || q > c.pool.Actions[second]) {
				second = a
			}
		}
		w.RunnerUp = fmt.Sprintf("%s, valued %.4f and not %.4f", verb(second), c.pool.Actions[second], c.pool.Actions[c.action])
	}
	return w
}

// hold leaves the pool alone.
func (t *turn) hold(c *course, reason policy.Reason, text string) {
	w := t.why(c, text)
	w.Reason = reason
	t.plan.Holds = append(t.plan.Holds, policy.Hold{Pool: c.pool.ID, Node: policy.None, Why: w})
}

// shift moves running nodes towards the target, as many points of the pool as
// the action has and its budgets let.
func (t *turn) shift(c *course) {
	share := c.memory.Target
	up := share > c.held
	if !c.standing.Off(share) || !c.pool.Share.Exact && up != (changes[c.action] > 0) {
		return
	}
	part := math.Abs(changes[c.action])
	if c.pool.Share.Exact {
		part = 0.10
	}
	most := max(1, int(math.Ceil(float64(part*float64(c.standing.Nodes))-1e-6)))
	reason := policy.ReasonShare
	if c.action == exit {
		reason = policy.ReasonRisk
	}
	launches, drains, holds := place.Shift(t.s, nil, place.ShiftOptions{
		Pool: c.pool.ID, Share: share, DrainsMax: min(most, t.s.Disruptable(c.pool.ID, policy.Underutilized)),
		Reason: reason, Text: t.said(c),
		Backoff: func(node string) bool { return c.memory.BackedOff(node, t.s.Now) },
	})
	t.plan.Launches = append(t.plan.Launches, launches...)
	t.plan.Drains = append(t.plan.Drains, drains...)
	t.plan.Holds = append(t.plan.Holds, holds...)
}

// share returns the share that a pool is steered to.
func (t *turn) share(p policy.PoolID) float64 {
	pool := &t.s.Pools[p]
	if m := t.memory.Pool(pool.Name); m.HasTarget {
		return m.Target
	}
	return pool.Steer.Share
}
