package spotvortex

import (
	"fmt"
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/workload"
)

// Reasons of this variant that the agent does not have.
const (
	reasonCalm  policy.Reason = "waiting-for-calm"
	reasonGrain policy.Reason = "whole-nodes"
)

// decideMended applies the rules pool by pool.
func (p *Policy) decideMended(s *policy.Snapshot, m policy.Memory, sc *buffers) (policy.Plan, policy.Memory) {
	t := turn{cfg: &p.cfg, s: s, memory: m, scratch: &sc.space}
	t.plan = policy.Plan{Wake: policy.NextStep(s.Now, p.cfg.step()), Drains: placement.Notices(s)}
	pools := sc.survey(s, workload.Collect(s, workload.Options{}, &sc.workload))
	for i := range pools {
		if s.Pools[i].Mode != policy.ModeOff {
			t.decide(&s.Pools[i], &pools[i])
		}
	}
	launches, holds := placement.Shortages(t.s, t.steered)
	t.plan.Launches = append(launches, t.plan.Launches...)
	t.plan.Holds = append(t.plan.Holds, holds...)
	return replan.Consolidate(s, t.plan, t.memory, replan.ConsolidateOptions{Share: t.steered, Space: t.space})
}

// A turn is the state of one decision.
type turn struct {
	cfg    *Config
	s      *policy.Snapshot
	memory policy.Memory
	plan   policy.Plan

	scratch *placement.Space // loaded by space
	loaded  bool
}

// space returns the nodes and pods of the snapshot with the changes of the plan. They are loaded on
// first use.
func (t *turn) space() *placement.Space {
	if !t.loaded {
		t.scratch.Load(t.s)
		t.loaded = true
	}
	return t.scratch
}

// decide makes the decision for one pool.
func (t *turn) decide(pool *policy.Pool, h *holdings) {
	cfg := *t.cfg
	cfg.MaxShare = min(cfg.MaxShare, pool.Share.Max)
	cfg.MinShare = min(max(cfg.MinShare, pool.Share.Min), cfg.MaxShare)
	if pool.Share.HasTarget {
		cfg.TargetShare = pool.Share.Target
	}
	cfg.TargetShare = clamp(cfg.TargetShare, cfg.MinShare, cfg.MaxShare)

	capacity, runtime := h.scores(t.s)
	capacity, runtime = odds(capacity, cfg.RiskMultiplier), odds(runtime, cfg.RiskMultiplier)
	safety := h.features.Safety
	safety.SafeMax = h.features.StableShare()
	d := Evaluate(&cfg, h.state(), safety, capacity, runtime)
	if pool.Share.Exact { // set by the owner: no rule overrides it
		d = d.say(Hold, string(policy.ReasonConfigured), Keep, Low)
	}
	was := t.memory.Pool(pool.Name)
	now := was
	if !now.HasTarget {
		now.Target, now.HasTarget = cfg.TargetShare, true
	}
	now.Below = calmSince(was.Below, &d, t.s.Now)
	c := course{cfg: &cfg, pool: pool, h: h, d: &d, share: h.share(), memory: &now}
	wait := c.retarget(t.s.Now, capacity)
	steer := c.steer()
	t.steer(&c, steer)
	drains := len(t.plan.Drains)
	switch {
	case wait != "":
		t.hold(&c, wait, waitText(wait))
	case d.Action == Hold && !pool.Share.Exact:
		t.hold(&c, policy.Reason(d.Reason), text(d.Reason))
	default:
		t.shift(&c, steer)
	}
	if h.recommended && len(t.plan.Drains) == drains {
		t.leaveRecommended(&c)
	}
	if len(t.plan.Drains) > drains {
		now.Moved = t.s.Now
	}
	if changed(&was, &now) {
		t.memory = t.memory.With(now)
	}
}

// state returns the inputs of the rules.
func (h *holdings) state() State {
	t, f := h.tariff(), h.features
	return State{
		SpotPrice: t.spot, OnDemandPrice: t.fixed, Startup: f.Startup, Penalty: f.Penalty,
		MigrationCost: h.migrationCost(t), Priority: f.Priority,
		Utilization: f.Utilization, Share: h.share(), Grain: h.grain(),
	}
}

// odds returns the probability p with its odds multiplied by m. For m above 1 the result is larger
// for every p in (0, 1).
func odds(p, m float64) float64 {
	if m == 1 {
		return p
	}
	more := float64(p * m)
	return more / (more + (1 - p))
}

// calmSince returns the time since which no decision has reduced or frozen Spot; 0 if d does. A cap
// that rises for a moment, as while pods are being moved, is no reason to grow: the nodes would
// have to be removed when it falls.
func calmSince(since policy.Time, d *Decision, now policy.Time) policy.Time {
	switch {
	case d.Action.Change() < 0 || d.Mode == Freeze:
		return 0
	case since == 0:
		return now
	}
	return since
}

