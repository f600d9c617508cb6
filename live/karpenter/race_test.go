package karpenter

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
)

// TestRule05BudgetRace: of eight drains that begin at the same time a budget of one node
// lets one through, however long their writes take and however late the watch shows them.
func TestRule05BudgetRace(t *testing.T) {
	b, _, nodes := giveBench(t, 8)
	n := b.nodePool("web-spot")
	n.Spec.Disruption.Budgets[0].Nodes = "1"
	if err := b.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for _, x := range nodes {
		again(b, x)
	}
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
