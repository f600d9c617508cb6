package karpetrack

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A nodeIndex contains the properties of all nodes of a snapshot that decisions read. It is kept
// from decision to decision, since little changes in between. A bound in it may include nodes that
// no longer exist, until all nodes are read again; such a bound is only less tight.
type nodeIndex struct {
	mark policy.Mark // of the snapshot that was read last

	// coming are the nodes that are starting, noticed the nodes under notice, and movable the nodes
	// that may be replaced, judged by the node alone.
	coming, noticed, movable policy.SlotSet[policy.NodeID]

	// The other fields describe the space as it was last loaded. By pool and market, lists contains
	// the nodes that may be replaced and have pods, and least the smallest requests on any of them,
	// resource by resource.
	lists   scratch.Lists
	least   []policy.Resources
	markets int
}

// read updates coming, noticed and movable to s.
func (x *nodeIndex) read(s *policy.Snapshot) {
	changed := s.NodesSince(x.mark)
	x.coming.Read(changed, func(id policy.NodeID) bool {
		return s.Nodes[id].Live() &&
			s.Nodes[id].Phase < policy.NodeInitialized
	})
	x.noticed.Read(changed, func(id policy.NodeID) bool { return s.Nodes[id].Live() && s.Nodes[id].ReclaimAt != 0 })
	x.movable.Read(changed, func(id policy.NodeID) bool { return movable(s, &s.Nodes[id]) })
	x.mark = s.Mark()
}

// in reports whether any of nodes belongs to pool.
func in(s *policy.Snapshot, pool policy.PoolID, nodes []policy.NodeID) bool {
	return slices.ContainsFunc(nodes, func(id policy.NodeID) bool { return s.Nodes[id].Pool == pool })
}

// aged returns the movable nodes of pool that are at least age old.
func (x *nodeIndex) aged(s *policy.Snapshot, pool policy.PoolID, age time.Duration) (nodes []policy.NodeID) {
	for _, id := range x.movable.All() {
		if n := &s.Nodes[id]; n.Pool == pool && s.Now.Sub(n.Launched) >= age {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

// movable reports whether n may be replaced, judged by the node alone.
func movable(s *policy.Snapshot, n *policy.Node) bool {
	return n.Pool != policy.None && replan.MayLeave(n) && n.Market != policy.None &&
		s.Markets[n.Market].Capacity != policy.Reserved
}

// readSpace updates lists and least to sp, which must just have been loaded with s.
func (x *nodeIndex) readSpace(s *policy.Snapshot, sp *placement.Space) {
	if nodes, some := sp.Renewed(); some && x.markets == len(s.Markets) && len(x.least) == len(s.Pools)*x.markets {
		for _, id := range nodes {
			x.readNode(s, sp, id)
		}
		return
	}
	x.markets = len(s.Markets)
	x.least = slices.Repeat([]policy.Resources{noRequest}, len(s.Pools)*x.markets)
	x.lists.Clear()
	for i := range s.Nodes {
		x.readNode(s, sp, policy.NodeID(i))
	}
}

func (x *nodeIndex) readNode(s *policy.Snapshot, sp *placement.Space, id policy.NodeID) {
	n := &s.Nodes[id]
	if !movable(s, n) || sp.Requested(id).Pods == 0 {
		x.lists.Put(int(id), policy.None)
		return
	}
	cell := x.cell(n.Pool, n.Market)
	x.lists.Put(int(id), cell)
	x.lower(cell, sp.Requested(id))
}

func (x *nodeIndex) cell(pool policy.PoolID, market policy.MarketID) int {
	return int(pool)*x.markets + int(market)
}

// noRequest is the value of least for a pool and market without nodes that have pods.
var noRequest = policy.Resources{CPU: math.MaxInt64, Memory: math.MaxInt64, GPU: math.MaxInt64, Pods: math.MaxInt64}

// lower lowers the bound of cell to need, the requests on one of its nodes.
func (x *nodeIndex) lower(cell int, need policy.Resources) {
	least := &x.least[cell]
	*least = policy.Resources{
		CPU: min(least.CPU, need.CPU), Memory: min(least.Memory, need.Memory), GPU: min(least.GPU,
			need.GPU), Pods: min(least.Pods, need.Pods),
	}
}

// asked calls may for each market in which pool has replaceable nodes with pods, with a lower bound
// of the requests on any of these nodes. Where may returns true, asked calls visit for each of
// these nodes and makes the bound exact.
func (x *nodeIndex) asked(sp *placement.Space, pool policy.PoolID, may func(policy.MarketID, policy.Resources) bool,
	visit func(policy.NodeID)) {
	for m := range x.markets {
		cell := x.cell(pool, policy.MarketID(m))
		if x.lists.First(cell) < 0 || !may(policy.MarketID(m), x.least[cell]) {
			continue
		}
		x.least[cell] = noRequest
		for id := x.lists.First(cell); id >= 0; id = x.lists.Next(id) {
			x.lower(cell, sp.Requested(policy.NodeID(id)))
			visit(policy.NodeID(id))
		}
	}
}
