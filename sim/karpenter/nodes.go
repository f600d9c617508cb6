package karpenter

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeOrder lists the existing nodes as they are tried in simulations.
type nodeOrder struct {
	order       []policy.NodeID // existing nodes as they are tried; shut is parallel
	shut        []bool
	cpu         []int64 // free on order
	place       []int32 // by node: where it is in order, -1 for nowhere
	least       int64   // what a node must have free to be in order
	topology    bool    // pods heed where others run
	initialized int
	going       []policy.NodeID
	late        []policy.NodeID // not initialized
}

// read fills the order in which existing nodes are tried: those that take pods,
// initialized ones first. Where pods ask for nothing but room, nodes without room for any
// of them are left out. It also lists the nodes that go.
func (o *nodeOrder) read(c *Cluster) {
	o.order, o.shut, o.cpu, o.going, o.late = o.order[:0], o.shut[:0], o.cpu[:0], o.going[:0], o.late[:0]
	o.place = append(o.place[:0], make([]int32, len(c.Nodes))...)
	for i := range o.place {
		o.place[i] = -1
	}
	o.readTemplates(c)
	for _, id := range c.Order {
		switch n := &c.Nodes[id]; {
		case deleting(n):
			o.going = append(o.going, id)
		case n.Usable():
			o.queue(c, n)
		case n.Live() && n.Phase < policy.NodeInitialized:
			o.late = append(o.late, id)
		}
	}
	o.initialized = len(o.order)
	for _, id := range o.late {
		o.queue(c, &c.Nodes[id])
	}
}

// readTemplates finds whether pods heed where others run, and the smallest CPU request
// of one that may look for a place: the least number of all where existing nodes mean
// more to some than their room.
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

// queue adds a node to the order where it has the CPU for a pod.
func (o *nodeOrder) queue(c *Cluster, n *policy.Node) {
	cpu := c.Space.Free(n.ID).CPU
	if cpu < o.least {
		return
	}
	o.place[n.ID] = int32(len(o.order))
	o.order, o.cpu = append(o.order, n.ID), append(o.cpu, cpu)
	o.shut = append(o.shut, c.underConsolidateAfter(n))
}
