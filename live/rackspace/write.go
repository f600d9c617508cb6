package rackspace

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// This file contains every write of this package: to the API of Rackspace, where [cloud.attempt]
// calls the fence right before each request, to SpotNodes and to the annotation of CapacityPools.

// createPool creates a node pool.
func (c *cloud) createPool(ctx context.Context, namespace string, k kind, p *nodePool) error {
	what := fmt.Sprintf("creating %s %s (serverClass %s)", k.object(), p.Metadata.Name, p.Spec.ServerClass)
	return c.call(ctx, what, http.MethodPost, poolPath(namespace, k, ""), p, nil)
}

// deletePool deletes a node pool and its machine. It succeeds if the pool does not exist.
func (c *cloud) deletePool(ctx context.Context, namespace string, k kind, name string) error {
	err := c.call(ctx, fmt.Sprintf("deleting %s %s", k.object(), name), http.MethodDelete, poolPath(namespace, k, name),
		nil, nil)
	if has(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// A ledger writes SpotNodes. Its writes are in the state before the next poll.
type ledger struct {
	cfg    *Config
	client client.Client
	reader client.Reader
	sink   backend.Sink
	state  *stateTable
}

// enter writes an order to the ledger. It returns the machine of the existing entry if there is
// one.
func (w *ledger) enter(ctx context.Context, o order) (*machine, error) {
	n := o.spotNode()
	err := w.record(ctx, n)
	if apierrors.IsAlreadyExists(err) {
		if err := w.reader.Get(ctx, client.ObjectKey{Name: o.name}, n); err != nil {
			return nil, fmt.Errorf("reading SpotNode %s: %w", o.name, err)
		}
		if o, err = orderOf(n); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("writing SpotNode %s: %w", o.name, err)
	}
	return w.state.remember(n, o), nil
}

// erase removes an order that was never placed from the ledger. If that fails, [Backend.Pass]
// removes it later.
func (w *ledger) erase(ctx context.Context, m *machine) {
	err := w.client.Delete(ctx, m.spot.DeepCopy())
	if err != nil && !apierrors.IsNotFound(err) {
		w.cfg.Log.Warn("an order that was not placed is still in the ledger", "spotnode", m.order.name, "error", err)
		return
	}
	w.state.mu.Lock()
	delete(w.state.machines, m.order.name)
	w.state.writes++
	w.state.erased[m.order.name] = w.state.writes
	w.state.mu.Unlock()
	w.sink.DropMachine(Name, m.order.name)
}

// patchStatus changes the status of a ledger entry at the version that was last read. A conflict
// means that another replica has changed it; the next poll then reads the state again.
func (w *ledger) patchStatus(ctx context.Context, m *machine, change func(*machine)) error {
	w.state.mu.Lock()
	before := m.spot.DeepCopy()
	change(m)
	after := before.DeepCopy()
	m.write(&after.Status)
	w.state.writes++
	m.written = w.state.writes
	w.state.mu.Unlock()
	if sameStatus(&before.Status, &after.Status) {
		return nil
	}
	err := w.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before,
		client.MergeFromWithOptimisticLock{}), owner)
	if err != nil {
		return fmt.Errorf("writing the status of SpotNode %s: %w", before.Name, err)
	}
	w.state.mu.Lock()
	after.DeepCopyInto(&m.spot)
	w.state.mu.Unlock()
	return nil
}

// record creates a ledger entry.
func (w *ledger) record(ctx context.Context, n *v1alpha1.SpotNode) error {
	return w.client.Create(ctx, n, owner)
}

// annotate stores a steer on a CapacityPool.
func (b *Backend) annotate(ctx context.Context, p *v1alpha1.CapacityPool, steer string) error {
	before := p.DeepCopy()
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[steerAnnotation] = steer
	return b.client.Patch(ctx, p, client.MergeFrom(before), owner)
}

// earlier returns the state of a token in the ledger: the markets that refused it, and its order in
// progress, or nil.
func (w *ledger) earlier(ctx context.Context, pool, token string) (tried map[string]bool, going *machine, err error) {
	var all v1alpha1.SpotNodeList
	if err := w.reader.List(ctx, &all, client.MatchingLabels{tokenLabel: hashed(token)}); err != nil {
		return nil, nil, fmt.Errorf("reading the ledger: %w", err)
	}
	tried = map[string]bool{}
	for i := range all.Items {
		n := &all.Items[i]
		if n.Spec.Token != token || n.Spec.Pool != pool {
			continue
		}
		o, err := orderOf(n)
		if err != nil {
			return nil, nil, err
		}
		m := w.state.remember(n, o)
		if m.failed != 0 {
			tried[o.market] = true
		} else {
			going = m
		}
	}
	return tried, going, nil
}
