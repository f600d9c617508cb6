package karpenter

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// An origin is why a pod is part of a simulation.
type origin uint8

const (
	pending  origin = iota // it has no node
	leaving                // it is on a candidate
	uprooted               // it is on a node that goes already
)

// A mover is a pod that looks for a place in a simulation: the one of its position in
// the batch.
type mover struct {
	from   policy.NodeID // where others heed that it runs, or None
	origin origin
}

// A simulation is what scheduling would do once candidates are gone.
type simulation struct {
	// scheduled says that all pods but pending ones found a place, none of the
	// candidates' on a node that is not initialized, with no more claims than asked for.
	// Nothing else is known where it is false.
	scheduled bool

	// claims are the new nodes: of offers, for pods of the batch.
	claims []placement.Bin
	offers []placement.Offer

	// targets are the nodes that take pods, one for each pod.
	targets []policy.NodeID
}

// simulate schedules the pods of the candidates, those of nodes that go already
// and the pending ones, as if the candidates were not there (helpers.go,
// SimulateScheduling). It ends where that takes more than claimsMax claims.
func (d *Disruptor) simulate(c *Cluster, candidates []Candidate, claimsMax int) simulation {
	d.Simulations++
	if !d.prepared {
		d.prepare(c)
	}
	d.leave(c, candidates)
	pods := d.batch.Pods
	for i, m := range d.movers {
		if m.from != policy.None {
			c.Space.Unbind(&pods[i], m.from)
		}
	}
	sim := d.solve(c, claimsMax)
	for i, m := range d.movers {
		if m.from != policy.None {
			c.Space.Bind(&c.Pods[pods[i].ID], m.from)
		}
	}
	return sim
}

// prepare readies the simulations of one look: what they all have in common.
func (d *Disruptor) prepare(c *Cluster) {
	d.prepared = true
	b := &d.batch
	b.Nodes, b.Resting = d.order, d.shut
	b.Draw = nil
	if c.Draw != nil {
		b.Draw = func(pod int, key string, ties []string) int { return c.Draw(b.Pods[pod].ID, key, ties) }
	}
	d.movers, b.Pods = d.movers[:0], b.Pods[:0]
	for _, id := range c.Pending {
		if p := &c.Pods[id]; p.Phase == policy.PodPending && !p.Gated {
			d.move(c, p, policy.None, pending)
		}
	}
	for _, n := range d.going {
		for _, id := range c.Space.Pods(n) {
			if p := &c.Pods[id]; c.reschedulable(p) && c.currentlyReschedulable(p) {
				d.move(c, p, n, uprooted)
			}
		}
	}
	d.common = len(d.movers)
	c.Space.Solver().Prepare(b)
}

// move adds a pod to those that look for a place. No pods of candidates come to nodes
// under consolidateAfter; those that are starting count as pending there
// (scheduling/scheduler.go, addToExistingNode).
func (d *Disruptor) move(c *Cluster, p *policy.Pod, from policy.NodeID, why origin) {
	if t := &c.Templates[p.Template]; !d.topology && len(t.Volumes) == 0 {
		from = policy.None
	}
	x := *p
	x.Node = policy.None
	if why != leaving || p.Phase == policy.PodStarting {
		x.Phase = policy.PodPending
	}
	d.movers, d.batch.Pods = append(d.movers, mover{from, why}), append(d.batch.Pods, x)
}

// leave takes the candidates from the nodes, and adds their pods to the movers.
func (d *Disruptor) leave(c *Cluster, candidates []Candidate) {
	b := &d.batch
	d.movers, b.Pods, b.Without, d.leaving = d.movers[:d.common], b.Pods[:d.common], b.Without[:0], d.leaving[:0]
	for _, x := range candidates {
		d.leaving = append(d.leaving, x.Node)
		if at := d.place[x.Node]; at >= 0 {
			b.Without = append(b.Without, int(at))
		}
		for _, id := range c.Space.Pods(x.Node) {
			if p := &c.Pods[id]; c.reschedulable(p) {
				d.move(c, p, x.Node, leaving)
			}
		}
	}
	b.Pools = c.View.Pools(d.leaving)
}

