package karpenter

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	podutil "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/spotter-dev/spotter/policy"
)

// An apiReader reads objects of Karpenter and Kubernetes. It never writes.
type apiReader struct {
	client client.Client // reads from the cache
	reader client.Reader // reads from the API server
}

// claimOf returns the NodeClaim of a node from the API server, or nil if the node has none.
func (r *apiReader) claimOf(ctx context.Context, node *corev1.Node) (*karpv1.NodeClaim, error) {
	all, err := r.cached(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(c karpv1.NodeClaim) bool {
		return c.Status.NodeName == node.Name || launched(&c) && c.Status.ProviderID == node.Spec.ProviderID
	})
	if i < 0 {
		return nil, nil
	}
	var c karpv1.NodeClaim
	if there, err := r.there(ctx, "NodeClaim", all[i].Name, &c); !there {
		return nil, err
	}
	return &c, nil
}

// there reads an object from the API server and reports whether it exists.
func (r *apiReader) there(ctx context.Context, kind, name string, o client.Object) (bool, error) {
	err := r.reader.Get(ctx, client.ObjectKey{Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	return err == nil, nil
}

// A clusterView contains Karpenter's objects on the API server, read once for all pools.
type clusterView struct {
	nodePools []unstructured.Unstructured
	claims    []karpv1.NodeClaim
}

// look reads all NodePools, and the NodeClaims that the options select, from the API server.
func (r *apiReader) look(ctx context.Context, of ...client.ListOption) (*clusterView, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(groupVersion.WithKind("NodePoolList"))
	if err := r.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	claims, err := r.claimsNow(ctx, of...)
	if err != nil {
		return nil, err
	}
	return &clusterView{list.Items, claims}, nil
}

// of returns the claims of the two NodePools that Spotter manages for a CapacityPool.
func (x *clusterView) of(pool string) []karpv1.NodeClaim {
	return slices.DeleteFunc(slices.Clone(x.claims), func(c karpv1.NodeClaim) bool {
		of := c.Labels[karpv1.NodePoolLabelKey]
		return of != NodePoolName(pool, policy.Spot) && of != NodePoolName(pool, policy.OnDemand)
	})
}

// drains returns Karpenter's Nodes in the cache by name, and the set of launch tokens that drains
// on these Nodes wait for. The Nodes are shared with the cache and must not be modified.
func (r *apiReader) drains(ctx context.Context) (nodes map[string]*corev1.Node, waited map[string]bool, err error) {
	var list corev1.NodeList
	if err := r.client.List(ctx, &list, client.HasLabels{karpv1.NodePoolLabelKey},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes, waited = map[string]*corev1.Node{}, map[string]bool{}
	for i := range list.Items {
		n := &list.Items[i]
		nodes[n.Name] = n
		d, _ := drainOf(n)
		for _, token := range d.After {
			waited[token] = true
		}
	}
	return nodes, waited, nil
}

// busy reports whether the node has active pods that a drain would have to move.
func (r *apiReader) busy(ctx context.Context, node string) (bool, error) {
	var pods corev1.PodList
	if err := r.reader.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return false, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return podutil.IsActive(&p) && !podutil.IsOwnedByDaemonSet(&p) && !podutil.IsOwnedByNode(&p)
	}), nil
}

// unused reports whether the API server has neither Nodes nor NodeClaims of a NodePool.
func (r *apiReader) unused(ctx context.Context, nodePool string) (bool, error) {
	of := client.MatchingLabels{karpv1.NodePoolLabelKey: nodePool}
	var nodes corev1.NodeList
	if err := r.reader.List(ctx, &nodes, of, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing the nodes of NodePool %s: %w", nodePool, err)
	}
	var claims karpv1.NodeClaimList
	if err := r.reader.List(ctx, &claims, of, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing the NodeClaims of NodePool %s: %w", nodePool, err)
	}
	return len(nodes.Items) == 0 && len(claims.Items) == 0, nil
}
