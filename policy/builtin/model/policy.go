// Package model is the policy that takes the action which a trained network values most: keep a
// pool's Spot share, raise or lower it by ten or thirty points, or leave Spot.
//
// The values are data of the snapshot, so that a decision can be taken again
// without the network. A pool without values, because its markets are out of
// the network's scope or the network failed, is left at its share: notices,
// pending pods and what is not needed are dealt with all the same.
//
// The network decides only how much of a pool should be on Spot. The policy portfolio chooses the
// markets, replaces nodes and ensures what no move may break. It gets pools with this share. In
// addition the policy spreads services: nodes leave a market that has more pods of a service than
// it can spare, and move to on-demand where that is not enough. It searches at every interval, and
// at once if the share has changed, nodes are about to be taken or a launch was refused. At other
// times it handles only notices, pending pods and empty nodes, since a search costs far more than a
// decision.
package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/portfolio"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
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
	names   = [actions]string{"hold", "ten points less", "thirty points less", "ten points more", "thirty points more",
		"leave Spot"}
)

// A Policy follows action values. It works in memory of its own and serves one
// goroutine at a time.
type Policy struct {
	cfg     Config
	name    string
	placer  *portfolio.Policy
	scratch workload.Scratch

	// exposure counts the pods of services by market, for services that are spread.
	exposure workload.Exposure

	// footing counts them by other groups, and list has the nodes that are considered.
	footing footing
	list    []post

	// moving is by workload how many pods move to on-demand in this turn.
	moving []int32

	// sales are what is sold on spot, by zone.
	sales [][]placement.Offer

	pools []policy.Pool // of the snapshot that the placer is given
	nodes []policy.Node // likewise
}

// New returns the policy, or says which parameter is out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	placer, err := portfolio.New(portfolio.DefaultConfig())
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return &Policy{cfg: cfg, name: cfg.name(), placer: placer}, nil
}

// Name returns "model" with the parameters that are not the default ones.
func (e *Policy) Name() string { return e.name }

// Decide gives each pool the share that is valued most and has the nodes placed
// for it.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	t := turn{cfg: &e.cfg, s: s, memory: m, courses: make([]course, len(s.Pools))}
	var features []workload.Features
	if e.cfg.Cap {
		features = workload.Collect(s, workload.Options{}, &e.scratch)
	}
	t.alarmed = e.cfg.Calm && alarmed(s)
	look := t.stirred()
	for i := range s.Pools {
		if s.Pools[i].Mode == policy.ModeOff {
			continue
		}
		c := &t.courses[i]
		*c = course{pool: &s.Pools[i], memory: m.Pool(s.Pools[i].Name), most: s.Pools[i].Share.Max}
		if e.cfg.Cap {
			c.most = max(c.pool.Share.Min, min(c.most, features[i].StableShare()))
		}
		changed := t.retarget(c)
		look = look || changed || !c.pool.Steer.Set || c.memory.Wave.Since != 0
	}
	var plan policy.Plan
	if look {
		plan, t.memory = e.placer.Decide(e.given(&t), t.memory)
		if e.cfg.Floor > 0 {
			t.restore()
			emptyOnly(s, plan.Steers)
		}
		t.calm(&plan)
	} else {
		plan, t.memory = t.tend()
	}
	e.spread(&t, &plan)
	t.account(&plan)
	return plan, t.memory
}

// emptyOnly has provisioners remove empty nodes only: Karpenter would replace what is put
// on demand for the floor by spot again.
func emptyOnly(s *policy.Snapshot, steers []policy.Steer) {
	for i := range steers {
		if x := &steers[i]; s.Pools[x.Pool].Provisioner == policy.ProvisionerKarpenter {
			x.EmptyOnly = true
		}
	}
}

// A turn is one decision on its way.
type turn struct {
	cfg     *Config
	s       *policy.Snapshot
	memory  policy.Memory
	courses []course // by pool

	// alarmed says that a node is about to be taken, and read that the exposure is of
	// this turn.
	alarmed, read bool
}

// A course is the decision of one pool. Its pool is nil where the pool is off.
type course struct {
	pool   *policy.Pool
	memory policy.PoolMemory
	action int

	// most is the largest share allowed, was the target before, and kept the part of the
	// pool that stays on demand for the sake of services.
	most, was, kept float64

	// wait and text say why the pool is left alone, if it is.
	wait policy.Reason
	text string
}

