package karpetrack

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/replan"
)

// movable reports whether n may be replaced, judged by the node alone.
func movable(s *policy.Snapshot, n *policy.Node) bool {
	return n.Pool != policy.None && replan.MayLeave(n) && n.Market != policy.None &&
		s.Markets[n.Market].Capacity != policy.Reserved
}

// nodes returns the nodes of the pool that may be replaced, those whose drains were given up
// lately left out.
func (r *renewal) nodes() (list []policy.NodeID) {
	for i := range r.S.Nodes {
		if n := &r.S.Nodes[i]; n.Pool == r.Pool.ID && movable(r.S, n) && !r.backedOff(n.ID) {
			list = append(list, n.ID)
		}
	}
	return list
}

// backedOff reports whether the drain of a node is not to be tried again now.
func (r *renewal) backedOff(id policy.NodeID) bool {
	return r.memory.BackedOff(r.S.Nodes[id].Name, r.S.Now)
}
