package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// A scaleDown finds the nodes that the Cluster Autoscaler can do without, and gives them
// back.
type scaleDown struct {
	*environment
	*Autoscaler
	drains *drains
	groups *scalingGroups
	nodes  *nodes
	pdbs   *disruptionBudgets
	pods   *pods
	pools  *pools
	sched  *scheduler.Scheduler
	space  *placement.Space

	// soft are, by pool, the taints of a node that is about to go.
	soft [][]policy.Taint

	idle []idleState // by node

	// grown is when a group was made to grow last, failed when a node could not
	// be emptied.
	grown, failed policy.Time

	// What a look counts in.
	//
	// allowed is what is left of each disruption budget; need is the same with
	// the pods of one node taken off.
	allowed, need []int32

	// candidates are nodes with pods that might be emptied, closed those that
	// take no pods in thought, and moves what was moved in thought, in order.
	candidates, closed []policy.NodeID
	moves              []move
	moving             []policy.PodID
}

// An idleState is what was found out about a node.
type idleState struct {
	// unneeded is since when the node could be done without; 0 when it cannot.
	unneeded policy.Time

	stood bool // it was not needed at the last look

	// recheckAt is when a node is considered again that could not be emptied in thought.
	recheckAt policy.Time
}

// add begins to follow a node.
func (s *scaleDown) add(id policy.NodeID) {
	for len(s.idle) <= int(id) {
		s.idle = append(s.idle, idleState{})
	}
	s.idle[id] = idleState{}
}

// A move takes a pod from one node to another in thought.
type move struct {
	pod      policy.PodID
	from, to policy.NodeID
}

