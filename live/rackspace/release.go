package rackspace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Prepare records in the ledger that the node will be removed. It returns a [backend.Held] if the
// node pool has other machines, because the API might remove any of them.
func (b *Backend) Prepare(ctx context.Context, node *corev1.Node) error {
	m, err := b.state.spotNodeOf(node.Labels, node.Name)
	if err != nil {
		return err
	}
	b.state.mu.Lock()
	over, grown, going := m.over(), m.size > 1, m.draining
	b.state.mu.Unlock()
	if grown {
		return backend.Hold("NodePoolGrown",
			"Another owner gave node pool %s more than one machine. The API cannot select the one to remove, so node %s is kept.", m.order.nodePool, node.Name)
	}
	if over || going {
		return nil
	}
	if err := b.ledger.patchStatus(ctx, m, func(m *machine) { m.draining = true }); err != nil {
		b.state.mu.Lock()
		m.draining = false // the drain does not start
		b.state.mu.Unlock()
		return held(err)
	}
	return nil
}

// Replaced returns the progress of the nodes of the tokens.
func (b *Backend) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	return backend.Together(tokens, func(token string) (backend.Replacement, error) {
		how, err := b.replaced(ctx, token)
		return how, held(err)
	})
}

// replaced returns the state of the order of a token that did not fail. Without such an order, the
// replacement has failed.
func (b *Backend) replaced(ctx context.Context, token string) (backend.Replacement, error) {
	var list v1alpha1.SpotNodeList
	if err := b.reader.List(ctx, &list, client.MatchingLabels{tokenLabel: hashed(token)}); err != nil {
		return backend.ReplacementWaiting, fmt.Errorf("reading the ledger: %w", err)
	}
	for i := range list.Items {
		n := &list.Items[i]
		o, err := orderOf(n)
		if err != nil || n.Spec.Token != token {
			continue
		}
		m := b.state.remember(n, o)
		b.state.mu.Lock()
		over, lost, name := m.over(), m.outbid != 0, m.node
		b.state.mu.Unlock()
		if over || lost {
			continue
		}
		if name == "" {
			return backend.ReplacementWaiting, nil
		}
		var node corev1.Node
		if err := b.client.Get(ctx, client.ObjectKey{Name: name}, &node); client.IgnoreNotFound(err) != nil {
			return backend.ReplacementWaiting, fmt.Errorf("reading node %s: %w", name, err)
		}
		if node.Name != "" && kube.IsPrepared(&node) {
			return backend.ReplacementReady, nil
		}
		return backend.ReplacementWaiting, nil
	}
	return backend.ReplacementFailed, nil
}

// Release deletes the node pool of a node, which has no other node. It succeeds if the pool does
// not exist.
func (b *Backend) Release(ctx context.Context, node *corev1.Node) error {
	m, err := b.state.spotNodeOf(node.Labels, node.Name)
	if err != nil {
		return err
	}
	b.state.mu.Lock()
	current, over, grown := m.node, m.over(), m.size > 1
	b.state.mu.Unlock()
	switch {
	case over:
		return nil // Pass does the rest
	case grown:
		return backend.Hold("NodePoolGrown", "Another owner gave node pool %s more than one machine.", m.order.nodePool)
	case current != "" && current != node.Name:
		b.cfg.Log.Info("the machine of a node pool was exchanged; the one to release no longer exists", "node", node.Name,
			"now", current)
		return nil
	}
	if err := b.orders.withdraw(ctx, m); err != nil {
		return held(err)
	}
	// The deletion of the pool cannot be undone. If the ledger cannot be updated, Pass corrects it
	// later.
	if err := b.ledger.patchStatus(ctx, m, func(m *machine) { m.released = true }); err != nil {
		b.cfg.Log.Warn("a node was released, and the ledger does not show it yet", "spotnode", m.order.name, "error", err)
	}
	b.sink.SetMachine(Name, b.state.snapshot(m))
	return nil
}

// Undo reverts Prepare. Replacements need nothing.
func (b *Backend) Undo(ctx context.Context, node *corev1.Node, _ []string) error {
	m, err := b.state.spotNodeOf(node.Labels, node.Name)
	if err != nil {
		return nil //nolint:nilerr // Prepare refused it too, so there is nothing to undo.
	}
	b.state.mu.Lock()
	draining := m.draining
	b.state.mu.Unlock()
	if !draining {
		return nil
	}
	return held(b.ledger.patchStatus(ctx, m, func(m *machine) { m.draining = false }))
}

// Settle does nothing: no other controller shrinks these node pools.
func (b *Backend) Settle(context.Context, []string) error { return nil }

// bidOf returns the bid of a node pool, 0 if it cannot be read.
func bidOf(p *nodePool) policy.Money {
	if p.Spec.BidPrice == nil {
		return 0
	}
	bid, _, err := p.Spec.BidPrice.money()
	if err != nil {
		return 0
	}
	return bid
}
