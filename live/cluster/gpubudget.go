package cluster

import (
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/live/gpubudget"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A budgetTable contains the GPUBudgets by "namespace/name".
type budgetTable struct {
	faults *faultLog
	byName map[string]policy.Budget
	shown  []policy.Budget // the table shared by snapshots; nil after a change
}

// set adds or updates a GPUBudget. An invalid budget limits nothing and keeps its history.
func (t *budgetTable) set(b *v1alpha1.GPUBudget) {
	x, err := gpubudget.Read(b)
	if err != nil {
		t.faults.warn("GPUBudget "+key(b), err.Error())
	}
	t.byName[key(b)], t.shown = x, nil
}

func (t *budgetTable) drop(b *v1alpha1.GPUBudget) {
	delete(t.byName, key(b))
	t.shown = nil
}

func (t *budgetTable) fill(s *policy.Snapshot) {
	if t.shown == nil && len(t.byName) > 0 {
		t.shown = gpubudget.Table(slices.Collect(maps.Values(t.byName)))
	}
	s.Budgets = t.shown
}
