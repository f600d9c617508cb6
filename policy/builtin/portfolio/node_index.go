package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeIndex holds what is asked most of the nodes of a snapshot, in little memory. It is kept
// from decision to decision, and nodes that changed are counted anew.
type nodeIndex struct {
	all     []nodeEntry // by node
	markets int

	// plain[(1+p)*markets+m] is the number of nodes of pool p in market m that are plain, and
	// odd lists, ascending, those of the others that are there.
	plain []int32
	odd   []policy.NodeID

	// recommended are the nodes that the provider recommends to leave, ascending.
	recommended []policy.NodeID
}

// A nodeEntry is what is asked most of a node, in little memory.
type nodeEntry struct {
	pool         policy.PoolID
	market       policy.MarketID
	phase        policy.NodePhase
	actedBy      policy.Actor
	usable       bool // as Node.Usable
	reclaimed    bool // the provider said when it takes it back
	doNotDisrupt bool

	recommended policy.Time // as Node.Recommended
}

// read reads the nodes of s. Those that did not change since the given snapshot were read
// from it.
func (x *nodeIndex) read(s *policy.Snapshot, since policy.Mark) {
	cells := (1 + len(s.Pools)) * len(s.Markets)
	if !s.Follows(since) || len(x.plain) != cells || x.markets != len(s.Markets) {
		*x = nodeIndex{all: x.all[:0], markets: len(s.Markets), plain: make([]int32, cells), odd: x.odd[:0], recommended: x.recommended[:0]}
		since = policy.Mark{}
	}
	for len(x.all) < len(s.Nodes) {
		x.all = append(x.all, nodeEntry{pool: policy.None, market: policy.None})
	}
	for c := s.NodesSince(since); c.Next(); {
		id := c.ID
		n := &s.Nodes[id]
		was, now := x.all[id], nodeEntry{n.Pool, n.Market, n.Phase, n.ActedBy, n.Usable(), n.ReclaimAt != 0, n.DoNotDisrupt, n.Recommended}
		if was == now {
			continue
		}
		x.count(&was, -1)
		x.count(&now, 1)
		x.all[id] = now
		x.odd = listed(x.odd, id, now.live() && !now.plain())
		x.recommended = listed(x.recommended, id, now.recommended != 0)
	}
}

// listed returns list, which ascends, with id or without it.
func listed(list []policy.NodeID, id policy.NodeID, there bool) []policy.NodeID {
	at, was := slices.BinarySearch(list, id)
	switch {
	case there && !was:
		return slices.Insert(list, at, id)
	case was && !there:
		return slices.Delete(list, at, at+1)
	}
	return list
}

// count counts a node in (1) or out (-1).
func (x *nodeIndex) count(n *nodeEntry, sign int32) {
	if n.plain() {
		x.plain[int(1+n.pool)*x.markets+int(n.market)] += sign
	}
}

// in returns by market the number of plain nodes of a pool.
func (x *nodeIndex) in(p policy.PoolID) []int32 {
	return x.plain[int(1+p)*x.markets : int(2+p)*x.markets]
}

// live reports whether the slot holds a node that exists or is on its way.
func (n *nodeEntry) live() bool { return n.phase != policy.NodeGone }

// stays reports whether n is usable and nobody empties it.
func (n *nodeEntry) stays() bool { return n.usable && n.actedBy == policy.ActorNone }

// plain reports whether n stays and has a market: most nodes do.
func (n *nodeEntry) plain() bool { return n.stays() && n.market >= 0 }
