package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// shrinkScratch is what a look for unneeded nodes counts in.
type shrinkScratch struct {
	// allowed is what is left of each disruption budget; need is the same with
	// the pods of one node taken off.
	allowed, need []int32

	// candidates are nodes with pods that might be emptied, closed those that
	// take no pods in thought, and moves what was moved in thought, in order.
	candidates, closed []policy.NodeID
	moves              []move
	pods               []policy.PodID
}

// A move takes a pod from one node to another in thought.
type move struct {
	pod      policy.PodID
	from, to policy.NodeID
}

// shrink finds out which nodes are not needed, and gives back those that have
// not been for long enough. It returns when there is something to do next, 0 for never.
func (r *run) shrink() (next policy.Time) {
	a := r.auto
	r.findUnneeded()
	from := r.q.now
	if a.grown != 0 {
		from = max(from, a.grown.Add(a.DelayAfterAdd))
	}
	if a.failed != 0 {
		from = max(from, a.failed.Add(a.DelayAfterFailure))
	}
	all, draining := a.EmptyMax, a.DrainMax
	for _, d := range r.active {
		if x := &r.drains[d]; x.actor == policy.ActorClusterAutoscaler {
			all--
			if x.pods {
				draining--
			}
		}
	}
	// Empty nodes come first, and nodes with pods get what they leave
	// (core/scaledown/budgets/budgets.go, CropNodes).
	for _, pods := range [...]bool{false, true} {
		for i := range r.nodes {
			id, x := policy.NodeID(i), &r.nodeX[i]
			if x.unneeded == 0 || r.nodes[i].Phase != policy.NodeInitialized || (x.pods > 0) != pods || !r.maySpare(r.groupOf(id)) {
				continue
			}
			due := max(from, x.unneeded.Add(a.UnneededTime))
			switch {
			case due > r.q.now:
				next = sooner(next, due)
			case all > 0 && (!pods || draining > 0):
				all--
				if pods {
					draining--
				}
				r.scaleIn(id)
			}
		}
	}
	for i := range r.nodeX {
		if x := &r.nodeX[i]; x.recheckAt > r.q.now && r.nodes[i].Phase == policy.NodeInitialized {
			next = sooner(next, x.recheckAt)
		}
	}
	return next
}

// sooner returns the earlier of two instants, of which 0 is never.
func sooner(a, b policy.Time) policy.Time {
	if a == 0 || b < a {
		return b
	}
	return a
}

// scaleIn begins to empty node id for good.
func (r *run) scaleIn(id policy.NodeID) {
	r.startDrain(id, nil, r.q.now.Add(r.auto.EvictionMax), policy.ActorClusterAutoscaler)
}

// findUnneeded brings up to date since when nodes are not needed. Pods that were
// given a place on another node in thought hold it until the end of the look, so
// that no room is counted twice.
func (r *run) findUnneeded() {
	s := &r.auto.scratch
	s.allowed, s.candidates = s.allowed[:0], s.candidates[:0]
	for i := range r.pdbs {
		s.allowed = append(s.allowed, r.pdbs[i].Allowed)
	}
	s.need = append(s.need[:0], s.allowed...)
	found := 0
	for i := range r.nodes {
		id := policy.NodeID(i)
		switch {
		case r.nodes[i].Phase == policy.NodeGone || r.groupIndex(id) < 0:
		case !r.mayScaleIn(id) || r.nodeX[i].recheckAt > r.q.now:
			r.setUnneeded(id, false)
		case r.nodeX[i].pods == 0:
			r.setUnneeded(id, true)
			r.closeInThought(id)
			found++
		default:
			s.candidates = append(s.candidates, id)
		}
	}
	// Nodes that were unneeded before come first, so that what was found once is
	// not lost to the order in which nodes are looked at. More than can go soon are
	// not looked for.
	limit := r.unneededLimit()
	for _, before := range [...]bool{true, false} {
		for _, id := range s.candidates {
			x := &r.nodeX[id]
			if x.stood != before {
				continue
			}
			if found >= limit {
				r.setUnneeded(id, false)
				continue
			}
			unneeded := r.budgetsAllow(id) && r.emptyInThought(id)
			r.setUnneeded(id, unneeded)
			if unneeded {
				found++
			} else {
				x.recheckAt = r.q.now.Add(r.auto.RecheckTime)
			}
		}
	}
	r.putBack()
	for i := range r.nodeX {
		r.nodeX[i].stood = r.nodeX[i].unneeded != 0
	}
}

