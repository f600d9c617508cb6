package karpenter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
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
// those that its selector chose at most age ago.
func (b *Backend) nodeClass(ctx context.Context, pool *v1alpha1.CapacityPool, age time.Duration) (karpv1.NodeClassReference, error) {
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
	all, err := b.nodeClasses(ctx, kind, age)
	if err != nil {
		return ref, err
	}
	for i := range all { // ascending by name
		if selector.Matches(labels.Set(all[i].GetLabels())) {
			ref.Name = all[i].GetName()
			return ref, nil
		}
	}
	return ref, backend.Hold("NodeClassMissing", "no %s has the labels %s", kind.Kind, selector)
}

// A classList is the node classes by name, as they were at a time.
type classList struct {
	at    policy.Time
	items []unstructured.Unstructured
}

// nodeClasses returns the node classes, ascending by name, as they were at most age ago.
// They are few.
func (b *Backend) nodeClasses(ctx context.Context, kind schema.GroupVersionKind, age time.Duration) ([]unstructured.Unstructured, error) {
	b.mu.Lock()
	known := b.classes
	b.mu.Unlock()
	if known.at != 0 && b.now().Sub(known.at) < age {
		return known.items, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := b.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	slices.SortFunc(list.Items, func(x, y unstructured.Unstructured) int { return strings.Compare(x.GetName(), y.GetName()) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.classes = classList{b.now(), list.Items}
	return list.Items, nil
}

// classReady returns a Held where the node class of a NodePool is not there or not ready,
// as it was at most age ago: a claim made then is deleted by Karpenter at once.
func (b *Backend) classReady(ctx context.Context, name string, age time.Duration) error {
	kind, err := b.nodeClassKind()
	if err != nil {
		return err
	}
	all, err := b.nodeClasses(ctx, kind, age)
	if err != nil {
		return err
	}
	u := find(all, name)
	if u == nil {
		return backend.Hold("NodeClassMissing", "%s %s is not there", kind.Kind, name)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if x, ok := c.(object); ok && x["type"] == "Ready" && x["status"] != "True" {
			return backend.Hold("NodeClassNotReady", "%s %s is not ready: %v", kind.Kind, name, x["message"])
		}
	}
	return nil
}
