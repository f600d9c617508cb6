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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

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

// TestRule02NeverClosedAlone: a NodePool that no other can replace is narrowed without being
// closed, and not while pods are pending.
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
	holds(t, b.steer(s, policy.Steer{Share: 1, Fallback: true, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot),
		market(s, 1, 0, policy.Spot)}}), "Paced")
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
	limit := func() string { return cpuOf(target{limits: corev1.ResourceList(b.nodePool("web-spot").Spec.Limits)}) }
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
	tend(time.Second, "4", "the first node, which is 2 vCPU above half of it")
	s.Templates = []policy.Template{{Workload: policy.None, Requests: policy.Resources{CPU: 2000, Pods: 1}}}
	for i := range 6 {
		s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None})
	}
	tend(time.Second, "8", "two of three nodes of 4 vCPU, since half of 12 is as near to them as to one")
	s.Pods = nil
	var claims []karpv1.NodeClaim
	for i, c := range []policy.CapacityType{policy.Spot, policy.OnDemand, policy.OnDemand} {
		m := market(s, 1, 0, c)
		withNode(s, fmt.Sprint("n", i), m)
		claim, _ := b.karpenterNode(fmt.Sprint("n", i), NodePoolName("web", c), s, m)
		claims = append(claims, *claim)
	}
	tend(time.Second, "8", "changed a moment ago")
	tend(10*time.Second, "12", "as much as the 8 vCPU on demand and 4 more, half a node above half of 20")

	s.Now = b.now()
	x := policy.Steer{Share: 0, EmptyOnly: true, Fallback: true, Markets: []policy.MarketID{market(s, 1, 0, policy.Spot)}}
	b.clock.Step(11 * time.Second)
	holds(t, b.steer(s, x), "Paced")
	n := b.nodePool("web-spot")
	if limit() != "0" || *n.Spec.Weight != 40 {
		t.Errorf("no spot is wanted, and it is limited to %s with the weight %d", limit(), *n.Spec.Weight)
	}
	if n.Spec.Disruption.ConsolidationPolicy != karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized ||
		len(valuesOf(n, corev1.LabelInstanceTypeStable)) != 3 ||
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
	if c := b.condition(ConditionTemplateHeld); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "would replace 1 node") {
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
