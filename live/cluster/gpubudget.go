package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A budgetTable holds the valid GPUBudgets, by "namespace/name".
type budgetTable struct {
	faults *faultLog
	byName map[string]policy.Budget
}

// set takes in a GPUBudget. One that is not valid bounds nothing.
func (t *budgetTable) set(b *v1alpha1.GPUBudget) {
	b = b.DeepCopy()
	b.Default()
	selector, err := kube.Selector(&b.Spec.Selector)
	if errs := b.Validate(); len(errs) > 0 {
		err = errs.ToAggregate()
	}
	if err != nil {
		t.faults.warn("GPUBudget "+key(b), err.Error())
		delete(t.byName, key(b))
		return
	}
	x := b.Budget(b.Namespace, selector)
	x.Closed = strings.EqualFold(string(b.Status.Gate), "closed")
	t.byName[key(b)] = x
}

func (t *budgetTable) drop(b *v1alpha1.GPUBudget) { delete(t.byName, key(b)) }

func (t *budgetTable) fill(s *policy.Snapshot) {
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		s.Budgets = append(s.Budgets, t.byName[name])
	}
}
