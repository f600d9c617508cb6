package karpenter

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// TestAutoMode: where the API server has node classes of EKS Auto Mode and no others, NodePools
// and claims refer to one of these, once it is ready.
func TestAutoMode(t *testing.T) {
	class := schema.GroupVersionKind{Group: "eks.amazonaws.com", Version: "v1", Kind: "NodeClass"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{class.GroupVersion()})
	mapper.Add(class, meta.RESTScopeRoot)
	u := nodeClass(false)
	u.SetGroupVersionKind(class)
	c := kubefake.NewClientBuilder().WithScheme(testScheme(t)).WithRESTMapper(mapper).WithObjects(u).Build()
	cfg := DefaultConfig()
	api := &apiReader{client: c, reader: c}
	f := &classFinder{cfg: &cfg, api: api}
	ref, err := f.of(t.Context(), capacityPool(), 0)
	if want := (karpv1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}); err != nil || ref != want {
		t.Fatalf("the class is %+v, %v, want %+v", ref, err, want)
	}
	holds(t, f.ready(t.Context(), "default", 0), "NodeClassNotReady")
	conditions := []any{object{"type": "Ready", "status": "True"}}
	if err := unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if err := f.ready(t.Context(), "default", 0); err != nil {
		t.Errorf("a class that is ready: %v", err)
	}
	if err := valid(t.Context(), capacityPool(), ref); err != nil {
		t.Errorf("a NodePool with it: %v", err)
	}
	pool, err := typed(manifest("web-spot", capacityPool(), target{}, template(capacityPool(), ref),
		Requirements("spot", []Offer{{"m7g.large", "us-east-1a"}}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := newSnapshot(0)
	x := &launcher{cfg: &cfg, api: api, writes: &writer{cfg: &cfg, api: api}}
	claim := x.claim(s, &policy.Launch{Token: "t", Replaces: policy.None}, pool, "n", []policy.MarketID{market(s, 0, 0, policy.Spot)})
	if got := claim.Labels["eks.amazonaws.com/nodeclass"]; got != "default" || *claim.Spec.NodeClassRef != ref {
		t.Errorf("the claim has the class %q and refers to %+v", got, claim.Spec.NodeClassRef)
	}
	if got := (&claimConverter{cfg: &cfg, api: api}).provider(claim); got != "aws" {
		t.Errorf("a claim without a machine is sold by %q", got)
	}
}

// TestRegionOfZone: a claim that states no region is in that of its zone, whichever regions are
// configured and in whichever order.
func TestRegionOfZone(t *testing.T) {
	for _, x := range []struct {
		regions          []string
		class, zone, was string
	}{
		{[]string{"us-east-1", "eu-west-1"}, "karpenter.k8s.aws", "eu-west-1b", "eu-west-1"},
		{[]string{"us-east-1", "eu-west-1"}, "karpenter.k8s.aws", "us-east-1a", "us-east-1"},
		{[]string{"us-east-1", "us-west-2"}, "karpenter.k8s.aws", "us-west-2-lax-1a", "us-west-2"},
		{[]string{"us-east-1"}, "karpenter.k8s.aws", "eu-west-1b", "eu-west-1"},
		{nil, "karpenter.k8s.aws", "eu-west-1b", "eu-west-1"},
		{nil, "karpenter.k8s.gcp", "europe-west1-b", "europe-west1"},
		{[]string{"here"}, "karpenter.kwok.sh", "a", "here"},
		{[]string{"here", "there"}, "karpenter.kwok.sh", "a", ""},
	} {
		cfg := DefaultConfig()
		cfg.Regions = x.regions
		c := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: x.class}}}
		if got := (&claimConverter{cfg: &cfg}).region(c, x.zone); got != x.was {
			t.Errorf("with the regions %v zone %s is in %q, want %q", x.regions, x.zone, got, x.was)
		}
	}
}

// TestDeletedPoolIsForgotten: no state is kept for pools that no longer exist and have no NodePool,
// unless their NodePools are being written at this moment.
func TestDeletedPoolIsForgotten(t *testing.T) {
	b := &Backend{states: newStateTable(), budgets: &budgetTable{inherited: map[string]bool{"gone-od": true, "left-spot": true}}}
	for _, name := range []string{"here", "left", "adopting", "gone", "written"} {
		b.states.readable(name)
	}
	if !b.states.turn("written").TryAcquire(1) {
		t.Fatal("the turn is taken")
	}
	left, adopted := unstructured.Unstructured{Object: object{}}, unstructured.Unstructured{Object: object{}}
	left.SetName("left-spot")
	left.SetLabels(map[string]string{PoolLabel: "left"})
	adopted.SetAnnotations(map[string]string{AdoptAnnotation: "adopting"})
	b.forget(&policy.Snapshot{Pools: []policy.Pool{{Name: "here"}}}, []unstructured.Unstructured{left, adopted})
	got := slices.Sorted(maps.Keys(b.states.pools))
	if want := []string{"adopting", "here", "left", "written"}; !slices.Equal(got, want) {
		t.Errorf("kept are %v, want %v", got, want)
	}
	if len(b.budgets.inherited) != 1 || !b.budgets.inherited["left-spot"] {
		t.Errorf("NodePools that were read: %v", b.budgets.inherited)
	}
}
