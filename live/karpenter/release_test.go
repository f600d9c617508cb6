package karpenter

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// giveBench has nodes of the pool that are an hour old.
func giveBench(t *testing.T, nodes int) (*bench, []*karpv1.NodeClaim, []*corev1.Node) {
	t.Helper()
	b, s := launchBench(t)
	var claims []*karpv1.NodeClaim
	var all []*corev1.Node
	for i := range nodes {
		c, n := b.karpenterNode(fmt.Sprint("n", i), "web-spot", s, market(s, 0, 0, policy.Spot))
		claims, all = append(claims, c), append(all, n)
	}
	b.clock.Step(time.Hour)
	return b, claims, all
}

// TestRule05Prepare: the old node is protected, as ours, and Undo takes it back. What
// the user protects stays as it is.
func TestRule05Prepare(t *testing.T) {
	b, _, nodes := giveBench(t, 1)
	for range 2 {
		if err := b.Prepare(t.Context(), again(b, nodes[0])); err != nil {
			t.Fatal(err)
		}
	}
	n := again(b, nodes[0])
	why, at, ours := protectedSince(n.Annotations)
	if n.Annotations[karpv1.DoNotDisruptAnnotationKey] != "true" || why != protectedDrain || !ours || b.now().Sub(at) > time.Second {
		t.Errorf("annotations %v", n.Annotations)
	}
	if len(b.writes) != 1 {
		t.Errorf("writes %v, want one", b.writes)
	}
	if err := b.Undo(t.Context(), n, nil); err != nil {
		t.Fatal(err)
	}
	if n = again(b, nodes[0]); n.Annotations[karpv1.DoNotDisruptAnnotationKey] != "" || n.Annotations[ProtectedAnnotation] != "" {
		t.Errorf("annotations %v after Undo", n.Annotations)
	}
	before := n.DeepCopy()
	n.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
	if err := b.client.Patch(t.Context(), n, client.MergeFrom(before)); err != nil { // others write to nodes, too
		t.Fatal(err)
	}
	holds(t, b.Prepare(t.Context(), n), "DoNotDisrupt")
	if err := b.Undo(t.Context(), n, nil); err != nil {
		t.Fatal(err)
	}
	if again(b, n).Annotations[karpv1.DoNotDisruptAnnotationKey] != "true" {
		t.Error("the user's own protection was removed")
	}
}

// TestRule05KarpentersNodes: a node that Karpenter ends is left to it.
func TestRule05KarpentersNodes(t *testing.T) {
	b, claims, nodes := giveBench(t, 3)
	b.setCondition(claims[0], karpv1.ConditionTypeDisruptionReason, "True")
	claims[1].Finalizers = []string{karpv1.TerminationFinalizer}
	again(b, claims[1])
	claims[1].Finalizers = []string{karpv1.TerminationFinalizer}
	if err := b.client.Update(t.Context(), claims[1]); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Delete(t.Context(), claims[1]); err != nil {
		t.Fatal(err)
	}
	nodes[2] = again(b, nodes[2])
	nodes[2].Spec.Taints = append(nodes[2].Spec.Taints, karpv1.DisruptedNoScheduleTaint)
	for _, n := range nodes {
		b.writes = nil
		holds(t, b.Prepare(t.Context(), n), "KarpenterActs")
		if len(b.writes) != 0 {
			t.Errorf("written: %v", b.writes)
		}
	}
	stray := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stray"}}
	holds(t, b.Prepare(t.Context(), stray), "NodeClaimMissing")
}

