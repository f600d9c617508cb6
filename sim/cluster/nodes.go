package cluster

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// Nodes are the nodes of the cluster, from their launch until their Node object is removed.
type Nodes struct {
	*Cluster

	All     []policy.Node
	State   []NodeState
	Holding Holding
	free    []policy.NodeID // slots without a node

	// Sizes are what pools hold or have on its way, nodes that are going left out, and
	// Plans say which nodes Karpenter plans with. Both follow Touch.
	Sizes []PoolSize // by pool
	Plans []Plan     // by node
}

// A PoolSize is capacity of a pool, in vCPU, or GPUs where those are counted.
type PoolSize struct{ Spot, Total int64 }

// A Plan says how Karpenter plans with a node.
type Plan uint8

// The plans.
const (
	PlanWithout Plan = iota // it is going, or gone
	PlanComing              // it is on its way
	PlanThere               // it takes pods
)

// A NodeState is what the simulator knows of a node beyond its policy.Node.
type NodeState struct {
	gen       int32 // changes whenever the slot gets a new owner
	Pods      int32 // bound to it, DaemonSets' left out
	Nominated int32 // pending pods that were promised a place
	Spot      bool
	Lost      bool // the provider took it, though the cluster may not know yet
	Held      bool // it counts as capacity held
	sized     bool // it counts in Nodes.Sizes

	Size   int64    // vCPU, or GPUs where those are counted
	images []uint64 // bit set of templates whose image it has
}

// firstOf reports whether template t has not run here before, and notes that
// it has now.
func (x *NodeState) firstOf(t int) bool {
	for len(x.images) <= t/64 {
		x.images = append(x.images, 0)
	}
	bit := uint64(1) << (t % 64)
	first := x.images[t/64]&bit == 0
	x.images[t/64] |= bit
	return first
}

// Gen returns the generation of the slot of a node, by which an event of a past owner is known.
func (ns *Nodes) Gen(id policy.NodeID) int32 { return ns.State[id].gen }

// Add puts a node into a free slot.
func (ns *Nodes) Add(n policy.Node, spot bool, size int64) policy.NodeID {
	var id policy.NodeID
	if k := len(ns.free); k > 0 {
		id = ns.free[k-1]
		ns.free = ns.free[:k-1]
	} else {
		id = policy.NodeID(len(ns.All))
		ns.All = append(ns.All, policy.Node{})
		ns.State = append(ns.State, NodeState{})
	}
	x := &ns.State[id]
	*x = NodeState{gen: x.gen + 1, images: x.images[:0], Spot: spot, Size: size}
	n.ID = id
	ns.All[id] = n
	ns.Space.SetNode(&ns.All[id])
	return id
}

// Register notes that a node has joined.
func (ns *Nodes) Register(id policy.NodeID) {
	n := &ns.All[id]
	n.Phase, n.Registered = policy.NodeRegistered, ns.Clock.Now
	ns.Space.SetNode(n)
	ns.Touch(id)
}

// Ready lets an initialized node take pods: those of DaemonSets come at once, and the scheduler
// tries the others.
func (ns *Nodes) Ready(id policy.NodeID) {
	n := &ns.All[id]
	ns.Hold(id, true)
	ns.show(id)
	for _, t := range ns.Workloads.daemons {
		pod := policy.Pod{Template: t, Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
			VolumeZone: policy.None}
		if ns.Space.Check(&pod, id) == placement.OK {
			ns.Pods.bind(ns.Pods.add(ns.Scenario.Templates[t].Workload), id)
		}
	}
	n.Nominated = 0
	ns.Touch(id)
	ns.Queue.Want()
	ns.NodeReady.Publish(id)
}

// show has the scheduler see what a node is like.
func (ns *Nodes) show(id policy.NodeID) {
	ns.Space.SetNode(&ns.All[id])
	ns.sched.Changed(id)
}

// Announce notes that the provider will take a node at an instant.
func (ns *Nodes) Announce(id policy.NodeID, at policy.Time) {
	n := &ns.All[id]
	n.NoticeAt, n.ReclaimAt = ns.Clock.Now, at
	ns.Space.SetNode(n)
	ns.Touch(id)
}

// Recommend notes a rebalance recommendation for a node.
func (ns *Nodes) Recommend(id policy.NodeID) {
	ns.All[id].Recommended = ns.Clock.Now
	ns.Touch(id)
}

// SetActor notes who works on a node.
func (ns *Nodes) SetActor(id policy.NodeID, actor policy.Actor) {
	ns.All[id].ActedBy = actor
	ns.Touch(id)
}

