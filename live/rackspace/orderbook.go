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

// An orderBook looks up and withdraws orders in the accounts in which they were placed.
type orderBook struct {
	cfg      *Config
	client   client.Client
	accounts *accountTable
	state    *stateTable
}

// withdraw deletes the node pool of an order.
func (o *orderBook) withdraw(ctx context.Context, m *machine) error {
	k, a, err := o.accountOf(ctx, m)
	if err != nil {
		return err
	}
	return o.accounts.failed(k, a.cloud.deletePool(ctx, a.namespace, kindOf(m.order.capacity), m.order.nodePool))
}

// accountOf opens the account in which an order was placed: the account of its CapacityPool, or, if
// the pool was deleted, the account that it named last.
func (o *orderBook) accountOf(ctx context.Context, m *machine) (accountKey, session, error) {
	var k accountKey
	var pool v1alpha1.CapacityPool
	switch err := o.client.Get(ctx, client.ObjectKey{Name: m.order.pool}, &pool); {
	case err == nil && pool.Spec.Backend.Rackspace != nil:
		k = o.cfg.keyOf(&pool)
	case apierrors.IsNotFound(err):
		o.state.mu.Lock()
		k = o.state.pool(m.order.pool).account
		o.state.mu.Unlock()
	case err != nil:
		return k, session{}, fmt.Errorf("reading the CapacityPool of SpotNode %s: %w", m.order.name, err)
	}
	if k.cloudspace != m.order.cloudspace {
		return k, session{},
			backend.Hold("CloudspaceChanged",
				"SpotNode %s was ordered for cloudspace %s, which CapacityPool %s no longer names.", m.order.name, m.order.cloudspace, m.order.pool)
	}
	a, err := o.accounts.open(ctx, k)
	return k, a, err
}

// there reports whether the API has the node pool of an order.
func (o *orderBook) there(ctx context.Context, m *machine) (bool, error) {
	k, a, err := o.accountOf(ctx, m)
	if err != nil {
		return false, err
	}
	_, err = a.cloud.pool(ctx, a.namespace, kindOf(m.order.capacity), m.order.nodePool)
	if has(err, http.StatusNotFound) {
		return false, nil
	}
	return err == nil, o.accounts.failed(k, err)
}
