package controller

import (
	"context"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/cluster"
)

// An Observer fills the snapshots for the policy.
type Observer struct {
	*Controller

	view      [2]view
	changes   policy.Changes
	turn      int
	ended     []policy.EndedPod
	pdbsDirty [2]bool
}

// A view is one of the two snapshots that the observer fills in turn, with the objects that changed
// since it was last filled.
type view struct {
	snap  policy.Snapshot
	nodes changed[policy.NodeID]
	pods  changed[policy.PodID]
	work  changed[policy.WorkloadID]
}

// A changed is a list of objects that are not yet updated in a view, without duplicates.
type changed[ID ~int32] struct {
	list []ID
	in   []bool // by object id
}

func (c *changed[ID]) add(id ID) {
	for len(c.in) <= int(id) {
		c.in = append(c.in, false)
	}
	if !c.in[id] {
		c.in[id] = true
		c.list = append(c.list, id)
	}
}

// take calls f for each object, and empties the list.
func (c *changed[ID]) take(f func(ID)) {
	for _, id := range c.list {
		c.in[id] = false
		f(id)
	}
	c.list = c.list[:0]
}

// init creates the two snapshots. They share what never changes.
func (ob *Observer) init() {
	w := ob.Scenario
	for v := range ob.view {
		s := &ob.view[v].snap
		s.Types, s.Zones, s.Templates = w.Types, w.Zones, w.Templates
		s.Markets = slices.Clone(w.Markets)
		s.Pools = slices.Clone(ob.Pools.All)
		s.PDBs = slices.Clone(ob.PDBs.All)
		s.Workloads = make([]policy.Workload, len(w.Workloads))
		for i := range w.Workloads {
			s.Workloads[i] = w.Workloads[i].Workload
		}
		s.Commitments = slices.Clone(w.Commitments)
		s.Sources = []policy.Source{{Name: "prices", Prices: true}, {Name: "cluster"}}
		for i := range s.Markets {
			ob.Market.Publish(&s.Markets[i])
		}
	}
	ob.pdbsDirty = [2]bool{true, true}
	ob.watch()
}

// watch subscribes the views to changes.
func (ob *Observer) watch() {
	ob.NodeChanged.Subscribe(func(id policy.NodeID) {
		ob.changes.NoteNode(id)
		ob.view[0].nodes.add(id)
		ob.view[1].nodes.add(id)
	})
	ob.PodChanged.Subscribe(func(id policy.PodID) {
		ob.changes.NotePod(id)
		ob.view[0].pods.add(id)
		ob.view[1].pods.add(id)
	})
	ob.WorkloadChanged.Subscribe(func(id policy.WorkloadID) {
		ob.view[0].work.add(id)
		ob.view[1].work.add(id)
	})
	ob.PDBsChanged.Subscribe(func(policy.WorkloadID) { ob.pdbsDirty = [2]bool{true, true} })
	ob.PodEnded.Subscribe(func(p cluster.EndedPod) { ob.ended = append(ob.ended, p.EndedPod) })
}

// Observe updates the older of the two snapshots with the changes since it was last filled, and
// returns it.
func (ob *Observer) Observe(context.Context) (*policy.Snapshot, error) {
	v := &ob.view[ob.turn]
	s := &v.snap
	s.Now = ob.Clock.Now
	for i := range s.Markets {
		ob.Market.Observe(&s.Markets[i])
	}
	for i := range s.Commitments {
		if c := &s.Commitments[i]; c.Until > 0 && c.Until <= ob.Clock.Now {
			c.Amount = 0
		}
		s.Commitments[i].Unused = ob.Bills.Unused(i)
	}
	for i := range ob.Pools.All {
		ob.Pools.RefreshDisruptionBudgets(policy.PoolID(i))
	}
	copy(s.Pools, ob.Pools.All)
	s.Budgets = ob.GPUBudgets.All
	for i := range s.Pools {
		s.Pools[i].Actions = nil
	}
	s.Nodes = append(s.Nodes, ob.Nodes.All[len(s.Nodes):]...)
	v.nodes.take(func(id policy.NodeID) { s.Nodes[id] = ob.Nodes.All[id] })
	s.Pods = append(s.Pods, ob.Pods.All[len(s.Pods):]...)
	v.pods.take(func(id policy.PodID) { s.Pods[id] = ob.Pods.All[id] })
	v.work.take(func(id policy.WorkloadID) { ob.Workloads.Observe(id, &s.Workloads[id]) })
	if ob.pdbsDirty[ob.turn] {
		copy(s.PDBs, ob.PDBs.All)
		ob.pdbsDirty[ob.turn] = false
	}
	s.Ended = append(s.Ended[:0], ob.ended...)
	ob.ended = ob.ended[:0]
	for i := range s.Sources {
		s.Sources[i].At = ob.Clock.Now
	}
	ob.turn = 1 - ob.turn
	ob.changes.Publish(s)
	return s, nil
}
