package policy

import "slices"

// A NodePhase is where a node is in its life.
type NodePhase uint8

// The phases of a node, in order.
const (
	NodeGone        NodePhase = iota // the slot is empty
	NodeLaunching                    // bought (or requested), not yet a Node object
	NodeRegistered                   // joined, not yet ready for pods
	NodeInitialized                  // ready for pods
	NodeDraining                     // being emptied
	NodeDeleting                     // empty and going away
)

// String returns the name used in output.
func (p NodePhase) String() string {
	return [...]string{"gone", "launching", "registered", "initialized", "draining", "deleting"}[p]
}

// An Actor is who is doing something to a node.
type Actor uint8

// The actors that may work on a node. Only what ActorUs does is ours to undo.
const (
	ActorNone Actor = iota
	ActorUs
	ActorKarpenter
	ActorClusterAutoscaler
	ActorEKS
	ActorNTH // AWS Node Termination Handler
	ActorPerson
)

// String returns the name used in output.
func (a Actor) String() string {
	return [...]string{"none", "us", "karpenter", "cluster-autoscaler", "eks", "nth", "person"}[a]
}

// A Taint keeps pods without a matching toleration off a node.
type Taint struct {
	Key, Value string
	Effect     TaintEffect

	// Owner is who put it there; ActorNone when it belongs to the pool.
	Owner Actor
}

// A TaintEffect is what a taint does.
type TaintEffect uint8

// The effects, as in Kubernetes. EffectAny appears in tolerations only.
const (
	EffectAny TaintEffect = iota
	NoSchedule
	PreferNoSchedule
	NoExecute
)

// Tolerates reports whether one of tolerations matches taint.
func Tolerates(tolerations []Toleration, taint *Taint) bool {
	return slices.ContainsFunc(tolerations, func(t Toleration) bool {
		return (t.Effect == EffectAny || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
			(t.Exists || t.Value == taint.Value)
	})
}

// TolerateAll reports whether tolerations match all taints that keep pods away.
func TolerateAll(tolerations []Toleration, taints []Taint) bool {
	for i := range taints {
		if taints[i].Effect != PreferNoSchedule && !Tolerates(tolerations, &taints[i]) {
			return false
		}
	}
	return true
}

// A Node is one machine, from the order to its end, as seen at Snapshot.Now.
type Node struct {
	ID   NodeID
	Name string // unique for ever; empty in a free slot

	// Pool and Market are None for a node of no pool managed by Spotter.
	Pool   PoolID
	Market MarketID

	Phase NodePhase

	// Allocatable is what pods may use; for a launching node what is expected.
	// VolumesMax is the number of block volumes that can be attached.
	Allocatable Resources
	VolumesMax  int32

	// GPUResource is what Allocatable.GPU counts; empty without accelerators.
	GPUResource string

	// Labels and Taints are those of the Node object, or those expected.
	Labels []Label
	Taints []Taint

	// NotReady says that the kubelet of an initialized node fails.
	NotReady bool

	// ActedBy is who empties or deletes it now.
	ActedBy Actor

	// DoNotDisrupt says that the node carries karpenter.sh/do-not-disrupt.
	DoNotDisrupt bool

	// AtGroupMin says that the Auto Scaling group of the node is at its least
	// size: what is terminated there the group launches again.
	AtGroupMin bool

	// Token is the token of the Launch that it came from; empty if not ours.
	Token string

	// Bid is the most that we pay per hour where the market takes bids.
	Bid Money

	// Launched is when billing began; the others when the phase was reached.
	Launched, Registered, Initialized, Deleting Time

	// ReclaimAt is when the provider will take the node back and NoticeAt when
	// it said so; both zero while no notice has been given.
	NoticeAt, ReclaimAt Time

	// Recommended is when a rebalance recommendation came; zero if none did.
	Recommended Time

	// Nominated is when a pending pod was last promised a place here.
	Nominated Time
}

// Live reports whether the slot holds a node that exists or is on its way.
func (n *Node) Live() bool { return n.Phase != NodeGone }

// Usable reports whether n is initialized, ready and not being emptied.
func (n *Node) Usable() bool {
	return n.Phase == NodeInitialized && !n.NotReady && n.ReclaimAt == 0
}

// Label returns the value of the label key, and whether it is there.
func (n *Node) Label(key string) (string, bool) { return FindLabel(n.Labels, key) }

// FindLabel returns the value of key in labels, and whether it is there.
func FindLabel(labels []Label, key string) (string, bool) {
	for i := range labels {
		if labels[i].Key == key {
			return labels[i].Value, true
		}
	}
	return "", false
}
