package live

import (
	"context"
	"errors"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// An outcome is what became of an entry of a plan, in one word for metrics. Verdicts of
// [permit] are outcomes too, of entries that were not to be carried out.
type outcome string

// The other outcomes.
const (
	outcomeDone     outcome = "done"
	outcomeShadow           = outcome(permit.Shadow)
	outcomeOff              = outcome(permit.Off)
	outcomeStopped          = outcome(permit.Stopped)
	outcomeConflict         = outcome(permit.Conflict)
	outcomeGone             = outcome(permit.Gone)
	outcomeRamp     outcome = "ramp"    // the pool has just become active
	outcomeHeld     outcome = "held"    // it was left alone, for a reason
	outcomeRefused  outcome = "refused" // the market has nothing to give
	outcomeFailed   outcome = "failed"
)

// outcomeOf returns what a verdict lets become of an entry.
func outcomeOf(v permit.Verdict) outcome {
	if v == permit.Active {
		return outcomeDone
	}
	return outcome(v)
}

// The priorities in which intents are carried out.
const (
	priorityReport = -1 + iota // tells users, and changes nothing
	priorityPlan
	priorityLaunch
	priorityNotice // the provider takes a node
)

// A publisher is the driver's Actuator, Ranker and Enforcer: it turns a plan into
// intent, which reconcilers carry out. Drains it orders at once, which does nothing to
// the cluster either.
type publisher struct {
	c        *Controller
	verdicts *verdicts

	// next is what the plan comes to. It has an intent for each pool.
	next map[target]*intent

	// busy are the pools for which a launch of a plan before is under way. soon says that
	// something waits that a step is to look at before long, and young for a node to grow
	// older.
	busy        map[string]bool
	soon, young bool
}

var (
	_ driver.Actuator = (*publisher)(nil)
	_ driver.Ranker   = (*publisher)(nil)
	_ driver.Enforcer = (*publisher)(nil)
)

// begin forgets the step before.
func (p *publisher) begin(s *policy.Snapshot, v *verdicts) {
	p.verdicts, p.next, p.young = v, make(map[target]*intent, len(s.Pools)), false
	for i := range s.Pools {
		p.next[target{pool: s.Pools[i].Name}] = &intent{}
	}
}

// commit hands what the plan came to over to the reconcilers.
func (p *publisher) commit(s *policy.Snapshot) {
	p.c.table.publish(s, p.next)
	for of, x := range p.next { // in no order: each has its place in a queue
		switch {
		case of.budget != "":
			p.c.workers.budgets.add(x.priority, of.budget)
		case len(x.entries) > 0:
			p.c.workers.pools.add(x.priority, of.pool)
		}
	}
	p.c.workers.budgets.add(priorityReport, "")
	for i := range p.c.parts.Tenders {
		p.c.workers.backends.add(priorityPlan, i)
	}
}

// Steer publishes what a pool is to buy from now on.
func (p *publisher) Steer(_ context.Context, s *policy.Snapshot, x *policy.Steer) error {
	p.add(s, kindSteer, x.Pool, p.verdicts.pools[x.Pool], priorityPlan, func(ctx context.Context, b backend.Backend) error { return b.Steer(ctx, s, x) })
	return nil
}

// Launch publishes that a pool is to have one node more.
func (p *publisher) Launch(_ context.Context, s *policy.Snapshot, x *policy.Launch) error {
	v, priority := p.verdicts.launch(s, x), priorityLaunch
	switch {
	case v == outcomeHeld:
		p.tellYoung(s, x.Replaces)
	case v == outcomeDone && p.busy[s.Pools[x.Pool].Name]:
		v, p.soon = outcomeHeld, true
		p.hold(s, x.Pool, held{"LaunchUnderWay", "a launch of the plan before has not been answered yet"})
	}
	if x.Why.Reason == policy.ReasonNotice || x.Replaces >= 0 && s.Nodes[x.Replaces].ReclaimAt != 0 {
		priority = priorityNotice
	}
	p.add(s, kindLaunch, x.Pool, v, priority, func(ctx context.Context, b backend.Backend) error { return b.Launch(ctx, s, x) })
	return nil
}

// Drain orders that one node is emptied.
func (p *publisher) Drain(ctx context.Context, s *policy.Snapshot, x *policy.Drain) error {
	pool, v := s.Nodes[x.Node].Pool, p.verdicts.drain(s, x)
	if v == outcomeHeld {
		p.tellYoung(s, x.Node)
	}
	name := ""
	if pool >= 0 {
		name = s.Pools[pool].Name
	}
	var err error
	if v == outcomeDone && p.backend(s, pool) == nil {
		v = outcomeHeld
	}
	if v == outcomeDone {
		var why held
		v, why, err = answer(p.c.parts.Drains.Start(permit.Act(ctx, name), s, x))
		p.hold(s, pool, why)
		if v != outcomeDone {
			p.c.table.drainRefused(s.Nodes[x.Node].Name)
		}
	}
	p.c.parts.Metrics.Entry("drain", name, string(v))
	return err
}

// DeletionCost publishes that the pods of a node go first when workloads shrink.
func (p *publisher) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	if ranker := p.c.parts.Ranker; ranker != nil {
		p.add(s, "deletion-cost", s.Nodes[x.Node].Pool, p.verdicts.node(s, x.Node), priorityPlan, func(ctx context.Context, _ backend.Backend) error {
			return ranker.DeletionCost(ctx, s, x)
		})
	}
	return nil
}

