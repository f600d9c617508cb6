package drain

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/live/backend"
)

// budgetsOf returns the PodDisruptionBudgets that select p. A missing selector selects no pods, an
// empty one all pods of the namespace.
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

// ignoresBudgets reports whether the API server evicts p without checking a PodDisruptionBudget.
func ignoresBudgets(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending
}

// undrainable returns a [backend.Held] if waiting cannot make the eviction of p possible: the API
// server always refuses to evict a pod with two PodDisruptionBudgets, and one that requires every
// pod to be healthy never allows an eviction.
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

// required returns the number of pods of a workload that must be ready. wanted is its number of
// replicas. The strictest PodDisruptionBudget determines the result. Without one, a quarter of the
// replicas, but at least one, may be unavailable, and at least one must be ready.
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

// scaled returns the value of q for n pods. Percentages are rounded up, as the disruption
// controller does. If q cannot be parsed, scaled returns n.
func scaled(q intstr.IntOrString, n int32) int32 {
	v, err := intstr.GetScaledValueFromIntOrPercent(&q, int(n), true)
	if err != nil {
		return n
	}
	return int32(v)
}
