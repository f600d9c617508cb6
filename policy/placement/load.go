package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A loaded describes the snapshot that a space was loaded with. When a later version of that
// snapshot is loaded, only the nodes are rebuilt that changed, whose pods changed, or that were
// modified in the space since.
type loaded struct {
	mark      policy.Mark
	templates []policy.Template
	zones     []string

	// pods lists, for each node, the pods that occupy resources there.
	pods scratch.Lists

	// touched lists the nodes that were modified since they were loaded. is contains the same
	// information, indexed by node.
	touched []policy.NodeID
	is      []bool
	ids     []policy.PodID // scratch: the pods of one node

	// renewed lists the nodes that the last load rebuilt. some reports whether that load was
	// incremental.
	renewed []policy.NodeID
	some    bool
}

// holder returns the node on which p occupies resources, or None.
func holder(p *policy.Pod) policy.NodeID {
	if p.Phase < policy.PodStarting {
		return policy.None
	}
	return p.Node
}

// follows reports whether s is a later version of the loaded snapshot with known differences.
func (l *loaded) follows(s *policy.Snapshot) bool {
	same := len(l.templates) == len(s.Templates) && len(l.zones) == len(s.Zones) &&
		(len(s.Templates) == 0 || &l.templates[0] == &s.Templates[0]) && (len(s.Zones) == 0 || &l.zones[0] == &s.Zones[0])
	return same && s.Follows(l.mark)
}

// Renewed returns the nodes that the last Load rebuilt, without duplicates, and reports whether all
// other nodes are as the previous Load left them in the space. If it reports false, any node may
// differ.
func (sp *Space) Renewed() (nodes []policy.NodeID, some bool) {
	return sp.loaded.renewed, sp.loaded.some
}

// note records that s was loaded.
func (l *loaded) note(s *policy.Snapshot) {
	l.renewed, l.some = l.renewed[:0], false
	for _, n := range l.touched {
		l.is[n] = false
	}
	l.touched = l.touched[:0]
	if l.mark = s.Mark(); l.mark == (policy.Mark{}) {
		return
	}
	l.templates, l.zones = s.Templates, s.Zones
	l.pods.Clear()
	for i := range s.Pods {
		l.pods.Put(i, int(holder(&s.Pods[i])))
	}
}

// touch records that n was modified since it was loaded.
func (l *loaded) touch(n policy.NodeID) {
	if l.mark == (policy.Mark{}) {
		return
	}
	for len(l.is) <= int(n) {
		l.is = append(l.is, false)
	}
	if !l.is[n] {
		l.is[n] = true
		l.touched = append(l.touched, n)
	}
}

// reload updates sp to s, which must follow the loaded snapshot. The result equals that of a full
// Load.
func (sp *Space) reload(s *policy.Snapshot) {
	l := &sp.loaded
	for c := s.NodesSince(l.mark); c.Next(); {
		n := c.ID
		l.touch(n)
	}
	for c := s.PodsSince(l.mark); c.Next(); {
		id := c.ID
		if was := l.pods.Of(int(id)); was >= 0 {
			l.touch(policy.NodeID(was))
		}
		n := holder(&s.Pods[id])
		if l.pods.Put(int(id), int(n)); n >= 0 {
			l.touch(n)
		}
	}
	slices.Sort(l.touched)
	sp.occupancy.grow(len(s.Nodes))
	for i := 0; i < len(l.touched); i++ {
		sp.RemoveNode(l.touched[i])
	}
	sp.occupancy.slots, sp.occupancy.nodes = sp.occupancy.slots[:len(s.Nodes)], sp.occupancy.nodes[:len(s.Nodes)]
	for i := 0; i < len(l.touched) && int(l.touched[i]) < len(s.Nodes); i++ {
		sp.putUp(s, l.touched[i])
	}
	for _, n := range l.touched {
		l.is[n] = false
	}
	l.renewed, l.touched, l.some = l.touched, l.renewed[:0], true
	l.mark, sp.reserved = s.Mark(), sp.reserved[:0]
}

// putUp adds node n of s, with its pods, to its slot, which must be empty.
func (sp *Space) putUp(s *policy.Snapshot, n policy.NodeID) {
	if !s.Nodes[n].Live() {
		return
	}
	sp.SetNode(&s.Nodes[n])
	l := &sp.loaded
	l.ids = l.ids[:0]
	for id := l.pods.First(int(n)); id >= 0; id = l.pods.Next(id) {
		l.ids = append(l.ids, policy.PodID(id))
	}
	slices.Sort(l.ids)
	for _, id := range l.ids {
		sp.Bind(&s.Pods[id], n)
	}
}
