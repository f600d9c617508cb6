package drain

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/live/backend"
)

// budgetsOf returns those of the budgets of p's namespace that select p. A
// selector that is left out selects nothing, an empty one everything.
func budgetsOf(p *corev1.Pod, all []policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var mine []*policyv1.PodDisruptionBudget
	for i := range all {
		selector, err := metav1.LabelSelectorAsSelector(all[i].Spec.Selector)
		if err == nil && all[i].Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels)) {
			mine = append(mine, &all[i])
		}
	}
	return mine
}

// ignoresBudgets reports whether the API server evicts p without asking a budget.
func ignoresBudgets(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending
}

// undrainable returns a [backend.Held] if no wait would let p be evicted: the
// API server refuses a pod with two budgets for ever, and a budget that wants
// every pod healthy never spares one.
func undrainable(p *corev1.Pod, mine []*policyv1.PodDisruptionBudget) error {
	if ignoresBudgets(p) || len(mine) == 0 {
		return nil
	}
	if len(mine) > 1 {
		return backend.Hold("SeveralBudgets",
			"pod %s/%s has the disruption budgets %s and %s, and the API server refuses to evict a pod with more than one",
			p.Namespace, p.Name, mine[0].Name, mine[1].Name)
	}
	b := mine[0]
	s := &b.Status
	if ready(p) && s.ObservedGeneration == b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods {
		return backend.Hold("BudgetAllowsNone", "disruption budget %s/%s wants all %d pods healthy and allows no eviction",
			b.Namespace, b.Name, s.ExpectedPods)
	}
	return nil
}

// required returns how many of the wanted pods of a workload must be ready: what
// the strictest of its budgets says or, without one, all but a quarter, of which
// at least one may miss and at least one must not.
func required(wanted int32, mine []*policyv1.PodDisruptionBudget) int32 {
	if len(mine) == 0 {
		least := wanted - max(1, wanted/4)
		if wanted >= 1 {
			least = max(least, 1)
		}
		return max(least, 0)
	}
	least := int32(0)
	for _, b := range mine {
		switch {
		case b.Spec.MinAvailable != nil:
			least = max(least, scaled(*b.Spec.MinAvailable, wanted))
		case b.Spec.MaxUnavailable != nil:
			least = max(least, wanted-scaled(*b.Spec.MaxUnavailable, wanted))
		}
	}
	return min(least, wanted)
}

// scaled returns q of n, percentages rounded up as the disruption controller does.
// What cannot be read is taken for all.
func scaled(q intstr.IntOrString, n int32) int32 {
	v, err := intstr.GetScaledValueFromIntOrPercent(&q, int(n), true)
	if err != nil {
		return n
	}
	return int32(v)
}