// Cordon lets a node take no more pods.
func (ns *Nodes) Cordon(id policy.NodeID) {
	ns.All[id].Phase = policy.NodeDraining
	ns.show(id)
	ns.Touch(id)
}

// Leave notes that an empty node is being deleted.
func (ns *Nodes) Leave(id policy.NodeID) {
	ns.All[id].Phase = policy.NodeDeleting
	ns.show(id)
	ns.Touch(id)
}

// Uncordon lets a node take pods again.
func (ns *Nodes) Uncordon(id policy.NodeID) {
	ns.All[id].Phase = policy.NodeInitialized
	ns.show(id)
}

// SetAtGroupMin notes whether the Auto Scaling group of a node may not become smaller.
func (ns *Nodes) SetAtGroupMin(id policy.NodeID, is bool) {
	ns.All[id].AtGroupMin = is
	ns.Touch(id)
}

// SetTaints replaces the taints of a node.
func (ns *Nodes) SetTaints(id policy.NodeID, taints []policy.Taint) {
	ns.All[id].Taints = taints
	ns.Touch(id)
	ns.show(id)
}

// Lose notes that the provider has taken a node. Its pods serve no longer, but the cluster
// notices only after a while: until then its API, and so every snapshot, the scheduler and
// the provisioner, hold the node and its pods to be as they were.
func (ns *Nodes) Lose(id policy.NodeID) {
	ns.State[id].Lost = true
	for _, p := range slices.Clone(ns.Space.Pods(id)) {
		ns.Pods.strand(p)
	}
}

// Remove removes the Node object, and with it the pods that were bound.
func (ns *Nodes) Remove(id policy.NodeID) {
	n, x := &ns.All[id], &ns.State[id]
	lost, cause := x.Lost, policy.EndEvicted
	if lost {
		cause = policy.EndReclaimed
	}
	for _, p := range slices.Clone(ns.Space.Pods(id)) {
		if ns.Pods.All[p].Phase != policy.PodTerminating {
			if lost {
				ns.Serving.missed(p, ns.Serving.lossOf(id)) // it may have come after the loss
			}
			ns.Pods.retire(p)
		}
		ns.Pods.remove(p, cause)
	}
	if x.Nominated > 0 {
		for _, p := range ns.Queue.Pending {
			if ns.Pods.All[p].Nominated == id {
				ns.Pods.All[p].Nominated = policy.None
				ns.Pods.touch(p)
			}
		}
	}
	ns.Space.RemoveNode(id)
	ns.sched.Removed(id)
	ns.NodeGone.Publish(id)
	n.Phase, n.Name = policy.NodeGone, ""
	x.gen++
	ns.Touch(id)
	ns.free = append(ns.free, id)
}

// Hold counts a node as capacity held, or no longer, where it was not so before.
func (ns *Nodes) Hold(id policy.NodeID, held bool) {
	x := &ns.State[id]
	x.Held = held
	h, d := &ns.Holding, int64(1)
	if !held {
		d = -1
	}
	h.advance(ns.Clock.Now, ns.Window)
	h.Nodes += d
	h.Size += d * x.Size
	if x.Spot {
		h.SpotNodes += d
		h.SpotSize += d * x.Size
	}
}

// recount counts a node that changed in Sizes, or no longer, and says how it is planned with.
func (ns *Nodes) recount(id policy.NodeID) {
	n, x := &ns.All[id], &ns.State[id]
	sized := n.Live() && n.Phase <= policy.NodeInitialized && n.ActedBy == policy.ActorNone
	if sized != x.sized {
		x.sized = sized
		s, d := &ns.Sizes[n.Pool], x.Size
		if !sized {
			d = -d
		}
		s.Total += d
		if x.Spot {
			s.Spot += d
		}
	}
	for len(ns.Plans) <= int(id) {
		ns.Plans = append(ns.Plans, PlanWithout)
	}
	switch {
	case !sized || n.NotReady || n.ReclaimAt != 0:
		ns.Plans[id] = PlanWithout
	case n.Phase < policy.NodeInitialized:
		ns.Plans[id] = PlanComing
	default:
		ns.Plans[id] = PlanThere
	}
}

// Touch tells those who watch that a node changed.
func (ns *Nodes) Touch(id policy.NodeID) {
	ns.recount(id)
	ns.NodeChanged.Publish(id)
}

// anyRegistered reports whether there is a Node object.
func (ns *Nodes) anyRegistered() bool {
	for i := range ns.All {
		if ns.All[i].Phase >= policy.NodeRegistered {
			return true
		}
	}
	return false
}
