package autoscaler

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A search looks for the first node that fits a pod, starting after the node that it found last
// (simulator/clustersnapshot/scheduling_opts.go).
type search struct {
	nodes []policy.NodeID // in the order of the snapshot
	next  int             // index in nodes, modulo their number, at which the next search starts
	begun bool
}

// reset lists the nodes of a new iteration.
func (s *search) reset(c *Cluster) {
	if !s.begun && !c.Version.Before(37) {
		s.next = 1
	}
	s.begun = true
	s.nodes = s.nodes[:0]
	for i := range c.Nodes {
		s.nodes = append(s.nodes, c.Nodes[i].ID)
	}
}

// find returns the first node that fits p and that accept allows, or policy.None. A nil accept
// allows all nodes.
func (c *Cluster) find(s *search, p *policy.Pod, accept func(policy.NodeID) bool) policy.NodeID {
	for i := range s.nodes {
		at := (s.next + i) % len(s.nodes)
		if n := s.nodes[at]; (accept == nil || accept(n)) && c.Space.CheckExpected(p, n) == placement.OK {
			if s.next = at + 1; c.Version.Before(37) {
				s.next %= len(s.nodes) // the list may be shorter at the next search
			}
			return n
		}
	}
	return policy.None
}
