package karpenter

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Prepare keeps Karpenter from replacing or removing a node that Spotter drains. It returns a
// [backend.Held] if Karpenter is deleting the node, if the user protects it, if Karpenter may have
// nominated it for pods, or if the disruption budgets of its NodePool are exhausted. Under a
// notice, nominations and budgets are not checked.
func (b *Backend) Prepare(ctx context.Context, node *corev1.Node) error {
	claim, err := b.api.claimOf(ctx, node)
	if err != nil {
		return err
	}
	switch {
	case claim == nil:
		return backend.Hold("NodeClaimMissing", "node %s has no NodeClaim, so no controller would release its machine",
			node.Name)
	case going(claim, node):
		return backend.Leave(policy.ActorKarpenter, "KarpenterActs", "Karpenter is deleting node %s", node.Name)
	}
	if protectedFor(node, protectedDrain) {
		return nil // already prepared
	}
	if _, _, ours := protectedSince(node.Annotations); !ours &&
		node.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true" {
		return backend.Hold("DoNotDisrupt", "node %s has %s, which Spotter did not set", node.Name,
			karpv1.DoNotDisruptAnnotationKey)
	}
	d, _ := drainOf(node)
	if err := b.budgets.reserve(ctx, claim, node, d.ReclaimAt != 0); err != nil {
		return err
	}
	version, err := b.writes.protectNode(ctx, d.Pool, node.Name)
	b.budgets.settled(node.Name, version, err)
	if err != nil {
		return fmt.Errorf("protecting node %s: %w", node.Name, err)
	}
	return nil
}

// going reports whether Karpenter is deleting a node or is about to.
func going(c *karpv1.NodeClaim, node *corev1.Node) bool {
	return !c.DeletionTimestamp.IsZero() || !node.DeletionTimestamp.IsZero() ||
		claimIs(c, karpv1.ConditionTypeDisruptionReason) ||
		kube.IsTainted(node, karpv1.DisruptedTaintKey)
}

// Replaced returns the progress of the NodeClaims of the tokens. A NodeClaim that does not exist or
// is being deleted has failed.
func (b *Backend) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	how := backend.ReplacementReady
	for _, token := range tokens {
		var c karpv1.NodeClaim
		there, err := b.api.there(ctx, "NodeClaim", ClaimName(token), &c)
		switch {
		case err != nil:
			return backend.ReplacementWaiting, err
		case !there, !c.DeletionTimestamp.IsZero():
			return backend.ReplacementFailed, nil
		case !claimIs(&c, karpv1.ConditionTypeInitialized):
			how = backend.ReplacementWaiting
		}
	}
	return how, nil
}

// Release deletes the NodeClaim of an empty node. Karpenter then terminates the machine and deletes
// the Node, after its own checks for pods and volumes; the drain has already made both checks.
func (b *Backend) Release(ctx context.Context, node *corev1.Node) error {
	claim, err := b.api.claimOf(ctx, node)
	if err != nil || claim == nil || !claim.DeletionTimestamp.IsZero() {
		return err
	}
	d, _ := drainOf(node)
	if err := b.writes.releaseClaim(ctx, d.Pool, claim); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	b.log.Info("NodeClaim deleted", "nodeClaim", claim.Name, "node", node.Name)
	return nil
}

// Undo removes Spotter's protection from the node and from its replacements, so that Karpenter may
// act on them again.
func (b *Backend) Undo(ctx context.Context, node *corev1.Node, tokens []string) error {
	err := b.writes.unprotectNode(ctx, b.api.client, node.Name)
	if err == nil {
		b.budgets.free(node.Name)
	}
	return errors.Join(err, b.Settle(ctx, tokens))
}

// Settle removes Spotter's protection from the replacements.
func (b *Backend) Settle(ctx context.Context, tokens []string) error {
	var errs []error
	for _, token := range tokens {
		errs = append(errs, b.writes.unprotectClaim(ctx, b.api.client, ClaimName(token)))
	}
	return errors.Join(errs...)
}
