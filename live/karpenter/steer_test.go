package karpenter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		if len(d.Budgets) != 1 || d.Budgets[0].Nodes != "10%" || *d.Budgets[0].Schedule != "0 9 * * 1-5" || d.Budgets[0].Duration.Duration != 2*time.Minute ||
			*d.ConsolidateAfter.Duration != 2*time.Second {
			t.Errorf("%s has the disruption %+v", name, d)
		}
	}
	if got := b.heard.steers["web"]; got != (policy.SteerState{Set: true, Share: 0.5, Since: b.now()}) {
		t.Errorf("the sink was told %+v", got)
	}
}

// TestRule01ForeignNodePoolIsRead: a NodePool of the name that somebody else made is
// left alone, and said.
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
	if got := valuesOf(n, corev1.LabelInstanceTypeStable); !slices.Equal(got, []string{"a"}) || n.Labels[PoolLabel] != "" || n.Annotations[SteerAnnotation] != "" {
		t.Errorf("types %v, labels %v, annotations %v", got, n.Labels, n.Annotations)
	}
	if b.nodePool("web-spot") != nil {
		t.Error("a NodePool of ours was made beside the adopted one")
	}
	if b.nodePool("web-od") == nil {
		t.Error("no NodePool for on-demand was made")
	}
}

// TestRule01FieldConflict: what another manager has applied is left to it, the
// condition names it, and nothing is tried again before the next write is due.
func TestRule01FieldConflict(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	theirs := manifest("web-spot", capacityPool(), half{weight: 77}, fixedTemplate(b.nodePool("web-spot")), Requirements("spot", []Offer{{"theirs", "z"}}, nil))
	err := b.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("argocd"), client.ForceOwnership)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Step(11 * time.Minute)
	b.writes = nil
	err = b.steer(s, policy.Steer{Share: 0, Fallback: true})
	holds(t, err, "FieldConflict")
	if c := b.condition(ConditionFieldConflict); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `"argocd"`) || !strings.Contains(c.Message, "web-spot") {
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

// TestRule02LiveMarketsStay: a steer away from a market with a node keeps the market
// until the node is gone, and then drops it, at most once in ten minutes.
func TestRule02LiveMarketsStay(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	claim, _ := b.karpenterNode("old", "web-spot", s, market(s, 2, 1, policy.Spot))
	only := []policy.MarketID{market(s, 0, 0, policy.Spot), market(s, 0, 0, policy.OnDemand)}
	types := func() []string { return valuesOf(b.nodePool("web-spot"), corev1.LabelInstanceTypeStable) }
	tend := func(after time.Duration) {
		t.Helper()
		b.clock.Step(after)
		if err := b.Tend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.Step(11 * time.Minute)
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true, Markets: only})
	if n := b.nodePool("web-spot"); len(types()) != 3 || !isClosed(n) {
		t.Errorf("before it is narrowed it allows %v, limited to %v; want three types and nothing to be bought", types(), n.Spec.Limits)
	}
	b.restart() // who leads next ends what was begun
	tend(10 * time.Second)
	if len(types()) != 3 {
		t.Error("narrowed too early")
	}
	tend(11 * time.Second)
	if want := []string{testTypes[0].name, testTypes[2].name}; !slices.Equal(types(), want) {
		t.Errorf("it allows %v, want %v", types(), want)
	}
	n := b.nodePool("web-spot")
	if d := DriftCount(n, []karpv1.NodeClaim{*claim}); d != 0 || len(n.Spec.Limits) != 0 || n.Annotations[NarrowingAnnotation] != "" {
		t.Errorf("%d nodes would drift; limits %v, annotations %v", d, n.Spec.Limits, n.Annotations)
	}
	if c := b.condition(ConditionMarketsWidened); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "3 markets") {
		t.Errorf("condition %+v, want one that says that 3 markets besides may be bought", c)
	}
	if got := valuesOf(b.nodePool("web-od"), corev1.LabelInstanceTypeStable); len(got) != 3 {
		t.Errorf("on-demand was narrowed to %v", got)
	}
	if err := b.client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	tend(time.Minute)
	if len(types()) != 2 || len(b.nodePool("web-spot").Spec.Limits) != 0 {
		t.Errorf("changed to %v within ten minutes of the last write", types())
	}
	tend(10 * time.Minute)
	tend(21 * time.Second)
	if !slices.Equal(types(), []string{testTypes[0].name}) {
		t.Errorf("it allows %v once the node is gone", types())
	}
}

