package karpenter

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/permit"
)

// All writes of this backend are in this file, each with the permit that it needs: what
// changes a pool is written on its behalf, and what is ours is taken back in every mode.

// fieldOwner is the name under which we apply and create.
const fieldOwner = client.FieldOwner("spotter")

// onBehalf returns a context for changes of a pool. Where a mark names none, the caller's
// permit holds.
func onBehalf(ctx context.Context, pool string) context.Context {
	if pool == "" {
		return ctx
	}
	return permit.Act(ctx, pool)
}

func (b *Backend) applyNodePool(ctx context.Context, pool string, u *unstructured.Unstructured) error {
	return b.ahead.Apply(onBehalf(ctx, pool), client.ApplyConfigurationFromUnstructured(u), fieldOwner)
}

// deleteNodePool deletes a NodePool of ours as it was read, and orphans what it owns.
func (b *Backend) deleteNodePool(ctx context.Context, n *unstructured.Unstructured) error {
	uid, version := n.GetUID(), n.GetResourceVersion()
	return b.ahead.Delete(permit.Undo(ctx), n, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationOrphan))
}

func (b *Backend) createClaim(ctx context.Context, pool string, c *karpv1.NodeClaim) error {
	return b.ahead.Create(onBehalf(ctx, pool), c, fieldOwner)
}

// releaseClaim gives a machine back that a drain has emptied.
func (b *Backend) releaseClaim(ctx context.Context, pool string, c *karpv1.NodeClaim) error {
	return b.client.Delete(onBehalf(ctx, pool), c, client.Preconditions{UID: &c.UID})
}

// abandonClaim takes back a launch of ours that got no machine.
func (b *Backend) abandonClaim(ctx context.Context, c *karpv1.NodeClaim) error {
	return b.ahead.Delete(permit.Undo(ctx), c, client.Preconditions{UID: &c.UID})
}

// protectNode has Karpenter leave a node alone that is drained, marks that it was we, and
// returns the resourceVersion that the Node then has.
func (b *Backend) protectNode(ctx context.Context, pool, node string) (version string, err error) {
	n := &corev1.Node{}
	n.Name = node
	err = annotate(onBehalf(ctx, pool), b.client, n, map[string]any{karpv1.DoNotDisruptAnnotationKey: "true", ProtectedAnnotation: b.protection(protectedDrain)})
	return n.ResourceVersion, err
}

// unprotect removes the protection of o, which is as it was last read; one that is not
// ours stays.
func unprotect(ctx context.Context, w client.Writer, o client.Object) error {
	if _, _, ours := protectedSince(o.GetAnnotations()); !ours {
		return nil
	}
	err := annotate(permit.Undo(ctx), w, o, map[string]any{karpv1.DoNotDisruptAnnotationKey: nil, ProtectedAnnotation: nil})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the protection of %s: %w", o.GetName(), err)
	}
	return nil
}

// annotate sets annotations of o, which then is as the API server has it, and removes
// those that are nil.
func annotate(ctx context.Context, w client.Writer, o client.Object, annotations map[string]any) error {
	patch, err := json.Marshal(object{"metadata": object{"annotations": annotations}})
	if err != nil {
		return err
	}
	return w.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), fieldOwner)
}
