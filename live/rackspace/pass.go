package rackspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/permit"
)

// NodePoolUnknown is the type of the condition of a CapacityPool in whose
// cloudspace a node pool has our label and is none of our orders.
const NodePoolUnknown = "NodePoolUnknown"

// Pass brings the ledger and the cloud together, upon what [Backend.Poll] last saw:
// it finds out what became of orders that nobody saw through, withdraws bids that
// failed or were outbid so that they do not win later, adopts node pools that the
// ledger lost, and writes what was seen. What is ours is taken back whatever the mode of
// its pool is, also of one that was deleted; only those that are active have orders adopted.
func (b *Backend) Pass(ctx context.Context) error {
	b.mu.Lock()
	names := slices.Sorted(maps.Keys(b.machines))
	b.mu.Unlock()
	ctx = permit.Undo(ctx) // all that it asks of the API is to delete what no pool is to have
	var errs []error
	for _, name := range names {
		b.mu.Lock()
		m := b.machines[name]
		ready := m != nil && b.answered(m.order.pool) && (b.pools[m.order.pool].active || m.over() || b.unknown(m))
		b.mu.Unlock()
		if !ready {
			continue
		}
		if err := b.tend(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("SpotNode %s: %w", name, err))
		}
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, b.adopt(ctx)...)...)
}

// answeredFor is how long an answer of a cloudspace counts at least, however often it is
// polled: one that is slow has not failed.
const answeredFor = 2 * time.Minute

// answered reports whether the cloudspace of a pool was read of late; b.mu is held.
func (b *Backend) answered(pool string) bool {
	p := b.pools[pool]
	return p != nil && p.answered != 0 && b.now().Sub(p.answered) < max(4*b.cfg.Poll, answeredFor)
}

// unknown reports whether an order should have been seen and was not; b.mu is held.
func (b *Backend) unknown(m *machine) bool {
	return m.ordered == 0 && !m.over() && b.now().Sub(m.order.at) >= b.cfg.Settle
}

// tend does what one machine needs.
func (b *Backend) tend(ctx context.Context, m *machine) error {
	b.mu.Lock()
	now, unknown := b.now(), b.unknown(m)
	over, listed := m.over(), m.listed
	// A refused order is kept for calls that are made again.
	done := m.ended() && (m.failed == 0 || now.Sub(m.failed) >= b.cfg.Keep)
	b.mu.Unlock()
	switch {
	case unknown:
		return b.resolve(ctx, m)
	case over && listed:
		if err := b.withdraw(ctx, m); err != nil {
			return err
		}
	case done:
		return b.close(ctx, m)
	}
	return b.patchStatus(ctx, m, func(*machine) {})
}

// resolve finds out whether the API has an order. It was not listed for a while;
// what it knows by name is ours, and what it does not is not coming. The deletion
// makes sure of that.
func (b *Backend) resolve(ctx context.Context, m *machine) error {
	there, err := b.there(ctx, m)
	if err != nil {
		return err
	}
	if there {
		b.cfg.Log.Info("an order that was not seen through is adopted", "spotnode", m.order.name)
		return b.patchStatus(ctx, m, func(m *machine) { m.ordered = b.now() })
	}
	if err := b.withdraw(ctx, m); err != nil {
		return err
	}
	b.cfg.Log.Info("an order that was never given is removed", "spotnode", m.order.name)
	b.erase(ctx, m)
	return nil
}

// there reports whether the API has the node pool of an order.
func (b *Backend) there(ctx context.Context, m *machine) (bool, error) {
	k, a, err := b.accountOf(ctx, m)
	if err != nil {
		return false, err
	}
	_, err = a.cloud.pool(ctx, a.namespace, kindOf(m.order.capacity), m.order.nodePool)
	if has(err, http.StatusNotFound) {
		return false, nil
	}
	return err == nil, b.failed(k, err)
}

// close takes a machine of which nothing is left out of the ledger.
func (b *Backend) close(ctx context.Context, m *machine) error {
	there, err := b.there(ctx, m)
	if err != nil {
		return err
	}
	if there {
		return b.withdraw(ctx, m) // the list lagged
	}
	node, err := b.nodeOf(ctx, m)
	if err != nil || node != nil {
		return err
	}
	b.erase(ctx, m)
	return nil
}

// adopt writes the orders of strays into the ledger again. One is believed when it
// was listed for a while, since the list may still show what was just deleted, and
// the API knows it by name.
func (b *Backend) adopt(ctx context.Context) (errs []error) {
	b.mu.Lock()
	var ripe []*stray
	unknown := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(b.strays)) {
		x := b.strays[name]
		if x.last.Sub(x.since) < b.cfg.Settle {
			continue
		}
		if x.broken != nil {
			unknown[x.order.pool] = x.broken.Error()
		} else if b.answered(x.order.pool) && b.pools[x.order.pool].active {
			ripe = append(ripe, x)
		}
	}
	b.mu.Unlock()
	b.judgeStrays(unknown)
	for _, x := range ripe {
		if err := b.adoptOne(ctx, x.order); err != nil {
			errs = append(errs, fmt.Errorf("adopting node pool %s: %w", x.order.nodePool, err))
		}
	}
	return errs
}

func (b *Backend) adoptOne(ctx context.Context, o order) error {
	if there, err := b.there(ctx, &machine{order: o}); err != nil || !there {
		return err
	}
	n := o.spotNode()
	if err := b.record(ctx, n); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil // it is read with the next poll
		}
		return held(fmt.Errorf("writing SpotNode %s: %w", o.name, err))
	}
	b.cfg.Log.Info("a node pool that the ledger had lost is adopted", "spotnode", o.name, "market", o.market)
	m := b.remember(n, o)
	return b.patchStatus(ctx, m, func(m *machine) { m.ordered, m.listed = b.now(), true })
}

// judgeStrays writes the condition of pools about node pools that cannot be read.
func (b *Backend) judgeStrays(unknown map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.pools)) {
		c := metav1.Condition{Type: NodePoolUnknown, Status: metav1.ConditionFalse, Reason: "AllKnown", Message: "Every node pool with our label is one of our orders."}
		if text, bad := unknown[name]; bad {
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, "NotOurOrder", text+"; it is left as it is."
		}
		c.LastTransitionTime = metav1.NewTime(b.cfg.Clock.Now())
		meta.SetStatusCondition(&b.pools[name].conditions, c)
	}
}
