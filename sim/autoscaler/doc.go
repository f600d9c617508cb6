// Package autoscaler makes the decisions of the Kubernetes Cluster Autoscaler: which group grows by
// how many nodes for pending pods, which nodes the cluster does not need, and which of these may be
// deleted now. Package policy/placement decides whether a pod fits a node.
//
// Decisions are functions of a [Cluster] and of a [Memory] that the caller keeps between
// iterations. The caller carries them out. Comments name the files of the Cluster Autoscaler that
// implement a rule (kubernetes-sigs/cluster-autoscaler, below pkg).
package autoscaler
