package autoscaler

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Deletable returns the unneeded nodes of an iteration that may be deleted now, and the reasons why
// the others may not. Nodes with pods to evict are returned separately from empty ones; those whose
// PodDisruptionBudgets do not allow all evictions at once come last. Groups keep their minimum size
// (core/scaledown/unneeded/nodes.go).
func (c *Cluster) Deletable(m *Memory, l *Look) (empty, drain []policy.NodeID, held []Unremovable) {
	size := make([]int, len(c.Groups))
	for g := range c.Groups {
		size[g] = c.Groups[g].Size - c.Groups[g].Deleting
	}
	at := make(map[policy.NodeID]*Node, len(c.Nodes))
	for i := range c.Nodes {
		at[c.Nodes[i].ID] = &c.Nodes[i]
	}
	var risky []policy.NodeID
	for _, wantPods := range [...]bool{false, true} {
		for i := range l.Unneeded {
			u := &l.Unneeded[i]
			if len(u.Moves) > 0 != wantPods {
				continue
			}
			n := at[u.Node]
			if r := c.holds(m, n, size); r != NoReason {
				held = append(held, Unremovable{Node: u.Node, Reason: r})
				continue
			}
			size[n.Group]--
			switch {
			case len(u.Completing) > 0:
				held = append(held, Unremovable{Node: u.Node, Reason: BlockedByOnCompletionPod})
			case len(u.Moves) == 0:
				empty = append(empty, u.Node)
			case u.Risky:
				risky = append(risky, u.Node)
			default:
				drain = append(drain, u.Node)
			}
		}
	}
	return empty, append(drain, risky...), held
}

// holds returns the reason why an unneeded node may not be deleted now, or NoReason.
func (c *Cluster) holds(m *Memory, n *Node, size []int) Reason {
	wait, reason := c.UnneededTime, NotUnneededLongEnough
	if n.Unready {
		wait, reason = c.UnreadyTime, NotUnreadyLongEnough
	}
	switch {
	case wait > 0 && m.Since(n.ID).Add(wait) >= c.Now:
		return reason
	case size[n.Group] <= c.Groups[n.Group].Min:
		return GroupMinSizeReached
	}
	return NoReason
}

// Crop returns the nodes whose deletion may start now, empty ones first. deleting is the number of
// nodes that are already being deleted, draining the number of them with pods
// (core/scaledown/budgets/budgets.go, CropNodes).
func (o *Options) Crop(empty, drain []policy.NodeID, deleting, draining int) (first, then []policy.NodeID) {
	all := max(0, o.EmptyMax-deleting)
	first = slices.Clone(empty[:min(len(empty), all)])
	then = slices.Clone(drain[:min(len(drain), all-len(first), max(0, o.DrainMax-draining))])
	return first, then
}
