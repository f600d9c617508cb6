package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsTainted reports whether n has a taint with the given key.
func IsTainted(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// IsReady reports whether the node condition Ready is true.
func IsReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// IsPrepared reports whether pods can start on n: its condition Ready is true, and all controllers
// that prepare nodes have finished.
func IsPrepared(n *corev1.Node) bool {
	return IsReady(n) && !IsTainted(n, corev1.TaintNodeNotReady) && !IsTainted(n, corev1.TaintNodeUnreachable) &&
		!IsTainted(n, "node.cloudprovider.kubernetes.io/uninitialized")
}
