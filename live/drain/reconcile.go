package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// errNotWritten says that nothing may be written at the moment.
var errNotWritten = errors.New("not written")

// errOther says that another node has the name by now.
var errOther = errors.New("another node has its name")

// evictedMax is how long the cache may lag behind an eviction.
const evictedMax = 5 * time.Minute

// A view is what the reconciliations of one moment read for each other.
type view struct {
	at time.Time

	mu        sync.Mutex
	budgets   map[string][]policyv1.PodDisruptionBudget
	workloads map[types.UID]*workload
}

// A round is one reconciliation of one node.
type round struct {
	*view
	p     *Reconciler
	start time.Time

	// ending says that the process is to end: only nodes that are empty, or that the
	// provider takes, are worked on.
	ending bool

	// uncordoning says that of an undo only the first part is done, which lets pods onto
	// the node again.
	uncordoning bool
}

// newRound returns a round that reads anew.
func (p *Reconciler) newRound() *round {
	now := p.cfg.Clock.Now()
	v := &view{at: now, budgets: map[string][]policyv1.PodDisruptionBudget{}, workloads: map[types.UID]*workload{}}
	return &round{view: v, p: p, start: now}
}

// round returns a round that shares what others have read within the last Interval.
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

// work brings one drain as far as it gets now.
func (r *round) work(ctx context.Context, d *drain) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.p.mu.Lock()
	d.obey()
	d.shown.Phase = d.Phase
	d.cancel = cancel
	r.p.mu.Unlock()
	err := r.advance(ctx, d)
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	d.cancel = nil
	if err != nil {
		d.cause = bounded(err.Error())
		err = fmt.Errorf("draining %s: %w", d.node, err)
	}
	d.shown = d.status()
	return err
}

// obey takes over what was asked of d since it was last worked on.
func (d *drain) obey() {
	d.Gentle = d.order.gentle
	if d.order.reclaimAt != d.ReclaimAt {
		d.ReclaimAt, d.reset, d.retryAt = d.order.reclaimAt, true, time.Time{}
		for _, t := range d.tries {
			t.retryAt = time.Time{}
		}
	}
}

