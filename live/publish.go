package live

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// An outcome is the result of an entry of a plan, in one word for metrics. Decisions of [permit]
// are outcomes too, of entries that were not carried out.
type outcome string

// The other outcomes.
const (
	outcomeDone       outcome = "done"
	outcomeShadow             = outcome(permit.Shadow)
	outcomeOff                = outcome(permit.Off)
	outcomeStopped            = outcome(permit.Stopped)
	outcomeUnreadable         = outcome(permit.Unreadable)
	outcomeConflict           = outcome(permit.Conflict)
	outcomeGone               = outcome(permit.Gone)
	outcomeUnapproved outcome = "unapproved" // no person has approved it
	outcomeRamp       outcome = "ramp"       // the pool has just become active
	outcomeHeld       outcome = "held"       // it was left alone, for a reason
	outcomeRefused    outcome = "refused"    // the market has nothing to give
	outcomeFailed     outcome = "failed"
)

// outcomeOf returns what a decision lets become of an entry.
func outcomeOf(v permit.Decision) outcome {
	if v == permit.Active {
		return outcomeDone
	}
	return outcome(v)
}

// The priorities in which intents are carried out.
const (
	priorityReport = -1 + iota // informs users, and changes nothing
	priorityPlan
	priorityLaunch
	priorityNotice // the provider takes a node
)

// A publisher is the driver's Actuator, Ranker and Enforcer: it turns a plan into
// intent, which reconcilers carry out. Drains of nodes under notice it orders at once, which
// does nothing to the cluster either.
type publisher struct {
	c        *Controller
	outcomes *outcomes

	// next is the plan as intents, one for each pool.
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
func (p *publisher) begin(s *policy.Snapshot, v *outcomes) {
	p.outcomes, p.next, p.young = v, make(map[target]*intent, len(s.Pools)), false
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

// Steer publishes what a pool should buy from now on.
func (p *publisher) Steer(_ context.Context, s *policy.Snapshot, x *policy.Steer) error {
	p.add(s, kindSteer, x.Pool, p.outcomes.steer(s, x), priorityPlan, func(ctx context.Context, b backend.Backend) error {
		return b.Steer(ctx, s, x)
	})
	return nil
}

// Launch publishes that a pool should get one more node.
func (p *publisher) Launch(_ context.Context, s *policy.Snapshot, x *policy.Launch) error {
	v, priority := p.outcomes.launch(s, x), priorityLaunch
	switch {
	case v == outcomeHeld:
		p.holdYoung(s, x.Replaces)
	case v == outcomeDone && p.underWay(s, x.Pool):
		v = outcomeHeld
	}
	if x.Why.Reason == policy.ReasonNotice || x.Replaces >= 0 && s.Nodes[x.Replaces].ReclaimAt != 0 {
		priority = priorityNotice
	}
	p.add(s, kindLaunch, x.Pool, v, priority, func(ctx context.Context,
		b backend.Backend) error {
		return b.Launch(ctx, s, x)
	})
	return nil
}

// Drain orders at once that a node under notice is emptied. Others are published: they may
// have to wait for launches, which have to be made before.
func (p *publisher) Drain(ctx context.Context, s *policy.Snapshot, x *policy.Drain) error {
	n, v := &s.Nodes[x.Node], p.outcomes.drain(s, x)
	decided := trace.SpanContextFromContext(ctx)
	order := func(ctx context.Context, _ backend.Backend) error {
		begun := p.c.spans.ordered(n.Name, s.Pools[n.Pool].Name, decisionID(s), decided)
		err := p.c.parts.Drains.Start(ctx, s, x)
		if err != nil && begun {
			p.c.spans.ended(&drain.Result{Node: n.Name, Outcome: drain.OutcomeHeld, Reason: err.Error()})
		}
		return err
	}
	switch {
	case v == outcomeHeld:
		p.holdYoung(s, x.Node)
	case v == outcomeDone && n.ReclaimAt != 0 && p.backend(s, n.Pool) != nil:
		v, why, err := resultOf(order(permit.Act(ctx, s.Pools[n.Pool].Name), nil))
		p.hold(s, n.Pool, why)
		p.c.parts.Metrics.Entry(kindDrain, s.Pools[n.Pool].Name, string(v))
		return err
	case v == outcomeDone && len(x.After) > 0 && p.underWay(s, n.Pool):
		v = outcomeHeld
	}
	if e := p.add(s, kindDrain, n.Pool, v, priorityPlan, order); e != nil {
		e.node = n.Name
	} else if p.outcomes.drain(s, x) == outcomeDone {
		p.c.table.drainRefused(n.Name)
	}
	return nil
}

// underWay reports whether a launch of the plan before is under way for a pool.
func (p *publisher) underWay(s *policy.Snapshot, pool policy.PoolID) bool {
	is := p.busy[s.Pools[pool].Name]
	if is {
		p.soon = true
		p.hold(s, pool, held{"LaunchUnderWay", "a launch of the previous plan is still pending"})
	}
	return is
}

// DeletionCost publishes that the pods of a node go first when workloads shrink.
func (p *publisher) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	if ranker := p.c.parts.Ranker; ranker != nil {
		p.add(s, "deletion-cost", s.Nodes[x.Node].Pool, p.outcomes.deletionCost(s, x.Node), priorityPlan,
			func(ctx context.Context, _ backend.Backend) error {
				return ranker.DeletionCost(ctx, s, x)
			})
	}
	return nil
}

// Gate publishes that admission is open or closed for a budget.
func (p *publisher) Gate(_ context.Context, s *policy.Snapshot, x *policy.Gate) error {
	p.enforce("gate", x.Budget, func(ctx context.Context, e driver.Enforcer) error {
		if err := e.Gate(ctx, s, x); err != nil {
			return err
		}
		p.c.notifyGate(x)
		return nil
	})
	return nil
}

// Pause publishes that a job is suspended for a budget, or resumed.
func (p *publisher) Pause(_ context.Context, s *policy.Snapshot, x *policy.Pause) error {
	p.enforce("pause", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Pause(ctx, s, x) })
	return nil
}