// shrink finds out which nodes are not needed, and gives back those that have
// not been for long enough. It returns when there is something to do next, 0 for never.
func (s *scaleDown) shrink() (next policy.Time) {
	s.findUnneeded()
	from := s.q.Now
	if s.grown != 0 {
		from = max(from, s.grown.Add(s.DelayAfterAdd))
	}
	if s.failed != 0 {
		from = max(from, s.failed.Add(s.DelayAfterFailure))
	}
	all, draining := s.EmptyMax, s.DrainMax
	for _, d := range s.drains.active {
		if x := &s.drains.all[d]; x.actor == policy.ActorClusterAutoscaler {
			all--
			if x.pods {
				draining--
			}
		}
	}
	// Empty nodes come first, and nodes with pods get what they leave
	// (core/scaledown/budgets/budgets.go, CropNodes).
	for _, pods := range [...]bool{false, true} {
		for i := range s.nodes.all {
			id, x := policy.NodeID(i), &s.nodes.state[i]
			if s.idle[i].unneeded == 0 || s.nodes.all[i].Phase != policy.NodeInitialized || (x.pods > 0) != pods || !s.groups.maySpare(s.groups.groupOf(id)) {
				continue
			}
			due := max(from, s.idle[i].unneeded.Add(s.UnneededTime))
			switch {
			case due > s.q.Now:
				next = sooner(next, due)
			case all > 0 && (!pods || draining > 0):
				all--
				if pods {
					draining--
				}
				s.scaleIn(id)
			}
		}
	}
	for i := range s.idle {
		if x := &s.idle[i]; x.recheckAt > s.q.Now && s.nodes.all[i].Phase == policy.NodeInitialized {
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
func (s *scaleDown) scaleIn(id policy.NodeID) {
	s.drains.start(id, nil, s.q.Now.Add(s.EvictionMax), policy.ActorClusterAutoscaler)
}

// findUnneeded brings up to date since when nodes are not needed. Pods that were
// given a place on another node in thought hold it until the end of the look, so
// that no room is counted twice.
func (s *scaleDown) findUnneeded() {
	s.allowed, s.candidates = s.allowed[:0], s.candidates[:0]
	for i := range s.pdbs.all {
		s.allowed = append(s.allowed, s.pdbs.all[i].Allowed)
	}
	s.need = append(s.need[:0], s.allowed...)
	found := 0
	for i := range s.nodes.all {
		id := policy.NodeID(i)
		switch {
		case s.nodes.all[i].Phase == policy.NodeGone || s.groups.index(id) < 0:
		case !s.mayScaleIn(id) || s.idle[i].recheckAt > s.q.Now:
			s.setUnneeded(id, false)
		case s.nodes.state[i].pods == 0:
			s.setUnneeded(id, true)
			s.closeInThought(id)
			found++
		default:
			s.candidates = append(s.candidates, id)
		}
	}
	// Nodes that were unneeded before come first, so that what was found once is
	// not lost to the order in which nodes are looked at. More than can go soon are
	// not looked for.
	limit := s.unneededLimit()
	for _, before := range [...]bool{true, false} {
		for _, id := range s.candidates {
			x := &s.idle[id]
			if x.stood != before {
				continue
			}
			if found >= limit {
				s.setUnneeded(id, false)
				continue
			}
			unneeded := s.budgetsAllow(id) && s.emptyInThought(id)
			s.setUnneeded(id, unneeded)
			if unneeded {
				found++
			} else {
				x.recheckAt = s.q.Now.Add(s.RecheckTime)
			}
		}
	}
	s.putBack()
	for i := range s.idle {
		s.idle[i].stood = s.idle[i].unneeded != 0
	}
}

// unneededLimit returns how many nodes are found unneeded at most: those of the look
// before, and twice what may go at once, up to what can go within UnneededTime
// (core/scaledown/planner/planner.go, unneededNodesLimit).
func (s *scaleDown) unneededLimit() int {
	before := 0
	for i := range s.idle {
		if s.idle[i].stood {
			before++
		}
	}
	loops := int(max(s.UnneededTime, s.ScanInterval) / s.ScanInterval)
	return min(before+2*s.EmptyMax, s.EmptyMax*loops+s.EmptyMax)
}

// mayScaleIn reports whether node id is one that may be given back: nobody works
// on it or is about to need it, and it is used little enough.
func (s *scaleDown) mayScaleIn(id policy.NodeID) bool {
	n, x := &s.nodes.all[id], &s.nodes.state[id]
	pool := &s.pools.all[n.Pool]
	if !n.Usable() || n.DoNotDisrupt || n.ActedBy != policy.ActorNone || x.nominated > 0 ||
		pool.Consolidation == policy.ConsolidateNever || x.pods > 0 && (pool.Consolidation == policy.WhenEmpty || s.pools.emptyOnly(n.Pool)) {
		return false
	}
	return s.utilization(id) < s.UtilizationMax && (n.Token == "" || !s.awaitsPods(n))
}

// emptyOnly reports whether only empty nodes of pool may be given back: what the
// pool was ordered, or an exact share that others must keep.
func (pl *pools) emptyOnly(pool policy.PoolID) bool {
	return pl.state[pool].empty || pl.state[pool].exact
}

// budgetsAllow reports whether each pod of node id may be moved, and what is left
// of the disruption budgets lets all of them go at once.
func (s *scaleDown) budgetsAllow(id policy.NodeID) bool {
	copy(s.need, s.allowed)
	for _, p := range s.space.Pods(id) {
		if !s.scalable(p) {
			return false
		}
		t := &s.scenario.Templates[s.pods.all[p].Template]
		if t.DaemonSet || s.pods.all[p].Phase == policy.PodTerminating {
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
func (s *scaleDown) awaitsPods(n *policy.Node) bool {
	return slices.ContainsFunc(s.drains.active, func(d int32) bool {
		x := &s.drains.all[d]
		return x.actor == policy.ActorUs && s.nodes.all[x.node].Pool == n.Pool
	})
}

// utilization returns the part of node id's CPU or memory that is requested,
// whichever is more; of its accelerators alone where it has some.
func (s *scaleDown) utilization(id policy.NodeID) float64 {
	used, all := s.space.Requested(id), s.space.Allocatable(id)
	if all.GPU > 0 {
		return float64(used.GPU) / float64(all.GPU)
	}
	return max(float64(used.CPU)/float64(max(all.CPU, 1)), float64(used.Memory)/float64(max(all.Memory, 1)))
}

// scalable reports whether a pod keeps no node from being given back. Those that
// do are pods that nobody would make anew, that write to the node's own disk or
// that belong to the system and have no budget, unless they are called safe to
// evict; and all that are called unsafe.
func (s *scaleDown) scalable(id policy.PodID) bool {
	p := &s.pods.all[id]
	t := &s.scenario.Templates[p.Template]
	if t.DaemonSet || p.Phase == policy.PodTerminating || t.Priority < expendable {
		return true
	}
	if t.NotSafeToEvict || p.DoNotDisrupt || len(t.PDBs) > 1 {
		return false
	}
	if t.SafeToEvict {
		return true
	}
	w := &s.scenario.Workloads[t.Workload]
	return w.Kind != policy.KindBare && !w.LocalStorage && (t.Namespace != "kube-system" || len(t.PDBs) == 1)
}

// emptyInThought seeks places elsewhere for the pods of node id. If there are
// some for all of them they are moved there, and the node takes no pods any more,
// until putBack.
func (s *scaleDown) emptyInThought(id policy.NodeID) bool {
	s.moving = s.moving[:0]
	for _, p := range s.space.Pods(id) {
		t := &s.scenario.Templates[s.pods.all[p].Template]
		if !t.DaemonSet && s.pods.all[p].Phase != policy.PodTerminating && t.Priority >= expendable {
			s.moving = append(s.moving, p)
		}
	}
	s.closeInThought(id)
	for _, p := range s.moving {
		s.space.Unbind(&s.pods.all[p], id)
	}
	s.sched.Changed(id)
	first := len(s.moves)
	for k, p := range s.moving {
		x := s.pods.all[p]
		x.Node, x.Phase = policy.None, policy.PodPending
		to, ok := s.sched.Pick(&x)
		if !ok {
			for _, rest := range s.moving[k:] {
				s.space.Bind(&s.pods.all[rest], id)
			}
			s.moveBack(first)
			s.closed = s.closed[:len(s.closed)-1]
			s.reopen(id)
			return false
		}
		s.space.Bind(&x, to)
		s.sched.Changed(to)
		s.moves = append(s.moves, move{p, id, to})
	}
	for _, p := range s.moving {
		for _, b := range s.scenario.Templates[s.pods.all[p].Template].PDBs {
			s.allowed[b]--
		}
	}
	return true
}

func (s *scaleDown) closeInThought(id policy.NodeID) {
	s.closed = append(s.closed, id)
	n := s.nodes.all[id]
	n.Phase = policy.NodeDraining
	s.space.SetNode(&n)
	s.sched.Changed(id)
}

// moveBack undoes the moves from the first on, the last of them first.
func (s *scaleDown) moveBack(first int) {
	for i := len(s.moves) - 1; i >= first; i-- {
		m := &s.moves[i]
		s.space.Unbind(&s.pods.all[m.pod], m.to)
		s.space.Bind(&s.pods.all[m.pod], m.from)
		s.sched.Changed(m.to)
		s.sched.Changed(m.from)
	}
	s.moves = s.moves[:first]
}

func (s *scaleDown) reopen(id policy.NodeID) {
	s.space.SetNode(&s.nodes.all[id])
	s.sched.Changed(id)
}

// putBack ends the look: all pods are where they are.
func (s *scaleDown) putBack() {
	s.moveBack(0)
	for _, id := range s.closed {
		s.reopen(id)
	}
	s.closed = s.closed[:0]
}

// setUnneeded notes that a node is not needed, or is again. One that is about to
// go is tainted softly, so that the scheduler prefers others.
func (s *scaleDown) setUnneeded(id policy.NodeID, unneeded bool) {
	x, n := &s.idle[id], &s.nodes.all[id]
	if unneeded == (x.unneeded != 0) {
		return
	}
	x.unneeded, n.Taints = 0, s.scenario.Pools[n.Pool].Taints
	if unneeded {
		x.unneeded, n.Taints = s.q.Now, s.soft[n.Pool]
	}
	s.nodes.touch(id)
	if !slices.Contains(s.closed, id) {
		s.reopen(id)
	}
}
