package policy

import "slices"

// A NodePhase is a phase in the life of a node.
type NodePhase uint8

// The phases of a node, in order.
const (
	NodeGone        NodePhase = iota // the slot is empty
	NodeLaunching                    // requested or launched, not yet a Node object
	NodeRegistered                   // joined, not yet ready for pods
	NodeInitialized                  // ready for pods
	NodeDraining                     // being drained
	NodeDeleting                     // empty and being deleted
)

// String returns the name used in output.
func (p NodePhase) String() string {
	return [...]string{"gone", "launching", "registered", "initialized", "draining", "deleting"}[p]
}

// An Actor identifies a controller or person that disrupts a node.
type Actor uint8

// The actors that may disrupt a node. Spotter reverts only the actions of ActorUs.
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

	// Owner is the actor that added the taint; ActorNone if the taint belongs to the pool.
	Owner Actor
}

// A TaintEffect is the effect of a taint.
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

// TolerateAll reports whether tolerations match all taints that keep pods off a node. Taints with
// the effect PreferNoSchedule are ignored.
func TolerateAll(tolerations []Toleration, taints []Taint) bool {
	for i := range taints {
		if taints[i].Effect != PreferNoSchedule && !Tolerates(tolerations, &taints[i]) {
			return false
		}
	}
	return true
}

// A Node is one machine, from its launch to its deletion, at the time Snapshot.Now.
type Node struct {
	ID   NodeID
	Name string // never reused; empty in a free slot

	// Pool and Market are None for a node that belongs to no pool managed by Spotter.
	Pool   PoolID
	Market MarketID

	Phase NodePhase

	// Allocatable is the resources available to pods; for a launching node the expected ones.
	// VolumesMax is the number of block volumes that can be attached.
	Allocatable Resources
	VolumesMax  int32

	// GPUResource is the extended resource that Allocatable.GPU counts; empty without accelerators.
	GPUResource string

	// Labels and Taints are those of the Node object, or the expected ones before it exists.
	Labels []Label
	Taints []Taint

	// NotReady reports whether an initialized node is no longer ready.
	NotReady bool

	// ActedBy is the actor that is draining or deleting the node.
	ActedBy Actor

	// DoNotDisrupt reports whether the node has the annotation karpenter.sh/do-not-disrupt.
	DoNotDisrupt bool

	// AtGroupMin reports whether the node's Auto Scaling group is at its minimum size, so that the
	// group replaces a node that is terminated.
	AtGroupMin bool

	// Token is the token of the Launch that created the node; empty if Spotter did not launch it.
	Token string

	// Bid is the bid per node-hour where the market takes bids.
	Bid Money

	// Launched is the start of billing. The other times are those at which the node reached the
	// phase.
	Launched, Registered, Initialized, Deleting Time

	// NoticeAt is the time of the provider's notice and ReclaimAt the time of the reclaim that it
	// announced; both are zero without a notice.
	NoticeAt, ReclaimAt Time

	// Recommended is the time of a rebalance recommendation; zero without one.
	Recommended Time

	// Nominated is the last time that a pending pod was nominated to run on the node.
	Nominated Time
}

// Live reports whether the slot contains a node that exists or is launching.
func (n *Node) Live() bool { return n.Phase != NodeGone }

// Usable reports whether n is initialized, ready and without a reclaim notice.
func (n *Node) Usable() bool {
	return n.Phase == NodeInitialized && !n.NotReady && n.ReclaimAt == 0
}

// Label returns the value of the label key, and reports whether it is present.
func (n *Node) Label(key string) (string, bool) { return FindLabel(n.Labels, key) }

// FindLabel returns the value of key in labels, and reports whether it is present.
func FindLabel(labels []Label, key string) (string, bool) {
	for i := range labels {
		if labels[i].Key == key {
			return labels[i].Value, true
		}
	}
	return "", false
}
