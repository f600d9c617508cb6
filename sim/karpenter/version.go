package karpenter

// A Version is the minor version of Karpenter 1 whose rules are followed. The zero value is
// the newest.
//
//   - Before 1.13 all new nodes of a NodePool that are planned together share their host ports.
//   - Before 1.14 candidates are in the order of what their disruption costs, and not of the
//     price that goes for it; nodes within their pool's consolidateAfter take pods of
//     candidates; a node is empty only without pods, and has its pool's turn all the same; a
//     candidate without a price makes the price of all unknown; new nodes of a NodePool bear
//     all DaemonSets that any of its nodes may; and Balanced is unknown.
//   - 1.15 does to what is simulated what 1.14 does: it is otherwise about capacity
//     reservations, repair and volume limits, of which the provider for AWS states none.
type Version uint8

// Before reports whether v is older than the given minor version.
func (v Version) Before(minor Version) bool { return v != 0 && v < minor }