// Gate publishes that admission is open or closed for a budget.
func (p *publisher) Gate(_ context.Context, s *policy.Snapshot, x *policy.Gate) error {
	p.enforce("gate", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Gate(ctx, s, x) })
	return nil
}

// Pause publishes that a job is suspended for a budget, or goes on.
func (p *publisher) Pause(_ context.Context, s *policy.Snapshot, x *policy.Pause) error {
	p.enforce("pause", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Pause(ctx, s, x) })
	return nil
}

// Evict publishes that one pod is evicted for a budget.
func (p *publisher) Evict(_ context.Context, s *policy.Snapshot, x *policy.Evict) error {
	p.enforce("evict", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Evict(ctx, s, x) })
	return nil
}

// add adds an entry to the intent of a pool, if the verdict lets it.
func (p *publisher) add(s *policy.Snapshot, kind string, pool policy.PoolID, v outcome, priority int, do func(context.Context, backend.Backend) error) {
	name := ""
	if pool >= 0 {
		name = s.Pools[pool].Name
	}
	var b backend.Backend
	if v == outcomeDone {
		if b = p.backend(s, pool); b == nil {
			v = outcomeHeld
		}
	}
	if v != outcomeDone {
		p.c.parts.Metrics.Entry(kind, name, string(v))
		return
	}
	x := p.next[target{pool: name}]
	x.priority = max(x.priority, priority)
	x.entries = append(x.entries, &entry{kind, func(ctx context.Context) error { return do(ctx, b) }})
}

// backend returns what provisions the nodes of a pool. Nil is told to the user.
func (p *publisher) backend(s *policy.Snapshot, pool policy.PoolID) backend.Backend {
	b := p.c.parts.Backends[s.Pools[pool].Provisioner]
	if b == nil {
		p.hold(s, pool, held{"BackendMissing", "nothing that provisions nodes as this pool asks is set up"})
	}
	return b
}

// enforce adds an entry to the intent of a budget. Budgets span pools, so that the mode
// of the controller holds for them and not that of a pool.
func (p *publisher) enforce(kind, budget string, do func(context.Context, driver.Enforcer) error) {
	e := p.c.parts.Enforcer
	if v := p.verdicts.budgets; v != outcomeDone || e == nil {
		p.c.parts.Metrics.Entry(kind, "", string(v))
		return
	}
	of := target{budget: budget}
	if p.next[of] == nil {
		p.next[of] = &intent{}
	}
	x := p.next[of]
	x.entries = append(x.entries, &entry{kind, func(ctx context.Context) error { return do(ctx, e) }})
}

// tellYoung says that a move waits for a node that is so young that pods may have been
// promised a place on it.
func (p *publisher) tellYoung(s *policy.Snapshot, n policy.NodeID) {
	if n >= 0 && s.Nodes[n].Pool >= 0 {
		p.young = true
		p.hold(s, s.Nodes[n].Pool, held{"Nominated", "node " + s.Nodes[n].Name + " is so young that Karpenter may have promised it to pods"})
	}
}

func (p *publisher) hold(s *policy.Snapshot, pool policy.PoolID, h held) {
	if pool >= 0 {
		p.next[target{pool: s.Pools[pool].Name}].hold(h)
	}
}

// answer tells what was left alone from what went wrong.
func answer(err error) (outcome, held, error) {
	var hold *backend.Held
	var denied *permit.Denied
	switch {
	case err == nil:
		return outcomeDone, held{}, nil
	case errors.As(err, &denied):
		return outcomeOf(denied.Verdict), held{}, nil
	case errors.As(err, &hold):
		return outcomeHeld, held{hold.Reason, hold.Message}, nil
	case errors.Is(err, backend.ErrNotYet):
		return outcomeHeld, held{}, nil
	case errors.Is(err, driver.ErrNoCapacity):
		return outcomeRefused, held{}, nil
	}
	return outcomeFailed, held{}, err
}