// stirred reports whether it is time to look at all nodes and markets: once in
// every interval, and while nodes are about to be taken or after a launch was
// refused.
func (t *turn) stirred() bool {
	interval := policy.Time(t.cfg.Interval.Milliseconds())
	if interval <= policy.DefaultStep || t.s.Now%interval < policy.DefaultStep {
		return true
	}
	for i := range t.s.Pools {
		if p := &t.s.Pools[i]; p.Refused != 0 && t.s.Now-p.Refused < policy.DefaultStep {
			return true
		}
	}
	return slices.ContainsFunc(t.s.Nodes, func(n policy.Node) bool {
		return n.Live() && (n.ReclaimAt != 0 || n.Recommended != 0 && t.s.Now-n.Recommended < policy.DefaultStep)
	})
}

// retarget moves the target of c as the most valued action asks, and reports
// whether it did.
func (t *turn) retarget(c *course) bool {
	m := &c.memory
	known := m.HasTarget
	if !known {
		m.Target, m.HasTarget = t.start(c), true
	}
	c.was = m.Target
	target := c.was
	c.action = t.most(c.pool)
	change := max(math.Abs(changes[c.action]), t.grain(c))
	switch {
	case c.pool.Share.Exact:
		target = c.pool.Share.Target
	case len(c.pool.Actions) != actions:
		c.wait, c.text = ReasonUnvalued, "no trained model rates the actions for this pool, so the share stays"
	case c.action == hold:
		c.wait, c.text = ReasonValued, "the model's best action is to hold"
	case t.alarmed:
		c.wait, c.text = policy.ReasonInProgress, "nodes are about to be reclaimed: the share changes once their pods run elsewhere"
	case c.action == exit:
		target = c.pool.Share.Min
	case t.soon(c):
		c.wait, c.text = policy.ReasonCooldown, "the share may change again after the cooldown"
	case changes[c.action] < 0:
		target -= change
	default:
		target += change
	}
	if !c.pool.Share.Exact {
		target = c.bounded(target)
	}
	if known && target == c.was {
		return false
	}
	m.Target = target
	t.memory = t.memory.With(*m)
	return true
}

// start returns the target of a pool that never had one: what its owner states,
// else what it was steered to last, else what it holds.
func (t *turn) start(c *course) float64 {
	switch {
	case c.pool.Share.HasTarget || c.pool.Share.Exact:
		return c.pool.Share.Target
	case c.pool.Steer.Set:
		return c.bounded(c.pool.Steer.Share)
	}
	balance := placement.BalanceOf(t.s, c.pool.ID)
	if balance.Total == 0 {
		return c.bounded(0)
	}
	return c.bounded(float64(balance.Spot) / float64(balance.Total))
}

// grain returns the part of a pool that one node is: a smaller change would move
// nothing.
func (t *turn) grain(c *course) float64 {
	if c.action == hold || c.action == exit {
		return 0
	}
	nodes := 0
	for i := range t.s.Nodes {
		if n := &t.s.Nodes[i]; n.Pool == c.pool.ID && n.Usable() {
			nodes++
		}
	}
	return 1 / float64(max(nodes, 1))
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

// soon reports whether the target must wait for the next multiple of the
// cooldown: it is changed in the first step after one, and once.
func (t *turn) soon(c *course) bool {
	cooldown := policy.Time(max(t.cfg.Cooldown, c.pool.Cooldown).Milliseconds())
	if cooldown == 0 {
		return false
	}
	since := t.s.Now % cooldown
	return since >= policy.DefaultStep || c.memory.Steered != 0 && c.memory.Steered >= t.s.Now-since
}

// tend does what cannot wait for the next look.
func (t *turn) tend() (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: placement.Notices(t.s), Wake: policy.NextStep(t.s.Now, policy.DefaultStep)}
	plan.Launches, plan.Holds = placement.Shortages(t.s, t.share)
	t.memory.Decisions++
	return replan.Consolidate(t.s, plan, t.memory, replan.ConsolidateOptions{Share: t.share})
}

// share returns the share that a pool is steered to.
func (t *turn) share(p policy.PoolID) float64 {
	if t.courses[p].pool != nil {
		return t.courses[p].memory.Target
	}
	return t.s.Pools[p].Steer.Share
}
