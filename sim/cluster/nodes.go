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

	// Sizes are the capacities that pools have or are launching, without nodes that are being
	// removed. Plans records how Karpenter plans with each node. Touch keeps both up to date.
	Sizes []PoolSize // by pool
	Plans []Plan     // by node
}

// A PoolSize is the capacity of a pool, in vCPUs, or in GPUs where those are counted.
type PoolSize struct{ Spot, Total int64 }

// A Plan is how Karpenter plans with a node.
type Plan uint8

// The plans.
const (
	PlanWithout Plan = iota // the node is being removed, or gone
	PlanComing              // the node is launching
	PlanThere               // the node accepts pods
)

// A NodeState is what the simulator knows of a node beyond its policy.Node.
type NodeState struct {
	gen       int32 // changes whenever the slot gets a new owner
	Pods      int32 // number of pods bound to it, without those of DaemonSets
	Nominated int32 // number of pending pods that were nominated to it
	Spot      bool
	Lost      bool // the provider took it, though the cluster may not have noticed
	Held      bool // the node counts as capacity held
	sized     bool // the node counts in Nodes.Sizes

	Size   int64    // in vCPUs, or in GPUs where those are counted
	images []uint64 // bit set of the templates whose image the node has
}

// firstOf reports whether no pod of template t has run on the node before, and records that one has
// now.
func (x *NodeState) firstOf(t int) bool {
	for len(x.images) <= t/64 {
		x.images = append(x.images, 0)
	}
	bit := uint64(1) << (t % 64)
	first := x.images[t/64]&bit == 0
	x.images[t/64] |= bit
	return first
}

// Gen returns the generation of the slot of a node, which identifies events of a past owner.
func (ns *Nodes) Gen(id policy.NodeID) int32 { return ns.State[id].gen }

// Add stores a node in a free slot and returns its id.
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

// Register records that a node has registered.
func (ns *Nodes) Register(id policy.NodeID) {
	n := &ns.All[id]
	n.Phase, n.Registered = policy.NodeRegistered, ns.Clock.Now
	ns.Space.SetNode(n)
	ns.Touch(id)
}

// Ready lets an initialized node accept pods. DaemonSet pods are bound at once, and the scheduler
// tries the pending pods.
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

// show updates the scheduler's view of a node.
func (ns *Nodes) show(id policy.NodeID) {
	ns.Space.SetNode(&ns.All[id])
	ns.sched.Changed(id)
}

// Announce records that the provider will reclaim a node at the given time.
func (ns *Nodes) Announce(id policy.NodeID, at policy.Time) {
	n := &ns.All[id]
	n.NoticeAt, n.ReclaimAt = ns.Clock.Now, at
	ns.Space.SetNode(n)
	ns.Touch(id)
}

// Recommend records a rebalance recommendation for a node.
func (ns *Nodes) Recommend(id policy.NodeID) {
	ns.All[id].Recommended = ns.Clock.Now
	ns.Touch(id)
}

// SetActor records which actor works on a node.
func (ns *Nodes) SetActor(id policy.NodeID, actor policy.Actor) {
	ns.All[id].ActedBy = actor
	ns.Touch(id)
}

// Cordon makes a node accept no more pods.
func (ns *Nodes) Cordon(id policy.NodeID) {
	ns.All[id].Phase = policy.NodeDraining
	ns.show(id)
	ns.Touch(id)
}

// Leave records that an empty node is being deleted.
func (ns *Nodes) Leave(id policy.NodeID) {
	ns.All[id].Phase = policy.NodeDeleting
	ns.show(id)
	ns.Touch(id)
}

// Uncordon makes a node accept pods again.
func (ns *Nodes) Uncordon(id policy.NodeID) {
	ns.All[id].Phase = policy.NodeInitialized
	ns.show(id)
}

// SetAtGroupMin records whether the Auto Scaling group of a node is at its minimum size.
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

// Lose records that the provider has taken a node. Its pods no longer serve, but the cluster
// notices the loss only later. Until then, the API, and so every snapshot, the scheduler and the
// provisioner, treat the node and its pods as unchanged.
func (ns *Nodes) Lose(id policy.NodeID) {
	ns.State[id].Lost = true
	for _, p := range slices.Clone(ns.Space.Pods(id)) {
		ns.Pods.strand(p)
	}
}

// Remove removes the Node object and the pods that are bound to it.
func (ns *Nodes) Remove(id policy.NodeID) {
	n, x := &ns.All[id], &ns.State[id]
	lost, cause := x.Lost, policy.EndEvicted
	if lost {
		cause = policy.EndReclaimed
	}
	for _, p := range slices.Clone(ns.Space.Pods(id)) {
		if ns.Pods.All[p].Phase != policy.PodTerminating {
			if lost {
				ns.Serving.missed(p, ns.Serving.lossOf(id)) // it may have been bound after the loss
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

// Hold adds a node to the capacity held, or removes it if held is false.
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

// recount updates Sizes and Plans for a node that changed.
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

// Touch publishes that a node changed.
func (ns *Nodes) Touch(id policy.NodeID) {
	ns.recount(id)
	ns.NodeChanged.Publish(id)
}

// anyRegistered reports whether a Node object exists.
func (ns *Nodes) anyRegistered() bool {
	for i := range ns.All {
		if ns.All[i].Phase >= policy.NodeRegistered {
			return true
		}
	}
	return false
}
