package autoscaler

import (
	"math"
	"slices"
	"sort"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Reason is the reason why a node is not removed.
type Reason uint8

// The reasons (simulator/cluster.go).
const (
	NoReason Reason = iota
	ScaleDownDisabled
	NotUnderutilized
	RecentlyUnremovable
	NoPlaceToMovePods
	BlockedByPod
	NotUnneededLongEnough
	NotUnreadyLongEnough
	GroupMinSizeReached
	BlockedByOnCompletionPod
)

// String returns the name that the Cluster Autoscaler gives the reason.
func (r Reason) String() string {
	return [...]string{"", "ScaleDownDisabledAnnotation", "NotUnderutilized", "RecentlyUnremovable", "NoPlaceToMovePods",
		"BlockedByPod",
		"NotUnneededLongEnough", "NotUnreadyLongEnough", "NodeGroupMinSizeReached", "BlockedByOnCompletionPod"}[r]
}

// An Unneeded is a node that the cluster does not need.
type Unneeded struct {
	Node policy.NodeID

	// Moves are the pods to evict and the node on which the simulation placed each. Completing are
	// the pods that are left to complete. A node without moves counts as empty.
	Moves      []Move
	Daemons    []policy.PodID
	Completing []policy.PodID

	// Risky reports whether PodDisruptionBudgets do not allow the eviction of all its pods at once.
	Risky bool
}

// A Move is the node on which a simulation placed a pod.
type Move struct {
	Pod policy.PodID
	To  policy.NodeID
}

// An Unremovable is a node that cannot be removed now. Pod and Blocking are set if Reason is
// BlockedByPod.
type Unremovable struct {
	Node     policy.NodeID
	Reason   Reason
	Pod      policy.PodID
	Blocking Blocking
}

// A Look is the result of one search for unneeded nodes. The lists are in the order in which nodes
// were checked.
type Look struct {
	Candidates  []policy.NodeID
	Unneeded    []Unneeded
	Unremovable []Unremovable
}

// FindUnneeded looks for nodes that the cluster does not need, and records in m since when each is
// unneeded. During the search, unneeded nodes receive no pods of nodes that are checked later, and
// pods stay where they were moved (core/scaledown/planner/planner.go).
func (c *Cluster) FindUnneeded(m *Memory) *Look {
	m.search.reset(c)
	f := finder{Cluster: c, memory: m, allowed: slices.Clone(c.Allowed), arrived: make(map[policy.NodeID][]policy.PodID)}
	limit := f.limit()
	f.look.Candidates = f.candidates()
	var eligible []*Node
	for _, at := range f.order {
		n := &c.Nodes[at]
		if r := f.ineligible(n); r != NoReason {
			f.look.Unremovable = append(f.look.Unremovable, Unremovable{Node: n.ID, Reason: r})
			continue
		}
		eligible = append(eligible, n)
	}
	for _, n := range eligible {
		if len(f.look.Unneeded) >= limit {
			break
		}
		f.simulate(n)
	}
	f.undo(0)
	f.remember()
	return &f.look
}

// A finder carries out one search for unneeded nodes.
type finder struct {
	*Cluster
	memory  *Memory
	look    Look
	order   []int // candidates, as indices of Nodes
	allowed []int32

	changes []change
	arrived map[policy.NodeID][]policy.PodID // pods moved to a node, in order
}

// A change of the Space: a removed node with the pods that were on it, or, if node is nil, one pod
// that was bound to a node.
type change struct {
	node *Node
	pods []policy.PodID
	to   policy.NodeID
}

// limit returns the maximum number of nodes to find unneeded (unneededNodesLimit).
func (f *finder) limit() int {
	before := 0
	for i := range f.memory.nodes {
		if f.memory.nodes[i].since != 0 {
			before++
		}
	}
	loops := int(max(f.UnneededTime, f.ScanInterval) / f.ScanInterval)
	return min(before+2*f.EmptyMax, f.EmptyMax*loops+f.EmptyMax)
}

// candidates lists the nodes of groups that may shrink: empty ones first, and within both parts
// first the nodes that were unneeded before (processors/scaledowncandidates).
func (f *finder) candidates() (ids []policy.NodeID) {
	type rank struct{ stood, empty bool }
	ranks := make(map[int]rank)
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if n.Kept || n.Group < 0 || f.Groups[n.Group].Size <= f.Groups[n.Group].Min {
			continue
		}
		d := f.drainOf(f.podsOn(n.ID), f.allowed)
		ranks[i] = rank{f.memory.Since(n.ID) != 0, d.blocked == NotBlocking && len(d.moves) == 0}
		f.order = append(f.order, i)
	}
	// Both sorts, here and in the Cluster Autoscaler, are unstable, and they order equal elements
	// alike.
	sort.Slice(f.order, func(i, k int) bool {
		a, b := ranks[f.order[i]], ranks[f.order[k]]
		if a.empty != b.empty {
			return a.empty
		}
		return a.stood && !b.stood
	})
	for _, i := range f.order {
		ids = append(ids, f.Nodes[i].ID)
	}
	return ids
}

