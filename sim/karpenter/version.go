package karpenter

// A Version is the minor version of Karpenter 1 whose rules are followed. The zero value is the
// newest.
//
//   - Before 1.13, all new nodes of a NodePool that are planned together share their host ports.
//   - Before 1.14, candidates are ordered by their disruption cost, and not by their price per unit
//     of it. Nodes within their pool's consolidateAfter accept pods of candidates. A node is empty
//     only if no pod must be rescheduled, and an empty node still takes a turn of its pool. A
//     candidate without a price makes the total price unknown. The requests of all DaemonSets that
//     any node of a NodePool may run count for each of its new nodes. Balanced is unknown.
//   - 1.15 behaves like 1.14 in everything that is simulated. Its other changes concern capacity
//     reservations, repair and volume limits, none of which the AWS provider reports.
type Version uint8

// Before reports whether v is older than the given minor version.
func (v Version) Before(minor Version) bool { return v != 0 && v < minor }
