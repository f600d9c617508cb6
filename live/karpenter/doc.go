// Package karpenter lets a policy work with Karpenter: it steers by node pools, launches single
// nodes by node claims, and releases empty nodes by deleting their claims.
//
// A CapacityPool has two NodePools, "<pool>-spot" and "<pool>-od", whose capacity type never
// changes. They are created here and applied without force, only with the fields that this package
// owns: lists such as requirements and budgets are atomic and cannot be shared with another
// manager. Other NodePools are only read, unless they carry the annotation [AdoptAnnotation]: then
// their weight and limits are written and nothing else.
//
// Nothing that is written here makes a running node drift. The requirements include every market
// that has nodes, and are narrowed once the last of them is gone. The fields in the hash of a
// NodePool (labels, taints, node class, expiry) stay as they were created while the pool has nodes.
// Such writes, and those that start or stop consolidation, are rare; weight and limits, which touch
// no running node, follow the pool as it grows. A NodePool has no owner, so it is not deleted with
// the pool, the chart or the custom resource definitions.
//
// A machine that is launched in place of another is kept from Karpenter, which would
// remove it while it is empty, until the pods have moved; so is a node while it is
// drained. The marks for that never outlive what they are for by long, also after a
// crash.
//
// Watching always runs; writes happen only in calls of [Backend], and all of them are in
// write.go.
package karpenter
