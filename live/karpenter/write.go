package karpenter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/permit"
)

// All writes of this backend are in this file, each with the permit that it needs: changes of a
// pool are made on behalf of that pool, and Spotter's own objects may be removed in every mode.

// A writer writes Karpenter's objects and Nodes.
type writer struct {
	cfg   *Config
	api   *apiReader
	ahead client.Client // for writes that a step waits for
}

// fieldOwner is the field manager of Spotter's writes.
const fieldOwner = client.FieldOwner("spotter")

// onBehalf returns a context that permits changes of a pool. If pool is empty, because the drain
// annotation names none, it returns ctx with the caller's permit.
func onBehalf(ctx context.Context, pool string) context.Context {
	if pool == "" {
		return ctx
	}
	return permit.Act(ctx, pool)
}

func (w *writer) applyNodePool(ctx context.Context, pool string, u *unstructured.Unstructured) error {
	return w.ahead.Apply(onBehalf(ctx, pool), client.ApplyConfigurationFromUnstructured(u), fieldOwner)
}

// deleteNodePool deletes one of Spotter's NodePools, if it still has the version of n, and orphans
// its dependents.
func (w *writer) deleteNodePool(ctx context.Context, n *unstructured.Unstructured) error {
	uid, version := n.GetUID(), n.GetResourceVersion()
	return w.ahead.Delete(permit.Undo(ctx), n, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(metav1.DeletePropagationOrphan))
}

// Restore removes the fields that Spotter wrote to a NodePool of another manager: the API server
// removes the fields that have no other owner. Spotter never took over fields of another manager,
// since it applies without force.
func Restore(ctx context.Context, c client.Client, nodePool string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(nodePoolKind)
	u.SetName(nodePool)
	return c.Apply(permit.Undo(ctx), client.ApplyConfigurationFromUnstructured(u), fieldOwner)
}

func (w *writer) createClaim(ctx context.Context, pool string, c *karpv1.NodeClaim) error {
	return w.ahead.Create(onBehalf(ctx, pool), c, fieldOwner)
}

// releaseClaim releases a machine that a drain has emptied.
func (w *writer) releaseClaim(ctx context.Context, pool string, c *karpv1.NodeClaim) error {
	return w.api.client.Delete(onBehalf(ctx, pool), c, client.Preconditions{UID: &c.UID})
}

// abandonClaim deletes a claim of Spotter that got no machine.
func (w *writer) abandonClaim(ctx context.Context, c *karpv1.NodeClaim) error {
	return w.ahead.Delete(permit.Undo(ctx), c, client.Preconditions{UID: &c.UID})
}

// protectNode protects a node that is being drained from Karpenter, marks the protection as
// Spotter's, and returns the resourceVersion of the updated Node.
func (w *writer) protectNode(ctx context.Context, pool, node string) (version string, err error) {
	n := &corev1.Node{}
	n.Name = node
	err = annotate(onBehalf(ctx, pool), w.api.client, n, map[string]any{karpv1.DoNotDisruptAnnotationKey: "true",
		ProtectedAnnotation: w.protection(protectedDrain)})
	return n.ResourceVersion, err
}

// protection returns the value of [ProtectedAnnotation] for a reason and the current time.
func (w *writer) protection(why string) string {
	return why + " " + w.cfg.now().Std().Format(time.RFC3339)
}

// unprotectClaim removes Spotter's protection from a NodeClaim and then from its Node, to which
// Karpenter copied it.
func (w *writer) unprotectClaim(ctx context.Context, to client.Writer, name string) error {
	var c karpv1.NodeClaim
	if there, err := w.api.there(ctx, "NodeClaim", name, &c); !there {
		return err
	}
	node := c.Status.NodeName
	if err := unprotect(ctx, to, &c); err != nil || node == "" {
		return err
	}
	return w.unprotectNode(ctx, to, node)
}

// unprotectNode removes Spotter's protection from a Node.
func (w *writer) unprotectNode(ctx context.Context, to client.Writer, name string) error {
	var n corev1.Node
	if there, err := w.api.there(ctx, "node", name, &n); !there {
		return err
	}
	return unprotect(ctx, to, &n)
}

// unprotect removes Spotter's protection from o, which the caller has just read. A protection by
// another actor remains.
func unprotect(ctx context.Context, w client.Writer, o client.Object) error {
	if _, _, ours := protectedSince(o.GetAnnotations()); !ours {
		return nil
	}
	err := annotate(permit.Undo(ctx), w, o, map[string]any{karpv1.DoNotDisruptAnnotationKey: nil,
		ProtectedAnnotation: nil})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the protection of %s: %w", o.GetName(), err)
	}
	return nil
}

// annotate sets annotations of o and removes those whose value is nil. o is updated to the state on
// the API server.
func annotate(ctx context.Context, w client.Writer, o client.Object, annotations map[string]any) error {
	patch, err := json.Marshal(object{"metadata": object{"annotations": annotations}})
	if err != nil {
		return err
	}
	return w.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), fieldOwner)
}