// changed reports whether the fields of a pool's memory that this policy writes differ.
func changed(a, b *policy.PoolMemory) bool {
	return a.Target != b.Target || a.HasTarget != b.HasTarget || a.Moved != b.Moved || a.Steered != b.Steered ||
		a.Below != b.Below
}

// A course is the decision for one pool and its consequences.
type course struct {
	cfg    *Config // with the pool's own limits
	pool   *policy.Pool
	h      *holdings
	d      *Decision
	share  float64
	memory *policy.PoolMemory
}

// retarget changes the stored target as the decision requires. It returns the reason for waiting if
// the target must not change yet.
//
// A change counts from the present share: a target ahead of it would have to be undone before a
// change had an effect. A change is at least one node: ten points of five nodes would move none. A
// decision to protect the pods does not reduce the share below what they can bear, and growth does
// not exceed it.
func (c *course) retarget(now policy.Time, capacity float64) (wait policy.Reason) {
	m, change := c.memory, c.d.Action.Change()
	if c.pool.Share.Exact {
		m.Target = c.cfg.TargetShare
		return ""
	}
	target := m.Target
	switch {
	case c.d.Action == EmergencyExit:
		target = c.pool.Share.Min // the policy's own minimum does not apply here
	case change != 0 && !c.due(now):
		return policy.ReasonCooldown
	case change < 0:
		target = max(min(target, c.share-max(-change, c.h.grain())), c.floor())
	case change > 0 && now.Sub(m.Below) < c.cfg.Calm:
		return reasonCalm
	case change > 0:
		target = min(max(target, c.share+max(change, c.h.grain())), c.d.Cap)
	case capacity < lowRisk && c.due(now):
		target += float64(c.cfg.Rules.Drift * (c.cfg.TargetShare - target))
	}
	if target = min(target, c.cfg.MaxShare); target != m.Target {
		m.Target, m.Steered = target, now
	}
	return ""
}

// lowRisk is the capacity score below which the target of a pool that is held drifts: half of the
// agent's risk threshold.
const lowRisk = 0.5 * 0.85

// due reports whether the pool may change again. The change of a step is made once per step,
// however often notices and refusals require a decision in between.
func (c *course) due(now policy.Time) bool {
	wait := c.cfg.Step
	if c.d.Urgency != High {
		wait = max(wait, c.cfg.Cooldown, c.pool.Cooldown)
	}
	last := max(c.memory.Moved, c.memory.Steered)
	if c.d.Urgency == High {
		last = c.memory.Steered
	}
	return last == 0 || now.Sub(last) >= wait
}

// floor returns the minimum share to which the decision reduces: what the pods can bear if they are
// the reason, else the configured minimum.
func (c *course) floor() float64 {
	if c.d.Reason == SafetyFast || c.d.Reason == SafetyGradual {
		return c.d.Cap
	}
	return c.cfg.MinShare
}

// steer returns the share that the pool may buy: the target, limited by the cap and, if the pool is
// frozen to protect its pods, by its present share.
func (c *course) steer() float64 {
	if c.pool.Share.Exact {
		return c.memory.Target
	}
	share := min(c.memory.Target, c.d.Cap)
	if c.d.Reason == SafetyFreeze {
		share = min(share, c.share)
	}
	return math.Round(max(share, c.pool.Share.Min)*1000) / 1000 // see shareRounding
}

// shareRounding is how far the share of a steer may be from the intended one, since it is rounded
// to three decimals.
const shareRounding = 0.0005

// steerGrain is the minimum difference for which a pool is steered again.
const steerGrain = 0.01

// steer steers the pool to the given share, unless it differs too little from the present steer.
func (t *turn) steer(c *course, share float64) {
	was := c.pool.Steer
	x := policy.Steer{Pool: c.pool.ID, Share: share, Exact: c.pool.Share.Exact, Fallback: c.pool.OnDemandFallback}
	present := was
	if math.Abs(share-was.Share) < steerGrain && share != 0 && share != 1 {
		present.Share = share
	}
	if present.Follows(&x) {
		return
	}
	from, second := c.share, fmt.Sprintf("keep the current share, %.2f", c.share)
	if was.Set {
		from, second = was.Share, fmt.Sprintf("keep the share at %.2f", was.Share)
	}
	x.Bid, x.Why = placement.Bid(t.s, c.pool.ID), c.account(policy.Reason(c.d.Reason), text(c.d.Reason), from, share)
	x.Why.RunnerUp = second
	t.plan.Steers = append(t.plan.Steers, x)
}

