package karpenter

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A simulator simulates scheduling without the candidates. The common part of an evaluation's
// simulations is prepared once.
type simulator struct {
	nodes *nodeOrder

	// The following fields are scratch memory.
	prepared  bool     // whether the common part is prepared
	displaced []origin // origins of the pods to place, by index in the batch
	common    int      // number of pods that are part of every simulation
	bounded   bool     // whether limits of NodePools depend on the removed nodes
	targets   []policy.NodeID
	leaving   []policy.NodeID
	claimsMax int
	batch     placement.Batch

	unscheduled unscheduled
	optionBuf   []option
}

// An origin is the reason why a pod is part of a simulation.
type origin uint8

const (
	pending  origin = iota // the pod has no node
	leaving                // the pod is on a candidate
	uprooted               // the pod is on a node that is already being removed
)

// A simulation is the result of scheduling without the candidates.
type simulation struct {
	// scheduled reports whether all pods except pending ones were placed, no pod of a candidate on
	// an uninitialized node, with no more claims than allowed. Otherwise, the other fields are not
	// valid.
	scheduled bool

	// claims are the new nodes. They refer to offers and to pods of the batch.
	claims []placement.Bin
	offers []placement.Offer

	// targets are the existing nodes on which pods were placed, one entry for each pod.
	targets []policy.NodeID
}

// begin prepares the simulator for a state of the cluster.
func (sm *simulator) begin(c *Cluster, nodes *nodeOrder) {
	sm.nodes, sm.prepared = nodes, false
	sm.batch.Offers, sm.batch.OffersVersion = c.View.Offers()
}

// simulate schedules the pods of the candidates, the pods of nodes that are already being removed
// and the pending pods, as if the candidates did not exist (helpers.go, SimulateScheduling). It
// stops when more than claimsMax claims are needed.
func (sm *simulator) simulate(c *Cluster, candidates []Candidate, claimsMax int) simulation {
	if !sm.prepared {
		sm.prepare(c)
	}
	sm.leave(c, candidates)
	return sm.solve(c, claimsMax)
}

// prepare prepares the common part of an evaluation's simulations.
func (sm *simulator) prepare(c *Cluster) {
	sm.prepared = true
	b := &sm.batch
	b.Nodes, b.Resting = sm.nodes.order, sm.nodes.shut
	b.SharedPorts, b.SharedDaemons = c.Version.Before(13), c.Version.Before(14)
	b.Draw = nil
	if c.Draw != nil {
		b.Draw = func(pod int, key string, ties []string) int { return c.Draw(b.Pods[pod].ID, key, ties) }
	}
	b.Abort = func(pod int, n policy.NodeID, claims int) bool {
		return claims > sm.claimsMax ||
			n != policy.None && sm.displaced[pod] == leaving && c.Nodes[n].Phase != policy.NodeInitialized
	}
	sm.displaced, b.Pods, b.From = sm.displaced[:0], b.Pods[:0], b.From[:0]
	for _, id := range c.Pending {
		if p := &c.Pods[id]; p.Phase == policy.PodPending && !p.Gated {
			sm.move(c, p, policy.None, pending)
		}
	}
	for _, n := range sm.nodes.going {
		for _, id := range c.Space.Pods(n) {
			p := &c.Pods[id]
			if t := &c.Templates[p.Template]; CurrentlyReschedulable(p, t, c.Kinds[t.Workload], c.PDBs) {
				sm.move(c, p, n, uprooted)
			}
		}
	}
	sm.common = len(sm.displaced)
	b.Pools = c.View.Pools(nil)
	sm.bounded = slices.ContainsFunc(b.Pools, func(p placement.Pool) bool {
		return p.NodesFull ||
			p.Limits != (policy.Resources{})
	})
	c.Space.Solver().Prepare(b)
	sm.unscheduled.begin(c, sm)
}

// move adds a pod to the pods to place. Pods of candidates are not placed on nodes under
// consolidateAfter, except pods that are starting, which count as pending there
// (scheduling/scheduler.go, addToExistingNode).
func (sm *simulator) move(c *Cluster, p *policy.Pod, from policy.NodeID, why origin) {
	if t := &c.Templates[p.Template]; !sm.nodes.topology && len(t.Volumes) == 0 {
		from = policy.None
	}
	x := *p
	x.Node = policy.None
	if why != leaving || p.Phase == policy.PodStarting {
		x.Phase = policy.PodPending
	}
	b := &sm.batch
	sm.displaced, b.Pods, b.From = append(sm.displaced, why), append(b.Pods, x), append(b.From, from)
}

// leave removes the candidates from the nodes, and adds their pods to the pods to place.
func (sm *simulator) leave(c *Cluster, candidates []Candidate) {
	b := &sm.batch
	sm.displaced, b.Pods, b.From = sm.displaced[:sm.common], b.Pods[:sm.common], b.From[:sm.common]
	b.Without, sm.leaving = b.Without[:0], sm.leaving[:0]
	for _, x := range candidates {
		sm.leaving = append(sm.leaving, x.Node)
		if at := sm.nodes.place[x.Node]; at >= 0 {
			b.Without = append(b.Without, int(at))
		}
		for _, id := range c.Space.Pods(x.Node) {
			if p := &c.Pods[id]; c.reschedulable(p) {
				sm.move(c, p, x.Node, leaving)
			}
		}
	}
	if sm.bounded {
		b.Pools = c.View.Pools(sm.leaving)
	}
}

// CurrentlyReschedulable reports whether p, on a node that is being removed, will need another
// node: neither its annotation nor a PodDisruptionBudget that never allows an eviction prevents its
// eviction (pkg/utils/pdb, IsCurrentlyReschedulable). t is the template of p, kind the kind of its
// workload. budgets is indexed by t.PDBs.
func CurrentlyReschedulable(p *policy.Pod, t *policy.Template, kind policy.WorkloadKind, budgets []policy.PDB) bool {
	if !reschedulable(p, t, kind) {
		return false
	}
	if p.Phase == policy.PodTerminating {
		return true
	}
	switch {
	case p.DoNotDisrupt:
		return false
	case len(t.PDBs) == 0 || toleratesDisrupted(t):
		return true
	case len(t.PDBs) > 1:
		return false
	}
	b := &budgets[t.PDBs[0]]
	if b.AlwaysAllowUnhealthy && p.Phase != policy.PodReady {
		return true
	}
	none := policy.Quantity{Set: true}
	return b.MaxUnavailable != none && b.MaxUnavailable != (policy.Quantity{Set: true, Percent: true}) &&
		b.MinAvailable != (policy.Quantity{Set: true, Percent: true, N: 100})
}

// solve places the pods like Karpenter's scheduler.
func (sm *simulator) solve(c *Cluster, claimsMax int) simulation {
	sm.claimsMax = claimsMax
	sol := c.Space.Solver().Attempt()
	if sol.Aborted {
		return simulation{}
	}
	sim := simulation{scheduled: true, claims: sol.Bins, offers: sm.batch.Offers, targets: sm.targets[:0]}
	for _, n := range sol.Nodes {
		if n != policy.None {
			sim.targets = append(sim.targets, n)
		}
	}
	for _, i := range sol.Unplaced {
		sim.scheduled = sim.scheduled && sm.displaced[i] == pending
	}
	sm.targets = sim.targets
	return sim
}

// marks is a set of small numbers that can be emptied in constant time.
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
