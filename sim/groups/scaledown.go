package groups

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	ca "github.com/spotter-dev/spotter/sim/autoscaler"
)

// A scaleDown deletes the nodes that the Cluster Autoscaler finds unneeded.
type scaleDown struct {
	*Autoscaler

	// soft are, by pool, the taints of a node that is a candidate for deletion.
	soft [][]policy.Taint

	// grown is when a group last grew, failed when a node last could not be emptied; 0 for never.
	grown, failed policy.Time
}

// shrink finds the unneeded nodes, and starts to delete those that have been unneeded for long
// enough. It returns the time of the next possible action, or 0 for never.
func (s *scaleDown) shrink() (next policy.Time) {
	c, m := s.view(), &s.loop.memory
	look := c.FindUnneeded(m)
	for i := range s.Nodes.All {
		if id := policy.NodeID(i); s.Nodes.All[i].Phase != policy.NodeGone && s.groups.index(id) >= 0 {
			s.taint(id, m.Since(id) != 0)
		}
	}
	rest := s.restUntil()
	for i := range look.Unneeded {
		// A node must have been unneeded for strictly longer than UnneededTime.
		due := max(rest, m.Since(look.Unneeded[i].Node).Add(s.UnneededTime+time.Millisecond))
		if due > s.Clock.Now {
			next = sooner(next, due)
		}
	}
	for i := range c.Nodes {
		if at := m.RecheckAt(c.Nodes[i].ID); at > s.Clock.Now {
			next = sooner(next, at)
		}
	}
	if rest > s.Clock.Now {
		return next
	}
	empty, drain, _ := c.Deletable(m, look)
	all, draining := s.deleting()
	first, then := s.Crop(empty, drain, all, draining)
	for _, id := range slices.Concat(first, then) {
		s.Drains.Start(id, nil, s.Clock.Now.Add(evictionMax), policy.ActorClusterAutoscaler)
	}
	return next
}

// restUntil returns the time until which no node is deleted because a group grew or a node could
// not be emptied.
func (s *scaleDown) restUntil() (t policy.Time) {
	if s.grown != 0 {
		t = max(t, s.grown.Add(delayAfterAdd))
	}
	if s.failed != 0 {
		t = max(t, s.failed.Add(delayAfterFailure))
	}
	return t
}

// deleting returns the number of nodes that are being deleted, and the number of these that had
// pods.
func (s *scaleDown) deleting() (all, draining int) {
	for _, d := range s.Drains.Active {
		if x := &s.Drains.All[d]; x.Actor == policy.ActorClusterAutoscaler {
			all++
			if x.Pods {
				draining++
			}
		}
	}
	return all, draining
}

// sooner returns the earlier of two times. An a of 0 means never.
func sooner(a, b policy.Time) policy.Time {
	if a == 0 || b < a {
		return b
	}
	return a
}

// view returns the cluster with the nodes that pods may move to.
func (s *scaleDown) view() *ca.Cluster {
	c := s.loop.view()
	for i := range s.PDBs.All {
		c.Allowed = append(c.Allowed, s.PDBs.All[i].Allowed)
	}
	for i := range s.Nodes.All {
		if n := &s.Nodes.All[i]; n.Usable() {
			c.Nodes = append(c.Nodes, ca.Node{Node: n, Group: s.groups.index(n.ID), Disabled: n.DoNotDisrupt,
				Kept: s.keeps(n.ID)})
		}
	}
	return c
}

// keeps reports whether a node is excluded from scale-down for a reason that the Cluster Autoscaler
// does not know: another controller works on it, pods are nominated to it, or the settings of its
// pool protect it.
func (s *scaleDown) keeps(id policy.NodeID) bool {
	n, x := &s.Nodes.All[id], &s.Nodes.State[id]
	pool := &s.Pools.All[n.Pool]
	onlyEmpty := pool.Consolidation == policy.WhenEmpty || s.Pools.EmptyOnly(n.Pool)
	return n.ActedBy != policy.ActorNone || x.Nominated > 0 || pool.Consolidation == policy.ConsolidateNever ||
		x.Pods > 0 && onlyEmpty || n.Token != "" && s.awaitsPods(n)
}

// awaitsPods reports whether n is protected from scale-in because the policy is still draining a
// node of the same pool, whose pods n may have been launched for.
func (s *scaleDown) awaitsPods(n *policy.Node) bool {
	return slices.ContainsFunc(s.Drains.Active, func(d int32) bool {
		x := &s.Drains.All[d]
		return x.Actor == policy.ActorUs && s.Nodes.All[x.Node].Pool == n.Pool
	})
}

// taint adds a PreferNoSchedule taint to an unneeded node, so that the scheduler prefers other
// nodes, and removes it from a needed one.
func (s *scaleDown) taint(id policy.NodeID, unneeded bool) {
	n := &s.Nodes.All[id]
	taints := s.Scenario.Pools[n.Pool].Taints
	if unneeded {
		taints = s.soft[n.Pool]
	}
	if slices.Equal(n.Taints, taints) {
		return
	}
	s.Nodes.SetTaints(id, taints)
}