// ineligible returns the reason why a candidate is not simulated, or NoReason
// (core/scaledown/eligibility/eligibility.go).
func (f *finder) ineligible(n *Node) Reason {
	switch {
	case f.memory.of(n.ID).recheckAt > f.Now:
		return RecentlyUnremovable
	case n.Disabled:
		return ScaleDownDisabled
	case !f.underused(n.ID):
		return NotUnderutilized
	}
	return NoReason
}

func (c *Cluster) underused(n policy.NodeID) bool {
	most := c.UtilizationMax
	if c.Space.Allocatable(n).GPU > 0 {
		most = c.GPUUtilizationMax
	}
	return c.Utilization(n) <= most
}

// Utilization returns the higher of the requested fractions of a node's CPU and memory, or, for a
// node with accelerators, the requested fraction of these (simulator/utilization/info.go).
func (c *Cluster) Utilization(n policy.NodeID) float64 {
	var used, daemons policy.Resources
	for _, id := range c.Space.Pods(n) {
		p := &c.Pods[id]
		if c.ignored(p) {
			continue
		}
		r := c.Templates[p.Template].Requests
		if c.IgnoreDaemonSets && c.Traits[p.Template].Owner == OwnerDaemonSet {
			daemons = daemons.Plus(r)
			continue
		}
		used = used.Plus(r)
	}
	all := c.Space.Allocatable(n).Minus(daemons)
	if all.GPU > 0 {
		return float64(used.GPU) / float64(all.GPU)
	}
	return max(float64(used.CPU)/float64(max(all.CPU, 1)), float64(used.Memory)/float64(max(all.Memory, 1)))
}

// podsOn returns the pods of a node in order. Pods that were moved to it come last.
func (f *finder) podsOn(n policy.NodeID) []policy.PodID {
	moved := f.arrived[n]
	if len(moved) == 0 {
		return f.Space.Pods(n)
	}
	pods := slices.DeleteFunc(slices.Clone(f.Space.Pods(n)),
		func(p policy.PodID) bool { return slices.Contains(moved, p) })
	return append(pods, moved...)
}

// simulate tries to empty a node (simulator/cluster.go, SimulateNodeRemoval).
func (f *finder) simulate(n *Node) {
	d := f.drainOf(f.podsOn(n.ID), f.allowed)
	if d.blocked != NotBlocking {
		f.fail(Unremovable{Node: n.ID, Reason: BlockedByPod, Pod: d.by, Blocking: d.blocked})
		return
	}
	moves, ok := f.relocate(n, d.moves)
	if !ok {
		f.fail(Unremovable{Node: n.ID, Reason: NoPlaceToMovePods})
		return
	}
	f.look.Unneeded = append(f.look.Unneeded, Unneeded{Node: n.ID, Moves: moves, Daemons: d.daemons,
		Completing: d.completing,
		Risky:      f.risky(d.moves, f.allowed)})
	for _, id := range d.moves {
		for _, b := range f.Templates[f.Pods[id].Template].PDBs {
			f.allowed[b]--
		}
	}
}

func (f *finder) fail(u Unremovable) {
	f.look.Unremovable = append(f.look.Unremovable, u)
	f.memory.of(u.Node).recheckAt = f.Now.Add(f.RecheckTime)
}

