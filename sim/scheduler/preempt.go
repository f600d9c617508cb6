package scheduler

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// Preemption considers a tenth of the nodes, but at least a hundred (DefaultPreemptionArgs:
// minCandidateNodesPercentage, minCandidateNodesAbsolute).
const (
	candidatesMin     = 100
	candidatesPercent = 10
)

// A candidate is a node on which a pod of higher priority fits without the victims.
type candidate struct {
	node    policy.NodeID
	victims []policy.PodID
	rank
}

// A rank contains the properties by which candidates are compared.
type rank struct {
	violations int32       // number of victims whose PodDisruptionBudgets allow no further disruption
	highest    int32       // priority of the most important victim
	count      int32       // number of victims; 0 if the pod does not fit
	sum        int64       // sum of the priorities of the victims, each shifted above 0
	started    policy.Time // earliest binding time of the most important victims
}

// Preempt returns a node on which p fits if pods of lower priority are removed, and these pods, as
// chosen by the DefaultPreemption plugin: the node with the fewest violated PodDisruptionBudgets,
// then with the least important victims, the lowest sum of priorities, the fewest victims and the
// youngest ones. Of equal nodes it returns the one with the lowest id, where kube-scheduler takes
// any. It returns policy.None if no node helps.
//
// pods and pdbs must be all of the cluster. Victims that are already terminating are also returned.
// (pkg/scheduler/framework/plugins/defaultpreemption, Kubernetes 1.35.)
func (s *Scheduler) Preempt(p *policy.Pod, pods []policy.Pod, pdbs []policy.PDB) (policy.NodeID, []policy.PodID) {
	if !s.mayPreempt(p, pods) {
		return policy.None, nil
	}
	m := &s.memories[p.Template]
	m.remember(s, p, pdbs)
	limit := max(candidatesMin, s.space.Nodes()*candidatesPercent/100)
	t, best, at := &s.templates[p.Template], rank{}, policy.NodeID(policy.None)
	for n, found := policy.NodeID(0), 0; int(n) < s.space.Nodes() && found < limit; n++ {
		if m.outcomes[n] == unknown {
			m.outcomes[n] = s.preemptibleOn(n, t.Priority, pods).outcome(t)
		}
		switch m.outcomes[n] {
		case helpless:
			continue
		case unexamined, unfit:
			if s.preemptibles[n].outdone(&best) {
				found++
				continue
			}
			if m.outcomes[n] == unexamined {
				s.preemptibleOn(n, t.Priority, pods)
				m.outcomes[n], m.ranks[n] = unfit, s.examine(p, n, pods, pdbs).rank
				if m.ranks[n].count > 0 {
					m.outcomes[n] = fit
				}
			}
			if m.outcomes[n] == unfit {
				continue
			}
		}
		if found++; at == policy.None || m.ranks[n].before(&best) {
			best, at = m.ranks[n], n
		}
	}
	if at == policy.None {
		s.Withdraw(p.ID)
		return policy.None, nil
	}
	s.preemptibleOn(at, t.Priority, pods)
	return at, slices.Clone(s.examine(p, at, pods, pdbs).victims)
}

// mayPreempt reports whether p may preempt other pods. It must not while victims of an earlier
// preemption are terminating on the node to which it is nominated, if that node can still help.
func (s *Scheduler) mayPreempt(p *policy.Pod, pods []policy.Pod) bool {
	t := &s.templates[p.Template]
	if t.PreemptionNever {
		return false
	}
	n := s.Nominated(p.ID)
	if n == policy.None || unresolvable(s.space.Check(p, n)) {
		return true
	}
	for _, other := range s.nominatedTo(n) {
		for _, v := range other.victims {
			x := &pods[v]
			if x.Node == n && x.Phase == policy.PodTerminating && s.templates[x.Template].Priority < t.Priority {
				return false
			}
		}
	}
	return true
}

// unresolvable reports whether v remains the same whichever pods are removed from the node.
func unresolvable(v placement.Result) bool {
	switch v {
	case placement.NoNode, placement.NotReady, placement.Unschedulable, placement.Tainted, placement.Unselected, placement.OtherZone, placement.Lonely:
		return true
	}
	return false
}

// A preemptible summarises the pods of one node that preemption may remove.
type preemptible struct {
	known    bool
	lowest   int32       // lowest priority of a pod; math.MaxInt32 without pods
	youngest policy.Time // latest binding time of the pods of that priority
	below    int32
	freed    policy.Resources // free resources without the pods whose priority is less than below
}

// preemptibleOn returns the summary of n for pods of a priority. It reads the pods of n only if n
// has changed, or if the last call was for another priority.
func (s *Scheduler) preemptibleOn(n policy.NodeID, priority int32, pods []policy.Pod) *preemptible {
	for int(n) >= len(s.preemptibles) {
		s.preemptibles = append(s.preemptibles, preemptible{})
	}
	x := &s.preemptibles[n]
	if x.known && (x.below == priority || x.lowest >= priority) {
		return x
	}
	*x = preemptible{known: true, lowest: math.MaxInt32, below: priority, freed: s.space.Free(n)}
	for _, v := range s.space.Pods(n) {
		t := &s.templates[pods[v].Template]
		switch {
		case t.Priority < x.lowest:
			x.lowest, x.youngest = t.Priority, pods[v].Bound
		case t.Priority == x.lowest:
			x.youngest = max(x.youngest, pods[v].Bound)
		}
		if t.Priority < priority {
			x.freed = x.freed.Plus(t.Requests)
		}
	}
	return x
}

