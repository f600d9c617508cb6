package karpenter

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
)

// TestRule05BudgetRace: of eight drains that begin at the same time a budget of one node
// lets one through, however long their writes take and however late the watch shows them.
func TestRule05BudgetRace(t *testing.T) {
	b, nodes := oneAtATime(t, 8)
	b.fail = func(verb string, _ any) error {
		if verb == "patch" {
			time.Sleep(300 * time.Millisecond)
		}
		return nil
	}
	var all sync.WaitGroup
	errs := make([]error, len(nodes))
	for i, x := range nodes {
		all.Go(func() { errs[i] = b.Prepare(t.Context(), x) })
	}
	all.Wait()
	through := 0
	for i, err := range errs {
		held := new(backend.Held)
		switch {
		case err == nil:
			through++
		case !errors.As(err, &held) || held.Reason != "DisruptionBudget":
			t.Errorf("node %d: %v", i, err)
		}
	}
	if through != 1 {
		t.Errorf("%d of %d drains were let through, and the budget is one node", through, len(nodes))
	}
}

// freeze has the cache show Nodes, until thaw, as they are now.
func (b *bench) freeze() (thaw func()) {
	b.t.Helper()
	was := b.Backend.api.client
	seen := &staleCache{Client: was}
	var nodes corev1.NodeList
	var claims karpv1.NodeClaimList
	for _, l := range []client.ObjectList{&nodes, &claims} {
		if err := was.List(b.t.Context(), l); err != nil {
			b.t.Fatal(err)
		}
	}
	seen.nodes, seen.claims = nodes.Items, claims.Items
	b.Backend.api.client = seen
	return func() { b.Backend.api.client = was }
}

// oneAtATime has a budget of one node.
func oneAtATime(t *testing.T, nodes int) (*bench, []*corev1.Node) {
	t.Helper()
	b, _, all := giveBench(t, nodes)
	n := b.nodePool("web-spot")
	n.Spec.Disruption.Budgets[0].Nodes = "1"
	if err := b.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		again(b, x)
	}
	return b, all
}

// TestRule05BudgetLateCache: a place is taken for as long as the cache does not show the
// mark, also one of the leader before, and no longer.
func TestRule05BudgetLateCache(t *testing.T) {
	b, nodes := oneAtATime(t, 3)
	thaw := b.freeze()
	if err := b.Prepare(t.Context(), nodes[0]); err != nil {
		t.Fatal(err)
	}
	holds(t, b.Prepare(t.Context(), nodes[1]), "DisruptionBudget")
	late := b.Backend.api.client
	b.restart()
	b.Backend.api.client = late // of a new leader, which is late as well
	holds(t, b.Prepare(t.Context(), nodes[1]), "DisruptionBudget")
	thaw()
	// Somebody else takes the mark away: the cache shows it, so that it counts no more.
	n := again(b, nodes[0])
	before := n.DeepCopy()
	delete(n.Annotations, ProtectedAnnotation)
	if err := b.client.Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := b.Prepare(t.Context(), nodes[1]); err != nil {
		t.Errorf("with no node drained: %v", err)
	}
	if err := b.Undo(t.Context(), nodes[1], nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Prepare(t.Context(), nodes[2]); err != nil {
		t.Errorf("after the undo: %v", err)
	}
}

// TestRule05BudgetGivenBack: a write that was refused takes no place. One of which nothing
// is known, since it may have been done, keeps it until it is undone.
func TestRule05BudgetGivenBack(t *testing.T) {
	b, nodes := oneAtATime(t, 3)
	group := schema.GroupResource{Resource: "nodes"}
	answer := func(err error) {
		b.fail = func(verb string, _ any) error {
			if verb == "patch" {
				return err
			}
			return nil
		}
	}
	answer(apierrors.NewForbidden(group, "x", errors.New("no")))
	if err := b.Prepare(t.Context(), nodes[0]); err == nil {
		t.Fatal("a write that is refused succeeds")
	}
	answer(apierrors.NewTimeoutError("late", 1))
	if err := b.Prepare(t.Context(), nodes[1]); err == nil || strings.Contains(err.Error(), "DisruptionBudget") {
		t.Fatalf("after a refused write: %v", err)
	}
	b.fail = nil
	holds(t, b.Prepare(t.Context(), nodes[2]), "DisruptionBudget")
	if err := b.Undo(t.Context(), nodes[1], nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Prepare(t.Context(), nodes[2]); err != nil {
		t.Errorf("after the undo: %v", err)
	}
}
