package placement

import "github.com/spotter-dev/spotter/policy"

// A Batch is the input of one run of Karpenter's scheduler.
type Batch struct {
	// Pods are the pods to place. They are not bound in the space, unless From states otherwise.
	Pods []policy.Pod

	// From, unless it is nil, contains for each position in Pods the node that the pod leaves. The
	// pod is bound to that node in the space, but does not count there. None means that the pod is
	// not bound.
	From []policy.NodeID

	// Nodes are tried in this order. Karpenter tries initialized nodes first, then orders by name.
	Nodes []policy.NodeID

	// NewOnly places pods on new nodes only; Nodes count for topology only. The number of volumes
	// is limited by the attachment limit of the new nodes, which Karpenter ignores.
	NewOnly bool

	// IgnorePreferences ignores the preferences of pods, as Karpenter does with the preference
	// policy Ignore.
	IgnorePreferences bool

	// Resting reports, by position in Nodes, whether a node takes only pods in phase PodPending
	// because it is within the consolidateAfter of its pool while nodes are disrupted. Nil means
	// that no node is resting. Pods of nodes that are removed for other reasons must be passed as
	// pending.
	Resting []bool

	// Without lists positions in Nodes to leave out.
	Without []int

	// Offers are the offers for new nodes. Pools are tried in the order of their first offer;
	// Karpenter orders by weight and then by name, both descending. All batches with the same
	// nonzero OffersVersion in one space have the same offers.
	//
	// An offer with a Max is reserved capacity: all pools together can launch at most that many
	// nodes in its market. A new node that may use reserved capacity has no other offers.
	Offers        []Offer
	OffersVersion uint64

	// AwaitReserved makes a pod that could run on reserved capacity wait for the next run if the
	// claims before it may use up that capacity, as Karpenter's provisioner does. Karpenter's
	// disruption controller uses the remaining capacity instead (ReservedOfferingMode in
	// scheduler.go).
	AwaitReserved bool

	// Pools lists further properties of NodePools. A pool that is not listed has no further
	// requirements or limits.
	Pools []Pool

	// SharedPorts makes the new nodes of a pool share their host ports, as Karpenter does before
	// 1.13.
	SharedPorts bool

	// SharedDaemons makes each new node of a pool reserve resources for all DaemonSets that can run
	// on any node of the pool, as Karpenter does before 1.14. Otherwise only the DaemonSets that
	// match the labels of the node count.
	SharedDaemons bool

	// Abort, unless it is nil, is called after each pod that was placed. It receives the position
	// of the pod in Pods, the existing node, or None for a new node, and the number of claims
	// opened so far. If it returns true, the run ends and the solution contains no placements.
	Abort func(pod int, n policy.NodeID, claims int) bool

	// Draw chooses among domains of key that are equally suitable for the pod at a position in
	// Pods. Karpenter chooses an arbitrary one. Nil chooses the first.
	Draw func(pod int, key string, ties []string) int
}

// A Pool describes a NodePool apart from its offers.
type Pool struct {
	ID policy.PoolID

	// Requirements and Taints are those of the NodePool. Taints is used if its offers have none.
	Requirements []policy.Requirement
	Taints       []policy.Taint

	// Open are labels whose values the pool's requirements do not list. They add no domains other
	// than those of existing nodes.
	Open []string

	// Domains are label values of instance types of the pool that currently have no offer. They
	// count as domains for topology spread.
	Domains []policy.Label

	// Limits are the limits of the pool, where 0 means unlimited. Used is its current usage,
	// without nodes that are being removed. NodesFull reports whether the limit on the number of
	// nodes is reached.
	Limits, Used policy.Resources
	NodesFull    bool

	MinValues []MinValues
}

// A MinValues is the minimum number of distinct values of a label that the instance types of a
// claim must have.
type MinValues struct {
	Key string
	N   int
}

// A Solution is the placement that Karpenter's scheduler would choose. It is valid until the next
// Solve.
type Solution struct {
	// Nodes are the existing nodes by position in Pods; None for a pod that is not on an existing
	// node.
	Nodes []policy.NodeID

	// Bins are the new nodes, in the order in which they were opened. The offers of a bin are all
	// that can run its pods; a launch request names the cheapest types among them.
	Bins []Bin

	// Unplaced lists the positions in Pods of pods that were not placed, ascending.
	Unplaced []int

	// Deferred reports whether a pod waits for reserved capacity: see Batch.AwaitReserved.
	Deferred bool

	// Aborted reports whether Batch.Abort ended the run.
	Aborted bool
}