// advance goes from phase to phase until one has to wait.
func (r *round) advance(ctx context.Context, d *drain) error {
	for {
		node, err := r.node(ctx, d)
		if apierrors.IsNotFound(err) || errors.Is(err, errOther) {
			return r.gone(ctx, d)
		}
		if err != nil {
			return err
		}
		d.align(node)
		if node.DeletionTimestamp != nil && d.Phase != PhaseUndoing && d.Phase != PhaseReleased {
			r.enter(d, PhaseReleased) // somebody else has it deleted, and nothing of ours keeps it
		}
		if wait, err := r.judge(ctx, d); err != nil || wait {
			return err
		}
		if node, err = r.remember(ctx, d, node); err != nil {
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

// align takes the phase from the marks on the node. What is remembered beside them is
// only how much of that phase is done.
func (d *drain) align(node *corev1.Node) {
	s, marked := readState(node)
	d.kept, d.touched = marked, d.touched || marked
	switch {
	case marked && d.saved != s.Phase:
		d.saved, d.Phase = s.Phase, s.Phase
	case !marked && d.saved != "" && d.Phase != PhaseUndoing && d.Phase != PhaseReleased:
		d.Phase = d.fail("TakenOver", "somebody else has removed the marks of the drain")
		d.saved = ""
	case !marked:
		d.saved = ""
	}
}

// judge reads whether the drain may go on. One that may not is turned back, but that of
// a node that the provider or the backend takes, which is left as it is: wait then says
// that nothing is to be done.
func (r *round) judge(ctx context.Context, d *drain) (wait bool, err error) {
	if d.Phase == PhaseUndoing || d.Phase == PhaseReleased {
		return false, nil
	}
	v, err := r.p.decision(ctx, d.Pool)
	if err != nil {
		return true, err
	}
	if v == permit.Active {
		if d.unwanted(r.now(), r.p.cfg.LateMax) {
			d.Phase = d.fail("Recovered", "the controller that drained it has ended")
		}
		return false, nil
	}
	reason, text := refusal(v, d.Pool)
	d.cause = text
	switch {
	case d.urgent() && d.kept && r.now().Sub(d.ReclaimAt.Std()) <= r.p.cfg.LateMax:
		return true, nil
	case d.Phase == PhaseReleasing && d.kept && r.now().Sub(d.askedAt) < r.p.cfg.ReleaseMax:
		return true, nil
	}
	d.Phase = d.fail(reason, text)
	return false, nil
}

// unwanted reports whether nothing asks for a drain that a process before this one
// began.
func (d *drain) unwanted(now time.Time, lateMax time.Duration) bool {
	switch {
	case d.order.wanted, d.Phase == PhaseReleasing:
		return false
	}
	return !d.urgent() || now.Sub(d.ReclaimAt.Std()) > lateMax
}

// decision returns how far a pool may go now.
func (p *Reconciler) decision(ctx context.Context, pool string) (permit.Decision, error) {
	if p.cfg.Authority == nil {
		return permit.Active, nil
	}
	return p.cfg.Authority.Pool(ctx, pool)
}

// refusal says why a drain is not gone on with, as a CamelCase reason and a sentence.
func refusal(v permit.Decision, pool string) (reason, text string) {
	switch v {
	case permit.Stopped:
		return "Stopped", "the kill switch is on"
	case permit.Gone:
		return "PoolGone", fmt.Sprintf("pool %s is gone", pool)
	case permit.Conflict:
		return "Conflict", fmt.Sprintf("pool %s and another select the same nodes", pool)
	case permit.Off:
		return "PoolOff", fmt.Sprintf("pool %s is off", pool)
	}
	return "PoolShadow", fmt.Sprintf("pool %s is in shadow", pool)
}

// phase does what the drain's phase asks for and returns the next one; the same
// if it has to wait, and none once the drain is over.
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
		d.cause = "waiting for the node to go away"
		return d.Phase, nil
	case PhaseUndoing:
		return r.undo(ctx, d, node)
	}
	panic(fmt.Sprintf("drain: node %s is in phase %q", d.node, d.Phase))
}

func (r *round) enter(d *drain, next Phase) {
	d.Phase, d.retryAt = next, time.Time{}
	r.p.mu.Lock()
	d.shown.Phase = next // at once: see freed
	r.p.mu.Unlock()
	if m := r.p.cfg.Meter; m != nil {
		m.Entered(d.Pool, next)
	}
}

// freed returns those of the launches that d is for that no other drain still has pods
// to move to: several nodes may be emptied onto one. Each drain shows its phase before
// it looks, so that of two that end together one at least finds the launch free.
func (p *Reconciler) freed(d *drain) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.After), func(token string) bool {
		for _, x := range p.drains {
			if x != d && x.shown.moves() && slices.Contains(x.shown.After, token) {
				return true
			}
		}
		return false
	})
}

// moves reports whether the drain has pods to move yet, as far as it has come.
func (s *Status) moves() bool {
	switch s.Phase {
	case PhaseChecking, PhasePreparing, PhaseWaiting, PhaseEvicting:
		return true
	}
	return false
}

// node returns the node of d as it was last read or written. What the cache says
// of its end is confirmed by the API server.
func (r *round) node(ctx context.Context, d *drain) (*corev1.Node, error) {
	key := client.ObjectKey{Name: d.node}
	n := &corev1.Node{}
	err := r.call(ctx, func(ctx context.Context) error { return r.p.client.Get(ctx, key, n) })
	if apierrors.IsNotFound(err) || err == nil && d.uid != "" && n.UID != d.uid {
		n = &corev1.Node{}
		err = r.call(ctx, func(ctx context.Context) error { return r.p.reader.Get(ctx, key, n) })
	}
	switch {
	case err != nil:
		return nil, err
	case d.uid == "":
		d.uid = n.UID
	case d.uid != n.UID:
		return nil, errOther
	}
	if d.last != nil && older(n, d.last) {
		return d.last, nil
	}
	return n, nil
}

