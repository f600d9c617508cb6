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

// An outcome is the result of a plan entry, as one word for metrics. A [permit.Decision] is also an
// outcome, of an entry that was not carried out.
type outcome string

// Outcomes.
const (
	outcomeDone       outcome = "done"
	outcomeShadow             = outcome(permit.Shadow)
	outcomeOff                = outcome(permit.Off)
	outcomeStopped            = outcome(permit.Stopped)
	outcomeUnreadable         = outcome(permit.Unreadable)
	outcomeConflict           = outcome(permit.Conflict)
	outcomeGone               = outcome(permit.Gone)
	outcomeUnapproved outcome = "unapproved" // it has not been approved
	outcomeRamp       outcome = "ramp"       // the ramp of the pool does not permit it yet
	outcomeHeld       outcome = "held"       // it was not carried out, for a reason
	outcomeRefused    outcome = "refused"    // the market has no capacity
	outcomeFailed     outcome = "failed"
)

// outcomeOf returns the outcome of an entry under a decision.
func outcomeOf(v permit.Decision) outcome {
	if v == permit.Active {
		return outcomeDone
	}
	return outcome(v)
}

// Priorities of intents, in ascending order.
const (
	priorityReport = -1 + iota // informs users and changes nothing
	priorityPlan
	priorityLaunch
	priorityNotice // for a node under notice
)

// A publisher is the Actuator, Ranker and Enforcer of the driver: it converts a plan to intents,
// which reconcilers carry out. Only drains of nodes under notice are ordered at once; the order
// itself does not change the cluster.
type publisher struct {
	c        *Controller
	outcomes *outcomes

	// next contains the intents of the plan, by target.
	next map[target]*intent

	// busy contains the pools with a pending launch of an earlier plan. soon reports whether
	// another step is needed soon, and young whether an entry waits for a node to get older.
	busy        map[string]bool
	soon, young bool
}

var (
	_ driver.Actuator = (*publisher)(nil)
	_ driver.Ranker   = (*publisher)(nil)
	_ driver.Enforcer = (*publisher)(nil)
)

// begin discards the state of the previous step.
func (p *publisher) begin(s *policy.Snapshot, v *outcomes) {
	p.outcomes, p.next, p.young = v, make(map[target]*intent, len(s.Pools)), false
	for i := range s.Pools {
		p.next[target{pool: s.Pools[i].Name}] = &intent{}
	}
}

// commit passes the intents to the reconcilers.
func (p *publisher) commit(s *policy.Snapshot) {
	p.c.table.publish(s, p.next)
	for of, x := range p.next { // in any order: the queues have their own order
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

// Steer publishes a change of the steer of a pool.
func (p *publisher) Steer(_ context.Context, s *policy.Snapshot, x *policy.Steer) error {
	p.add(s, kindSteer, x.Pool, p.outcomes.steer(s, x), priorityPlan, func(ctx context.Context, b backend.Backend) error {
		return b.Steer(ctx, s, x)
	})
	return nil
}

// Launch publishes the launch of a node.
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

// Drain orders the drain of a node under notice at once. Other drains are published: they may have
// to wait for launches.
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

// underWay reports whether a launch of the previous plan is still pending for a pool.
func (p *publisher) underWay(s *policy.Snapshot, pool policy.PoolID) bool {
	is := p.busy[s.Pools[pool].Name]
	if is {
		p.soon = true
		p.hold(s, pool, held{"LaunchUnderWay", "a launch of the previous plan is still pending"})
	}
	return is
}

// DeletionCost publishes that workloads should remove the pods of a node first when they are scaled
// down.
func (p *publisher) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	if ranker := p.c.parts.Ranker; ranker != nil {
		p.add(s, "deletion-cost", s.Nodes[x.Node].Pool, p.outcomes.deletionCost(s, x.Node), priorityPlan,
			func(ctx context.Context, _ backend.Backend) error {
				return ranker.DeletionCost(ctx, s, x)
			})
	}
	return nil
}

// Gate publishes that the gate of a budget opens or closes.
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

// Pause publishes that a job is suspended or resumed because of a budget.
func (p *publisher) Pause(_ context.Context, s *policy.Snapshot, x *policy.Pause) error {
	p.enforce("pause", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Pause(ctx, s, x) })
	return nil
}

// Evict publishes that a pod is evicted because of a budget.
func (p *publisher) Evict(_ context.Context, s *policy.Snapshot, x *policy.Evict) error {
	p.enforce("evict", x.Budget, func(ctx context.Context, e driver.Enforcer) error { return e.Evict(ctx, s, x) })
	return nil
}

// add adds an entry to the intent of a pool and returns it, or returns nil if the outcome is not
// outcomeDone or the pool has no backend.
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

// backend returns the backend of a pool. If it is missing, a message for the user is recorded and
// nil returned.
func (p *publisher) backend(s *policy.Snapshot, pool policy.PoolID) backend.Backend {
	b := p.c.parts.Backends[s.Pools[pool].Provisioner]
	if b == nil {
		p.hold(s, pool, held{"BackendMissing", "the backend that this pool requires is not configured"})
	}
	return b
}

// enforce adds an entry to the intent of a budget. Budgets span pools, so the mode of the
// controller applies to them, not the mode of a pool.
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

// holdYoung records that a move waits because Karpenter may have nominated the new node for pods.
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

// resultOf converts the error of an entry. It distinguishes entries that were not carried out from
// failed ones; only for the latter it returns an error.
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