// TestRule05Budget: 10% of 11 nodes is 2, rounded up; a node that is not ready, and one that
// Spotter drains, count against it. After an Undo the budget is free again. Under a notice the
// budget holds nothing.
func TestRule05Budget(t *testing.T) {
	b, _, nodes := giveBench(t, 11)
	b.ready(nodes[10], false)
	if err := b.Prepare(t.Context(), again(b, nodes[0])); err != nil {
		t.Fatal(err)
	}
	holds(t, b.Prepare(t.Context(), again(b, nodes[1])), "DisruptionBudget")
	if err := b.Prepare(t.Context(), again(b, nodes[0])); err != nil {
		t.Errorf("the same node again: %v", err)
	}
	b.restart()
	holds(t, b.Prepare(t.Context(), again(b, nodes[1])), "DisruptionBudget")
	noticed := again(b, nodes[2])
	noticed.Annotations = map[string]string{drain.AnnotationDrain: `{"phase":"preparing","reclaimAt":1}`}
	if err := b.Prepare(t.Context(), noticed); err != nil {
		t.Errorf("under a notice: %v", err)
	}
	for _, i := range []int{0, 2} {
		if err := b.Undo(t.Context(), again(b, nodes[i]), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Prepare(t.Context(), again(b, nodes[1])); err != nil {
		t.Errorf("after the Undo: %v", err)
	}
}

// TestRule05BudgetSchedule: a budget holds in its hours, in UTC, and for its reasons.
func TestRule05BudgetSchedule(t *testing.T) {
	b, _, nodes := giveBench(t, 3)
	n := b.nodePool("web-spot")
	at := b.clock.Now().UTC()
	schedule := fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())
	night := &metav1.Duration{Duration: time.Hour}
	n.Spec.Disruption.Budgets = []karpv1.Budget{
		{Nodes: "0", Schedule: &schedule, Duration: night, Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonUnderutilized}},
		{Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted}},
		{Nodes: "1"},
	}
	if err := b.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	b.clock.Step(time.Minute)
	holds(t, b.Prepare(t.Context(), again(b, nodes[0])), "DisruptionBudget")
	b.clock.Step(time.Hour)
	if err := b.Prepare(t.Context(), again(b, nodes[0])); err != nil {
		t.Errorf("after its hours: %v", err)
	}
}

// TestRule18Nominated: a node younger than consolidateAfter and 30 s may have been
// promised to pods.
func TestRule18Nominated(t *testing.T) {
	b, s := launchBench(t)
	n := b.nodePool("web-spot")
	n.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("60s")
	if err := b.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	_, node := b.karpenterNode("n1", "web-spot", s, market(s, 0, 0, policy.Spot))
	until := NominatedUntil(n, node)
	if got := until.Sub(node.CreationTimestamp.Time); got != 90*time.Second {
		t.Fatalf("nominated for %v, want 90 s", got)
	}
	b.clock.SetTime(until.Add(-time.Second))
	holds(t, b.Prepare(t.Context(), node), "Nominated")
	b.clock.SetTime(until.Add(time.Second))
	if err := b.Prepare(t.Context(), node); err != nil {
		t.Error(err)
	}
}

// TestRule05Release: the claim is deleted, and not the Node. That no pod is left is the drain's to
// know.
func TestRule05Release(t *testing.T) {
	b, claims, nodes := giveBench(t, 1)
	release := func() error { return b.Release(t.Context(), nodes[0]) }
	b.writes = nil
	if err := release(); err != nil {
		t.Error(err)
	}
	if b.claim(claims[0].Name) != nil {
		t.Error("the claim is there")
	}
	if want := []string{"delete *v1.NodeClaim n0"}; !slices.Equal(b.writes, want) {
		t.Errorf("writes %v, want %v", b.writes, want)
	}
	if err := release(); err != nil {
		t.Errorf("released twice: %v", err)
	}
}

