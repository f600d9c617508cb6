// Package autoscaler decides as the Kubernetes Cluster Autoscaler does: which group grows by how
// many nodes for pods that are pending, which nodes the cluster does not need, and which of these
// may be deleted now. Whether a pod fits a node is left to policy/placement.
//
// Decisions are functions of a [Cluster] and of a [Memory] that the caller keeps from one look at
// the cluster to the next. The caller carries them out. Comments name the files of the Cluster
// Autoscaler that state a rule (kubernetes-sigs/cluster-autoscaler, below pkg).
package autoscaler