// currentlyReschedulable reports whether p, on a node that goes, will be evicted
// some day: it is not kept by its annotation or by a budget that never allows it
// (pkg/utils/pdb, IsCurrentlyReschedulable).
func (c *Cluster) currentlyReschedulable(p *policy.Pod) bool {
	if p.Phase == policy.PodTerminating {
		return true
	}
	t := &c.Templates[p.Template]
	switch {
	case p.DoNotDisrupt:
		return false
	case len(t.PDBs) == 0 || toleratesDisrupted(t):
		return true
	case len(t.PDBs) > 1:
		return false
	}
	b := &c.PDBs[t.PDBs[0]]
	if b.AlwaysAllowUnhealthy && p.Phase != policy.PodReady {
		return true
	}
	none := policy.Quantity{Set: true}
	return b.MaxUnavailable != none && b.MaxUnavailable != (policy.Quantity{Set: true, Percent: true}) &&
		b.MinAvailable != (policy.Quantity{Set: true, Percent: true, N: 100})
}

// solve places the movers as Karpenter's scheduler does.
func (d *Disruptor) solve(c *Cluster, claimsMax int) simulation {
	b := &d.batch
	b.Abort = func(pod int, n policy.NodeID, claims int) bool {
		return claims > claimsMax || n != policy.None && d.movers[pod].origin == leaving && c.Nodes[n].Phase != policy.NodeInitialized
	}
	sol := c.Space.Solver().Attempt()
	if sol.Aborted {
		return simulation{}
	}
	sim := simulation{scheduled: true, claims: sol.Bins, offers: b.Offers, targets: d.targets[:0]}
	for _, n := range sol.Nodes {
		if n != policy.None {
			sim.targets = append(sim.targets, n)
		}
	}
	for _, i := range sol.Unplaced {
		sim.scheduled = sim.scheduled && d.movers[i].origin == pending
	}
	d.targets = sim.targets
	return sim
}

// line fills the order in which existing nodes are tried: those that take pods,
// initialized ones first. Where pods ask for nothing but room, nodes without room for any
// of them are left out. It also lists the nodes that go, and the offers.
func (d *Disruptor) line(c *Cluster) {
	d.prepared = false
	d.batch.Offers, d.batch.OffersVersion = c.View.Offers()
	d.order, d.shut, d.cpu, d.going, d.nodes = d.order[:0], d.shut[:0], d.cpu[:0], d.going[:0], d.nodes[:0]
	d.place = append(d.place[:0], make([]int32, len(c.Nodes))...)
	for i := range d.place {
		d.place[i] = -1
	}
	d.readTemplates(c)
	for _, id := range c.Order {
		switch n := &c.Nodes[id]; {
		case deleting(n):
			d.going = append(d.going, id)
		case n.Usable():
			d.queue(c, n)
		case n.Live() && n.Phase < policy.NodeInitialized:
			d.nodes = append(d.nodes, id)
		}
	}
	d.initialized = len(d.order)
	for _, id := range d.nodes {
		d.queue(c, &c.Nodes[id])
	}
}

// readTemplates finds whether pods heed where others run, and the smallest CPU request
// of one that may look for a place: the least number of all where existing nodes mean
// more to some than their room.
func (d *Disruptor) readTemplates(c *Cluster) {
	d.topology, d.least = false, math.MaxInt64
	for i := range c.Templates {
		t := &c.Templates[i]
		if len(t.Spread) > 0 || len(t.PodAffinity) > 0 || len(t.PodAntiAffinity) > 0 {
			d.topology, d.least = true, math.MinInt64
			return
		}
		if !t.DaemonSet {
			d.least = min(d.least, t.Requests.CPU)
		}
	}
	for _, id := range c.Pending {
		d.least = min(d.least, c.Templates[c.Pods[id].Template].Requests.CPU)
	}
}

// queue adds a node to the order where it has the CPU for a pod.
func (d *Disruptor) queue(c *Cluster, n *policy.Node) {
	cpu := c.Space.Free(n.ID).CPU
	if cpu < d.least {
		return
	}
	d.place[n.ID] = int32(len(d.order))
	d.order, d.cpu = append(d.order, n.ID), append(d.cpu, cpu)
	d.shut = append(d.shut, c.underConsolidateAfter(n))
}

// marks is a set of small numbers that is emptied at once.
type marks struct {
	of   []uint32
	turn uint32
}

func (m *marks) next(n int) {
	m.turn++
	for len(m.of) < n {
		m.of = append(m.of, 0)
	}
}

func (m *marks) set(n policy.NodeID)      { m.of[n] = m.turn }
func (m *marks) has(n policy.NodeID) bool { return m.of[n] == m.turn }
