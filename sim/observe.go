package sim

import (
	"context"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A view is one of the two snapshots that the observer fills in turn, with what
// changed since it was last filled.
type view struct {
	snap  policy.Snapshot
	nodes []policy.NodeID
	pods  []policy.PodID
	work  []policy.WorkloadID
}

// newViews makes the two snapshots; what never changes is shared.
func (r *run) newViews() {
	w := r.world
	onDemand := make(map[policy.Money][]policy.Money) // equal flat histories are one
	for v := range r.view {
		s := &r.view[v].snap
		s.Types, s.Zones, s.Templates = w.Types, w.Zones, w.Templates
		s.Markets = slices.Clone(w.Markets)
		s.Pools = slices.Clone(r.pools)
		s.PDBs = slices.Clone(r.pdbs)
		s.Workloads = make([]policy.Workload, len(w.Workloads))
		for i := range w.Workloads {
			s.Workloads[i] = w.Workloads[i].Workload
		}
		s.Commitments = slices.Clone(w.Commitments)
		s.Sources = []policy.Source{{Name: "prices"}, {Name: "cluster"}}
		for i := range s.Markets {
			s.Markets[i].Band, s.Markets[i].BandModelled = r.weather.Band(i)
			if r.stage.grid[i] == nil {
				p := r.stage.prices[i].Price[0]
				if onDemand[p] == nil {
					onDemand[p] = slices.Repeat([]policy.Money{p}, historySize)
				}
				s.Markets[i].History = onDemand[p]
			}
		}
	}
	r.pdbsDirty = [2]bool{true, true}
}

// Observe fills the older of the two snapshots with what changed since it was
// filled, and returns it.
func (r *run) Observe(context.Context) (*policy.Snapshot, error) {
	v, bit := &r.view[r.turn], uint8(1)<<r.turn
	s := &v.snap
	s.Now = r.q.now
	r.observeMarkets(s)
	for i := range s.Commitments {
		s.Commitments[i].Unused = r.account.Coverage().Unused(i)
	}
	for i := range r.pools {
		r.refreshBudgets(policy.PoolID(i))
	}
	copy(s.Pools, r.pools)
	s.Budgets = r.budgets
	for i := range s.Pools {
		s.Pools[i].Actions = nil
	}
	for len(s.Nodes) < len(r.nodes) {
		s.Nodes = append(s.Nodes, policy.Node{})
	}
	for _, id := range v.nodes {
		s.Nodes[id] = r.nodes[id]
		r.nodeX[id].dirty &^= bit
	}
	for len(s.Pods) < len(r.pods) {
		s.Pods = append(s.Pods, policy.Pod{})
	}
	for _, id := range v.pods {
		s.Pods[id] = r.pods[id]
		r.podX[id].dirty &^= bit
	}
	for _, id := range v.work {
		r.observeWork(s, id)
		r.work[id].dirty &^= bit
	}
	if r.pdbsDirty[r.turn] {
		copy(s.PDBs, r.pdbs)
		r.pdbsDirty[r.turn] = false
	}
	v.nodes, v.pods, v.work = v.nodes[:0], v.pods[:0], v.work[:0]
	s.Ended = append(s.Ended[:0], r.ended...)
	r.ended = r.ended[:0]
	for i := range s.Sources {
		s.Sources[i].At = r.q.now
	}
	r.turn = 1 - r.turn
	return s, nil
}

func (r *run) observeMarkets(s *policy.Snapshot) {
	k := int((r.q.now - r.stage.gridFrom) / gridStep)
	for i := range s.Markets {
		m, ms := &s.Markets[i], &r.market[i]
		m.Price, m.Offered = r.price(policy.MarketID(i))
		if !m.Offered {
			m.Price = 0
		}
		m.PricedAt = min(r.stage.prices[i].At[ms.cursor], r.q.now)
		if r.world.Signals != nil {
			r.world.Signals[i].Publish(m, r.q.now)
		}
		if row := r.stage.grid[i]; row != nil {
			m.History = row[k-historySize+1 : k+1 : k+1]
		}
		if ms.running > 0 || ms.seen.At != 0 {
			ms.meet(r.q.now)
			m.Experience = ms.seen
		}
	}
}

func (r *run) observeWork(s *policy.Snapshot, id policy.WorkloadID) {
	w, g := &s.Workloads[id], &r.gauges[id]
	w.Replicas, w.Ready = g.wanted, g.seen
	if r.world.Workloads[id].Job == nil {
		return
	}
	w.Replicas, w.Deadline, w.Work, w.Suspended = r.work[id].active, 0, 0, r.suspended[id]
	for _, i := range r.jobsOf[id] {
		j := &r.jobs[i]
		if j.due != 0 && !j.settled && (w.Deadline == 0 || j.due < w.Deadline) {
			w.Deadline = j.due
		}
		for k := range j.tasks {
			if !j.tasks[k].over {
				w.Work += r.world.Workloads[id].Job.Work - j.tasks[k].done
			}
		}
	}
}
