package asg

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// AnnotationSwap marks a node that is part of a replacement, with its role: the node that is
// removed, or the node that replaces it. AnnotationKept records that Spotter set ScaleDownDisabled
// on the node; without it, the value is the user's.
const (
	AnnotationSwap = "spotter.dev/group-swap"
	AnnotationKept = "spotter.dev/scale-down-disabled-by"

	swapSource      = "source"
	swapReplacement = "replacement"
	keptByUs        = "spotter"
)

// ScaleDownDisabled is the annotation that keeps the Cluster Autoscaler from removing a node.
// TaintToBeDeleted is the taint of a node that the Cluster Autoscaler is removing.
const (
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	TaintToBeDeleted  = "ToBeDeletedByClusterAutoscaler"
)

// A kubeAPI reads Nodes and CapacityPools, and annotates Nodes.
type kubeAPI struct {
	region string
	client client.Client // reads from a cache, and writes
	reader client.Reader // reads from the API server
}

// mark makes a node part of a replacement with the role as. It keeps the Cluster Autoscaler from
// removing the node unless the user has already set ScaleDownDisabled.
func (k *kubeAPI) mark(ctx context.Context, name, as string) error {
	return k.annotate(ctx, name, func(a map[string]string) {
		a[AnnotationSwap] = as
		if _, set := a[ScaleDownDisabled]; !set {
			a[ScaleDownDisabled], a[AnnotationKept] = "true", keptByUs
		}
	})
}

// unmark removes the role as of a node in a replacement, if the node has that role. It keeps later
// changes by other clients.
func (k *kubeAPI) unmark(ctx context.Context, name, as string) error {
	return k.annotate(permit.Undo(ctx), name, func(a map[string]string) {
		if a[AnnotationSwap] != as {
			return
		}
		if a[AnnotationKept] == keptByUs && a[ScaleDownDisabled] == "true" {
			delete(a, ScaleDownDisabled)
		}
		delete(a, AnnotationKept)
		delete(a, AnnotationSwap)
	})
}

// nodesByInstance returns the Nodes of the region by instance ID.
func (k *kubeAPI) nodesByInstance(ctx context.Context) (map[string]*corev1.Node, error) {
	var list corev1.NodeList
	if err := k.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes := make(map[string]*corev1.Node, len(list.Items))
	for i := range list.Items {
		if id, ok := instanceID(list.Items[i].Spec.ProviderID); ok && within(k.region, &list.Items[i]) {
			nodes[id] = &list.Items[i]
		}
	}
	return nodes, nil
}

// readPools returns the pools that name groups, ascending by name.
func (k *kubeAPI) readPools(ctx context.Context) ([]poolOf, error) {
	var list v1alpha1.CapacityPoolList
	if err := k.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing capacity pools: %w", err)
	}
	var pools []poolOf
	for i := range list.Items {
		p := &list.Items[i]
		if x := p.Spec.Backend.AutoScalingGroups; x != nil && len(x.DiscoveryTags) > 0 {
			pools = append(pools, poolOf{p.Name, x.DiscoveryTags,
				p.Annotations[AnnotationBounds] == "max", x.AllowGroupReplacement,
				p.Spec.Mode.Acts(), false})
		}
	}
	slices.SortFunc(pools, func(a, b poolOf) int { return cmp.Compare(a.name, b.name) })
	return pools, nil
}
