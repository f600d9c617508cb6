package karpenter

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// NodeClaims are read as the API server has them, however far the watches are behind,
// and what they know in the right version is not read again.
func TestClaimsNowIsNotLate(t *testing.T) {
	b := newBench(t)
	made := func(name, nodePool string) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.NodePoolLabelKey: nodePool}},
			Spec: karpv1.NodeClaimSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: kwokClass.Group, Kind: kwokClass.Kind, Name: "default"},
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: karpv1.CapacityTypeLabelKey, Operator: "In",
					Values: []string{"spot"}}},
			},
		}
		if err := b.client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	same, changed, gone := made("same", "web-spot"), made("changed", "web-od"), made("gone", "web-spot")
	seen := &staleCache{Client: b.client}
	for _, c := range []*karpv1.NodeClaim{same, changed, gone} {
		seen.claims = append(seen.claims, *c.DeepCopy())
	}
	b.Backend.api.client = seen
	changed.Annotations = map[string]string{TokenAnnotation: "new"}
	if err := b.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	made("unseen", "web-spot")
	made("other", "shop-spot")
	for i := range fetchMax {
		seen.claims = append(seen.claims, *made(fmt.Sprintf("seen-%d", i), "web-od"))
	}

	gets := []string{}
	b.fail = func(verb string, o any) error {
		if c, ok := o.(*karpv1.NodeClaimList); ok {
			return fmt.Errorf("all NodeClaims are read whole: %s %T", verb, c)
		}
		if verb == "get" {
			gets = append(gets, verb)
		}
		return nil
	}
	claims, err := b.api.claimsNow(t.Context(), claimsOf("web"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for i := range claims {
		found[claims[i].Name] = claims[i].Annotations[TokenAnnotation]
	}
	_, ended := found["gone"]
	_, others := found["other"]
	_, unseen := found["unseen"]
	if len(claims) != 3+fetchMax || found["changed"] != "new" || ended || others || !unseen {
		t.Errorf("%d claims: %v", len(claims), found)
	}
	if len(gets) != 2 {
		t.Errorf("%d NodeClaims were read one by one, and two were not known as they are", len(gets))
	}

	b.fail = nil
	seen.claims = nil // as before the watches run
	if all, err := b.api.claimsNow(t.Context()); err != nil || len(all) != 4+fetchMax {
		t.Errorf("%d claims: %v", len(all), err)
	}
	if err := b.client.DeleteAllOf(t.Context(), &karpv1.NodeClaim{}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// A staleCache shows the NodeClaims and Nodes as they were.
type staleCache struct {
	client.Client
	claims []karpv1.NodeClaim
	nodes  []corev1.Node // nil lets them be read
}

func (c *staleCache) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	switch l := l.(type) {
	case *karpv1.NodeClaimList:
		l.Items = c.claims
		return nil
	case *corev1.NodeList:
		if c.nodes != nil {
			l.Items = c.nodes
			return nil
		}
	}
	return c.Client.List(ctx, l, opts...)
}
