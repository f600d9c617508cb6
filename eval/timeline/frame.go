package timeline

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A Frame is the state of the cluster and the market at one instant of a run. It is filled by
// [Timeline.At], which reuses its slices; to keep a frame, copy it.
type Frame struct {
	At policy.Time

	// Nodes are all nodes that exist at At, ascending by name.
	Nodes []Node

	// Markets, Workloads and Budgets are in the order of Timeline.Markets, Timeline.Workloads and
	// Timeline.Budgets.
	Markets   []Market
	Workloads []Workload
	Budgets   []Budget

	// LossBudget is the sum over all pools.
	LossBudget LossBudget

	// Costs are the costs of the run from the start of its metered window to At.
	Costs Costs

	// Decision is the index of the last decision at or before At, -1 if there is no such decision.
	// Event is the same for events.
	Decision, Event int

	// order is scratch space of At.
	order []ordered
}

// A Node is one node at the instant of a frame.
type Node struct {
	Name   string
	Pool   int32 // index in Timeline.Pools, -1 if it is in no pool
	Market int32 // index in Timeline.Markets, -1 if unknown

	Phase policy.NodePhase
	Spot  bool

	// Since is the time of its launch.
	Since policy.Time

	// CPU, Memory and GPU are the requested fractions of its allocatable resources, in thousandths.
	// GPU is -1 for a node without accelerators. Pods is the number of pods on it, without those of
	// DaemonSets.
	CPU, Memory, GPU int16
	Pods             int16

	// Notice is the time of the reclaim, zero if there is no notice. Recommended reports whether
	// the provider recommends to leave the node.
	Notice      policy.Time
	Recommended bool

	// By is the actor that is changing the node.
	By policy.Actor
}

// A Market is one market at the instant of a frame.
type Market struct {
	// Price is the price per node-hour, policy.NoPrice if the market is not offered. Hazard is the
	// forecast number of reclaims per node-hour.
	Price  policy.Money
	Hazard float64
}

// A Workload is one workload at the instant of a frame.
type Workload struct {
	// Desired is the desired number of pods; an increase counts only after the ready grace.
	// Required is the number that must be ready, Ready the number that is.
	Desired, Required, Ready int32

	// OnSpot is the number of ready pods on Spot nodes.
	OnSpot int32
}

// A Budget is one GPU budget at the instant of a frame.
type Budget struct {
	// GPUHours and Dollars are the usage within its window.
	GPUHours float64
	Dollars  policy.Money

	// Spent reports whether it is used up, Closed whether its gate excludes pods.
	Spent, Closed bool
}

// A LossBudget is the sum of the loss budgets of all pools after the last decision. It is zero if
// the policy has none.
type LossBudget struct {
	// Pools is the number of pools with a loss budget. UsedUp is the number of those that only use
	// on-demand nodes because their budget is used up.
	Pools, UsedUp int32

	// Left is the remaining amount. It is 0 for a pool whose cost of Spot exceeds its budget.
	Left policy.Money
}

// Costs are the totals of a run since the start of its metered window.
type Costs struct {
	// Bill is the cost of its nodes until the instant, including those that still run.
	Bill policy.Money

	// OutageCost is defined in the design's "What is measured". OutageCost and Outages include open
	// incidents.
	OutageCost policy.Money
	sim.Outages

	// Notices is the number of nodes with a notice, Reclaims that of running nodes that the
	// provider reclaimed, and Evictions that of pods that were moved voluntarily.
	Notices, Reclaims, Evictions int64

	// Nodes and SpotNodes are the numbers of initialized nodes. Size and SpotSize are their
	// capacity in thousandths of a vCPU, or of a GPU if every pool has GPUs.
	Nodes, SpotNodes int32
	Size, SpotSize   int64
}

// A Kind is a kind of event.
type Kind uint8

// The kinds of events.
const (
	Launched Kind = iota
	Refused
	Joined
	Noticed
	Recommended
	Reclaimed
	Outbid
	Draining
	Undrained
	Deleted
	PodEvicted
	PodLost
	OutageBegan
	OutageEnded
	ReplicasChanged
	JobDone
	JobMissed
	FaultBegan
	FaultEnded
	GateClosed
	GateOpened
	Paused
	Resumed
	LossBudgetUsedUp
	LossBudgetRestored
)

// An Event is one event of a run.
type Event struct {
	At   policy.Time
	Kind Kind

	// Subject is the name of the node, workload, fault, budget or pool that the event happened to.
	// Object is the name of another participant: the market of a node, or the workload of a pod.
	// Both may be empty.
	Subject, Object string

	// Amount depends on the kind: replicas, missing pods, or micro-dollars.
	Amount int64
}

// A Decision is one step of the policy that did or held back something.
type Decision struct {
	At, Wake policy.Time
	Entries  []Entry
}

// A Verb is the kind of an entry of a plan.
type Verb uint8

// The verbs, in the order in which a plan is executed.
const (
	Steer Verb = iota
	Launch
	Drain
	Rank
	Gate
	Pause
	Evict
	Hold
)

// An Entry is one entry of a plan.
type Entry struct {
	Verb Verb

	// Subject is the node, pod, workload, budget or pool that the entry is about. Pool is its pool,
	// empty if it has none. Market is the first market of a launch.
	Subject, Pool, Market string

	// Detail contains the other parameters of the entry, such as "share 0.80 of 12 markets".
	Detail string

	// Why contains the reason, the dollars on both sides and the runner-up.
	Why policy.Why
}