// isClosed reports whether a NodePool may buy nothing.
func isClosed(n *karpv1.NodePool) bool {
	q, limited := n.Spec.Limits[corev1.ResourceCPU]
	return limited && q.IsZero()
}

// TestRule02NeverClosedAlone: a NodePool that no other stands in for is narrowed
// without being closed, and not while pods are pending.
func TestRule02NeverClosedAlone(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1})
	b.clock.Step(11 * time.Minute)
	s.Templates = []policy.Template{{Requests: policy.Resources{CPU: 1000}}}
	s.Pods = []policy.Pod{{Phase: policy.PodPending, Node: policy.None, Nominated: policy.None}}
	x := policy.Steer{Share: 1, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot)}}
	b.mustSteer(s, x)
	n := b.nodePool("web-spot")
	if got := valuesOf(n, corev1.LabelInstanceTypeStable); len(got) != 3 || len(n.Spec.Limits) != 0 {
		t.Errorf("with a pending pod it allows %v, limits %v", got, n.Spec.Limits)
	}
	s.Pods = nil
	b.mustSteer(s, x)
	n = b.nodePool("web-spot")
	if got := valuesOf(n, corev1.LabelInstanceTypeStable); len(got) != 1 || len(n.Spec.Limits) != 0 {
		t.Errorf("it allows %v, limits %v", got, n.Spec.Limits)
	}
}

// TestRule02Paced: a second change of the markets waits, across a restart too, unless
// capacity is missing.
func TestRule02Paced(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	all := policy.Steer{Share: 1, Fallback: true}
	only := policy.Steer{Share: 1, Fallback: true, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot), market(s, 1, 0, policy.Spot)}}
	closes := func() bool { return isClosed(b.nodePool("web-spot")) } // as it does before it is narrowed
	b.mustSteer(s, all)
	b.clock.Step(time.Minute)
	holds(t, b.steer(s, only), "Paced")
	b.restart()
	holds(t, b.steer(s, only), "Paced")
	if closes() || len(b.writes) != 2 {
		t.Errorf("narrowed at once: %v", b.writes)
	}
	only.Why.Reason = policy.ReasonShortage
	b.mustSteer(s, only)
	if !closes() {
		t.Error("an emergency waits")
	}
	b.mustSteer(s, all)
	b.clock.Step(time.Minute)
	only.Why.Reason = policy.ReasonCheaper
	holds(t, b.steer(s, only), "Paced")
	b.clock.Step(10 * time.Minute)
	if err := b.Tend(t.Context(), s); err != nil { // what waited is written
		t.Fatal(err)
	}
	if !closes() {
		t.Error("what waited is not written when it is due")
	}
}

// TestRule02CutShort: a write of markets that a step cut short is due at once, and need
// not wait as one that was done or has failed.
func TestRule02CutShort(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	b.clock.Step(time.Minute)
	holds(t, b.steer(s, policy.Steer{Share: 1, Fallback: true, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot), market(s, 1, 0, policy.Spot)}}), "Paced")
	b.clock.Step(10 * time.Minute)
	ctx, cut := context.WithCancel(t.Context())
	b.fail = func(verb string, _ any) error {
		if verb == "apply" {
			cut()
		}
		return ctx.Err()
	}
	if err := b.Tend(ctx, s); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that it was cut short", err)
	}
	b.fail = nil
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !isClosed(b.nodePool("web-spot")) {
		t.Error("what was cut short waits")
	}
}