// TestRule05Replaced: ready once all are initialized; failed as soon as one is gone.
func TestRule05Replaced(t *testing.T) {
	b, s := launchBench(t)
	tokens := []string{"token-a", "token-b"}
	for _, token := range tokens {
		if err := b.Launch(t.Context(), s, spotLaunch(s, token)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want backend.Replacement) {
		t.Helper()
		if got, err := b.Replaced(t.Context(), tokens); err != nil || got != want {
			t.Errorf("replaced %v, %v, want %v", got, err, want)
		}
	}
	check(backend.ReplacementWaiting)
	b.setCondition(b.claim(ClaimName("token-a")), karpv1.ConditionTypeInitialized, "True")
	check(backend.ReplacementWaiting)
	b.setCondition(b.claim(ClaimName("token-b")), karpv1.ConditionTypeInitialized, "True")
	check(backend.ReplacementReady)
	if err := b.client.Delete(t.Context(), b.claim(ClaimName("token-b"))); err != nil {
		t.Fatal(err)
	}
	check(backend.ReplacementFailed)
}

// TestRule04ProtectionEnds: settling, undoing, and a sweep after a crash take the
// protection off the claim and off its Node.
func TestRule04ProtectionEnds(t *testing.T) {
	for _, how := range []string{"settle", "undo", "sweep"} {
		t.Run(how, func(t *testing.T) {
			b, s := launchBench(t)
			if err := b.Launch(t.Context(), s, spotLaunch(s, "token-a")); err != nil {
				t.Fatal(err)
			}
			c := b.claim(ClaimName("token-a"))
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ // as Karpenter copies it
				Name: "new", Annotations: c.Annotations, Labels: map[string]string{karpv1.NodePoolLabelKey: "web-spot"},
			}}
			if err := b.client.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			c.Status.NodeName, c.Status.ProviderID = "new", "kwok://new"
			b.status(c)
			old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
			var err error
			switch how {
			case "settle":
				err = b.Settle(t.Context(), []string{"token-a", "gone"})
			case "undo":
				err = b.Undo(t.Context(), old, []string{"token-a"})
			case "sweep":
				b.restart()
				b.clock.Step(10 * time.Minute)
				if err := b.Tend(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if again(b, node).Annotations[karpv1.DoNotDisruptAnnotationKey] != "true" {
					t.Fatal("the protection was removed too early")
				}
				b.clock.Step(11 * time.Minute)
				err = b.Tend(t.Context(), s)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []client.Object{again(b, c), again(b, node)} {
				if a := o.GetAnnotations(); a[karpv1.DoNotDisruptAnnotationKey] != "" || a[ProtectedAnnotation] != "" {
					t.Errorf("%T is still protected: %v", o, a)
				}
			}
		})
	}
}

// TestReleaserErrors: each error of the API is returned by every call, and the call succeeds
// afterwards.
func TestReleaserErrors(t *testing.T) {
	b, _, nodes := giveBench(t, 1)
	group := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	calls := []struct {
		name string
		do   func() error
	}{
		{"Prepare", func() error { return b.Prepare(t.Context(), again(b, nodes[0])) }},
		{"Undo", func() error { return b.Undo(t.Context(), nodes[0], nil) }},
		{"Release", func() error { return b.Release(t.Context(), nodes[0]) }},
	}
	verbs := map[string][]string{"Prepare": {"list", "patch"}, "Undo": {"patch"}, "Release": {"list", "delete"}}
	for _, call := range calls {
		for _, failure := range []error{
			apierrors.NewConflict(group, "x", errors.New("changed")), apierrors.NewTooManyRequests("slow down", 1),
			apierrors.NewInternalError(errors.New("etcd")), apierrors.NewTimeoutError("late", 1), apierrors.NewForbidden(group,
				"x", errors.New("no")),
		} {
			for _, verb := range verbs[call.name] {
				b.fail = func(v string, _ any) error {
					if v == verb {
						return failure
					}
					return nil
				}
				if err := call.do(); !errors.Is(err, failure) {
					t.Errorf("%s, %s answers %v: error %v", call.name, verb, failure, err)
				}
				b.fail = nil
			}
		}
		if err := call.do(); err != nil {
			t.Errorf("%s in the end: %v", call.name, err)
		}
	}
}
