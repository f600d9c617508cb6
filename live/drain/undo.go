package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spotter-dev/spotter/policy"
)

// undo takes back what was done to a node: first that which keeps pods away, then
// what the backend did, last the mark that tells a new leader of it.
func (r *round) undo(ctx context.Context, d *drain, node *corev1.Node) (Phase, error) {
	var err error
	if d.kept && d.saved != PhaseUndoing {
		s := d.state
		s.Phase = PhaseUndoing
		node, err = r.mark(ctx, d, node, PhaseUndoing, func(n *corev1.Node) {
			uncordon(n)
			s.write(n)
		})
		if err != nil {
			return d.Phase, err
		}
	}
	if r.uncordoning || r.now().Before(d.retryAt) {
		return d.Phase, nil
	}
	if d.kept || len(d.After) > 0 {
		if err := r.undoBackend(ctx, d, node); err != nil {
			d.retryAt = r.now().Add(r.p.cfg.EvictRetry)
			return d.Phase, err
		}
	}
	if d.kept {
		node, err = r.mark(ctx, d, node, "", func(n *corev1.Node) { delete(n.Annotations, AnnotationDrain) })
		if err != nil {
			return d.Phase, err
		}
	}
	r.end(d, node, d.outcome, d.reason, d.Failure)
	return "", nil
}

// undoBackend takes back what the backend did. Where the pool has gone there is
// nobody to ask.
func (r *round) undoBackend(ctx context.Context, d *drain, node *corev1.Node) error {
	giver, err := r.p.givers.Giver(d.Pool)
	if err != nil {
		r.p.cfg.Log.Warn("undone without its backend", "node", d.node, "pool", d.Pool, "error", err)
		return nil
	}
	if err := r.write(ctx, func(ctx context.Context) error { return giver.Undo(ctx, node, r.p.freed(d)) }); err != nil {
		return fmt.Errorf("undoing what its backend did: %w", err)
	}
	return nil
}

// Settled says which half-done drains were taken back, and which were left with
// the reason for each; both ascending.
type Settled struct{ Undone, Left []string }

// Recover finds what a leader before this one left and settles it: drains of
// nodes that the provider takes go on, and so does what a backend has been asked
// to take; all others are undone. It is to be called before the first step, and
// returns within Config.RecoverMax. What could not be undone by then goes on
// being undone by Run, and is told as left.
func (p *Pipeline) Recover(ctx context.Context) (Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.RecoverMax)
	defer cancel()
	for {
		err := p.adopt(ctx)
		if err == nil {
			break
		}
		if p.pause(ctx) != nil {
			return Settled{}, fmt.Errorf("looking for nodes that were being drained: %w", err)
		}
	}
	return p.settle(ctx, "the controller that drained it has ended")
}

// adopt takes over the drains that the nodes tell of.
func (p *Pipeline) adopt(ctx context.Context) error {
	nodes := &corev1.NodeList{}
	r := p.newRound()
	if err := r.call(ctx, func(ctx context.Context) error { return p.reader.List(ctx, nodes) }); err != nil {
		return err
	}
	now := p.cfg.Clock.Now()
	for i := range nodes.Items {
		n := &nodes.Items[i]
		s, ours := readState(n)
		if !ours {
			continue
		}
		d := &drain{
			node: n.Name, uid: n.UID, began: now, state: s, kept: true, saved: s.Phase, tries: map[types.UID]*try{},
			outcome: OutcomeUndone, reason: "Recovered", emptyAt: now, askedAt: now,
		}
		if d.Since == 0 {
			d.Since = policy.TimeOf(now)
		}
		d.resume(now, p.cfg.LateMax)
		p.add(d)
	}
	return nil
}

// resume chooses the phase in which an adopted drain goes on.
func (d *drain) resume(now time.Time, lateMax time.Duration) {
	switch {
	case d.Phase == PhaseReleasing:
		d.mayBe = true
	case d.Phase == PhaseUndoing:
		d.saved = "" // the marks are compared once more
	case !d.urgent() || now.Sub(d.ReclaimAt.Std()) > lateMax:
		d.saved = PhaseEvicting
		d.Phase = d.fail("Recovered", "the controller that drained it has ended")
		d.saved = ""
	case d.Phase != PhaseEvicting:
		d.Phase, d.saved = PhasePreparing, PhasePreparing
	}
}

