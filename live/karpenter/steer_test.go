package karpenter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

func (b *bench) steer(s *policy.Snapshot, x policy.Steer) error {
	b.t.Helper()
	s.Now = b.now()
	return b.Steer(b.t.Context(), s, &x)
}

func (b *bench) mustSteer(s *policy.Snapshot, x policy.Steer) {
	b.t.Helper()
	if err := b.steer(s, x); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) condition(kind string) metav1.Condition {
	for _, c := range b.Conditions("web") {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func valuesOf(n *karpv1.NodePool, key string) []string {
	for _, r := range n.Spec.Template.Spec.Requirements {
		if r.Key == key {
			return r.Values
		}
	}
	return nil
}

// TestRule01OwnNodePools: two NodePools per pool, each of one capacity type, without
// an owner, with what the CapacityPool states.
func TestRule01OwnNodePools(t *testing.T) {
	pool := capacityPool()
	pool.Spec.Template.Taints = []corev1.Taint{{Key: "shop", Value: "only", Effect: corev1.TaintEffectNoSchedule}}
	pool.Spec.Disruption = v1alpha1.Disruption{
		Schedule: "0 9 * * 1-5", Duration: &metav1.Duration{Duration: 90 * time.Second},
		ConsolidateAfter: &metav1.Duration{Duration: 1500 * time.Millisecond}, ExpireAfter: &metav1.Duration{},
	}
	b := newBench(t, pool, nodeClass(true))
	b.mustSteer(newSnapshot(b.now()), policy.Steer{Share: 0.5, Fallback: true})
	for name, capacity := range map[string]string{"web-spot": "spot", "web-od": "on-demand"} {
		n := b.nodePool(name)
		if n == nil {
			t.Fatalf("there is no NodePool %s", name)
		}
		if got := valuesOf(n, karpv1.CapacityTypeLabelKey); !slices.Equal(got, []string{capacity}) {
			t.Errorf("%s buys %v", name, got)
		}
		if len(n.OwnerReferences) != 0 {
			t.Errorf("%s is owned by %v", name, n.OwnerReferences)
		}
		spec := n.Spec.Template.Spec
		if n.Spec.Template.Labels["team"] != "shop" || n.Spec.Template.Labels[PoolLabel] != "web" || len(spec.Taints) != 1 ||
			spec.NodeClassRef.Name != "default" || spec.ExpireAfter.Duration != nil {
			t.Errorf("%s has the template %+v with labels %v", name, spec, n.Spec.Template.Labels)
		}
		d := n.Spec.Disruption
		if len(d.Budgets) != 1 || d.Budgets[0].Nodes != "10%" || *d.Budgets[0].Schedule != "0 9 * * 1-5" ||
			d.Budgets[0].Duration.Duration != 2*time.Minute ||
			*d.ConsolidateAfter.Duration != 2*time.Second {
			t.Errorf("%s has the disruption %+v", name, d)
		}
	}
	if got := b.heard.Steers["web"]; got != (policy.SteerState{Set: true, Share: 0.5, Fallback: true, Since: b.now()}) {
		t.Errorf("reported to the sink %+v", got)
	}
}

// TestRule01ForeignNodePoolIsRead: a NodePool of the same name that another controller or user made
// is left alone, and reported.
func TestRule01ForeignNodePoolIsRead(t *testing.T) {
	theirs := asNodePool(Requirements("spot", []Offer{{"a", "1"}}, nil))
	b := newBench(t, capacityPool(), nodeClass(true), theirs)
	holds(t, b.steer(newSnapshot(b.now()), policy.Steer{Share: 1}), "NameTaken")
	if len(b.writes) != 0 {
		t.Errorf("written: %v", b.writes)
	}
}

// TestRule01Adopted: of an adopted NodePool the weight and the limits are written,
// and nothing else.
func TestRule01Adopted(t *testing.T) {
	theirs := asNodePool(Requirements("spot", []Offer{{"a", "1"}}, nil))
	theirs.Name = "batch"
	theirs.Annotations = map[string]string{AdoptAnnotation: "web"}
	b := newBench(t, capacityPool(), nodeClass(true), theirs)
	s := newSnapshot(b.now())
	withNode(s, "n", market(s, 1, 0, policy.Spot))
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	n := b.nodePool("batch")
	limit := n.Spec.Limits["cpu"]
	if n.Spec.Weight == nil || *n.Spec.Weight != 50 || limit.String() != "4" {
		t.Errorf("weight %v, limit %v", n.Spec.Weight, limit.String())
	}
	if got := valuesOf(n, corev1.LabelInstanceTypeStable); !slices.Equal(got, []string{"a"}) ||
		n.Labels[PoolLabel] != "" || n.Annotations[SteerAnnotation] != "" {
		t.Errorf("types %v, labels %v, annotations %v", got, n.Labels, n.Annotations)
	}
	if b.nodePool("web-spot") != nil {
		t.Error("a NodePool of ours was made in addition to the adopted one")
	}
	if b.nodePool("web-od") == nil {
		t.Error("no NodePool for on-demand was made")
	}
}

// TestRule01AdoptedUndecodable: an adopted NodePool that cannot be decoded is an error, since a second
// NodePool would buy for the same pods.
func TestRule01AdoptedUndecodable(t *testing.T) {
	theirs := unstructured.Unstructured{Object: object{"spec": object{"weight": "heavy"}}}
	theirs.SetName("batch")
	theirs.SetAnnotations(map[string]string{AdoptAnnotation: "web"})
	view := &poolView{s: &policy.Snapshot{}, pool: &policy.Pool{Name: "web"}, live: []unstructured.Unstructured{theirs}}
	x, _, err := (&nodePoolSteerer{}).change(view, policy.Spot, target{})
	if x != nil || err == nil || !strings.Contains(err.Error(), "NodePool batch") {
		t.Errorf("edit %+v, %v", x, err)
	}
}

// TestRestoreAdopted: what was written of an adopted NodePool goes, so that it is as before,
// but for what another manager has set to the same.
func TestRestoreAdopted(t *testing.T) {
	theirs := asNodePool(Requirements("spot", []Offer{{"a", "1"}}, nil))
	theirs.Name = "batch"
	theirs.Annotations = map[string]string{AdoptAnnotation: "web"}
	b := newBench(t, capacityPool(), nodeClass(true), theirs)
	before := b.nodePool("batch").Spec
	s := newSnapshot(b.now())
	withNode(s, "n", market(s, 1, 0, policy.Spot))
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	if got := Written(b.nodePool("batch")); !slices.Equal(got, []string{"spec.limits", "spec.weight"}) {
		t.Errorf("written of it: %v", got)
	}
	if got := Written(b.nodePool("web-od")); len(got) != 0 {
		t.Errorf("of a NodePool of Spotter's own somebody else made %v", got)
	}
	if err := Restore(t.Context(), b.client, "batch"); err != nil {
		t.Fatal(err)
	}
	n := b.nodePool("batch")
	if got := Written(n); len(got) != 0 || !equality.Semantic.DeepEqual(n.Spec, before) {
		t.Errorf("written of it: %v, spec %+v, was %+v", got, n.Spec, before)
	}
	b.clock.Step(11 * time.Minute)
	b.mustSteer(s, policy.Steer{Share: 0.25, Fallback: true})
	also := &unstructured.Unstructured{Object: object{"spec": object{"weight": int64(*b.nodePool("batch").Spec.Weight)}}}
	also.SetGroupVersionKind(nodePoolKind)
	also.SetName("batch")
	if err := b.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(also), client.FieldOwner("argocd")); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), b.client, "batch"); err != nil {
		t.Fatal(err)
	}
	if n := b.nodePool("batch"); n.Spec.Weight == nil || len(n.Spec.Limits) != 0 {
		t.Errorf("weight %v, limits %v: want the weight, which another wants too, and no limits", n.Spec.Weight, n.Spec.Limits)
	}
}