// steered returns the share to which a pool is steered by this plan, or else before it.
func (t *turn) steered(id policy.PoolID) float64 {
	for i := range t.plan.Steers {
		if t.plan.Steers[i].Pool == id {
			return t.plan.Steers[i].Share
		}
	}
	return t.s.Pools[id].Steer.Share
}

// hold adds a hold of the pool. Its runner-up is the share at the cap.
func (t *turn) hold(c *course, reason policy.Reason, text string) {
	why := c.account(reason, text, c.share, c.d.Cap)
	why.RunnerUp = fmt.Sprintf("a share of %.2f", c.d.Cap)
	t.plan.Holds = append(t.plan.Holds, policy.Hold{Pool: c.pool.ID, Node: policy.None, Why: why})
}

// account returns text with the cost of the pool per hour at two shares.
func (c *course) account(reason policy.Reason, text string, from, to float64) policy.Why {
	why := policy.Why{Reason: reason, Before: c.h.costAt(from), After: c.h.costAt(to)}
	why.Text = fmt.Sprintf("%s; a share of %.2f costs %s an hour, a share of %.2f costs %s", text, from,
		why.Before.Short(), to, why.After.Short())
	return why
}

func waitText(wait policy.Reason) string {
	if wait == reasonCalm {
		return "Spot would save money, but the market has not been calm for long enough"
	}
	return "the pool was changed recently"
}

// shift moves running nodes towards share, as many as the decision's size and the pool's disruption
// budgets allow. A pool within one node of its share is left alone, so that it settles.
func (t *turn) shift(c *course, share float64) {
	if !c.off(share) && !c.first(share) {
		if !c.pool.Share.Exact {
			t.hold(c, reasonGrain, "the share is within one node of the target")
		}
		return
	}
	// A decision for less Spot never results in more of it, nor the reverse, if the target is
	// beyond the present share.
	if up := share > c.share; !c.pool.Share.Exact && up != (c.d.Action.Change() > 0) {
		return
	}
	reason := policy.ReasonShare
	switch c.d.Action {
	case EmergencyExit:
		reason = policy.ReasonRisk
	case Decrease10, Decrease30:
		reason = policy.ReasonRisk
		if c.d.Reason == SafetyFast || c.d.Reason == SafetyGradual {
			reason = policy.ReasonCap
		}
	}
	t.move(c, replan.RebalanceOptions{Share: share, DrainsMax: t.drainsMax(c), Reason: reason, Text: text(c.d.Reason)})
}

// off reports whether the pool is away from share by at least one of its nodes of mean size.
func (c *course) off(share float64) bool {
	return c.h.balance.Nodes > 0 && math.Abs(share-c.share) >= c.h.grain()-shareRounding
}

// first reports whether the pool has no Spot nodes and a first one would bring it nearer to share.
// A pool of a few nodes would otherwise wait forever for a share worth a whole node.
func (c *course) first(share float64) bool {
	return c.h.balance.Spot == 0 && share > c.h.grain()/2
}

// drainsMax returns the maximum number of nodes that the decision may move at once: as many points
// of the pool as it requests, growth no faster than DrainShareMax, at least one node, and never
// more than the pool's disruption budgets allow.
func (t *turn) drainsMax(c *course) int {
	part := math.Abs(c.d.Action.Change())
	if part == 0 || c.d.Urgency == Low || c.d.Urgency == Medium {
		part = min(max(part, 0.10), t.cfg.DrainShareMax)
	}
	most := max(1, int(math.Ceil(float64(part*float64(c.h.balance.Nodes))-reachedWithin)))
	return min(most, t.s.Disruptable(c.pool.ID, policy.Underutilized))
}

// move plans a rebalance of the pool of c.
func (t *turn) move(c *course, o replan.RebalanceOptions) {
	if o.DrainsMax <= 0 {
		t.hold(c, policy.ReasonGuardrail, "the pool's disruption budget allows no disruption now")
		return
	}
	o.Pool = c.pool.ID
	o.Backoff = func(node string) bool { return c.memory.BackedOff(node, t.s.Now) }
	t.planned(replan.Rebalance(t.s, t.space(), o))
}

// planned adds moves to the plan.
func (t *turn) planned(launches []policy.Launch, drains []policy.Drain, holds []policy.Hold) {
	for i := range launches {
		priced(&launches[i].Why)
	}
	for i := range drains {
		priced(&drains[i].Why)
	}
	t.plan.Add(launches, drains, holds)
}

// priced appends the costs before and after a move to its explanation.
func priced(why *policy.Why) {
	why.Text = fmt.Sprintf("%s; the cost changes from %s to %s an hour", why.Text, why.Before.Short(), why.After.Short())
}
