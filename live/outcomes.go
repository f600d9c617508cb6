package live

import (
	"context"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// outcomes determines which entries of a plan are carried out. It is computed before the memory is
// saved, so that admitted changes are stored before they are made.
type outcomes struct {
	pools   []outcome // by PoolID
	budgets outcome

	// ramping contains, by PoolID, whether a pool is still in its ramp and may move only a few
	// nodes. admitted contains the nodes that these pools may move.
	ramping  []bool
	admitted map[policy.NodeID]bool

	// approve contains, by PoolID, whether voluntary changes of a pool need approval.
	approve []bool
}

// approved reports whether a change of a pool was approved before the decision or needs no
// approval.
func (v *outcomes) approved(s *policy.Snapshot, pool policy.PoolID, change string) bool {
	return pool < 0 || !v.approve[pool] || change == "" ||
		s.Pools[pool].Approval.Required && s.Pools[pool].Approves(change)
}

// node returns the outcome of a voluntary change of a node.
func (v *outcomes) node(s *policy.Snapshot, n policy.NodeID) outcome {
	pool := s.Nodes[n].Pool
	switch {
	case pool < 0:
		return outcomeHeld // the node belongs to no pool
	case v.pools[pool] != outcomeDone:
		return v.pools[pool]
	case nominated(s, n):
		return outcomeHeld
	case v.ramping[pool] && !v.admitted[n]:
		return outcomeRamp
	}
	return outcomeDone
}

// nominated reports whether Karpenter may have nominated a node for pods. The backend would then
// refuse the drain, and the replacement would be bought in vain.
func nominated(s *policy.Snapshot, n policy.NodeID) bool {
	return s.Pools[s.Nodes[n].Pool].Provisioner == policy.ProvisionerKarpenter && s.Nodes[n].Nominated == s.Now
}

// drain returns the outcome of a drain. A drain of a node under notice is not voluntary.
func (v *outcomes) drain(s *policy.Snapshot, d *policy.Drain) outcome {
	if pool := s.Nodes[d.Node].Pool; pool >= 0 && s.Nodes[d.Node].ReclaimAt != 0 {
		return v.pools[pool]
	}
	if !v.approved(s, s.Nodes[d.Node].Pool, s.DrainChange(d.Node)) {
		return outcomeUnapproved
	}
	return v.node(s, d.Node)
}

// steer returns the outcome of a steer.
func (v *outcomes) steer(s *policy.Snapshot, x *policy.Steer) outcome {
	if !v.approved(s, x.Pool, s.SteerChange(x)) {
		return outcomeUnapproved
	}
	return v.pools[x.Pool]
}

// deletionCost returns the outcome of setting the deletion costs of the pods of a node. If the pool
// needs approval, it is never permitted, because approvals do not cover it.
func (v *outcomes) deletionCost(s *policy.Snapshot, n policy.NodeID) outcome {
	if pool := s.Nodes[n].Pool; pool >= 0 && v.approve[pool] {
		return outcomeUnapproved
	}
	return v.node(s, n)
}

// launch returns the outcome of a launch. A launch that replaces a node is part of its move. A
// launch for pending pods is not restricted.
func (v *outcomes) launch(s *policy.Snapshot, l *policy.Launch) outcome {
	if !v.approved(s, l.Pool, s.LaunchChange(l)) {
		return outcomeUnapproved
	}
	if l.Replaces >= 0 && s.Nodes[l.Replaces].ReclaimAt == 0 {
		return v.node(s, l.Replaces)
	}
	return v.pools[l.Pool]
}

// judge computes the outcomes of a plan from the present state on the API server, and records the
// simulated moves of pools in shadow mode. The permission is checked again when an entry is carried
// out.
func (c *Controller) judge(ctx context.Context, s *policy.Snapshot, p *policy.Plan) error {
	v := &outcomes{
		pools: make([]outcome, len(s.Pools)), ramping: make([]bool, len(s.Pools)), admitted: map[policy.NodeID]bool{},
		approve: make([]bool, len(s.Pools)),
	}
	c.publisher.begin(s, v)
	if err := c.claimPools(ctx); err != nil {
		return err
	}
	if err := c.readOutcomes(ctx, s, v); err != nil {
		return err
	}
	nodes := make([]int, len(s.Pools))
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() && n.Pool >= 0 {
			nodes[n.Pool]++
		}
	}
	books := make([]*poolBook, len(s.Pools))
	for i := range s.Pools {
		books[i] = c.store.book(s.Pools[i].Name)
		was := books[i].Active
		if books[i].turn(v.pools[i]); books[i].Active && !was {
			c.notifyRamp(s.Pools[i].Name, &books[i].Ramp)
		}
		v.ramping[i] = books[i].Ramp.Stage < rampDone
	}
	admit := func(n policy.NodeID) {
		pool := s.Nodes[n].Pool
		if pool >= 0 && v.pools[pool] == outcomeDone && s.Nodes[n].ReclaimAt == 0 && !nominated(s, n) &&
			v.approved(s, pool, s.DrainChange(n)) {
			v.admitted[n] = v.admitted[n] || books[pool].Ramp.admit(s.Nodes[n].Name, nodes[pool], s.Now)
		}
	}
	for i := range p.Drains {
		d := &p.Drains[i]
		admit(d.Node)
		if pool := s.Nodes[d.Node].Pool; pool >= 0 && v.pools[pool] != outcomeDone && v.pools[pool] != outcomeOff &&
			chosen(s, d) {
			books[pool].Shadow.book(s.Nodes[d.Node].Name, saving(s, p, d), s.Now)
		}
	}
	for i := range p.Launches {
		if n := p.Launches[i].Replaces; n >= 0 {
			admit(n)
		}
	}
	c.propose(s, p, v)
	return nil
}

