package placement

import "github.com/spotter-dev/spotter/policy"

// A Batch is what one run of Karpenter's scheduler is given.
type Batch struct {
	// Pods are the pods to place. None of them is bound in the space, but see From.
	Pods []policy.Pod

	// From, where it is not nil, are by position in Pods the nodes that pods leave: there one
	// is bound in the space, and counts no more. None is a pod that is bound nowhere.
	From []policy.NodeID

	// Nodes are tried in this order. Karpenter tries initialized nodes first, and
	// orders by name.
	Nodes []policy.NodeID

	// NewOnly has pods placed on new nodes alone: Nodes only count for topology. What can be attached
	// to new nodes bounds their volumes, to which Karpenter pays no attention.
	NewOnly bool

	// IgnorePreferences has preferences of pods count for nothing, as Karpenter with preference
	// policy Ignore.
	IgnorePreferences bool

	// Resting says, by position in Nodes, which of them take pods in phase PodPending
	// only: those within consolidateAfter of their pool, while nodes are disrupted. Nil
	// means none. Pods of nodes that go away anyhow are given as pending.
	Resting []bool

	// Without are positions in Nodes that are left out.
	Without []int

	// Offers are what new nodes can be bought of. Pools are tried in the order in which
	// the offers first name them: Karpenter's is weight and then name, both falling.
	// Batches for one space of one version, not 0, have the same offers.
	//
	// An offer with a Max is of reserved capacity: that many nodes can be had in its market,
	// by all pools together, and a new node that may be one of them is nothing else.
	Offers        []Offer
	OffersVersion uint64

	// AwaitReserved makes a pod that could run on reserved capacity wait for the next run if the
	// claims before it may take all of that, as Karpenter's provisioner does; its disruption takes
	// the capacity that is left (ReservedOfferingMode in scheduler.go).
	AwaitReserved bool

	// Pools lists the further requirements of NodePools; a pool that is not listed has none.
	Pools []Pool

	// SharedPorts says that the new nodes of a pool share their host ports, as Karpenter
	// before 1.13 has it.
	SharedPorts bool

	// SharedDaemons says that each new node of a pool bears all DaemonSets that the pool
	// lets run on any of its nodes, as Karpenter before 1.14 has it, and not only those
	// that run on nodes with its labels.
	SharedDaemons bool

	// Abort, where it is not nil, is asked after each pod that found a place: by position
	// in Pods, on an existing node or, with None, in one of the claims opened so far.
	// True ends the run: the solution says no more than that.
	Abort func(pod int, n policy.NodeID, claims int) bool

	// Draw chooses among domains of key in which a pod, by position, may be placed
	// alike: Karpenter takes any. Nil takes the first.
	Draw func(pod int, key string, ties []string) int
}

// A Pool is what is known of a NodePool apart from its offers.
type Pool struct {
	ID policy.PoolID

	// Requirements and Taints are those of the NodePool. Taints are read where it has
	// nothing to offer.
	Requirements []policy.Requirement
	Taints       []policy.Taint

	// Open are labels whose values its requirements do not list: they add no domains, other
	// than those of nodes.
	Open []string

	// Domains are values of labels that its instance types have where nothing is
	// offered to it: they count for topology spread all the same.
	Domains []policy.Label

	// Limits are what the pool may hold in all, 0 is unlimited; Used is what it holds,
	// nodes that go away left out. NodesFull says that its limit of nodes is reached.
	Limits, Used policy.Resources
	NodesFull    bool

	MinValues []MinValues
}

// A MinValues is how many values of a label the instance types of a claim must have
// among them, at least.
type MinValues struct {
	Key string
	N   int
}

// A Solution is where Karpenter's scheduler would have pods run. It is valid until the
// next Solve.
type Solution struct {
	// Nodes are the existing nodes by position in Pods; None where a pod is on none.
	Nodes []policy.NodeID

	// Bins are new nodes, in the order in which they were opened. Their offers are all
	// that hold the pods, of which a provider is sent the cheapest types.
	Bins []Bin

	// Unplaced are positions in Pods, ascending.
	Unplaced []int

	// Deferred says that a pod waits for reserved capacity: see Batch.AwaitReserved.
	Deferred bool

	// Aborted says that Batch.Abort ended the run.
	Aborted bool
}