// outcome returns what the pods of x and their requests imply for preemption by pods of t.
func (x *preemptible) outcome(t *policy.Template) outcome {
	if x.lowest >= t.Priority || !enough(&t.Requests, &x.freed) {
		return helpless
	}
	return unexamined
}

// outdone reports whether no set of victims among the pods of x can be better than best. This is
// the case if best violates no PodDisruptionBudget and its most important victim has a lower
// priority than every pod of x. It is also the case for an equal priority if that victim is its
// only one and was bound no earlier than the youngest such pod of x.
func (x *preemptible) outdone(best *rank) bool {
	if best.count == 0 || best.violations > 0 {
		return false
	}
	return x.lowest > best.highest || x.lowest == best.highest && best.count == 1 && x.youngest <= best.started
}

// examine returns n with the fewest pods that must be removed for p to fit, or without victims if
// that is not possible. The result is valid until the next call. preemptibleOn must have been
// called for n.
func (s *Scheduler) examine(p *policy.Pod, n policy.NodeID, pods []policy.Pod, pdbs []policy.PDB) *candidate {
	c := &s.candidate
	*c = candidate{node: n, victims: c.victims[:0], rank: rank{highest: math.MinInt32, started: math.MaxInt64}}
	priority, concerned := s.templates[p.Template].Priority, false
	s.lower = s.lower[:0]
	for _, v := range s.space.Pods(n) {
		if t := pods[v].Template; s.templates[t].Priority < priority {
			s.lower = append(s.lower, v)
			concerned = concerned || s.space.Scoring().Concerns(p.Template, t)
		}
	}
	if concerned {
		s.examineBound(c, p, n, pods, pdbs)
		return c
	}
	free := s.preemptibles[n].freed
	if !s.fitsInto(p, n, &free) {
		return c
	}
	s.byImportance(pods, pdbs)
	for _, v := range s.spared {
		if left := free.Minus(s.templates[pods[v.id].Template].Requests); s.space.Scoring().FitsInto(p.Template, n, &left) {
			free = left
		} else {
			s.addVictim(c, v, pods)
		}
	}
	return c
}

// examineBound is examine for a p whose filters depend on more than the resources of the pods in
// lower: it removes them from n and adds them again one by one.
func (s *Scheduler) examineBound(c *candidate, p *policy.Pod, n policy.NodeID, pods []policy.Pod, pdbs []policy.PDB) {
	if unresolvable(s.space.Check(p, n)) {
		return
	}
	for _, v := range s.lower {
		s.space.Unbind(&pods[v], n)
	}
	fits := s.Fits(p, n)
	s.byImportance(pods, pdbs)
	for _, v := range s.spared {
		s.space.Bind(&pods[v.id], n)
		if fits && !s.Fits(p, n) {
			s.space.Unbind(&pods[v.id], n)
			s.addVictim(c, v, pods)
		}
	}
	for _, v := range c.victims {
		s.space.Bind(&pods[v], n)
	}
}

// enough reports whether free is at least the requested resources. It is a quick check before the
// filters.
func enough(asked, free *policy.Resources) bool {
	for _, x := range [...][2]int64{
		{asked.CPU, free.CPU}, {asked.Memory, free.Memory}, {asked.Storage, free.Storage}, {asked.GPU, free.GPU}, {1,
			free.Pods},
	} {
		if x[0] > 0 && x[0] > x[1] {
			return false
		}
	}
	return true
}

// A spared is a pod in the order in which preemption tries to spare pods.
type spared struct {
	id       policy.PodID
	violates bool
}

// byImportance orders the pods in lower by descending priority, then by binding time, and moves
// those whose eviction would violate a PodDisruptionBudget to the front. Budgets are used up in the
// first order.
func (s *Scheduler) byImportance(pods []policy.Pod, pdbs []policy.PDB) {
	slices.SortFunc(s.lower, func(a, b policy.PodID) int {
		return cmp.Or(cmp.Compare(s.templates[pods[b].Template].Priority, s.templates[pods[a].Template].Priority),
			cmp.Compare(pods[a].Bound, pods[b].Bound), cmp.Compare(a, b))
	})
	s.pdbStates.grow(pdbs)
	s.spared = s.spared[:0]
	for _, id := range s.lower {
		v := spared{id: id}
		for _, b := range s.templates[pods[id].Template].PDBs {
			x := &s.pdbStates[b]
			x.used++
			x.most = max(x.most, x.used)
			v.violates = v.violates || x.used > pdbs[b].Allowed
		}
		s.spared = append(s.spared, v)
	}
	for _, id := range s.lower {
		for _, b := range s.templates[pods[id].Template].PDBs {
			s.pdbStates[b].used = 0
		}
	}
	slices.SortStableFunc(s.spared, func(a, b spared) int {
		switch {
		case a.violates == b.violates:
			return 0
		case a.violates:
			return -1
		}
		return 1
	})
}

// addVictim adds a victim to c.
func (s *Scheduler) addVictim(c *candidate, v spared, pods []policy.Pod) {
	priority, started := s.templates[pods[v.id].Template].Priority, pods[v.id].Bound
	c.victims = append(c.victims, v.id)
	c.count++
	if v.violates {
		c.violations++
	}
	// Since every priority is shifted above 0, fewer victims reduce the sum.
	c.sum += int64(priority) + math.MaxInt32 + 1
	switch {
	case priority > c.highest:
		c.highest, c.started = priority, started
	case priority == c.highest:
		c.started = min(c.started, started)
	}
}

func (r *rank) before(x *rank) bool {
	return cmp.Or(cmp.Compare(r.violations, x.violations), cmp.Compare(r.highest, x.highest), cmp.Compare(r.sum, x.sum),
		cmp.Compare(r.count, x.count), cmp.Compare(x.started, r.started)) < 0
}