// readOutcomes reads which changes are permitted. If a pool permits other changes than in the
// snapshot, the next decision is made soon.
func (c *Controller) readOutcomes(ctx context.Context, s *policy.Snapshot, v *outcomes) error {
	for i := range s.Pools {
		p := &s.Pools[i]
		decision, err := c.parts.Authority.Pool(ctx, p.Name)
		if err != nil {
			return err
		}
		v.pools[i] = outcomeOf(decision)
		v.approve[i] = c.parts.Authority.NeedsApproval(p.Name)
		seen := outcomeShadow
		switch {
		case p.Mode == policy.ModeOff:
			seen = outcomeOff
		case decision == permit.Stopped || decision == permit.Unreadable || decision == permit.Conflict || decision == permit.Claimed:
			seen = v.pools[i]
		case p.Mode == policy.ModeActive && c.cfg.Mode == policy.ModeActive:
			seen = outcomeDone
		}
		c.publisher.soon = c.publisher.soon || v.pools[i] != seen || v.approve[i] != p.Approval.Required
	}
	budgets, err := c.parts.Authority.Cluster(ctx)
	if err != nil {
		return err
	}
	v.budgets = outcomeOf(budgets)
	kill, err := c.parts.Authority.Switch(ctx)
	if err != nil {
		return err
	}
	c.notifySwitch(c.store.head.Stopped, c.current.kill, kill)
	c.store.head.Stopped, c.current.kill = kill.On, kill
	if c.table.turnSwitch(kill) {
		c.parts.Log.Warn("the kill switch changed", "on", kill.On, "unreadable", kill.Unreadable, "problem", kill.Problem)
	}
	return nil
}

// turn records whether a pool may be changed. When a pool becomes active, its ramp starts, and its
// simulated moves are removed, because the real moves replace them. A kill switch that cannot be
// read for a while has no effect here.
func (b *poolBook) turn(v outcome) {
	if v == outcomeUnreadable {
		return
	}
	active := v == outcomeDone
	if active && !b.Active {
		b.Ramp, b.Shadow.Moves = ramp{}, nil
	}
	b.Active = active
}
