package rackspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/permit"
)

// NodePoolUnknown is the type of the condition of a CapacityPool whose cloudspace has a node pool
// with Spotter's label that is not an order of Spotter.
const NodePoolUnknown = "NodePoolUnknown"

// Pass reconciles the ledger with the last state of the cloud that [Backend.Poll] observed: it
// determines the result of unfinished orders, withdraws bids that failed or were outbid so that
// they do not win later, adopts node pools that the ledger lacks, and writes the observed state. It
// removes Spotter's objects in every mode of their pool, even after the pool was deleted. It adopts
// orders only for active pools.
func (b *Backend) Pass(ctx context.Context) error {
	b.state.mu.Lock()
	names := slices.Sorted(maps.Keys(b.state.machines))
	b.state.mu.Unlock()
	ctx = permit.Undo(ctx) // its only requests to the API delete unneeded node pools
	var errs []error
	for _, name := range names {
		b.state.mu.Lock()
		m := b.state.machines[name]
		ready := m != nil && b.state.answered(m.order.pool) && (b.state.pools[m.order.pool].active || m.over() ||
			b.state.unknown(m))
		b.state.mu.Unlock()
		if !ready {
			continue
		}
		if err := b.repair.tend(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("SpotNode %s: %w", name, err))
		}
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, b.repair.adopt(ctx)...)...)
}

// A ledgerRepair makes the ledger consistent with the cloud.
type ledgerRepair struct {
	cfg    *Config
	client client.Client
	state  *stateTable
	ledger *ledger
	orders *orderBook
}

// tend does the pending work for one machine.
func (r *ledgerRepair) tend(ctx context.Context, m *machine) error {
	r.state.mu.Lock()
	now, unknown := r.cfg.now(), r.state.unknown(m)
	over, listed := m.over(), m.listed
	// A refused order is kept for repeated calls.
	done := m.ended() && (m.failed == 0 || now.Sub(m.failed) >= r.cfg.Keep)
	r.state.mu.Unlock()
	switch {
	case unknown:
		return r.resolve(ctx, m)
	case over && listed:
		if err := r.orders.withdraw(ctx, m); err != nil {
			return err
		}
	case done:
		return r.close(ctx, m)
	}
	return r.ledger.patchStatus(ctx, m, func(*machine) {})
}

// resolve determines whether the API has an order that was not listed in time. If the API finds it
// by name, the order is adopted. Otherwise it is removed, and its node pool is deleted in case it
// appears later.
func (r *ledgerRepair) resolve(ctx context.Context, m *machine) error {
	there, err := r.orders.there(ctx, m)
	if err != nil {
		return err
	}
	if there {
		r.cfg.Log.Info("an unfinished order is adopted", "spotnode", m.order.name)
		return r.ledger.patchStatus(ctx, m, func(m *machine) { m.ordered = r.cfg.now() })
	}
	if err := r.orders.withdraw(ctx, m); err != nil {
		return err
	}
	r.cfg.Log.Info("an order that was never placed is removed", "spotnode", m.order.name)
	r.ledger.erase(ctx, m)
	return nil
}

// close removes a machine from the ledger once its node pool and its Node are gone.
func (r *ledgerRepair) close(ctx context.Context, m *machine) error {
	there, err := r.orders.there(ctx, m)
	if err != nil {
		return err
	}
	if there {
		return r.orders.withdraw(ctx, m) // the list lagged
	}
	node, err := r.nodeOf(ctx, m)
	if err != nil || node != nil {
		return err
	}
	r.ledger.erase(ctx, m)
	return nil
}

// adopt restores the ledger entries of strays. A stray is adopted only after it was listed for the
// time Settle, since the list may contain a node pool that was just deleted, and only if the API
// finds it by name.
func (r *ledgerRepair) adopt(ctx context.Context) (errs []error) {
	r.state.mu.Lock()
	var ripe []*stray
	unknown := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.state.strays)) {
		x := r.state.strays[name]
		if x.last.Sub(x.since) < r.cfg.Settle {
			continue
		}
		if x.broken != nil {
			unknown[x.order.pool] = x.broken.Error()
		} else if r.state.answered(x.order.pool) && r.state.pools[x.order.pool].active {
			ripe = append(ripe, x)
		}
	}
	r.state.mu.Unlock()
	r.state.judgeStrays(unknown)
	for _, x := range ripe {
		if err := r.adoptOne(ctx, x.order); err != nil {
			errs = append(errs, fmt.Errorf("adopting node pool %s: %w", x.order.nodePool, err))
		}
	}
	return errs
}

func (r *ledgerRepair) adoptOne(ctx context.Context, o order) error {
	if there, err := r.orders.there(ctx, &machine{order: o}); err != nil || !there {
		return err
	}
	n := o.spotNode()
	if err := r.ledger.record(ctx, n); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil // the next poll reads it
		}
		return held(fmt.Errorf("writing SpotNode %s: %w", o.name, err))
	}
	r.cfg.Log.Info("a node pool missing from the ledger is adopted", "spotnode", o.name, "market", o.market)
	m := r.state.remember(n, o)
	return r.ledger.patchStatus(ctx, m, func(m *machine) { m.ordered, m.listed = r.cfg.now(), true })
}

// nodeOf reads the Node of a machine. It returns nil if the Node does not exist.
func (r *ledgerRepair) nodeOf(ctx context.Context, m *machine) (*corev1.Node, error) {
	r.state.mu.Lock()
	name := m.node
	r.state.mu.Unlock()
	if name == "" {
		return nil, nil
	}
	var n corev1.Node
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &n, nil
}
