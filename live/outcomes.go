package live

import (
	"context"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// outcomes say which entries of a plan are carried out. They are made before the
// memory is saved, so that what is let through is remembered before it is done.
type outcomes struct {
	pools   []outcome // by PoolID
	budgets outcome

	// ramping holds the pools that must not move more than a few nodes, by PoolID,
	// and admitted which nodes they may.
	ramping  []bool
	admitted map[policy.NodeID]bool

	// approve holds, by PoolID, whose changes by choice a person must approve.
	approve []bool
}

// approved reports whether a change in a pool was approved before the decision was made, or
// needs no approval.
func (v *outcomes) approved(s *policy.Snapshot, pool policy.PoolID, change string) bool {
	return pool < 0 || !v.approve[pool] || change == "" ||
		s.Pools[pool].Approval.Required && s.Pools[pool].Approves(change)
}

// node is the decision on touching a node by choice.
func (v *outcomes) node(s *policy.Snapshot, n policy.NodeID) outcome {
	pool := s.Nodes[n].Pool
	switch {
	case pool < 0:
		return outcomeHeld // no pool of Spotter holds it
	case v.pools[pool] != outcomeDone:
		return v.pools[pool]
	case nominated(s, n):
		return outcomeHeld
	case v.ramping[pool] && !v.admitted[n]:
		return outcomeRamp
	}
	return outcomeDone
}

// nominated reports whether pods may have been promised a place on a node by now. Its
// backend would hold the drain, and the machine in its place be bought for nothing.
func nominated(s *policy.Snapshot, n policy.NodeID) bool {
	return s.Pools[s.Nodes[n].Pool].Provisioner == policy.ProvisionerKarpenter && s.Nodes[n].Nominated == s.Now
}

// drain is the decision on a drain. A node that the provider takes is no move.
func (v *outcomes) drain(s *policy.Snapshot, d *policy.Drain) outcome {
	if pool := s.Nodes[d.Node].Pool; pool >= 0 && s.Nodes[d.Node].ReclaimAt != 0 {
		return v.pools[pool]
	}
	if !v.approved(s, s.Nodes[d.Node].Pool, s.DrainChange(d.Node)) {
		return outcomeUnapproved
	}
	return v.node(s, d.Node)
}

// steer is the decision on a steer.
func (v *outcomes) steer(s *policy.Snapshot, x *policy.Steer) outcome {
	if !v.approved(s, x.Pool, s.SteerChange(x)) {
		return outcomeUnapproved
	}
	return v.pools[x.Pool]
}

// deletionCost is the decision on ranking the pods of a node: no plan that a person approves
// has it.
func (v *outcomes) deletionCost(s *policy.Snapshot, n policy.NodeID) outcome {
	if pool := s.Nodes[n].Pool; pool >= 0 && v.approve[pool] {
		return outcomeUnapproved
	}
	return v.node(s, n)
}

// launch is the decision on a launch. One in place of a node is part of its move;
// one that pods wait for is not held back.
func (v *outcomes) launch(s *policy.Snapshot, l *policy.Launch) outcome {
	if !v.approved(s, l.Pool, s.LaunchChange(l)) {
		return outcomeUnapproved
	}
	if l.Replaces >= 0 && s.Nodes[l.Replaces].ReclaimAt == 0 {
		return v.node(s, l.Replaces)
	}
	return v.pools[l.Pool]
}

// judge makes the outcomes on a plan, by what the API server says now, and books the
// moves of pools in shadow. Whoever carries an entry out asks again when it does.
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

// turn notes whether a pool may be changed. A pool that has just become active ramps up, and its
// planned moves are made from now on, or not: they are removed from the book of simulated moves. A
// kill switch that cannot be read for a while changes neither.
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