// Halt takes back what can be taken back and has nothing started until Resume.
// Nodes that the provider takes are left cordoned, with their pods; so are nodes
// that a backend has been given, or may have been.
func (p *Pipeline) Halt(ctx context.Context) (Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.RecoverMax)
	defer cancel()
	p.mu.Lock()
	p.halted = true
	p.mu.Unlock()
	return p.settle(ctx, "the kill switch is on")
}

// Resume lets drains be started again and goes on with those that Halt left.
func (p *Pipeline) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = false
	p.signal()
}

// Shutdown finishes what is all but done and undoes the rest, since the process
// ends. It evicts no pod but from nodes that the provider takes. What it leaves is for
// the next leader.
func (p *Pipeline) Shutdown(ctx context.Context) (Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.RecoverMax)
	defer cancel()
	last := p.newRound()
	last.ending = true
	err := p.pass(ctx, last, func(*drain) bool { return true })
	p.mu.Lock()
	p.halted = true
	p.mu.Unlock()
	settled, undone := p.settle(ctx, "the controller ends")
	return settled, errors.Join(err, undone)
}

// settle undoes all drains that can be undone, and waits for the end of it. All nodes
// take pods again before anything else is taken back of one: should the time run out,
// that is what must not be left.
func (p *Pipeline) settle(ctx context.Context, why string) (Settled, error) {
	start := p.cfg.Clock.Now()
	all := p.orderUndo(why, false)
	first := p.newRound()
	first.uncordoning = true
	_ = p.pass(ctx, first, func(d *drain) bool { return d.Phase == PhaseUndoing }) // what fails is tried again
	for {
		err := p.pass(ctx, p.newRound(), func(d *drain) bool { return d.Phase == PhaseUndoing || d.Phase == PhaseReleasing })
		if p.cfg.Clock.Since(start) > p.cfg.RecoverMax/2 {
			p.orderUndo(why, true)
		}
		if p.settled() || p.pause(ctx) != nil {
			return p.account(all), err
		}
	}
}

// orderUndo orders all drains to be undone but those that must be left, and
// returns all. A node that was given back perhaps is undone only by force.
func (p *Pipeline) orderUndo(why string, force bool) []*drain {
	p.passing.Lock()
	defer p.passing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*drain
	for _, d := range p.drains {
		all = append(all, d)
		if p.leaves(d) == "" && (force || d.Phase != PhaseReleasing || !d.mayBe) {
			d.order.undo = why
		}
	}
	slices.SortFunc(all, func(a, b *drain) int { return cmp.Compare(a.node, b.node) })
	return all
}

// leaves returns why d is not undone; empty if it is. The caller holds passing.
func (p *Pipeline) leaves(d *drain) string {
	switch {
	case d.Phase == PhaseReleased:
		return "it is empty and was given back"
	case d.Phase == PhaseUndoing:
		return ""
	case d.order.reclaimAt != 0 && d.kept:
		return "the provider takes it"
	case d.Phase == PhaseReleasing && d.mayBe && p.halted:
		return "it is empty and was perhaps given back"
	}
	return ""
}

// settled reports whether nothing is left to be undone.
func (p *Pipeline) settled() bool {
	p.passing.Lock()
	defer p.passing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.drains {
		if p.leaves(d) == "" {
			return false
		}
	}
	return true
}

// account tells what became of the drains, which are ascending by node.
func (p *Pipeline) account(all []*drain) Settled {
	p.passing.Lock()
	defer p.passing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	var s Settled
	for _, d := range all {
		switch why := p.leaves(d); {
		case d.over == OutcomeDone:
			s.Left = append(s.Left, d.node+": it is gone")
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

// pause waits a little before the next try.
func (p *Pipeline) pause(ctx context.Context) error {
	timer := p.cfg.Clock.NewTimer(p.cfg.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