// TestRule01FieldConflict: what another manager has applied is left to it, the
// condition names it, and nothing is tried again before the next write is due.
func TestRule01FieldConflict(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	theirs := manifest("web-spot", capacityPool(), target{weight: 77}, fixedTemplate(b.nodePool("web-spot")),
		Requirements("spot", []Offer{{"theirs", "z"}}, nil))
	err := b.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("argocd"), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Step(11 * time.Minute)
	b.writes = nil
	err = b.steer(s, policy.Steer{Share: 0, Fallback: true})
	holds(t, err, "FieldConflict")
	if c := b.condition(ConditionFieldConflict); c.Status != metav1.ConditionTrue ||
		!strings.Contains(c.Message, `"argocd"`) || !strings.Contains(c.Message, "web-spot") {
		t.Errorf("condition %+v", c)
	}
	if n := b.nodePool("web-spot"); *n.Spec.Weight != 77 || !slices.Equal(valuesOf(n, corev1.LabelTopologyZone), []string{"z"}) {
		t.Errorf("it was written over: weight %d, zones %v", *n.Spec.Weight, valuesOf(n, corev1.LabelTopologyZone))
	}
	tried := len(b.writes)
	b.clock.Step(time.Minute)
	holds(t, b.steer(s, policy.Steer{Share: 0, Fallback: true}), "Paced")
	if len(b.writes) != tried {
		t.Errorf("tried again at once: %v", b.writes[tried:])
	}
}

