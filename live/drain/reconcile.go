package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// errNotWritten means that writes are not permitted now.
var errNotWritten = errors.New("not written")

// errOther means that another node has the name by now.
var errOther = errors.New("another node now has its name")

// A round is one reconciliation of one node.
type round struct {
	cfg       *Config
	api       *clusterAPI
	table     *drainTable
	releasers NodeReleasers
	backends  chan struct{} // see Reconciler
	evictor   *evictor
	view      *view
	start     time.Time

	// ending means that the process must end: only nodes that are empty, or that the provider
	// reclaims, are processed.
	ending bool

	// uncordoning means that only the first part of an undo is done, which allows pods on the node
	// again.
	uncordoning bool
}

// newRound returns a round with a new view.
func (p *Reconciler) newRound() *round {
	now := p.cfg.Clock.Now()
	v := &view{
		api: p.api, evictions: p.evictions, at: now,
		budgets: map[string][]policyv1.PodDisruptionBudget{}, workloads: map[types.UID]*workload{},
	}
	return &round{
		cfg: p.cfg, api: p.api, table: p.table, releasers: p.releasers, backends: p.backends, view: v, start: now,
		evictor: &evictor{cfg: p.cfg, api: p.api, evictions: p.evictions},
	}
}

// round returns a round that shares the view of other rounds within the last Interval.
func (p *Reconciler) round() *round {
	r := p.newRound()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared == nil || r.start.Sub(p.shared.at) >= p.cfg.Interval {
		p.shared = r.view
	}
	r.view = p.shared
	return r
}

// work advances one drain until it must wait.
func (r *round) work(ctx context.Context, d *drain) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.table.mu.Lock()
	d.obey()
	d.shown.Phase = d.Phase
	d.cancel = cancel
	r.table.mu.Unlock()
	err := r.advance(ctx, d)
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	d.cancel = nil
	if err != nil {
		d.cause = bounded(err.Error())
		err = fmt.Errorf("draining %s: %w", d.node, err)
	}
	d.shown = d.status()
	return err
}

// obey applies the orders for d since the last reconciliation.
func (d *drain) obey() {
	d.Gentle = d.order.gentle
	if d.order.reclaimAt != d.ReclaimAt {
		d.ReclaimAt, d.reset, d.retryAt = d.order.reclaimAt, true, time.Time{}
		for _, t := range d.tries {
			t.retryAt = time.Time{}
		}
	}
}

// advance runs phase after phase until one has to wait.
func (r *round) advance(ctx context.Context, d *drain) error {
	for {
		node, err := r.api.node(ctx, d)
		if apierrors.IsNotFound(err) || errors.Is(err, errOther) {
			return r.gone(ctx, d)
		}
		if err != nil {
			return err
		}
		d.align(r.api.marks.read(node))
		if node.DeletionTimestamp != nil && d.Phase != PhaseUndoing && d.Phase != PhaseReleased {
			r.enter(d, PhaseReleased) // another controller has deleted the node, and Spotter does not keep it
		}
		if wait, err := r.judge(ctx, d); err != nil || wait {
			return err
		}
		if node, err = r.api.remember(ctx, d, node); err != nil {
			return err
		}
		next, err := r.phase(ctx, d, node)
		if err != nil || next == "" {
			return err
		}
		if next == d.Phase {
			return nil
		}
		r.enter(d, next)
	}
}

// align sets the phase from the marks on the node; the process itself only remembers the progress
// within that phase. If the marks were removed or written by another actor, a voluntary drain ends;
// under a notice the marks are written again.
func (d *drain) align(s state, marked, sealed bool) {
	d.kept, d.touched = marked, d.touched || sealed
	over := d.Phase == PhaseUndoing || d.Phase == PhaseReleased
	switch {
	case sealed && d.saved == "":
		d.saved, d.Phase, d.Since, d.AskedAt = s.Phase, s.Phase, s.Since, s.AskedAt
		if s.Phase == PhaseUndoing && d.outcome == "" {
			d.outcome, d.reason, d.Failure = OutcomeUndone, "Recovered", s.Failure
		}
	case sealed && s.Since == d.Since:
		if d.saved != s.Phase {
			d.saved, d.Phase = s.Phase, s.Phase
		}
	case over:
		if !marked {
			d.saved = ""
		}
	case d.urgent():
		if d.saved != "" {
			d.saved, d.Phase = "", PhasePreparing
		}
	case d.saved != "" || marked:
		d.Phase = d.fail("TakenOver", "another actor changed or removed the annotations of the drain")
		if !marked {
			d.saved = ""
		}
	}
}

// judge determines whether the drain may continue. Otherwise the drain is undone, unless the
// provider or the backend is removing the node, or the kill switch has been unreadable for a short
// time only: wait then reports that nothing must be done.
func (r *round) judge(ctx context.Context, d *drain) (wait bool, err error) {
	if d.Phase == PhaseUndoing || d.Phase == PhaseReleased {
		return false, nil
	}
	v, err := r.api.decision(ctx, d.Pool)
	if err != nil {
		return true, err
	}
	if v != permit.Unreadable || d.readable.IsZero() {
		d.readable = r.now()
	}
	if v == permit.Active {
		if d.unwanted(r.now(), r.cfg.LateMax) {
			d.Phase = d.fail("Recovered", "the controller that drained it has ended")
		}
		return false, nil
	}
	reason, text := refusal(v, d.Pool)
	d.cause = text
	switch {
	case v == permit.Unreadable && r.now().Sub(d.readable) < r.cfg.UnreadableMax:
		return true, nil
	case d.urgent() && d.kept && r.now().Sub(d.ReclaimAt.Std()) <= r.cfg.LateMax:
		return true, nil
	case d.Phase == PhaseReleasing && d.kept && r.now().Sub(d.AskedAt.Std()) < r.cfg.ReleaseMax:
		return true, nil
	}
	d.Phase = d.fail(reason, text)
	return false, nil
}