// Evict publishes that one pod is evicted for a budget.
func (p *publisher) Evict(_ context.Context, s *policy.Snapshot, x *policy.Evict) error {
	p.enforce("evict", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Evict(ctx, s, x) })
	return nil
}

// add adds an entry to the intent of a pool, if the decision lets it; nil if not.
func (p *publisher) add(s *policy.Snapshot, kind string, pool policy.PoolID, v outcome, priority int,
	do func(context.Context, backend.Backend) error) *entry {
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
		return nil
	}
	x, e := p.next[target{pool: name}], &entry{kind: kind, do: func(ctx context.Context) error { return do(ctx, b) }}
	x.priority, x.entries = max(x.priority, priority), append(x.entries, e)
	return e
}

// backend returns what provisions the nodes of a pool. A missing one is reported to the user.
func (p *publisher) backend(s *policy.Snapshot, pool policy.PoolID) backend.Backend {
	b := p.c.parts.Backends[s.Pools[pool].Provisioner]
	if b == nil {
		p.hold(s, pool, held{"BackendMissing", "the backend that this pool requires is not configured"})
	}
	return b
}

// enforce adds an entry to the intent of a budget. Budgets span pools, so that the mode
// of the controller holds for them and not that of a pool.
func (p *publisher) enforce(kind, budget string, do func(context.Context, driver.Enforcer) error) {
	e := p.c.parts.Enforcer
	if v := p.outcomes.budgets; v != outcomeDone || e == nil {
		p.c.parts.Metrics.Entry(kind, "", string(v))
		return
	}
	of := target{budget: budget}
	if p.next[of] == nil {
		p.next[of] = &intent{}
	}
	x := p.next[of]
	x.entries = append(x.entries, &entry{kind: kind, do: func(ctx context.Context) error { return do(ctx, e) }})
}

// holdYoung says that a move waits for a node that is so young that pods may have been
// promised a place on it.
func (p *publisher) holdYoung(s *policy.Snapshot, n policy.NodeID) {
	if n >= 0 && s.Nodes[n].Pool >= 0 {
		p.young = true
		p.hold(s, s.Nodes[n].Pool, held{"Nominated", "node " + s.Nodes[n].Name +
			" is new, and Karpenter may still assign pods to it"})
	}
}

func (p *publisher) hold(s *policy.Snapshot, pool policy.PoolID, h held) {
	if pool >= 0 {
		p.next[target{pool: s.Pools[pool].Name}].hold(h)
	}
}

// resultOf separates what was left alone from what went wrong.
func resultOf(err error) (outcome, held, error) {
	var hold *backend.Held
	var denied *permit.Denied
	switch {
	case err == nil:
		return outcomeDone, held{}, nil
	case errors.As(err, &denied):
		return outcomeOf(denied.Decision), held{}, nil
	case errors.As(err, &hold):
		return outcomeHeld, held{hold.Reason, hold.Message}, nil
	case errors.Is(err, backend.ErrNotYet):
		return outcomeHeld, held{}, nil
	case errors.Is(err, driver.ErrNoCapacity):
		return outcomeRefused, held{}, nil
	}
	return outcomeFailed, held{}, err
}
