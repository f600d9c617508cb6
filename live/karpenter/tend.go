package karpenter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Tend does periodic work. For the active pools of s it writes pending steers and limits that
// follow the pools' capacity, and narrows NodePools after the last node of a market is gone. In
// every mode, and without any pool, it ends launches that got no machine in time, removes obsolete
// protections, and deletes Spotter's NodePools whose CapacityPool and nodes are gone. It may be
// called while other pools are steered.
func (b *Backend) Tend(ctx context.Context, s *policy.Snapshot) error {
	seen, err := b.api.look(ctx)
	var errs []error
	active := map[string]bool{}
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Provisioner != policy.ProvisionerKarpenter || p.Mode != policy.ModeActive {
			continue
		}
		active[p.Name] = true
		if tended := b.tendPool(ctx, s, p, seen, err); tended != nil && !paced(tended) {
			errs = append(errs, fmt.Errorf("tending pool %s: %w", p.Name, tended))
		}
	}
	switch {
	case missing(err):
		return errors.Join(errs...) // Spotter has no NodePools
	case err != nil:
		return cmp.Or(errors.Join(errs...), err)
	}
	errs = append(errs, b.expire(ctx, seen.claims), b.protections.sweep(ctx, seen.claims, active),
		b.collect(ctx, s, seen.nodePools))
	b.forget(s, seen.nodePools)
	return errors.Join(errs...)
}

// forget drops the state of CapacityPools that no longer exist and have no NodePool, and of
// NodePools that no longer exist.
func (b *Backend) forget(s *policy.Snapshot, nodePools []unstructured.Unstructured) {
	pools, names := map[string]bool{}, map[string]bool{}
	for i := range s.Pools {
		pools[s.Pools[i].Name] = true
	}
	for i := range nodePools {
		n := &nodePools[i]
		names[n.GetName()], pools[cmp.Or(n.GetLabels()[PoolLabel], n.GetAnnotations()[AdoptAnnotation])] = true, true
	}
	b.states.keepOnly(pools)
	b.budgets.keepOnly(names)
}

// tendPool writes the pending changes of a pool, unless the pool is being steered at the moment.
// seen is the state of Karpenter's objects, and err the error if they could not be read.
func (b *Backend) tendPool(ctx context.Context, s *policy.Snapshot, p *policy.Pool, seen *clusterView,
	err error) error {
	if err != nil {
		return b.states.unreadable(p.Name, err)
	}
	// Since the limits of the pool were last divided, a Spot launch was refused: on-demand needs
	// the capacity that was reserved for Spot.
	written, limited, _ := b.states.writes(p.Name)
	urgent := p.Limits != (policy.Resources{}) && p.Refused > max(written, limited)
	turn := b.states.turn(p.Name)
	if !turn.TryAcquire(1) {
		return nil
	}
	defer turn.Release(1)
	return b.nodePools.write(ctx, s, p, seen, urgent)
}

// paced reports whether err is a Held for a write that has to wait.
func paced(err error) bool {
	var h *backend.Held
	return errors.As(err, &h) && h.Reason == "Paced"
}

// expire deletes claims of Spotter that got no machine within LaunchTimeout: until then, Karpenter
// neither provisions nor disrupts in the whole cluster.
func (b *Backend) expire(ctx context.Context, claims []karpv1.NodeClaim) error {
	now := b.cfg.now()
	b.outcomes.trim(now)
	var errs []error
	for i := range claims {
		c := &claims[i]
		if c.Annotations[TokenAnnotation] == "" || launched(c) || !c.DeletionTimestamp.IsZero() ||
			now.Sub(policy.TimeOf(c.CreationTimestamp.Time)) < b.cfg.LaunchTimeout {
			continue
		}
		pool, token := b.api.poolOf(c), c.Annotations[TokenAnnotation]
		markets := b.outcomes.ended(c, now) // before the watch reports the deletion
		if err := b.writes.abandonClaim(ctx, c); client.IgnoreNotFound(err) != nil {
			b.outcomes.forget(token)
			errs = append(errs, fmt.Errorf("deleting NodeClaim %s, which has no machine after %v: %w", c.Name,
				b.cfg.LaunchTimeout, err))
			continue
		}
		b.log.Info("launch given up", "nodeClaim", c.Name, "pool", pool)
		b.outcomes.refused(pool, markets, now)
	}
	return errors.Join(errs...)
}

// collect deletes Spotter's NodePools whose CapacityPool is gone, once they have no nodes and
// claims. If Karpenter creates a claim at the same moment, the claim is orphaned and not deleted
// with its owner.
func (b *Backend) collect(ctx context.Context, s *policy.Snapshot, nodePools []unstructured.Unstructured) error {
	var left []*unstructured.Unstructured // NodePools whose pool is not in s
	for i := range nodePools {
		n := &nodePools[i]
		owner := n.GetLabels()[PoolLabel]
		ours := owner != "" && (n.GetName() == NodePoolName(owner, policy.Spot) ||
			n.GetName() == NodePoolName(owner, policy.OnDemand))
		seen := slices.ContainsFunc(s.Pools, func(p policy.Pool) bool { return p.Name == owner })
		if ours && !seen && n.GetDeletionTimestamp().IsZero() {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return nil
	}
	var all v1alpha1.CapacityPoolList
	if err := b.api.reader.List(ctx, &all); err != nil {
		if apierrors.IsNotFound(err) || missing(err) {
			return nil // Spotter's CRDs are gone: keep the NodePools
		}
		return fmt.Errorf("listing CapacityPools: %w", err)
	}
	var errs []error
	for _, n := range left {
		owner := n.GetLabels()[PoolLabel]
		if slices.ContainsFunc(all.Items, func(p v1alpha1.CapacityPool) bool { return p.Name == owner }) {
			continue
		}
		if empty, err := b.api.unused(ctx, n.GetName()); err != nil || !empty {
			errs = append(errs, err)
			continue
		}
		if err := b.writes.deleteNodePool(ctx, n); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting NodePool %s: %w", n.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
