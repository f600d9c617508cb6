package sim

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// preemptNodes is how many feasible nodes preemption weighs at most.
// (kube-scheduler: a tenth of the nodes, at least 100.)
const preemptNodes = 100

// A sacrifice is a node on which a pod of higher priority fits once the victims
// have gone.
type sacrifice struct {
	node       policy.NodeID
	victims    []policy.PodID
	violations int   // victims whose budgets allow no disruption
	highest    int32 // priority of the most important victim
	sum        int64 // of the victims' priorities
	youngest   policy.Time
}

// preempt makes room for pending pod id by ending pods of lower priority, as
// kube-scheduler's default preemption does: on the node with the fewest broken
// budgets, then the least important victims, the lowest sum of priorities, the
// fewest victims and the youngest. It reports whether the pod was given a node
// to wait for.
func (r *run) preempt(id policy.PodID) bool {
	p := &r.pods[id]
	t := &r.world.Templates[p.Template]
	if t.PreemptionNever || t.Priority <= r.lowest || p.Nominated != policy.None {
		return false
	}
	var best *sacrifice
	found := 0
	for n := range r.nodes {
		if !r.nodes[n].Usable() {
			continue
		}
		s := r.sacrificeOn(p, policy.NodeID(n), t.Priority)
		if s == nil {
			continue
		}
		if best == nil || s.before(best) {
			best = s
		}
		if found++; found == preemptNodes {
			break
		}
	}
	if best == nil {
		return false
	}
	r.nominate(id, best.node)
	for _, v := range best.victims {
		r.deletePod(v, policy.EndPreempted)
	}
	return true
}

func (s *sacrifice) before(x *sacrifice) bool {
	return cmp.Or(cmp.Compare(s.violations, x.violations), cmp.Compare(s.highest, x.highest), cmp.Compare(s.sum, x.sum),
		cmp.Compare(len(s.victims), len(x.victims)), cmp.Compare(x.youngest, s.youngest), cmp.Compare(s.node, x.node)) < 0
}

// sacrificeOn finds the fewest pods of n below the given priority without which
// p fits there; nil if it does not fit even without all of them.
func (r *run) sacrificeOn(p *policy.Pod, n policy.NodeID, priority int32) *sacrifice {
	var lower []policy.PodID
	var give policy.Resources
	for _, v := range r.space.Pods(n) {
		x := &r.world.Templates[r.pods[v].Template]
		if x.Priority < priority && !x.DaemonSet && r.pods[v].Phase != policy.PodTerminating {
			lower = append(lower, v)
			give = give.Plus(x.Requests)
		}
	}
	if len(lower) == 0 || !r.world.Templates[p.Template].Requests.Within(r.space.Free(n).Plus(give)) {
		return nil
	}
	for _, v := range lower {
		r.space.Unbind(&r.pods[v], n)
	}
	s := &sacrifice{node: n}
	fits := r.space.Check(p, n) == place.OK
	if fits {
		// Spare the most important first, those whose budget would break before
		// all others.
		slices.SortFunc(lower, func(a, b policy.PodID) int {
			return cmp.Or(cmp.Compare(r.breaks(b), r.breaks(a)), cmp.Compare(r.priority(b), r.priority(a)),
				cmp.Compare(r.pods[a].Bound, r.pods[b].Bound), cmp.Compare(a, b))
		})
		for _, v := range lower {
			r.space.Bind(&r.pods[v], n)
			if r.space.Check(p, n) == place.OK {
				continue
			}
			r.space.Unbind(&r.pods[v], n)
			s.add(r, v)
		}
		for _, v := range s.victims {
			r.space.Bind(&r.pods[v], n)
		}
		return s
	}
	for _, v := range lower {
		r.space.Bind(&r.pods[v], n)
	}
	return nil
}

func (s *sacrifice) add(r *run, v policy.PodID) {
	s.victims = append(s.victims, v)
	s.violations += r.breaks(v)
	s.highest = max(s.highest, r.priority(v))
	s.sum += int64(r.priority(v))
	s.youngest = max(s.youngest, r.pods[v].Bound)
}

func (r *run) priority(p policy.PodID) int32 { return r.world.Templates[r.pods[p].Template].Priority }

// breaks is 1 if ending p breaks a budget.
func (r *run) breaks(p policy.PodID) int {
	for _, b := range r.world.Templates[r.pods[p].Template].PDBs {
		if r.pdbs[b].Allowed == 0 {
			return 1
		}
	}
	return 0
}
