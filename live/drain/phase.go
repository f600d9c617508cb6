package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// late reports whether the drain's deadline has passed. Nodes under notice have no deadline.
func (d *drain) late(now time.Time) bool {
	return !d.urgent() && policy.TimeOf(now) >= d.Deadline
}

// fail starts undoing the drain. reason is in CamelCase and message a sentence; both are for the
// user.
func (d *drain) fail(reason, message string) Phase {
	d.reason, d.Failure, d.outcome = reason, bounded(message), OutcomeUndone
	if d.saved == "" || d.saved == PhasePreparing {
		d.outcome = OutcomeHeld
	}
	return PhaseUndoing
}

// prepare calls the backend's Prepare. It first writes Spotter's mark to the node, so that the
// backend's changes are certain to be undone. Under a notice, the node is drained first.
func (r *round) prepare(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	switch {
	case d.urgent():
		return r.cordon(ctx, d, node)
	case d.late(r.now()):
		return d.fail("Deadline", "its backend was not ready for it in time: "+d.cause), nil
	case node.Spec.Unschedulable:
		return d.fail("Cordoned", "another actor cordoned the node"), nil
	case r.now().Before(d.retryAt):
		return d.Phase, nil
	}
	releaser, err := r.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		return d.fail("NoBackend", err.Error()), nil
	}
	if err := r.table.reserve(ctx, d); err != nil {
		if held := new(backend.Held); errors.As(err, &held) {
			return d.fail(held.Reason, held.Message), nil
		}
		return d.Phase, err
	}
	if d.saved != PhasePreparing {
		if node, err = r.api.mark(ctx, d, node, PhasePreparing, r.api.writes(d, PhasePreparing)); err != nil {
			return d.Phase, err
		}
	}
	err = r.api.write(ctx, d, func(ctx context.Context) error { return releaser.Prepare(ctx, node) })
	held := new(backend.Held)
	switch {
	case err == nil:
		d.ready = true
		return PhaseWaiting, nil
	case errors.As(err, &held):
		return d.fail(held.Reason, held.Message), nil
	}
	d.retryAt = r.now().Add(r.cfg.EvictRetry)
	return d.Phase, fmt.Errorf("preparing: %w", err)
}

// prepareLate calls the backend's Prepare for a node under notice, once, after the eviction of its
// pods was requested. If that fails, the drain continues to next without the backend, unless
// another controller drains the node.
func (r *round) prepareLate(ctx context.Context, d *drain, node *corev1.Node, next Phase) (Phase, error) {
	if d.ready {
		return next, nil
	}
	releaser, err := r.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		return d.fail("NoBackend", err.Error()), nil
	}
	cause := d.cause
	called, err := r.callBackend(ctx, d, func(ctx context.Context) error { return releaser.Prepare(ctx, node) })
	held := new(backend.Held)
	switch {
	case !called:
		return d.Phase, nil
	case errors.As(err, &held) && held.By != policy.ActorNone:
		return d.fail(held.Reason, held.Message), nil
	case errors.Is(err, errNotWritten) || ctx.Err() != nil:
		return d.Phase, fmt.Errorf("preparing: %w", err)
	case err != nil:
		r.cfg.Log.Warn("drained without its backend, since the provider reclaims the node", "node", d.node, "error", err)
	}
	d.ready, d.cause = true, cause
	return next, nil
}

// await waits for the replacements and then cordons the node.
func (r *round) await(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	if d.urgent() {
		return r.cordon(ctx, d, node)
	}
	if len(d.After) == 0 {
		return r.cordon(ctx, d, node)
	}
	releaser, err := r.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		return d.fail("NoBackend", err.Error()), nil
	}
	var how backend.Replacement
	err = r.api.call(ctx, func(ctx context.Context) (err error) {
		how, err = releaser.Replaced(ctx, d.After)
		return err
	})
	wait := "waiting for its replacements"
	switch {
	case err == nil && how == backend.ReplacementFailed:
		return d.fail("ReplacementFailed", "a replacement node did not become ready"), nil
	case err == nil && how == backend.ReplacementReady:
		wait, err = r.admitAgain(ctx, d)
		if held := new(backend.Held); errors.As(err, &held) {
			return d.fail(held.Reason, held.Message), nil
		}
		if err == nil && wait == "" {
			return r.cordon(ctx, d, node)
		}
	}
	if d.late(r.now()) {
		return d.fail("Deadline", "its deadline passed: "+wait), nil
	}
	d.cause = wait
	return d.Phase, err
}

// admitAgain repeats the checks of admit after the wait.
func (r *round) admitAgain(ctx context.Context, d *drain) (string, error) {
	if r.now().Before(d.retryAt) {
		return "waiting to retry evictions", nil
	}
	wait, err := r.admit(ctx, d)
	if wait != "" {
		d.retryAt = r.now().Add(r.cfg.EvictRetry)
	}
	return wait, err
}

// cordon makes the node unschedulable.
func (r *round) cordon(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	s := d.state
	s.Phase = PhaseEvicting
	node, err := r.api.mark(ctx, d, node, PhaseEvicting, func(n *corev1.Node) { r.api.marks.cordon(n, s) })
	if err != nil {
		return d.Phase, err
	}
	if _, ours := node.Annotations[AnnotationCordon]; !ours && !d.urgent() {
		return d.fail("Cordoned", "another actor cordoned the node"), nil
	}
	r.api.report(node, corev1.EventTypeNormal, "Draining", "Drain", "%s: %s", d.Why, d.Text)
	return PhaseEvicting, nil
}

