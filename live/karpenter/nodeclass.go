package karpenter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// nodeClassKinds are the kinds of node class that providers of Karpenter have.
var nodeClassKinds = []schema.GroupKind{
	{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass"},
	{Group: "karpenter.azure.com", Kind: "AKSNodeClass"},
	{Group: "karpenter.k8s.gcp", Kind: "GCENodeClass"},
	{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"},
}

// nodeClassKind returns the kind of node class to use.
func (b *Backend) nodeClassKind() (schema.GroupVersionKind, error) {
	if !b.cfg.NodeClass.Empty() {
		return b.cfg.NodeClass, nil
	}
	// A kind that is not there is asked of the API server each time: the one found
	// last is tried first.
	b.mu.Lock()
	kinds := append([]schema.GroupKind{b.classKind}, nodeClassKinds...)
	b.mu.Unlock()
	for _, k := range kinds {
		if k.Empty() {
			continue
		}
		m, err := b.client.RESTMapper().RESTMapping(k)
		if err == nil {
			b.mu.Lock()
			b.classKind = k
			b.mu.Unlock()
			return m.GroupVersionKind, nil
		}
		if !meta.IsNoMatchError(err) {
			return schema.GroupVersionKind{}, err
		}
	}
	return schema.GroupVersionKind{}, backend.Hold("NodeClassMissing", "the API server knows no kind of node class of Karpenter")
}

// nodeClass returns the node class of a pool: the one named, or the first by name of
// those that its selector chooses.
func (b *Backend) nodeClass(ctx context.Context, pool *v1alpha1.CapacityPool) (karpv1.NodeClassReference, error) {
	kind, err := b.nodeClassKind()
	if err != nil {
		return karpv1.NodeClassReference{}, err
	}
	ref := karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind}
	k := pool.Spec.Backend.Karpenter
	if k == nil {
		return ref, backend.Hold("OtherBackend", "pool %s has no Karpenter backend", pool.Name)
	}
	if ref.Name = k.NodeClassName; ref.Name != "" {
		return ref, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(k.NodeClassSelector)
	if err != nil || selector.Empty() && k.NodeClassSelector == nil {
		return ref, backend.Hold("NodeClassMissing", "pool %s names no node class, and its selector is not valid: %v", pool.Name, err)
	}
	all, err := b.nodeClasses(ctx, kind, selector)
	if err != nil {
		return ref, err
	}
	if len(all) == 0 {
		return ref, backend.Hold("NodeClassMissing", "no %s has the labels %s", kind.Kind, selector)
	}
	slices.SortFunc(all, func(x, y unstructured.Unstructured) int { return strings.Compare(x.GetName(), y.GetName()) })
	ref.Name = all[0].GetName()
	return ref, nil
}

func (b *Backend) nodeClasses(ctx context.Context, kind schema.GroupVersionKind, selector labels.Selector) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := b.reader.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// classReady returns a Held where a NodePool or its node class is not ready: a claim
// made now would be deleted by Karpenter at once.
func (b *Backend) classReady(ctx context.Context, n *karpv1.NodePool) error {
	if no, why := poolIsNot(n, "Ready"); no {
		return backend.Hold("NodePoolNotReady", "NodePool %s is not ready: %s", n.Name, why)
	}
	ref := n.Spec.Template.Spec.NodeClassRef
	kind, err := b.nodeClassKind()
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := b.reader.Get(ctx, client.ObjectKey{Name: ref.Name}, u); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return backend.Hold("NodeClassMissing", "%s %s is not there", ref.Kind, ref.Name)
		}
		return fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if x, ok := c.(object); ok && x["type"] == "Ready" && x["status"] != "True" {
			return backend.Hold("NodeClassNotReady", "%s %s is not ready: %v", ref.Kind, ref.Name, x["message"])
		}
	}
	return nil
}
