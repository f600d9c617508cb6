package karpenter

import (
	"math"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeOrder lists the existing nodes in the order in which simulations try them.
type nodeOrder struct {
	order       []policy.NodeID // existing nodes in the order of tries; shut and cpu are parallel
	shut        []bool
	cpu         []int64 // free, in milli-CPU
	place       []int32 // by node, its position in order, or -1
	least       int64   // free CPU below which a node is left out of order, in milli-CPU
	topology    bool    // the placement of some pods depends on other pods
	initialized int
	going       []policy.NodeID
	late        []policy.NodeID // not initialized
	known       []orderedNode   // by node
	after       []time.Duration // by pool: consolidateAfter where the pool consolidates, else 0
}

// An orderedNode caches what is read of a node until the node changes.
type orderedNode struct {
	part  part
	pool  policy.PoolID
	event policy.Time // last pod event of the node
	cpu   int64       // free CPU, in milli-CPU
}

// A part is the role of a node in simulations.
type part uint8

const (
	unread part = iota
	none
	going
	late        // accepts pods once it is initialized
	initialized // accepts pods
)

// forget marks the nodes that may have changed, so that they are read again.
func (o *nodeOrder) forget(c *Cluster) {
	for len(o.known) < len(c.Nodes) {
		o.known = append(o.known, orderedNode{})
	}
	if !c.Tracked {
		clear(o.known)
	}
	for _, id := range c.Changed {
		o.known[id].part = unread
	}
}

// about returns the cached properties of a node, and reads them if needed.
func (o *nodeOrder) about(c *Cluster, id policy.NodeID) *orderedNode {
	x := &o.known[id]
	if x.part != unread {
		return x
	}
	n := &c.Nodes[id]
	*x = orderedNode{none, n.Pool, c.View.LastPodEvent(id), c.Space.Free(id).CPU}
	switch {
	case deleting(n):
		x.part = going
	case n.Usable():
		x.part = initialized
	case n.Live() && n.Phase < policy.NodeInitialized:
		x.part = late
	}
	return x
}

// read fills the order in which existing nodes are tried: those that accept pods, initialized ones
// first. If pods request only resources, nodes without enough free resources for any of them are
// left out. It also lists the nodes that are being deleted.
func (o *nodeOrder) read(c *Cluster) {
	o.order, o.shut, o.cpu, o.going, o.late = o.order[:0], o.shut[:0], o.cpu[:0], o.going[:0], o.late[:0]
	o.place = append(o.place[:0], make([]int32, len(c.Nodes))...)
	for i := range o.place {
		o.place[i] = -1
	}
	o.readTemplates(c)
	o.readPools(c)
	o.forget(c)
	for _, id := range c.Order {
		switch x := o.about(c, id); x.part {
		case going:
			o.going = append(o.going, id)
		case initialized:
			o.queue(c, id)
		case late:
			o.late = append(o.late, id)
		}
	}
	o.initialized = len(o.order)
	for _, id := range o.late {
		o.queue(c, id)
	}
}

// readTemplates determines whether the placement of some pods depends on other pods, and computes
// least: the smallest CPU request of a pod that may be placed, or the minimum integer if pods
// depend on others, since existing nodes then matter for more than their free resources.
func (o *nodeOrder) readTemplates(c *Cluster) {
	o.topology, o.least = false, math.MaxInt64
	for i := range c.Templates {
		t := &c.Templates[i]
		if len(t.Spread) > 0 || len(t.PodAffinity) > 0 || len(t.PodAntiAffinity) > 0 {
			o.topology, o.least = true, math.MinInt64
			return
		}
		if !t.DaemonSet {
			o.least = min(o.least, t.Requests.CPU)
		}
	}
	for _, id := range c.Pending {
		o.least = min(o.least, c.Templates[c.Pods[id].Template].Requests.CPU)
	}
}

// readPools reads, by pool, for how long nodes accept no pods of candidates after a pod event; see
// underConsolidateAfter.
func (o *nodeOrder) readPools(c *Cluster) {
	o.after = o.after[:0]
	for p := range c.Pools {
		after := time.Duration(0)
		if !c.Version.Before(14) && c.managed(policy.PoolID(p)) && c.Consolidation[p] != policy.ConsolidateNever {
			after = c.Pools[p].ConsolidateAfter
		}
		o.after = append(o.after, after)
	}
}

// queue appends a node to the order if it has enough free CPU for a pod.
func (o *nodeOrder) queue(c *Cluster, id policy.NodeID) {
	x := &o.known[id]
	if x.cpu < o.least {
		return
	}
	o.place[id] = int32(len(o.order))
	o.order, o.cpu = append(o.order, id), append(o.cpu, x.cpu)
	o.shut = append(o.shut, x.part == initialized && x.pool >= 0 && c.Now.Sub(x.event) < o.after[x.pool])
}