// relocate removes a node from the simulation and moves its pods. It reports whether every pod
// found a node; if not, it reverts all changes. The node remains in the Space, closed and empty,
// until its pods are placed, since topology spread counts its domains.
func (f *finder) relocate(n *Node, pods []policy.PodID) ([]Move, bool) {
	begun := len(f.changes)
	f.changes = append(f.changes, change{node: n, pods: slices.Clone(f.Space.Pods(n.ID))})
	f.Space.RemoveNode(n.ID)
	closed := *n.Node
	closed.Phase = policy.NodeDraining
	f.Space.SetNode(&closed)
	moves, ok := f.placesFor(pods, n.ID)
	f.Space.RemoveNode(n.ID)
	if !ok {
		f.undo(begun)
		return nil, false
	}
	nodes := &f.memory.search.nodes
	*nodes = slices.DeleteFunc(*nodes, func(x policy.NodeID) bool { return x == n.ID })
	return moves, true
}

// placesFor binds pods to other nodes, in order: first those that fit the node of their hint, then
// the others. After the first pod that does not fit, it continues with the next lower priority;
// before 1.37 it stops (simulator/scheduling/hinting_simulator.go).
func (f *finder) placesFor(pods []policy.PodID, from policy.NodeID) (moves []Move, ok bool) {
	accept := func(n policy.NodeID) bool { return n != from }
	rest := slices.Clone(pods)
	if !f.Version.Before(37) {
		rest = slices.DeleteFunc(rest, func(id policy.PodID) bool { return f.tryHint(id, from, &moves) })
	}
	failed := int64(math.MaxInt64)
	for _, id := range rest {
		p := &f.Pods[id]
		if int64(f.priority(p)) == failed || f.Version.Before(37) && f.tryHint(id, from, &moves) {
			continue
		}
		n := f.find(&f.memory.search, p, accept)
		switch {
		case n != policy.None:
			f.place(id, n, &moves)
		case f.Version.Before(37):
			return moves, false
		default:
			failed = int64(f.priority(p))
		}
	}
	return moves, len(moves) == len(pods)
}

// tryHint places a pod on the node of its hint, if it fits there, and reports whether it did.
func (f *finder) tryHint(id policy.PodID, from policy.NodeID, moves *[]Move) bool {
	n := f.memory.hint(&f.Pods[id])
	if n == policy.None || n == from || !slices.Contains(f.memory.search.nodes, n) ||
		f.Space.CheckExpected(&f.Pods[id], n) != placement.OK {
		return false
	}
	f.place(id, n, moves)
	return true
}

func (f *finder) place(id policy.PodID, n policy.NodeID, moves *[]Move) {
	f.Space.Bind(&f.Pods[id], n)
	f.changes = append(f.changes, change{pods: []policy.PodID{id}, to: n})
	f.arrived[n] = append(f.arrived[n], id)
	f.memory.note(&f.Pods[id], n)
	*moves = append(*moves, Move{id, n})
}

// undo reverts the changes from the given index on, the last one first.
func (f *finder) undo(from int) {
	for _, x := range slices.Backward(f.changes[from:]) {
		if x.node == nil {
			f.Space.Unbind(&f.Pods[x.pods[0]], x.to)
			f.arrived[x.to] = f.arrived[x.to][:len(f.arrived[x.to])-1]
			continue
		}
		f.Space.SetNode(x.node.Node)
		for _, id := range x.pods {
			f.Space.Bind(&f.Pods[id], x.node.ID)
		}
	}
	f.changes = f.changes[:from]
}

// remember records since when nodes are unneeded, and drops old hints.
func (f *finder) remember() {
	found := make(map[policy.NodeID]bool, len(f.look.Unneeded))
	for i := range f.look.Unneeded {
		found[f.look.Unneeded[i].Node] = true
		f.memory.of(f.look.Unneeded[i].Node)
	}
	for i := range f.memory.nodes {
		x := &f.memory.nodes[i]
		switch {
		case !found[policy.NodeID(i)]:
			x.since = 0
		case x.since == 0:
			x.since = f.Now
		}
	}
	f.memory.dropHints()
}
