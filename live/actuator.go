package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// An outcome is what became of an entry of a plan, in one word for metrics.
type outcome string

// The outcomes. Those up to outcomeRamp are known before anything is done.
const (
	outcomeDone     outcome = "done"
	outcomeShadow   outcome = "shadow"   // the mode lets nothing be touched
	outcomeOff      outcome = "off"      // the pool is off
	outcomeStopped  outcome = "stopped"  // the kill switch is on
	outcomeConflict outcome = "conflict" // two pools lay claim to the same nodes
	outcomeRamp     outcome = "ramp"     // the pool has just become active
	outcomeHeld     outcome = "held"     // the backend left it, for a reason
	outcomeRefused  outcome = "refused"  // the market has nothing to give
	outcomeFailed   outcome = "failed"
)

// A held is what a backend left alone, and why.
type held struct{ reason, message string }

// An actuator carries a plan out as far as it may be: each pool goes to its
// backend. It is the driver's Actuator, Ranker and Enforcer.
type actuator struct {
	parts *Parts
	fence func(context.Context) error

	// refused is told of a node whose drain was not begun.
	refused func(node string)

	// verdicts are on the plan that is carried out.
	verdicts *verdicts

	// What came of it, by PoolID: the first entry that a backend held, and the
	// first failure.
	held   []held
	failed []error

	// young says that a move waits for a node to grow older.
	young bool

	// superseded is set once another replica is seen to lead: nothing more is done.
	superseded error
}

var (
	_ driver.Actuator = (*actuator)(nil)
	_ driver.Ranker   = (*actuator)(nil)
	_ driver.Enforcer = (*actuator)(nil)
)

// begin forgets the step before.
func (a *actuator) begin(v *verdicts, pools int) {
	a.verdicts, a.held, a.failed, a.young = v, make([]held, pools), make([]error, pools), false
}

// Steer tells a pool's backend what to buy from now on.
func (a *actuator) Steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer) error {
	return a.act(ctx, s, "steer", x.Pool, a.verdicts.pools[x.Pool], func(b backend.Backend) error { return b.Steer(ctx, s, x) })
}

// Launch asks a pool's backend for one node.
func (a *actuator) Launch(ctx context.Context, s *policy.Snapshot, x *policy.Launch) error {
	v := a.verdicts.launch(s, x)
	if v == outcomeHeld {
		a.tellYoung(s, x.Replaces)
	}
	return a.act(ctx, s, "launch", x.Pool, v, func(b backend.Backend) error { return b.Launch(ctx, s, x) })
}

// Drain begins to empty one node.
func (a *actuator) Drain(ctx context.Context, s *policy.Snapshot, x *policy.Drain) error {
	v := a.verdicts.drain(s, x)
	if v == outcomeHeld {
		a.tellYoung(s, x.Node)
	}
	return a.act(ctx, s, "drain", s.Nodes[x.Node].Pool, v, func(backend.Backend) error {
		err := a.parts.Drains.Start(ctx, s, x)
		if err != nil {
			a.refused(s.Nodes[x.Node].Name)
		}
		return err
	})
}

// DeletionCost lets the pods of a node go first when workloads shrink.
func (a *actuator) DeletionCost(ctx context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	pool := s.Nodes[x.Node].Pool
	return a.act(ctx, s, "deletion-cost", pool, a.verdicts.node(s, x.Node), func(backend.Backend) error {
		if a.parts.Ranker == nil {
			return nil
		}
		return a.parts.Ranker.DeletionCost(ctx, s, x)
	})
}

// Gate opens or closes admission for a budget.
func (a *actuator) Gate(ctx context.Context, s *policy.Snapshot, x *policy.Gate) error {
	return a.enforce(ctx, s, "gate", func() error { return a.parts.Enforcer.Gate(ctx, s, x) })
}

// Pause suspends a job for a budget, or lets it go on.
func (a *actuator) Pause(ctx context.Context, s *policy.Snapshot, x *policy.Pause) error {
	return a.enforce(ctx, s, "pause", func() error { return a.parts.Enforcer.Pause(ctx, s, x) })
}

// Evict evicts one pod for a budget.
func (a *actuator) Evict(ctx context.Context, s *policy.Snapshot, x *policy.Evict) error {
	return a.enforce(ctx, s, "evict", func() error { return a.parts.Enforcer.Evict(ctx, s, x) })
}

// act does what concerns a pool, if the verdict lets it.
func (a *actuator) act(ctx context.Context, s *policy.Snapshot, kind string, pool policy.PoolID, v outcome, do func(backend.Backend) error) error {
	name := ""
	if pool >= 0 {
		name = s.Pools[pool].Name
	}
	if v != outcomeDone {
		a.parts.Metrics.Entry(kind, name, string(v))
		return nil
	}
	b := a.parts.Backends[s.Pools[pool].Provisioner]
	if b == nil {
		a.tell(pool, held{"BackendMissing", "nothing that provisions nodes as this pool asks is set up"})
		a.parts.Metrics.Entry(kind, name, string(outcomeHeld))
		return nil
	}
	err := a.call(ctx, func() error { return do(b) })
	v, err = a.answer(pool, err)
	a.parts.Metrics.Entry(kind, name, string(v))
	if err != nil && v == outcomeFailed && a.failed[pool] == nil {
		a.failed[pool] = fmt.Errorf("%s: %w", kind, err)
	}
	return err
}

// enforce does what a budget asks for. Budgets span pools, so that the mode of the
// controller holds for them and not that of a pool.
func (a *actuator) enforce(ctx context.Context, s *policy.Snapshot, kind string, do func() error) error {
	if v := a.verdicts.budgets; v != outcomeDone || a.parts.Enforcer == nil {
		a.parts.Metrics.Entry(kind, "", string(v))
		return nil
	}
	v, err := a.answer(policy.None, a.call(ctx, do))
	a.parts.Metrics.Entry(kind, "", string(v))
	return err
}

// call does one thing while this replica leads.
func (a *actuator) call(ctx context.Context, do func() error) error {
	if a.superseded != nil {
		return a.superseded
	}
	if err := a.fence(ctx); err != nil {
		if errors.Is(err, ErrSuperseded) {
			a.superseded = err
		}
		return err
	}
	return do()
}

// answer tells what a backend left alone from what went wrong.
func (a *actuator) answer(pool policy.PoolID, err error) (outcome, error) {
	var hold *backend.Held
	switch {
	case err == nil:
		return outcomeDone, nil
	case errors.As(err, &hold):
		a.tell(pool, held{hold.Reason, hold.Message})
		return outcomeHeld, nil
	case errors.Is(err, backend.ErrNotYet):
		return outcomeHeld, nil
	case errors.Is(err, driver.ErrNoCapacity):
		return outcomeRefused, err
	}
	return outcomeFailed, err
}

// tellYoung says that a move waits for a node that is so young that pods may have been
// promised a place on it.
func (a *actuator) tellYoung(s *policy.Snapshot, n policy.NodeID) {
	if n < 0 || s.Nodes[n].Pool < 0 {
		return
	}
	a.young = true
	a.tell(s.Nodes[n].Pool, held{"Nominated", "node " + s.Nodes[n].Name + " is so young that Karpenter may have promised it to pods"})
}

func (a *actuator) tell(pool policy.PoolID, h held) {
	if pool >= 0 && a.held[pool].reason == "" {
		a.held[pool] = h
	}
}