// unneededLimit returns how many nodes are found unneeded at most: those of the look
// before, and twice what may go at once, up to what can go within UnneededTime
// (core/scaledown/planner/planner.go, unneededNodesLimit).
func (r *run) unneededLimit() int {
	a, before := r.auto, 0
	for i := range r.nodeX {
		if r.nodeX[i].stood {
			before++
		}
	}
	loops := int(max(a.UnneededTime, a.ScanInterval) / a.ScanInterval)
	return min(before+2*a.EmptyMax, a.EmptyMax*loops+a.EmptyMax)
}

// mayScaleIn reports whether node id is one that may be given back: nobody works
// on it or is about to need it, and it is used little enough.
func (r *run) mayScaleIn(id policy.NodeID) bool {
	n, x := &r.nodes[id], &r.nodeX[id]
	pool := &r.pools[n.Pool]
	if !n.Usable() || n.DoNotDisrupt || n.ActedBy != policy.ActorNone || x.nominated > 0 ||
		pool.Consolidation == policy.ConsolidateNever || x.pods > 0 && (pool.Consolidation == policy.WhenEmpty || r.emptyOnly(n.Pool)) {
		return false
	}
	return r.utilization(id) < r.auto.UtilizationMax && (n.Token == "" || !r.awaitsPods(n))
}

// emptyOnly reports whether only empty nodes of pool may be given back: what the
// pool was told, or an exact share that others must keep.
func (r *run) emptyOnly(pool policy.PoolID) bool { return r.poolX[pool].empty || r.poolX[pool].exact }

// budgetsAllow reports whether each pod of node id may be moved, and what is left
// of the disruption budgets lets all of them go at once.
func (r *run) budgetsAllow(id policy.NodeID) bool {
	s := &r.auto.scratch
	copy(s.need, s.allowed)
	for _, p := range r.space.Pods(id) {
		if !r.scalable(p) {
			return false
		}
		t := &r.world.Templates[r.pods[p].Template]
		if t.DaemonSet || r.pods[p].Phase == policy.PodTerminating {
			continue
		}
		for _, b := range t.PDBs {
			if s.need[b]--; s.need[b] < 0 {
				return false
			}
		}
	}
	return true
}

// awaitsPods reports whether n was launched in place of a node that still has to
// be emptied: until then it is protected from scale-in.
func (r *run) awaitsPods(n *policy.Node) bool {
	return slices.ContainsFunc(r.active, func(d int32) bool {
		x := &r.drains[d]
		return x.actor == policy.ActorUs && r.nodes[x.node].Pool == n.Pool
	})
}

// utilization returns the part of node id's CPU or memory that is requested,
// whichever is more; of its accelerators alone where it has some.
func (r *run) utilization(id policy.NodeID) float64 {
	used, all := r.space.Requested(id), r.space.Allocatable(id)
	if all.GPU > 0 {
		return float64(used.GPU) / float64(all.GPU)
	}
	return max(float64(used.CPU)/float64(max(all.CPU, 1)), float64(used.Memory)/float64(max(all.Memory, 1)))
}

