package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// fetchMax is the maximum number of NodeClaims that are read one by one. If the watches lack the
// present version of more than these, a single request lists all NodeClaims.
const fetchMax = 20

// claimsOf selects the NodeClaims of the two NodePools that Spotter manages for a CapacityPool.
func claimsOf(pool string) client.ListOption {
	names := []string{NodePoolName(pool, policy.Spot), NodePoolName(pool, policy.OnDemand)}
	r, err := labels.NewRequirement(karpv1.NodePoolLabelKey, selection.In, names)
	if err != nil {
		panic(fmt.Sprintf("karpenter: names of NodePools %q: %v", names, err))
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*r)}
}

// claimsNow returns the NodeClaims in the state of the API server. They may share memory with the
// cache and must not be modified. It lists the metadata of the NodeClaims, and reads an object only
// if the watches do not have its present version: NodeClaims are transferred as JSON, and reading a
// thousand of them takes longer than the rest of a step.
func (r *apiReader) claimsNow(ctx context.Context, of ...client.ListOption) ([]karpv1.NodeClaim, error) {
	var versions metav1.PartialObjectMetadataList
	versions.SetGroupVersionKind(groupVersion.WithKind("NodeClaimList"))
	if err := r.reader.List(ctx, &versions, of...); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	all, unknown, err := r.watched(ctx, versions.Items)
	if err != nil {
		return nil, err
	}
	if len(unknown) > fetchMax {
		var list karpv1.NodeClaimList
		if err := r.reader.List(ctx, &list, of...); err != nil {
			return nil, fmt.Errorf("listing NodeClaims: %w", err)
		}
		return list.Items, nil
	}
	for _, i := range unknown {
		if there, err := r.there(ctx, "NodeClaim", versions.Items[i].Name, &all[i]); err != nil {
			return nil, err
		} else if !there {
			all[i] = karpv1.NodeClaim{}
		}
	}
	return slices.DeleteFunc(all, func(c karpv1.NodeClaim) bool { return c.UID == "" }), nil
}

// watched returns the NodeClaims with the given versions, taken from the watches, and the indices
// of the versions that the watches do not have. The elements of all at these indices are empty.
func (r *apiReader) watched(ctx context.Context, versions []metav1.PartialObjectMetadata) (all []karpv1.NodeClaim,
	unknown []int, err error) {
	seen, err := r.cached(ctx)
	if err != nil {
		return nil, nil, err
	}
	byUID := make(map[types.UID]*karpv1.NodeClaim, len(seen))
	for i := range seen {
		byUID[seen[i].UID] = &seen[i]
	}
	all = make([]karpv1.NodeClaim, len(versions))
	for i := range versions {
		if c := byUID[versions[i].UID]; c != nil && c.ResourceVersion == versions[i].ResourceVersion {
			all[i] = *c
		} else {
			unknown = append(unknown, i)
		}
	}
	return all, unknown, nil
}

// cached returns the NodeClaims as the watches have them. They share memory with the cache and must
// not be modified.
func (r *apiReader) cached(ctx context.Context, of ...client.ListOption) ([]karpv1.NodeClaim, error) {
	var list karpv1.NodeClaimList
	if err := r.client.List(ctx, &list, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	return list.Items, nil
}

// nodePoolOf returns the NodePool of a claim from the cache, or nil if the cache has none.
func (r *apiReader) nodePoolOf(c *karpv1.NodeClaim) *karpv1.NodePool {
	n := &karpv1.NodePool{}
	if err := r.client.Get(context.Background(), client.ObjectKey{Name: c.Labels[karpv1.NodePoolLabelKey]},
		n); err != nil {
		return nil
	}
	return n
}

// poolOf returns the name of the CapacityPool of a claim, empty if it belongs to none.
func (r *apiReader) poolOf(c *karpv1.NodeClaim) string {
	if n := r.nodePoolOf(c); n != nil && ownerOf(n) != "" {
		return ownerOf(n)
	}
	return c.Labels[PoolLabel]
}

// ownerOf returns the name of the CapacityPool for which Spotter created the NodePool or that may
// write its weight and limits. It is empty if the NodePool has no such CapacityPool.
func ownerOf(n *karpv1.NodePool) string {
	return cmp.Or(n.Labels[PoolLabel], n.Annotations[AdoptAnnotation])
}
