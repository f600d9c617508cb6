package karpenter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Tend does what passes with time, for the pools of s that are active. It is to be
// called once a step, after the plan: it writes steers that had to wait and limits
// that follow what the pools hold, narrows NodePools where the last node of a market
// is gone, ends launches that got no machine in time, removes protections that nothing
// asks for any more, and deletes NodePools of ours whose CapacityPool and nodes are gone.
func (b *Backend) Tend(ctx context.Context, s *policy.Snapshot) error {
	var active []*policy.Pool
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Provisioner == policy.ProvisionerKarpenter && p.Mode == policy.ModeActive {
			active = append(active, p)
		}
	}
	if len(active) == 0 {
		return nil
	}
	var errs []error
	seen, err := b.look(ctx)
	for _, p := range active {
		tended := err
		if err == nil {
			tended = b.write(ctx, s, p, seen, b.squeezed(p))
		} else if missing(err) {
			tended = b.karpenterError(p.Name, "", err) // told in the conditions of the pool
		}
		if tended != nil && !paced(tended) {
			errs = append(errs, fmt.Errorf("tending pool %s: %w", p.Name, tended))
		}
	}
	if err != nil {
		return errors.Join(errs...)
	}
	errs = append(errs, b.expire(ctx, seen.claims), b.sweep(ctx, seen.claims), b.collect(ctx, s, seen.nodePools))
	return errors.Join(errs...)
}

// paced reports whether err says that a write has to wait.
func paced(err error) bool {
	var h *backend.Held
	return errors.As(err, &h) && h.Reason == "Paced"
}

// squeezed reports whether spot was refused to a pool with limits since they were
// last divided: on-demand then needs the room that was kept for spot.
func (b *Backend) squeezed(p *policy.Pool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.pool(p.Name)
	return p.Limits != (policy.Resources{}) && p.Refused > max(state.written, state.limited)
}

// expire deletes claims of ours that have no machine in time: until then Karpenter
// neither provisions nor disrupts anywhere.
func (b *Backend) expire(ctx context.Context, claims []karpv1.NodeClaim) error {
	now := b.now()
	b.mu.Lock()
	for token, end := range b.launches {
		if now.Sub(end.at) > launchEndsKept {
			delete(b.launches, token)
		}
	}
	b.mu.Unlock()
	var errs []error
	for i := range claims {
		c := &claims[i]
		if c.Annotations[TokenAnnotation] == "" || launched(c) || !c.DeletionTimestamp.IsZero() ||
			now.Sub(policy.TimeOf(c.CreationTimestamp.Time)) < b.cfg.LaunchTimeout {
			continue
		}
		b.mu.Lock()
		pool := b.poolOf(c)
		b.released[c.Name] = true
		b.mu.Unlock()
		uid := c.UID
		if err := b.ahead.Delete(ctx, c, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			b.mu.Lock()
			delete(b.released, c.Name)
			b.mu.Unlock()
			errs = append(errs, fmt.Errorf("deleting NodeClaim %s, which has no machine after %v: %w", c.Name, b.cfg.LaunchTimeout, err))
			continue
		}
		b.log.Info("launch given up", "nodeClaim", c.Name, "pool", pool)
		b.refuse(c, pool, now)
	}
	return errors.Join(errs...)
}

// collect deletes the NodePools of ours whose CapacityPool is gone, once no node and
// no claim of theirs is left. Should Karpenter make a claim at that very moment, it
// is orphaned and not deleted with its owner.
func (b *Backend) collect(ctx context.Context, s *policy.Snapshot, nodePools []unstructured.Unstructured) error {
	var left []*unstructured.Unstructured // of which s has no pool
	for i := range nodePools {
		n := &nodePools[i]
		owner := n.GetLabels()[PoolLabel]
		ours := owner != "" && (n.GetName() == NodePoolName(owner, policy.Spot) || n.GetName() == NodePoolName(owner, policy.OnDemand))
		seen := slices.ContainsFunc(s.Pools, func(p policy.Pool) bool { return p.Name == owner })
		if ours && !seen && n.GetDeletionTimestamp().IsZero() {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return nil
	}
	var all v1alpha1.CapacityPoolList
	if err := b.reader.List(ctx, &all); err != nil {
		if apierrors.IsNotFound(err) || missing(err) {
			return nil // our own definitions are gone: all stays as it is
		}
		return fmt.Errorf("listing CapacityPools: %w", err)
	}
	var errs []error
	for _, n := range left {
		owner := n.GetLabels()[PoolLabel]
		if slices.ContainsFunc(all.Items, func(p v1alpha1.CapacityPool) bool { return p.Name == owner }) {
			continue
		}
		if empty, err := b.unused(ctx, n.GetName()); err != nil || !empty {
			errs = append(errs, err)
			continue
		}
		uid, version := n.GetUID(), n.GetResourceVersion()
		err := b.ahead.Delete(ctx, n, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting NodePool %s: %w", n.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// unused reports whether the API server has neither a Node nor a NodeClaim of a
// NodePool.
func (b *Backend) unused(ctx context.Context, nodePool string) (bool, error) {
	of := client.MatchingLabels{karpv1.NodePoolLabelKey: nodePool}
	var nodes corev1.NodeList
	if err := b.reader.List(ctx, &nodes, of, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing the nodes of NodePool %s: %w", nodePool, err)
	}
	var claims karpv1.NodeClaimList
	if err := b.reader.List(ctx, &claims, of, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing the NodeClaims of NodePool %s: %w", nodePool, err)
	}
	return len(nodes.Items) == 0 && len(claims.Items) == 0, nil
}
