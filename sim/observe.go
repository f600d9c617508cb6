package sim

import (
	"context"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/market"
)

// An observer fills the snapshots that the policy decides on.
type observer struct {
	*environment
	bills     *bills
	budgets   *gpuBudgets
	jobs      *jobs
	market    *market.Market
	nodes     *nodes
	pdbs      *disruptionBudgets
	pods      *pods
	pools     *pools
	serving   *serving
	workloads *workloads

	view      [2]view
	changes   policy.Changes
	turn      int
	ended     []policy.EndedPod
	pdbsDirty [2]bool
}

// A view is one of the two snapshots that the observer fills in turn, with what
// changed since it was last filled.
type view struct {
	snap  policy.Snapshot
	nodes []policy.NodeID
	pods  []policy.PodID
	work  []policy.WorkloadID
}

// init makes the two snapshots; what never changes is shared.
func (ob *observer) init() {
	w := ob.scenario
	for v := range ob.view {
		s := &ob.view[v].snap
		s.Types, s.Zones, s.Templates = w.Types, w.Zones, w.Templates
		s.Markets = slices.Clone(w.Markets)
		s.Pools = slices.Clone(ob.pools.all)
		s.PDBs = slices.Clone(ob.pdbs.all)
		s.Workloads = make([]policy.Workload, len(w.Workloads))
		for i := range w.Workloads {
			s.Workloads[i] = w.Workloads[i].Workload
		}
		s.Commitments = slices.Clone(w.Commitments)
		s.Sources = []policy.Source{{Name: "prices"}, {Name: "cluster"}}
		for i := range s.Markets {
			ob.market.Publish(&s.Markets[i])
		}
	}
	ob.pdbsDirty = [2]bool{true, true}
}

// Observe fills the older of the two snapshots with what changed since it was
// filled, and returns it.
func (ob *observer) Observe(context.Context) (*policy.Snapshot, error) {
	v, bit := &ob.view[ob.turn], uint8(1)<<ob.turn
	s := &v.snap
	s.Now = ob.q.Now
	for i := range s.Markets {
		ob.market.Observe(&s.Markets[i])
	}
	for i := range s.Commitments {
		if c := &s.Commitments[i]; c.Until > 0 && c.Until <= ob.q.Now {
			c.Amount = 0
		}
		s.Commitments[i].Unused = ob.bills.account.Coverage().Unused(i)
	}
	for i := range ob.pools.all {
		ob.pools.refreshBudgets(policy.PoolID(i))
	}
	copy(s.Pools, ob.pools.all)
	s.Budgets = ob.budgets.all
	for i := range s.Pools {
		s.Pools[i].Actions = nil
	}
	s.Nodes = append(s.Nodes, ob.nodes.all[len(s.Nodes):]...)
	for _, id := range v.nodes {
		s.Nodes[id] = ob.nodes.all[id]
		ob.nodes.state[id].dirty &^= bit
	}
	s.Pods = append(s.Pods, ob.pods.all[len(s.Pods):]...)
	for _, id := range v.pods {
		s.Pods[id] = ob.pods.all[id]
		ob.pods.state[id].dirty &^= bit
	}
	for _, id := range v.work {
		ob.observeWork(s, id)
		ob.workloads.state[id].dirty &^= bit
	}
	if ob.pdbsDirty[ob.turn] {
		copy(s.PDBs, ob.pdbs.all)
		ob.pdbsDirty[ob.turn] = false
	}
	v.nodes, v.pods, v.work = v.nodes[:0], v.pods[:0], v.work[:0]
	s.Ended = append(s.Ended[:0], ob.ended...)
	ob.ended = ob.ended[:0]
	for i := range s.Sources {
		s.Sources[i].At = ob.q.Now
	}
	ob.turn = 1 - ob.turn
	ob.changes.Publish(s)
	return s, nil
}

func (ob *observer) observeWork(s *policy.Snapshot, id policy.WorkloadID) {
	w, g := &s.Workloads[id], &ob.serving.of[id]
	w.Replicas, w.Ready = g.wanted, g.seen
	if ob.scenario.Workloads[id].Job == nil {
		return
	}
	w.Replicas, w.Deadline, w.Work, w.PausedBy = ob.workloads.state[id].active, 0, 0, ob.jobs.suspendedBy[id]
	w.Suspended = w.PausedBy != ""
	for _, i := range ob.jobs.of[id] {
		j := &ob.jobs.all[i]
		if j.due != 0 && !j.settled && (w.Deadline == 0 || j.due < w.Deadline) {
			w.Deadline = j.due
		}
		for k := range j.tasks {
			if !j.tasks[k].over {
				w.Work += ob.scenario.Workloads[id].Job.Work - j.tasks[k].done
			}
		}
	}
}
