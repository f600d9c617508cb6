package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeEntry is what is asked most of a node, in little memory.
type nodeEntry struct {
	pool        policy.PoolID
	market      policy.MarketID
	phase       policy.NodePhase
	actedBy     policy.Actor
	usable      bool // as Node.Usable
	reclaimed   bool // the provider said when it takes it back
	recommended bool // the provider recommends to leave it

	doNotDisrupt bool
}

// readNodes returns the entries of the nodes of s, by node, in the memory of list: those of
// the snapshot since.
func readNodes(list []nodeEntry, s *policy.Snapshot, since policy.Mark) []nodeEntry {
	list = slices.Grow(list, max(0, len(s.Nodes)-len(list)))[:len(s.Nodes)]
	for c := s.NodesSince(since); c.Next(); {
		id := c.ID
		n := &s.Nodes[id]
		list[id] = nodeEntry{n.Pool, n.Market, n.Phase, n.ActedBy, n.Usable(), n.ReclaimAt != 0, n.Recommended != 0, n.DoNotDisrupt}
	}
	return list
}

// live reports whether the slot holds a node that exists or is on its way.
func (n *nodeEntry) live() bool { return n.phase != policy.NodeGone }

// stays reports whether n is usable and nobody empties it.
func (n *nodeEntry) stays() bool { return n.usable && n.actedBy == policy.ActorNone }