// TestSteerTwice: the same again writes nothing.
func TestSteerTwice(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	x := policy.Steer{Share: 0.5, Exact: true, Fallback: true, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot),
		market(s, 1, 0, policy.OnDemand)}}
	b.mustSteer(s, x)
	b.writes = nil
	for range 3 {
		b.clock.Step(20 * time.Minute)
		b.mustSteer(s, x)
		b.restart()
	}
	if len(b.writes) != 0 {
		t.Errorf("written again: %v", b.writes)
	}
}

// TestRule03DeletingThePoolLeavesNodes: without its CapacityPool a NodePool stays
// while it has a node or a claim, and goes afterwards. One that is not ours stays.
func TestRule03DeletingThePoolLeavesNodes(t *testing.T) {
	pool := capacityPool()
	other := capacityPool()
	other.Name = "other"
	theirs := asNodePool(Requirements("spot", []Offer{{"a", "1"}}, nil))
	theirs.Name = "theirs"
	theirs.Labels = map[string]string{PoolLabel: "gone"}
	b := newBench(t, pool, other, nodeClass(true), theirs)
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	claim, node := b.karpenterNode("n1", "web-spot", s, market(s, 0, 0, policy.Spot))
	if err := b.client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Name = "other" // what is left to tend
	tend := func() {
		t.Helper()
		b.clock.Step(11 * time.Minute)
		if err := b.Tend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	tend()
	if b.nodePool("web-spot") == nil {
		t.Fatal("the NodePool was deleted while it has a node")
	}
	b.gone("web-od")
	if err := b.client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	tend()
	if b.nodePool("web-spot") == nil {
		t.Fatal("the NodePool was deleted while its Node is there")
	}
	if err := b.client.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	tend()
	b.gone("web-spot")
	if b.nodePool("theirs") == nil {
		t.Error("a NodePool of somebody else was deleted")
	}
}

// TestRule03OurDefinitionsGone: when the definition of CapacityPool itself is gone,
// nothing is deleted.
func TestRule03OurDefinitionsGone(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	b.mustSteer(newSnapshot(b.now()), policy.Steer{Share: 1, Fallback: true})
	b.fail = func(verb string, o any) error {
		if _, ok := o.(*v1alpha1.CapacityPoolList); ok {
			return apierrors.NewNotFound(schema.GroupResource{Group: "spotter.dev", Resource: "capacitypools"}, "")
		}
		return nil
	}
	seen, err := b.api.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.collect(t.Context(), &policy.Snapshot{}, seen.nodePools); err != nil {
		t.Fatal(err)
	}
	if b.nodePool("web-spot") == nil || b.nodePool("web-od") == nil {
		t.Error("NodePools were deleted")
	}
}

// TestSteerErrors: each error of the API leads to an error or a Held that can be
// tried again, and the next steer succeeds.
func TestSteerErrors(t *testing.T) {
	group := schema.GroupResource{Group: "karpenter.sh", Resource: "nodepools"}
	for _, c := range []struct {
		name, held string
		err        error
	}{
		{"409 without a cause", "", apierrors.NewConflict(group, "web-spot", errors.New("changed"))},
		{"429", "", apierrors.NewTooManyRequests("slow down", 1)},
		{"500", "", apierrors.NewInternalError(errors.New("etcd"))},
		{"timeout", "", apierrors.NewTimeoutError("late", 1)},
		{"expired token", "", apierrors.NewUnauthorized("expired")},
		{"RBAC", "", apierrors.NewForbidden(group, "web-spot", errors.New("no"))},
		{"CRD missing", "KarpenterMissing", &meta.NoKindMatchError{GroupKind: nodePoolKind.GroupKind()}},
		{"CRD deleted", "KarpenterMissing", apierrors.NewNotFound(group, "")},
	} {
		for _, verb := range []string{"list", "apply"} {
			if c.held != "" && verb == "apply" {
				continue
			}
			t.Run(c.name+" at "+verb, func(t *testing.T) {
				b := newBench(t, capacityPool(), nodeClass(true))
				b.fail = func(v string, _ any) error {
					if v == verb {
						return c.err
					}
					return nil
				}
				s := newSnapshot(b.now())
				err := b.steer(s, policy.Steer{Share: 1, Fallback: true})
				var held *backend.Held
				switch {
				case err == nil:
					t.Fatal("no error")
				case c.held == "" && (errors.As(err, &held) || !errors.Is(err, c.err)):
					t.Errorf("error %v, want one that wraps %v", err, c.err)
				case c.held != "":
					holds(t, err, c.held)
					if x := b.condition(ConditionKarpenter); x.Status != metav1.ConditionFalse || x.Reason != c.held {
						t.Errorf("condition %+v", x)
					}
				}
				b.fail = nil
				b.clock.Step(11 * time.Minute)
				b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
				if b.nodePool("web-spot") == nil || b.nodePool("web-od") == nil {
					t.Error("the next steer made no NodePools")
				}
			})
		}
	}
}

// TestNodeClass: a pool takes the node class that it names, or the first that its
// selector chooses, and is held without one.
func TestNodeClass(t *testing.T) {
	pool := capacityPool()
	pool.Spec.Backend.Karpenter = &v1alpha1.KarpenterBackend{NodeClassSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}}
	b := newBench(t, pool, nodeClass(true))
	s := newSnapshot(b.now())
	holds(t, b.steer(s, policy.Steer{Share: 1}), "NodeClassMissing")
	if c := b.condition(ConditionKarpenter); c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
	for i := 2; i > 0; i-- {
		u := nodeClass(true)
		u.SetName(fmt.Sprint("class", i))
		u.SetLabels(map[string]string{"tier": "web"})
		if err := b.client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.Step(11 * time.Minute)
	b.mustSteer(s, policy.Steer{Share: 1})
	if got := b.nodePool("web-spot").Spec.Template.Spec.NodeClassRef.Name; got != "class1" {
		t.Errorf("node class %s, want class1", got)
	}
}

// TestFreezeClosesNodePools: while a freeze is on Karpenter may remove no node of the pool,
// from the next Tend on and whatever was written shortly before; afterwards it may again.
func TestFreezeClosesNodePools(t *testing.T) {
	pool := capacityPool()
	b := newBench(t, pool, nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	budgets := func() string {
		all := ""
		for _, x := range b.nodePool("web-spot").Spec.Disruption.Budgets {
			all += " " + x.Nodes
		}
		return all
	}
	if got := budgets(); got != " 10%" {
		t.Fatalf("before the freeze: budgets%s", got)
	}
	again(b, pool)
	pool.Spec.Disruption.Freezes = []v1alpha1.Freeze{{From: metav1.NewTime(b.now().Std()), To: metav1.NewTime(b.now().Std().Add(time.Hour))}}
	if err := b.client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{time.Second, " 10% 0"}, {30 * time.Minute, " 10% 0"}, {30 * time.Minute, " 10%"}} {
		b.clock.Step(step.after)
		s.Now = b.now()
		if err := b.Tend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := budgets(); got != step.want {
			t.Errorf("%v later: budgets%s, want%s", step.after, got, step.want)
		}
	}
}
