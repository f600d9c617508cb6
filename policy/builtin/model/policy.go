// Package model is the policy that takes the action to which a trained network assigns the highest
// value: keep a pool's Spot share, raise or lower it by ten or thirty points, or leave Spot.
//
// The values are part of the snapshot, so that a decision can be replayed without the network. A
// pool without values, because its markets are out of the network's scope or the network failed,
// keeps its share; notices, pending pods and unneeded nodes are still handled.
//
// The network decides only how much of a pool should be on Spot. The policy portfolio chooses the
// markets, replaces nodes and enforces the constraints on moves; it receives the pools with this
// share. In addition the policy spreads services: nodes leave a market that has more pods of a
// service than the service can spare, and move to on-demand where that is not enough. It searches
// at every interval, and immediately if the share has changed, nodes are about to be reclaimed or a
// launch was refused. At other times it handles only notices, pending pods and empty nodes, since a
// search costs far more than a decision.
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

// Reasons that only this policy uses.
const (
	// ReasonValued is the reason for following the action with the highest value.
	ReasonValued policy.Reason = "most-valued"

	// ReasonUnvalued is the reason for leaving a pool without values alone.
	ReasonUnvalued policy.Reason = "no-values"
)

// The actions, numbered like the outputs of the network.
const (
	hold = iota
	decrease10
	decrease30
	increase10
	increase30
	exit
	actions
)

// changes are the changes of the share by action, and names the names of the actions.
var (
	changes = [actions]float64{0, -0.10, -0.30, 0.10, 0.30, -1}
	names   = [actions]string{"hold", "ten points less", "thirty points less", "ten points more", "thirty points more",
		"leave Spot"}
)

// A Policy follows action values. It reuses its own memory, so only one goroutine may use it at a
// time.
type Policy struct {
	cfg     Config
	name    string
	placer  *portfolio.Policy
	scratch workload.Scratch

	// exposure counts the pods of services by market, to spread them.
	exposure workload.Exposure

	// footing counts the pods of services by other groups, and list is the memory of posts.
	footing footing
	list    []post

	// moving is, by workload, the number of pods that move to on-demand in this turn.
	moving []int32

	// sales are the Spot offers by zone.
	sales [][]placement.Offer

	pools []policy.Pool // of the snapshot for the placer
	nodes []policy.Node // of the snapshot for the placer
}

// New returns the policy, or an error that names the first parameter out of range.
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

// Name returns "model" followed by the parameters that differ from the default.
func (e *Policy) Name() string { return e.name }

// Decide sets the share of each pool according to the action with the highest value and has the
// nodes placed for it.
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

// emptyOnly lets Karpenter remove only empty nodes: otherwise it would replace the nodes that the
// floor put on-demand with Spot again.
func emptyOnly(s *policy.Snapshot, steers []policy.Steer) {
	for i := range steers {
		if x := &steers[i]; s.Pools[x.Pool].Provisioner == policy.ProvisionerKarpenter {
			x.EmptyOnly = true
		}
	}
}

// A turn is the state of one decision.
type turn struct {
	cfg     *Config
	s       *policy.Snapshot
	memory  policy.Memory
	courses []course // by pool

	// alarmed reports whether a node is about to be reclaimed, and read whether the exposure has
	// been read in this turn.
	alarmed, read bool
}

// A course is the decision for one pool. Its pool is nil if the mode of the pool is off.
type course struct {
	pool   *policy.Pool
	memory policy.PoolMemory
	action int

	// most is the maximum share allowed, was the previous target, and kept the fraction of the pool
	// that stays on-demand to protect services.
	most, was, kept float64

	// wait and text explain why the pool is left alone; both are empty if it is not.
	wait policy.Reason
	text string
}

// stirred reports whether all nodes and markets must be searched: once per interval, while nodes
// are about to be reclaimed, and after a launch was refused.
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

// retarget changes the target of c according to the action with the highest value, and reports
// whether it changed.
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

// start returns the initial target of a pool: the one that its manifest states, else the last
// steer, else its present Spot share.
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

// grain returns the fraction of the pool that one node is: a smaller change would move no node.
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

// bounded limits share to the range that the pool and its pods allow, rounded to a thousandth.
func (c *course) bounded(share float64) float64 {
	return math.Round(max(c.pool.Share.Min, min(c.most, share))*1000) / 1000
}

// most returns the action with the highest value. It returns hold unless that value exceeds the
// value of hold by more than the margin, and if there are no values.
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

// soon reports whether the target must wait for the next multiple of the cooldown: it may change
// only in the first step after a multiple, and once.
func (t *turn) soon(c *course) bool {
	cooldown := policy.Time(max(t.cfg.Cooldown, c.pool.Cooldown).Milliseconds())
	if cooldown == 0 {
		return false
	}
	since := t.s.Now % cooldown
	return since >= policy.DefaultStep || c.memory.Steered != 0 && c.memory.Steered >= t.s.Now-since
}

// tend handles what cannot wait for the next search.
func (t *turn) tend() (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: placement.Notices(t.s), Wake: policy.NextStep(t.s.Now, policy.DefaultStep)}
	plan.Launches, plan.Holds = placement.Shortages(t.s, t.share)
	t.memory.Decisions++
	return replan.Consolidate(t.s, plan, t.memory, replan.ConsolidateOptions{Share: t.share})
}

// share returns the target share of a pool.
func (t *turn) share(p policy.PoolID) float64 {
	if t.courses[p].pool != nil {
		return t.courses[p].memory.Target
	}
	return t.s.Pools[p].Steer.Share
}
