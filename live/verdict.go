package live

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// verdicts say which entries of a plan are carried out. They are made before the
// memory is saved, so that what is let through is remembered before it is done.
type verdicts struct {
	pools   []outcome // by PoolID
	budgets outcome

	// acts says that something of the plan may be carried out.
	acts bool

	// obeying says that the plan is not that of a policy: only nodes under notice
	// are touched.
	obeying bool

	// ramping holds the pools that must not move more than a few nodes, by PoolID,
	// and admitted which nodes they may.
	ramping  []bool
	admitted map[policy.NodeID]bool
}

// node is the verdict on touching a node by choice.
func (v *verdicts) node(s *policy.Snapshot, n policy.NodeID) outcome {
	pool := s.Nodes[n].Pool
	switch {
	case pool < 0:
		return outcomeHeld // no pool of ours holds it
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

// drain is the verdict on a drain. A node that the provider takes is no move.
func (v *verdicts) drain(s *policy.Snapshot, d *policy.Drain) outcome {
	if pool := s.Nodes[d.Node].Pool; pool >= 0 && s.Nodes[d.Node].ReclaimAt != 0 {
		return v.pools[pool]
	}
	return v.node(s, d.Node)
}

// launch is the verdict on a launch. One in place of a node is part of its move;
// one that pods wait for is not held back.
func (v *verdicts) launch(s *policy.Snapshot, l *policy.Launch) outcome {
	if l.Replaces >= 0 && s.Nodes[l.Replaces].ReclaimAt == 0 {
		return v.node(s, l.Replaces)
	}
	return v.pools[l.Pool]
}

// judge makes the verdicts on a plan and books the moves of pools in shadow.
func (c *Controller) judge(s *policy.Snapshot, p *policy.Plan) {
	v := &verdicts{
		pools: make([]outcome, len(s.Pools)), budgets: c.allowed(policy.ModeActive), obeying: c.decider.panicked != "",
		ramping: make([]bool, len(s.Pools)), admitted: map[policy.NodeID]bool{},
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
		v.pools[i] = c.verdict(&s.Pools[i])
		books[i].turn(v.pools[i])
		v.ramping[i] = books[i].Ramp.Stage < rampDone
	}
	admit := func(n policy.NodeID) {
		if pool := s.Nodes[n].Pool; pool >= 0 && v.pools[pool] == outcomeDone && s.Nodes[n].ReclaimAt == 0 && !v.obeying && !nominated(s, n) {
			v.admitted[n] = v.admitted[n] || books[pool].Ramp.admit(s.Nodes[n].Name, nodes[pool], s.Now)
		}
	}
	for i := range p.Drains {
		d := &p.Drains[i]
		admit(d.Node)
		if pool := s.Nodes[d.Node].Pool; pool >= 0 && v.pools[pool] != outcomeDone && v.pools[pool] != outcomeOff && chosen(s, d) {
			books[pool].Shadow.book(s.Nodes[d.Node].Name, saving(s, p, d), s.Now)
		}
	}
	for i := range p.Launches {
		if n := p.Launches[i].Replaces; n >= 0 {
			admit(n)
		}
	}
	may := v.budgets == outcomeDone || slices.Contains(v.pools, outcomeDone)
	v.acts = may && len(p.Steers)+len(p.Launches)+len(p.Drains)+len(p.DeletionCosts)+len(p.Gates)+len(p.Pauses)+len(p.Evicts) > 0
	c.actuator.begin(v, len(s.Pools))
}

// verdict says whether anything of a pool may be touched.
func (c *Controller) verdict(p *policy.Pool) outcome {
	if c.conflicts[p.Name] != "" {
		return outcomeConflict
	}
	return c.allowed(p.Mode)
}

// allowed says how far what asks for a mode may go.
func (c *Controller) allowed(mode policy.Mode) outcome {
	switch {
	case mode == policy.ModeOff:
		return outcomeOff
	case c.cfg.Mode != policy.ModeActive || mode != policy.ModeActive:
		return outcomeShadow
	case c.kill.stopped:
		return outcomeStopped
	}
	return outcomeDone
}

// turn takes note of whether a pool may be touched. One that has just come to be
// ramps up, and what it would have moved until then is moved from now on, or not:
// it is no longer in the book of moves that were only thought of.
func (b *poolBook) turn(v outcome) {
	active := v == outcomeDone
	if active && !b.Active {
		b.Ramp, b.Shadow.Moves = ramp{}, nil
	}
	b.Active = active
}