// TestRule02LimitsAreQuick: weights and limits follow a pool that grows, at once while
// pods wait and else every ten seconds; and they go ahead of markets and consolidation,
// which wait. No node drifts, and what waited is written when it is due.
func TestRule02LimitsAreQuick(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	limit := func() string { return cpuOf(half{limits: corev1.ResourceList(b.nodePool("web-spot").Spec.Limits)}) }
	tend := func(after time.Duration, want, why string) {
		t.Helper()
		b.clock.Step(after)
		s.Now = b.now()
		if err := b.Tend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := limit(); got != want {
			t.Errorf("%s: spot is limited to %s, want %s", why, got, want)
		}
	}
	tend(time.Second, "2", "half of the first node")
	s.Templates = []policy.Template{{Requests: policy.Resources{CPU: 10_000, Pods: 1}}}
	s.Pods = []policy.Pod{{Phase: policy.PodPending, Node: policy.None, Nominated: policy.None}}
	tend(time.Second, "6", "half of the 10 vCPU that pods wait for")
	s.Pods = nil
	var claims []karpv1.NodeClaim
	for i, c := range []policy.CapacityType{policy.Spot, policy.OnDemand, policy.OnDemand} {
		m := market(s, 1, 0, c)
		withNode(s, fmt.Sprint("n", i), m)
		claim, _ := b.karpenterNode(fmt.Sprint("n", i), NodePoolName("web", c), s, m)
		claims = append(claims, *claim)
	}
	tend(time.Second, "6", "changed a moment ago")
	tend(10*time.Second, "8", "half of 12 vCPU and a node more")

	s.Now = b.now()
	x := policy.Steer{Share: 0, EmptyOnly: true, Fallback: true, Markets: []policy.MarketID{market(s, 1, 0, policy.Spot)}}
	b.clock.Step(11 * time.Second)
	holds(t, b.steer(s, x), "Paced")
	n := b.nodePool("web-spot")
	if limit() != "0" || *n.Spec.Weight != 40 {
		t.Errorf("no spot is wanted, and it is limited to %s with the weight %d", limit(), *n.Spec.Weight)
	}
	if n.Spec.Disruption.ConsolidationPolicy != karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized || len(valuesOf(n, corev1.LabelInstanceTypeStable)) != 3 ||
		n.Annotations[NarrowingAnnotation] != "" {
		t.Errorf("before it is due it was changed to %+v with %v", n.Spec.Disruption, n.Spec.Template.Spec.Requirements)
	}
	if d := DriftCount(n, claims[:1]); d != 0 {
		t.Errorf("%d nodes would drift", d)
	}
	b.restart()
	tend(10*time.Minute, "0", "due")
	n = b.nodePool("web-spot")
	if n.Spec.Disruption.ConsolidationPolicy != karpv1.ConsolidationPolicyWhenEmpty {
		t.Errorf("when it is due it has %+v", n.Spec.Disruption)
	}
	tend(2*DefaultConfig().NarrowAfter, "0", "narrowed")
	if got := valuesOf(b.nodePool("web-spot"), corev1.LabelInstanceTypeStable); len(got) != 1 {
		t.Errorf("it still buys %v", got)
	}
}

// TestSteerTwice: the same again writes nothing.
func TestSteerTwice(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	x := policy.Steer{Share: 0.5, Exact: true, Fallback: true, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot), market(s, 1, 0, policy.OnDemand)}}
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

// TestRule02TemplateIsFixed: an edit of labels, taints, node class or expiry is held
// while the pool has nodes, with their number, and done once it has none.
func TestRule02TemplateIsFixed(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	claim, _ := b.karpenterNode("n1", "web-spot", s, market(s, 0, 0, policy.Spot))
	edited := capacityPool()
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(edited), edited); err != nil {
		t.Fatal(err)
	}
	edited.Spec.Template.Labels["team"] = "search"
	if err := b.client.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(11 * time.Minute)
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	n := b.nodePool("web-spot")
	if n.Spec.Template.Labels["team"] != "shop" {
		t.Error("the label of running nodes was changed")
	}
	if d := DriftCount(n, []karpv1.NodeClaim{*claim}); d != 0 {
		t.Errorf("%d nodes would drift", d)
	}
	if c := b.condition(ConditionTemplateHeld); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "would replace 1 nodes") {
		t.Errorf("condition %+v", c)
	}
	if err := b.client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(11 * time.Minute)
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := b.nodePool("web-spot").Spec.Template.Labels["team"]; got != "search" {
		t.Errorf("label %q once no node is left, want search", got)
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
	seen, err := b.look(t.Context())
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