// scalable reports whether a pod keeps no node from being given back. Those that
// do are pods that nobody would make anew, that write to the node's own disk or
// that belong to the system and have no budget, unless they are called safe to
// evict; and all that are called unsafe.
func (r *run) scalable(id policy.PodID) bool {
	p := &r.pods[id]
	t := &r.world.Templates[p.Template]
	if t.DaemonSet || p.Phase == policy.PodTerminating || t.Priority < expendable {
		return true
	}
	if t.NotSafeToEvict || p.DoNotDisrupt || len(t.PDBs) > 1 {
		return false
	}
	if t.SafeToEvict {
		return true
	}
	w := &r.world.Workloads[t.Workload]
	return w.Kind != policy.KindBare && !w.LocalStorage && (t.Namespace != "kube-system" || len(t.PDBs) == 1)
}

// emptyInThought seeks places elsewhere for the pods of node id. If there are
// some for all of them they are moved there, and the node takes no pods any more,
// until putBack.
func (r *run) emptyInThought(id policy.NodeID) bool {
	s := &r.auto.scratch
	s.pods = s.pods[:0]
	for _, p := range r.space.Pods(id) {
		t := &r.world.Templates[r.pods[p].Template]
		if !t.DaemonSet && r.pods[p].Phase != policy.PodTerminating && t.Priority >= expendable {
			s.pods = append(s.pods, p)
		}
	}
	r.closeInThought(id)
	for _, p := range s.pods {
		r.space.Unbind(&r.pods[p], id)
	}
	r.sched.Changed(id)
	first := len(s.moves)
	for k, p := range s.pods {
		x := r.pods[p]
		x.Node, x.Phase = policy.None, policy.PodPending
		to, ok := r.sched.Pick(&x)
		if !ok {
			for _, rest := range s.pods[k:] {
				r.space.Bind(&r.pods[rest], id)
			}
			r.moveBack(first)
			s.closed = s.closed[:len(s.closed)-1]
			r.reopen(id)
			return false
		}
		r.space.Bind(&x, to)
		r.sched.Changed(to)
		s.moves = append(s.moves, move{p, id, to})
	}
	for _, p := range s.pods {
		for _, b := range r.world.Templates[r.pods[p].Template].PDBs {
			s.allowed[b]--
		}
	}
	return true
}

func (r *run) closeInThought(id policy.NodeID) {
	r.auto.scratch.closed = append(r.auto.scratch.closed, id)
	n := r.nodes[id]
	n.Phase = policy.NodeDraining
	r.space.SetNode(&n)
	r.sched.Changed(id)
}

// moveBack undoes the moves from the first on, the last of them first.
func (r *run) moveBack(first int) {
	s := &r.auto.scratch
	for i := len(s.moves) - 1; i >= first; i-- {
		m := &s.moves[i]
		r.space.Unbind(&r.pods[m.pod], m.to)
		r.space.Bind(&r.pods[m.pod], m.from)
		r.sched.Changed(m.to)
		r.sched.Changed(m.from)
	}
	s.moves = s.moves[:first]
}

func (r *run) reopen(id policy.NodeID) {
	r.space.SetNode(&r.nodes[id])
	r.sched.Changed(id)
}

// putBack ends the look: all pods are where they are.
func (r *run) putBack() {
	r.moveBack(0)
	for _, id := range r.auto.scratch.closed {
		r.reopen(id)
	}
	r.auto.scratch.closed = r.auto.scratch.closed[:0]
}

// setUnneeded notes that a node is not needed, or is again. One that is about to
// go is tainted softly, so that the scheduler prefers others.
func (r *run) setUnneeded(id policy.NodeID, unneeded bool) {
	x, n := &r.nodeX[id], &r.nodes[id]
	if unneeded == (x.unneeded != 0) {
		return
	}
	x.unneeded, n.Taints = 0, r.world.Pools[n.Pool].Taints
	if unneeded {
		x.unneeded, n.Taints = r.q.now, r.auto.soft[n.Pool]
	}
	r.touchNode(id)
	if !slices.Contains(r.auto.scratch.closed, id) {
		r.reopen(id)
	}
}
