package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// undo reverts the changes to a node: first those that repel pods, then those of the backend, and
// last the mark that shows the drain to a new leader.
func (r *round) undo(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	var err error
	if d.kept && (d.saved != PhaseUndoing || closed(node)) {
		write := r.api.writes(d, PhaseUndoing)
		node, err = r.api.mark(ctx, d, node, PhaseUndoing, func(n *corev1.Node) {
			r.api.marks.uncordon(n)
			write(n)
		})
		if err != nil {
			return d.Phase, err
		}
	}
	if r.uncordoning || r.now().Before(d.retryAt) {
		return d.Phase, nil
	}
	if d.touched || len(d.After) > 0 {
		undone, err := r.undoBackend(ctx, d, node)
		if err != nil {
			d.retryAt = r.now().Add(r.cfg.EvictRetry)
		}
		if err != nil || !undone {
			return d.Phase, err
		}
	}
	if d.kept {
		node, err = r.api.mark(ctx, d, node, "", func(n *corev1.Node) { delete(n.Annotations, AnnotationDrain) })
		if err != nil {
			return d.Phase, err
		}
	}
	r.end(d, node, d.outcome, d.reason, d.Failure)
	return "", nil
}

// undoBackend undoes the changes of the backend. If the pool no longer exists, there may be no
// backend to call.
func (r *round) undoBackend(ctx context.Context, d *drain, node *corev1.Node) (undone bool, err error) {
	releaser, err := r.releasers.NodeReleaser(d.Pool, d.Provisioner)
	if err != nil {
		r.cfg.Log.Warn("drain undone without its backend", "node", d.node, "pool", d.Pool, "error", err)
		return true, nil
	}
	undone, err = r.callBackend(ctx, d, func(ctx context.Context) error {
		return releaser.Undo(ctx, node,
			r.table.freed(d))
	})
	if err != nil {
		return false, fmt.Errorf("undoing the preparation by its backend: %w", err)
	}
	return undone, nil
}

// Settled lists the unfinished drains at shutdown: those that were undone, and those that were
// left, with the reason for each. Both are ascending by node.
type Settled struct{ Undone, Left []string }

// closed reports whether Spotter keeps pods off a node.
func closed(n *corev1.Node) bool {
	_, cordoned := n.Annotations[AnnotationCordon]
	return cordoned || tainted(n)
}

// Shutdown finishes the drains of empty nodes and undoes the others, since the process ends. It
// evicts pods only from nodes under notice. It first makes all nodes schedulable before it reverts
// any other change: if the time runs out, no node must remain cordoned. The next process handles
// the remaining drains. Run must have returned before.
func (p *Reconciler) Shutdown(ctx context.Context) (Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.ShutdownMax)
	defer cancel()
	all := p.table.due()
	err := p.pass(ctx, all, func(r *round) { r.ending = true })
	p.table.mu.Lock()
	for _, d := range all {
		d.order.wanted = false
	}
	p.table.mu.Unlock()
	_ = p.pass(ctx, p.table.toUndo(), func(r *round) { r.uncordoning = true }) // failures are retried below
	for {
		left := p.table.toUndo()
		if len(left) == 0 {
			break
		}
		err = p.pass(ctx, left, func(*round) {})
		if p.pause(ctx) != nil {
			break
		}
	}
	return account(all), err
}

// left returns the reason that a drain is not undone when the process ends; empty if it must be
// undone.
func (d *drain) left() string {
	switch {
	case d.Phase == PhaseReleased:
		return "it is empty and was released"
	case d.Phase == PhaseUndoing:
		return ""
	case d.order.reclaimAt != 0 && d.kept:
		return "the provider reclaims it"
	case d.Phase == PhaseReleasing && d.giving.mayBe:
		return "it is empty and may have been released"
	}
	return ""
}

// pass processes drains, up to Parallel at the same time.
func (p *Reconciler) pass(ctx context.Context, all []*drain, how func(*round)) error {
	view := p.newRound()
	how(view)
	failed := make([]error, len(all))
	places := make(chan struct{}, p.cfg.Parallel)
	var wait sync.WaitGroup
	for i, d := range all {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			r := *view
			r.start = p.cfg.Clock.Now()
			if !r.ending || d.order.reclaimAt != 0 || !r.busy(ctx, d) {
				failed[i] = r.work(ctx, d)
			}
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

// busy reports whether pods must still leave the node of d, or whether that is not known.
func (r *round) busy(ctx context.Context, d *drain) bool {
	pods, err := r.api.leaving(ctx, d.key())
	return err != nil || len(pods) > 0
}

// account returns the results of the drains, ascending by node.
func account(all []*drain) Settled {
	slices.SortFunc(all, func(a, b *drain) int { return cmp.Compare(a.node, b.node) })
	var s Settled
	for _, d := range all {
		switch why := d.left(); {
		case d.over == OutcomeDone:
			s.Left = append(s.Left, d.node+": it was deleted")
		case d.over != "":
			s.Undone = append(s.Undone, d.node)
		case why != "":
			s.Left = append(s.Left, d.node+": "+why)
		default:
			s.Left = append(s.Left, d.node+": it is still being undone: "+d.cause)
		}
	}
	return s
}

// pause waits for Interval before the next attempt.
func (p *Reconciler) pause(ctx context.Context) error {
	timer := p.cfg.Clock.NewTimer(p.cfg.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