// takenOver reports whether another controller or a user has removed Spotter's cordon or replaced
// it with their own. The API server confirms it, since the cache may show an earlier state.
func (r *round) takenOver(ctx context.Context, d *drain, node *corev1.Node) (bool, error) {
	if d.urgent() {
		return false, nil // the provider reclaims the node in any case
	}
	lost := func(n *corev1.Node) bool {
		_, ours := n.Annotations[AnnotationCordon]
		return !ours || !n.Spec.Unschedulable
	}
	if !lost(node) {
		return false, nil
	}
	node, err := r.api.fresh(ctx, d)
	return err == nil && lost(node), err
}

// empty evicts the pods.
func (r *round) empty(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	taken, err := r.takenOver(ctx, d, node)
	switch {
	case err != nil:
		return d.Phase, err
	case taken:
		return d.fail("TakenOver", "another actor made the node schedulable or keeps it cordoned"), nil
	case d.urgent() && r.now().Sub(d.ReclaimAt.Std()) > r.cfg.LateMax:
		return d.fail("NotTaken", "the provider announced a reclaim that did not happen"), nil
	}
	pods, err := r.api.leaving(ctx, d.key())
	if err != nil {
		return d.Phase, err
	}
	if len(pods) == 0 {
		if pods, err = r.api.left(ctx, d.key()); err != nil {
			return d.Phase, err
		}
	}
	next := PhaseDetaching
	if len(pods) == 0 {
		d.giving.emptyAt = r.now()
	} else if next, err = r.evictAll(ctx, d, pods); next == PhaseEvicting && d.late(r.now()) {
		return d.fail("Deadline", "its deadline passed: "+d.cause), nil
	}
	if err == nil && d.urgent() && next != PhaseUndoing {
		return r.prepareLate(ctx, d, node, next)
	}
	return next, err
}

// detach waits for the volumes of the pods to be detached, for at most VolumesMax.
func (r *round) detach(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	if taken, err := r.takenOver(ctx, d, node); err != nil || taken {
		if taken {
			return d.fail("TakenOver", "another actor made the node schedulable or keeps it cordoned"), nil
		}
		return d.Phase, err
	}
	attached := &storagev1.VolumeAttachmentList{}
	err := r.api.call(ctx, func(ctx context.Context) error {
		return r.api.client.List(ctx, attached, client.MatchingFields{IndexAttachmentNode: d.node},
			client.UnsafeDisableDeepCopy)
	})
	if err != nil {
		return d.Phase, fmt.Errorf("listing volume attachments: %w", err)
	}
	if n := len(attached.Items); n > 0 && r.now().Sub(d.giving.emptyAt) < r.cfg.VolumesMax {
		d.cause = fmt.Sprintf("waiting for %s to be detached, first %s", figures.Count(n, "volume"), attached.Items[0].Name)
		return d.Phase, nil
	}
	// Pods that were created recently may be missing from the cache.
	pods, err := r.api.left(ctx, d.key())
	if err != nil {
		return d.Phase, err
	}
	if len(pods) > 0 {
		return PhaseEvicting, nil
	}
	return PhaseReleasing, nil
}

// release releases the empty node. Before each call of the backend, the API server must confirm
// that the node is empty: an earlier process may have ended since the last check, and a user may
// have made the node schedulable. The protection of the replacements is settled first: the pods
// have moved, and once the node has been deleted, no new leader would know of the replacements.
func (r *round) release(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	releaser, err := r.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		return d.fail("NoBackend", err.Error()), nil
	}
	if r.now().Before(d.retryAt) {
		return d.Phase, nil
	}
	if d.saved != PhaseReleasing {
		d.AskedAt = policy.TimeOf(r.now())
		if node, err = r.api.mark(ctx, d, node, PhaseReleasing, r.api.writes(d, PhaseReleasing)); err != nil {
			return d.Phase, err
		}
	}
	taken, err := r.takenOver(ctx, d, node)
	if err == nil && taken {
		return d.fail("TakenOver", "another actor made the node schedulable or keeps it cordoned"), nil
	}
	called := true
	if err == nil && !d.giving.settled {
		called, err = r.callBackend(ctx, d, func(ctx context.Context) error { return releaser.Settle(ctx, r.table.freed(d)) })
		d.giving.settled = called && err == nil
	}
	if err == nil && called {
		var pods []*corev1.Pod
		if pods, err = r.api.left(ctx, d.key()); err == nil && len(pods) > 0 {
			return PhaseEvicting, nil
		}
	}
	if err == nil && called {
		called, err = r.callBackend(ctx, d, func(ctx context.Context) error { return releaser.Release(ctx, node) })
	}
	if !called {
		return d.Phase, nil
	}
	return r.released(d, node, err)
}

// released handles the response of the backend.
func (r *round) released(d *drain, node *corev1.Node, err error) (Phase, error) {
	held := new(backend.Held)
	switch {
	case err == nil:
		r.api.report(node, corev1.EventTypeNormal, "Drained", "Drain", "the node is empty and was released")
		return PhaseReleased, nil
	case errors.As(err, &held) && !d.giving.mayBe:
		return d.fail(held.Reason, held.Message), nil
	case r.now().Sub(d.AskedAt.Std()) >= r.cfg.ReleaseMax:
		return d.fail("ReleaseFailed", "its backend did not release it: "+err.Error()), nil
	case errors.Is(err, backend.ErrNotYet):
		d.cause = err.Error()
		return d.Phase, nil
	}
	d.retryAt = r.now().Add(r.cfg.EvictRetry)
	return d.Phase, fmt.Errorf("releasing it: %w", err)
}