// older reports whether a is an earlier state of b.
func older(a, b *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

// fresh reads the node from the API server.
func (r *round) fresh(ctx context.Context, d *drain) (*corev1.Node, error) {
	n := &corev1.Node{}
	err := r.call(ctx, func(ctx context.Context) error {
		return r.p.reader.Get(ctx, client.ObjectKey{Name: d.node}, n)
	})
	if err == nil && n.UID != d.uid {
		err = errOther
	}
	return n, err
}

// mark writes the marks of d on its node, with the phase to come.
func (r *round) mark(ctx context.Context, d *drain, node *corev1.Node, phase Phase, change func(*corev1.Node)) (*corev1.Node, error) {
	err := r.write(ctx, d, func(ctx context.Context) error {
		changed, err := patchNode(ctx, r.writer(d), r.p.reader, node, change)
		if err == nil {
			node = changed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d.last, d.saved, d.reset = node, phase, false
	_, d.kept = readState(node)
	return node, nil
}

// remember writes the state of d again where a notice has changed it.
func (r *round) remember(ctx context.Context, d *drain, node *corev1.Node) (*corev1.Node, error) {
	if !d.reset || !d.kept || d.Phase == PhaseUndoing || d.Phase == PhaseReleased {
		return node, nil
	}
	s := d.state
	s.Phase = d.saved
	return r.mark(ctx, d, node, d.saved, s.write)
}

// call makes one call, which does not last for ever.
func (r *round) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.p.cfg.CallMax)
	defer cancel()
	return f(ctx)
}

// write makes a call that changes something on behalf of the pool of d, or takes
// something back, as far as that may be done now.
func (r *round) write(ctx context.Context, d *drain, f func(context.Context) error) error {
	ctx = permit.Act(ctx, d.Pool)
	if d.Phase == PhaseUndoing || d.Phase == PhaseReleased {
		ctx = permit.Undo(ctx)
	}
	if r.p.cfg.Authority != nil {
		if err := r.p.cfg.Authority.Check(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNotWritten, err)
		}
	}
	return r.call(ctx, f)
}

// writer returns the client that writes the node of d. What is taken back goes before
// what is begun.
func (r *round) writer(d *drain) client.Client {
	if d.urgent() || d.Phase == PhaseUndoing {
		return r.p.cfg.Urgent
	}
	return r.p.client
}

func (r *round) now() time.Time { return r.p.cfg.Clock.Now() }

// overdue reports whether the node was worked on for so long that others should have
// their turn.
func (r *round) overdue() bool { return r.p.cfg.Clock.Since(r.start) >= r.p.cfg.TurnMax }

// forget drops evictions that the cache must have seen by now.
func (p *Reconciler) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, at := range p.evicted {
		if p.cfg.Clock.Since(at) > evictedMax {
			delete(p.evicted, uid)
		}
	}
}

// gone ends the drain of a node that is no more.
func (r *round) gone(ctx context.Context, d *drain) error {
	if d.Phase != PhaseUndoing {
		r.enter(d, PhaseReleased)
	}
	releaser, err := r.p.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		r.p.cfg.Log.Warn("nothing is settled", "node", d.node, "error", err)
	} else if err := r.write(ctx, d, func(ctx context.Context) error { return releaser.Settle(ctx, r.p.freed(d)) }); err != nil {
		return fmt.Errorf("settling its replacements: %w", err)
	}
	if d.Phase == PhaseUndoing && d.outcome == OutcomeHeld {
		r.end(d, nil, OutcomeHeld, d.reason, d.Failure)
		return nil
	}
	r.end(d, nil, OutcomeDone, "Drained", "the node is gone")
	return nil
}

// end takes d off the list and says what became of it.
func (r *round) end(d *drain, node *corev1.Node, outcome Outcome, reason, message string) {
	p := r.p
	p.mu.Lock()
	if p.drains[d.node] == d {
		delete(p.drains, d.node)
	}
	d.over = outcome
	p.mu.Unlock()
	result := Result{
		Node: d.node, Pool: d.Pool, Outcome: outcome, Reason: reason, Message: message,
		Took: policy.TimeOf(r.now()).Sub(d.Since), Urgent: d.urgent(),
	}
	p.cfg.Log.Info("drain ended", "node", d.node, "pool", d.Pool, "outcome", outcome, "reason", reason, "message", message)
	if p.cfg.Meter != nil {
		p.cfg.Meter.Ended(result)
	}
	if node != nil {
		r.report(node, corev1.EventTypeWarning, reason, "DrainEnded", "drain %s: %s", outcome, message)
	}
}

func (r *round) report(node *corev1.Node, kind, reason, action, note string, args ...any) {
	if e := r.p.cfg.Events; e != nil {
		e.Eventf(node, nil, kind, reason, action, note, args...)
	}
}
