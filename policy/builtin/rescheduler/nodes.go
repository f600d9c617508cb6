package rescheduler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A nodeIndex holds the properties of the nodes of a snapshot that rounds read. It is kept from
// decision to decision, since little changes in between. For any snapshot its content equals that
// of an index that is rebuilt.
type nodeIndex struct {
	mark policy.Mark // of the snapshot of which sources and leaving were read last

	// sources are the on-demand nodes that may be emptied, judged by the node alone, and leaving
	// those that Spotter is removing by choice.
	sources, leaving policy.SlotSet[policy.NodeID]

	// The other fields describe the space when it was loaded last: emptiest are the sources, the
	// emptiest first, and fullest the Spot nodes that take pods, the fullest first.
	emptiest, fullest ranking
}

// read brings sources and leaving to s.
func (x *nodeIndex) read(s *policy.Snapshot, c *Config) {
	changed := s.NodesSince(x.mark)
	x.sources.Read(changed, func(id policy.NodeID) bool { return c.isSource(s, &s.Nodes[id]) })
	x.leaving.Read(changed, func(id policy.NodeID) bool {
		n := &s.Nodes[id]
		return n.Live() && n.ActedBy == policy.ActorUs && n.ReclaimAt == 0 && n.Pool != policy.None
	})
	x.mark = s.Mark()
}

// isSource reports whether n may be emptied, judged by the node alone.
func (c *Config) isSource(s *policy.Snapshot, n *policy.Node) bool {
	return n.Pool != policy.None && replan.MayLeave(n) && c.isOnDemand(s, n)
}

// readSpace brings the rest to sp, which was just loaded with s.
func (x *nodeIndex) readSpace(s *policy.Snapshot, sp *placement.Space, c *Config) {
	if nodes, some := sp.Renewed(); some {
		for _, id := range nodes {
			x.readNode(s, sp, id, c)
		}
		return
	}
	x.emptiest, x.fullest = ranking{}, ranking{}
	for i := range s.Nodes {
		x.readNode(s, sp, policy.NodeID(i), c)
	}
}

func (x *nodeIndex) readNode(s *policy.Snapshot, sp *placement.Space, id policy.NodeID, c *Config) {
	n := &s.Nodes[id]
	target := n.Usable() && n.ActedBy == policy.ActorNone && n.Recommended == 0 && c.isSpot(s, n)
	share := sp.Requested(id).LargestShare(n.Allocatable)
	x.emptiest.put(id, c.isSource(s, n), share, n.Name)
	x.fullest.put(id, target, -share, n.Name)
}

// A ranking keeps nodes in ascending order of a key, then of their names.
type ranking struct {
	of          []rankedNode // by node
	list, spare []rankedNode // the list as it was before the changes
	changed     []policy.NodeID
}

// A rankedNode is a node with its key.
type rankedNode struct {
	key         float64
	name        string
	id          policy.NodeID
	in, changed bool // it is in the ranking; the list does not say so yet
}

// put puts a node into the ranking, or out of it.
func (x *ranking) put(id policy.NodeID, in bool, key float64, name string) {
	for len(x.of) <= int(id) {
		x.of = append(x.of, rankedNode{})
	}
	r := &x.of[id]
	if !in && !r.in {
		return
	}
	if !r.changed {
		x.changed = append(x.changed, id)
	}
	*r = rankedNode{key, name, id, in, true}
}

// order returns the nodes of the ranking in its order. The list is valid until the next
// node is put into it.
func (x *ranking) order() []rankedNode {
	if len(x.changed) == 0 {
		return x.list
	}
	next := x.spare[:0]
	for i := range x.list {
		if !x.of[x.list[i].id].changed {
			next = append(next, x.list[i])
		}
	}
	x.list, x.spare = next, x.list[:0]
	for _, id := range x.changed {
		if r := &x.of[id]; r.in {
			x.spare = append(x.spare, *r)
		}
		x.of[id].changed = false
	}
	x.changed = x.changed[:0]
	slices.SortFunc(x.spare, before)
	x.insert(x.spare)
	return x.list
}

// insert puts more, which is sorted, into the list, from its end on.
func (x *ranking) insert(more []rankedNode) {
	at := len(x.list)
	x.list = append(x.list, more...)
	for to := len(x.list); len(more) > 0; {
		to--
		if last := &more[len(more)-1]; at > 0 && before(x.list[at-1], *last) > 0 {
			at--
			x.list[to] = x.list[at]
		} else {
			x.list[to], more = *last, more[:len(more)-1]
		}
	}
}

func before(x, y rankedNode) int {
	return cmp.Or(cmp.Compare(x.key, y.key), strings.Compare(x.name, y.name))
}
