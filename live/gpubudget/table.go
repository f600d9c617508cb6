package gpubudget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// NamespaceMax is the maximum number of GPUBudgets of a namespace that are enforced. If there are
// more, the oldest are. Each budget requires a decision, a ledger and a status, and an editor of
// one namespace can create any number of them.
const NamespaceMax = 100

// Read returns the budget of an object. If the object is invalid, it returns the reason, and a
// budget that only identifies the object.
func Read(b *v1alpha1.GPUBudget) (policy.Budget, error) {
	x, err := read(b)
	if err != nil {
		x = policy.Budget{Name: b.Namespace + "/" + b.Name, Namespace: b.Namespace, Invalid: true}
	}
	x.UID = string(b.UID)
	x.Created = policy.TimeOf(b.CreationTimestamp.Time)
	return x, err
}

func read(b *v1alpha1.GPUBudget) (policy.Budget, error) {
	b = b.DeepCopy()
	b.Default()
	if err := b.Validate().ToAggregate(); err != nil {
		return policy.Budget{}, err
	}
	selector, err := kube.Selector(&b.Spec.Selector)
	if err != nil {
		return policy.Budget{}, fmt.Errorf("spec.selector: %w", err)
	}
	x := b.Budget(b.Namespace, selector)
	x.Closed = b.Status.Gate == v1alpha1.GateClosed
	return x, nil
}

// Table returns the budgets for a snapshot, ascending by name: the [NamespaceMax] oldest of each
// namespace.
func Table(all []policy.Budget) []policy.Budget {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b policy.Budget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	n, namespace := 0, ""
	all = slices.DeleteFunc(all, func(b policy.Budget) bool {
		if b.Namespace != namespace {
			n, namespace = 0, b.Namespace
		}
		n++
		return n > NamespaceMax
	})
	slices.SortFunc(all, func(a, b policy.Budget) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
