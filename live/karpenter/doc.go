// Package karpenter is the backend for Karpenter: it steers purchases by NodePools, launches single
// nodes by NodeClaims, and releases empty nodes by deleting their NodeClaims.
//
// A CapacityPool has two NodePools, "<pool>-spot" and "<pool>-od", whose capacity type never
// changes. This package creates them and applies, without force, only the fields that it owns:
// lists such as requirements and budgets are atomic and cannot be shared with another field
// manager. Other NodePools are only read, unless they have the annotation [AdoptAnnotation]: then
// this package writes their weight and limits and nothing else.
//
// No write of this package makes a running node drift. The requirements include every market that
// has nodes, and are narrowed once the last of these nodes is gone. The fields that Karpenter
// includes in the hash of a NodePool (labels, taints, node class, expiry) do not change while the
// pool has nodes. Writes of these fields, and writes that start or stop consolidation, are rare.
// Weight and limits, which affect no running node, follow the pool as it grows. A NodePool has no
// owner reference, so it is not deleted with the pool, the chart or the custom resource
// definitions.
//
// A machine that is launched as a replacement is protected from Karpenter, which would remove it
// while it is empty, until the pods have moved. A node is also protected while it is drained.
// Obsolete protection is removed soon, even after a crash.
//
// The watches always run. Writes happen only in calls of [Backend], and write.go contains all of
// them.
package karpenter