// unwanted reports whether an earlier process started the drain and this process has not ordered
// it. Drains in PhaseReleasing, and current notices, need no order.
func (d *drain) unwanted(now time.Time, lateMax time.Duration) bool {
	switch {
	case d.order.wanted, d.Phase == PhaseReleasing:
		return false
	}
	return !d.urgent() || now.Sub(d.ReclaimAt.Std()) > lateMax
}

// refusal returns the reason that a drain may not continue, in CamelCase and as a sentence.
func refusal(v permit.Decision, pool string) (reason, text string) {
	switch v {
	case permit.Stopped:
		return "Stopped", "the kill switch is on"
	case permit.Unreadable:
		return "SwitchUnreadable", "the kill switch cannot be read"
	case permit.Gone:
		return "PoolGone", fmt.Sprintf("pool %s was deleted", pool)
	case permit.Claimed, permit.Unclaimed:
		return "PoolClaimed", fmt.Sprintf("pool %s is not claimed by this release", pool)
	case permit.Conflict:
		return "Conflict", fmt.Sprintf("pool %s and another select the same nodes", pool)
	case permit.Off:
		return "PoolOff", fmt.Sprintf("pool %s is off", pool)
	}
	return "PoolShadow", fmt.Sprintf("pool %s is in shadow mode", pool)
}

// phase does the work of the drain's phase and returns the next one. It returns the same phase if
// it has to wait, and an empty one once the drain has ended.
func (r *round) phase(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	d.cause = ""
	switch d.Phase {
	case PhaseChecking:
		return r.check(ctx, d)
	case PhasePreparing:
		return r.prepare(ctx, d, node)
	case PhaseWaiting:
		return r.await(ctx, d, node)
	case PhaseEvicting:
		return r.empty(ctx, d, node)
	case PhaseDetaching:
		return r.detach(ctx, d, node)
	case PhaseReleasing:
		return r.release(ctx, d, node)
	case PhaseReleased:
		d.cause = "waiting for the node to be deleted"
		return d.Phase, nil
	case PhaseUndoing:
		return r.undo(ctx, d, node)
	}
	panic(fmt.Sprintf("drain: node %s is in phase %q", d.node, d.Phase))
}

// callBackend makes a call of the backend that changes something, and reports whether it did: under
// a notice, the number of concurrent calls is limited.
func (r *round) callBackend(ctx context.Context, d *drain, f func(context.Context) error) (called bool, err error) {
	if d.urgent() {
		select {
		case r.backends <- struct{}{}:
			defer func() { <-r.backends }()
		default:
			d.cause = "waiting for its backend, which works on other nodes under notice"
			return false, nil
		}
	}
	return true, r.api.write(ctx, d, f)
}

func (r *round) enter(d *drain, next Phase) {
	d.Phase, d.retryAt = next, time.Time{}
	r.table.mu.Lock()
	d.shown.Phase = next // immediately: see freed
	r.table.mu.Unlock()
	if m := r.cfg.Meter; m != nil {
		m.Entered(d.node, d.Pool, next)
	}
}

// moves reports whether the drain still has pods to move in its phase.
func (s *Status) moves() bool {
	switch s.Phase {
	case PhaseChecking, PhasePreparing, PhaseWaiting, PhaseEvicting:
		return true
	}
	return false
}

func (r *round) now() time.Time { return r.api.now() }

// overdue reports whether the node was processed for so long that others should have their turn.
func (r *round) overdue() bool { return r.cfg.Clock.Since(r.start) >= r.cfg.TurnMax }

// gone ends the drain of a node that no longer exists. The drain has succeeded if the node was
// being released or the provider had announced its reclaim.
func (r *round) gone(ctx context.Context, d *drain) error {
	switch {
	case d.Phase == PhaseUndoing:
	case d.Phase != PhaseReleasing && d.Phase != PhaseReleased && !d.urgent():
		r.enter(d, d.fail("NodeLost", "the node was deleted before it was empty"))
	default:
		r.enter(d, PhaseReleased)
	}
	releaser, err := r.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		r.cfg.Log.Warn("the protection of its replacements remains", "node", d.node, "error", err)
	} else if called, err := r.callBackend(ctx, d, func(ctx context.Context) error {
		return releaser.Settle(ctx, r.table.freed(d))
	}); err != nil {
		return fmt.Errorf("removing the protection of its replacements: %w", err)
	} else if !called {
		return nil
	}
	if d.Phase == PhaseUndoing {
		r.end(d, nil, d.outcome, d.reason, d.Failure)
		return nil
	}
	r.end(d, nil, OutcomeDone, "Drained", "the node is gone")
	return nil
}

// end removes d from the table and reports its result.
func (r *round) end(d *drain, node *corev1.Node, outcome Outcome, reason, message string) {
	r.table.remove(d, outcome)
	result := Result{
		Node: d.node, Pool: d.Pool, Outcome: outcome, Reason: reason, Message: message,
		Took: policy.TimeOf(r.now()).Sub(d.Since), Urgent: d.urgent(),
	}
	r.cfg.Log.Info("drain ended", "node", d.node, "pool", d.Pool, "outcome", outcome, "reason", reason, "message", message)
	if r.cfg.Meter != nil {
		r.cfg.Meter.Ended(result)
	}
	if node != nil {
		r.api.report(node, corev1.EventTypeWarning, reason, "DrainEnded", "drain %s: %s", outcome, message)
	}
}
