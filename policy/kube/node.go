package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsTainted reports whether a node has a taint of a key.
func IsTainted(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// IsReady reports whether the kubelet of a node says that it is ready.
func IsReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// IsPrepared reports whether pods can start on a node: its kubelet says that it is ready, and all
// controllers that have to prepare it are done.
func IsPrepared(n *corev1.Node) bool {
	return IsReady(n) && !IsTainted(n, corev1.TaintNodeNotReady) && !IsTainted(n, corev1.TaintNodeUnreachable) &&
		!IsTainted(n, "node.cloudprovider.kubernetes.io/uninitialized")
}
