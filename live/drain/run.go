package drain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spotter-dev/spotter/policy"
)

type queue = priorityqueue.PriorityQueue[reconcile.Request]

// Priorities of nodes in the queue.
const (
	priorityOrdinary = 0
	priorityUndo     = 50  // undoing a drain has priority over starting one
	priorityNotice   = 100 // notices have the highest priority
)

// noPlace is the delay before a node without a notice is tried again when too many are in progress.
const noPlace = 100 * time.Millisecond

func requestFor(node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}
}

// Run reconciles nodes until ctx ends.
func (p *Reconciler) Run(ctx context.Context) error {
	c, err := controller.NewTypedUnmanaged("drain", controller.Options{
		Reconciler: p, MaxConcurrentReconciles: 2*p.cfg.Parallel + urgentParallel, SkipNameValidation: ptr.To(true),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](p.cfg.Interval/4,
			p.cfg.EvictRetry),
		Logger: logr.FromSlogHandler(p.cfg.Log.Handler()),
	})
	if err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	begin := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.table.mu.Lock()
		defer p.table.mu.Unlock()
		p.table.queue = q.(queue)
		for _, d := range p.table.drains {
			p.table.enqueue(d)
		}
		return nil
	})
	if err := c.Watch(begin); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	var looking sync.WaitGroup
	looking.Go(func() { p.look(ctx) })
	err = c.Start(ctx)
	looking.Wait()
	p.table.mu.Lock()
	p.table.queue = nil
	p.table.mu.Unlock()
	return err
}

// urgentParallel is the number of workers beyond those for ordinary nodes. In a mass reclaim, at
// least this number of nodes is processed at the same time.
const urgentParallel = 32

// look searches all nodes, at once and then every LookEvery, for marks of Spotter that belong to no
// known drain. It also deletes evictions that the cache must show by now.
func (p *Reconciler) look(ctx context.Context) {
	for {
		err := p.adopt(ctx)
		wait := p.cfg.LookEvery
		if err != nil {
			wait = min(wait, p.cfg.Interval)
			p.cfg.Log.Warn("finding nodes that were being drained", "error", err)
		}
		p.evictions.trim()
		timer := p.cfg.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// adopt adopts the drains that are only stored on nodes.
func (p *Reconciler) adopt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.CallMax)
	defer cancel()
	nodes := &corev1.NodeList{}
	if err := p.api.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		if err := p.takeUp(ctx, &nodes.Items[i]); err != nil {
			return err
		}
	}
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	p.table.listed = true
	return nil
}

// takeUp adopts the drain of one node if it has an unknown one. The API server must confirm it,
// since the cache may still show the marks of a drain that has ended.
func (p *Reconciler) takeUp(ctx context.Context, n *corev1.Node) error {
	if _, ours := readState(n); !ours {
		return nil
	}
	if d, _ := p.table.find(n.Name); d != nil {
		return nil
	}
	now := &corev1.Node{}
	if err := p.api.reader.Get(ctx, client.ObjectKey{Name: n.Name}, now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s, marked, sealed := p.api.marks.read(now); marked {
		p.table.add(p.adopted(n.Name, &s, sealed))
	}
	return nil
}

// adopted returns a drain for the marks on a node, which no plan of this process has ordered. Its
// phase is read from the node when it is reconciled.
func (p *Reconciler) adopted(node string, s *state, sealed bool) *drain {
	d := p.newDrain(node)
	d.state, d.order.wanted, d.touched, d.reserved = *s, false, sealed, true
	d.giving.emptyAt, d.giving.mayBe = d.began, s.Phase == PhaseReleasing
	if d.outcome, d.reason = OutcomeUndone, "Recovered"; !sealed {
		d.reason = "ForeignMark"
	}
	if d.Since == 0 {
		d.Since = policy.TimeOf(d.began)
	}
	return d
}

// Reconcile advances the drain of one node until it must wait.
func (p *Reconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	d, urgent := p.table.find(q.Name)
	if d == nil {
		return reconcile.Result{}, nil
	}
	if !urgent {
		select {
		case p.ordinary <- struct{}{}:
			defer func() { <-p.ordinary }()
		default:
			return reconcile.Result{RequeueAfter: noPlace}, nil
		}
	}
	return p.next(d, p.round().work(ctx, d))
}

// next returns the time of the next reconciliation of a node.
func (p *Reconciler) next(d *drain, err error) (reconcile.Result, error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	switch {
	case d.over != "":
		return reconcile.Result{}, nil
	case d.order.reclaimAt != d.ReclaimAt: // a notice arrived in the meantime
		return reconcile.Result{RequeueAfter: time.Millisecond, Priority: ptr.To(priorityNotice)}, nil
	case d.urgent():
		if err != nil {
			p.cfg.Log.Warn("draining under a notice", "node", d.node, "error", err)
		}
		return reconcile.Result{RequeueAfter: min(p.cfg.Interval, urgentRetry), Priority: ptr.To(priorityNotice)}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	priority := priorityOrdinary
	if d.Phase == PhaseUndoing {
		priority = priorityUndo
	}
	return reconcile.Result{RequeueAfter: p.cfg.Interval, Priority: &priority}, nil
}
