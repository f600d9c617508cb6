package watch

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// marksOf returns our marks among annotations and taints.
func marksOf(annotations map[string]string, taints []corev1.Taint) (ours []string) {
	for _, key := range []string{annotationDrain, annotationCordon, annotationProtected, annotationKeep} {
		if annotations[key] != "" {
			ours = append(ours, key)
		}
	}
	for _, t := range taints {
		if t.Key == taintDraining {
			ours = append(ours, t.Key)
		}
	}
	return ours
}

func (w *Watcher) nodeOf(n *corev1.Node) Node {
	ours := marksOf(n.Annotations, n.Spec.Taints)
	return Node{
		Name: n.Name, Pool: n.Labels[w.cfg.PoolLabel], NodePool: n.Labels[labelNodePool], Ours: ours, Going: n.DeletionTimestamp != nil,
		Draining: slices.Contains(ours, annotationCordon) || slices.Contains(ours, taintDraining),
		Notice: slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return slices.Contains(noticeTaints,
				t.Key)
		}),
	}
}

// claimPrefix is before the names of NodeClaims among those of nodes.
const claimPrefix = "nodeclaim/"

// claimOf returns a NodeClaim as what carries marks.
func claimOf(u *unstructured.Unstructured) Node {
	host, _, _ := unstructured.NestedString(u.Object, "status", "nodeName")
	machine, _, _ := unstructured.NestedString(u.Object, "status", "providerID")
	return Node{
		Name: claimPrefix + u.GetName(), Ours: marksOf(u.GetAnnotations(),
			nil), Going: u.GetDeletionTimestamp() != nil, Host: host,
		Launch: u.GetAnnotations()[annotationLaunch] != "" && machine == "", Created: u.GetCreationTimestamp().Time,
	}
}

func (w *Watcher) podOf(p *corev1.Pod) Pod {
	x := Pod{
		Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Labels: p.Labels, Requests: map[string]float64{},
		Pool: p.Spec.NodeSelector[w.cfg.PoolLabel], Kept: p.Annotations[annotationKeep] == "true",
		Stays: p.Annotations[corev1.MirrorPodAnnotationKey] != "" ||
			slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }),
	}
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		w.leaving[x.key()] = time.Now()
	}
	for i := range p.Spec.Containers {
		for name, q := range p.Spec.Containers[i].Resources.Requests {
			x.Requests[string(name)] += q.AsApproximateFloat64()
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			x.Start = c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			x.End = c.State.Terminated.FinishedAt.Time
		}
	}
	return x
}

func pdbOf(b *policyv1.PodDisruptionBudget) PDB {
	return PDB{
		Namespace: b.Namespace, Name: b.Name, Selector: b.Spec.Selector.MatchLabels, Observed: b.Status.ObservedGeneration == b.Generation,
		Expected: b.Status.ExpectedPods, Healthy: b.Status.CurrentHealthy, Desired: b.Status.DesiredHealthy,
	}
}

// limitsOf returns the budgets of a NodePool that hold always and for every reason.
func limitsOf(u *unstructured.Unstructured) (all []string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "disruption", "budgets")
	for _, x := range list {
		b, ok := x.(map[string]any)
		if !ok || b["schedule"] != nil || b["reasons"] != nil {
			continue
		}
		if s, ok := b["nodes"].(string); ok {
			all = append(all, s)
		}
	}
	return all
}

func budgetOf(u *unstructured.Unstructured) (b Budget, counted bool) {
	b = Budget{Namespace: u.GetNamespace(), Name: u.GetName()}
	b.Resource, _, _ = unstructured.NestedString(u.Object, "spec", "resourceName")
	b.Selector, _, _ = unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	text, _, _ := unstructured.NestedString(u.Object, "status", "consumed", "gpuHours")
	at, counted, _ := unstructured.NestedString(u.Object, "status", "countedAt")
	b.Consumed = number(text)
	b.CountedAt, _ = time.Parse(time.RFC3339, at)
	return b, counted
}
