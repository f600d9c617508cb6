package sim

import (
	"github.com/spotter-dev/spotter/policy"
)

// nodes are the nodes of the cluster, from their launch until their Node object goes away.
type nodes struct {
	*environment
	consolidation *consolidation
	observer      *observer
	pools         *pools
	watch         *watch

	all   []policy.Node
	state []nodeState
	free  []policy.NodeID // slots without a node
	held  holding

	// sizes are what pools hold or have on its way, nodes that are going left out, and
	// plans say which nodes Karpenter plans with. Both follow touch.
	sizes []poolSize // by pool
	plans []plan     // by node
}

// A poolSize is capacity of a pool, in vCPU, or GPUs where those are counted.
type poolSize struct{ spot, total int64 }

// A plan says how Karpenter plans with a node.
type plan uint8

const (
	planWithout plan = iota // it is going, or gone
	planComing              // it is on its way
	planThere               // it takes pods
)

// A nodeState is what the simulator knows of a node beyond its policy.Node.
type nodeState struct {
	gen       int32 // changes whenever the slot gets a new owner
	born      int   // how many nodes were launched up to this one
	slot      int32 // of its market
	drain     int32 // index into run.drains, or -1
	pods      int32 // bound to it, DaemonSets' left out
	nominated int32 // pending pods that were promised a place
	dirty     uint8
	spot      bool
	billed    bool // its bill is made: it runs no longer
	lost      bool // the provider took it, though the cluster may not know yet
	held      bool // it counts as capacity held
	sized     bool // it counts in nodes.sizes

	gentle bool // a drain of ours may leave no workload below what it must have

	size   int64    // vCPU, or GPUs where those are counted
	images []uint64 // bit set of templates whose image it has
}

// firstOf reports whether template t has not run here before, and notes that
// it has now.
func (x *nodeState) firstOf(t int) bool {
	for len(x.images) <= t/64 {
		x.images = append(x.images, 0)
	}
	bit := uint64(1) << (t % 64)
	first := x.images[t/64]&bit == 0
	x.images[t/64] |= bit
	return first
}

// hold counts a node as capacity held, or no longer.
func (ns *nodes) hold(id policy.NodeID, held bool) {
	x := &ns.state[id]
	if x.held == held {
		return
	}
	x.held = held
	h, d := &ns.held, int64(1)
	if !held {
		d = -1
	}
	h.advance(ns.q.Now, ns.window)
	h.nodes += d
	h.size += d * x.size
	if x.spot {
		h.spotNodes += d
		h.spotSize += d * x.size
	}
	ns.pools.bounds[ns.all[id].Pool].hold(ns.q.Now, ns.window, x.size, d, x.spot)
}

// recount counts a node that changed in sizes, or no longer, and says how it is planned with.
func (ns *nodes) recount(id policy.NodeID) {
	n, x := &ns.all[id], &ns.state[id]
	sized := n.Live() && n.Phase <= policy.NodeInitialized && x.drain < 0
	if sized != x.sized {
		x.sized = sized
		s, d := &ns.sizes[n.Pool], x.size
		if !sized {
			d = -d
		}
		s.total += d
		if x.spot {
			s.spot += d
		}
	}
	for len(ns.plans) <= int(id) {
		ns.plans = append(ns.plans, planWithout)
	}
	switch {
	case !sized || n.NotReady || n.ReclaimAt != 0:
		ns.plans[id] = planWithout
	case n.Phase < policy.NodeInitialized:
		ns.plans[id] = planComing
	default:
		ns.plans[id] = planThere
	}
}

// touch notes that a node changed.
func (ns *nodes) touch(id policy.NodeID) {
	ns.recount(id)
	ns.watch.node(id)
	ns.consolidation.tracker.noteNode(id)
	ns.observer.changes.NoteNode(id)
	x := &ns.state[id]
	for v := range ns.observer.view {
		if bit := uint8(1) << v; x.dirty&bit == 0 {
			x.dirty |= bit
			ns.observer.view[v].nodes = append(ns.observer.view[v].nodes, id)
		}
	}
}
