package timeline

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A Frame is the cluster and the market at one instant of a run. It is filled
// by [Timeline.At], which reuses its slices; who keeps a frame copies it.
type Frame struct {
	At policy.Time

	// Nodes are all that exist at At, ascending by name.
	Nodes []Node

	// Markets are in the order of Timeline.Markets, Workloads in that of
	// Timeline.Workloads, Budgets in that of Timeline.Budgets.
	Markets   []Market
	Workloads []Workload
	Budgets   []Budget

	// LossBudget is that of all pools.
	LossBudget LossBudget

	// Costs are those of the run from the start of its metered window to At.
	Costs Costs

	// Decision is the place in Timeline.Decisions of the last one at or before At,
	// -1 before the first; Event likewise in Timeline.Events.
	Decision, Event int

	// order is scratch of At.
	order []ordered
}

// A Node is one machine at the instant of a frame.
type Node struct {
	Name   string
	Pool   int32 // place in Timeline.Pools, -1 for one of no pool
	Market int32 // place in Timeline.Markets, -1 where it is unknown

	Phase policy.NodePhase
	Spot  bool

	// Since is when it was launched.
	Since policy.Time

	// CPU, Memory and GPU are the parts of its allocatable that pods request, in
	// thousandths; GPU is -1 for a node without accelerators. Pods is how many run
	// there, those of DaemonSets not counted.
	CPU, Memory, GPU int16
	Pods             int16

	// Notice is when the provider takes it, zero without a notice. Recommended
	// says that the provider advises to leave it.
	Notice      policy.Time
	Recommended bool

	// By is who works on it.
	By policy.Actor
}

// A Market is what one market offers at the instant of a frame.
type Market struct {
	// Price is per node-hour, policy.NoPrice where nothing is offered. Hazard is
	// the forecast number of reclaims per node-hour.
	Price  policy.Money
	Hazard float64
}

// A Workload is one workload at the instant of a frame.
type Workload struct {
	// Desired counts growth only after the ready grace; Required is the part
	// that must be there, Ready what is.
	Desired, Required, Ready int32

	// OnSpot is the part of Ready that runs on Spot nodes.
	OnSpot int32
}

// A Budget is one budget at the instant of a frame.
type Budget struct {
	// GPUHours and Dollars are what was used in its window.
	GPUHours float64
	Dollars  policy.Money

	// Spent says that it is used up, Closed that its gate keeps pods out.
	Spent, Closed bool
}

// A LossBudget is what the last decision left of the loss budgets of all pools. It is zero where the
// policy keeps none.
type LossBudget struct {
	// Pools is how many pools have one, of which UsedUp are on demand because theirs is used up.
	Pools, UsedUp int32

	// Left is what Spot may still cost. A pool of which Spot has cost more has nothing left.
	Left policy.Money
}

// Costs are the totals of a run since its metered window started.
type Costs struct {
	// Bill is what its nodes cost up to the instant, those still running included.
	Bill policy.Money

	// OutageCost is that of design's "What is measured", including open incidents; Outages have
	// them too.
	OutageCost policy.Money
	sim.Outages

	// Notices, Reclaims and Evictions count nodes under notice, nodes taken by the
	// provider while they ran, and pods moved by choice.
	Notices, Reclaims, Evictions int64

	// Nodes and SpotNodes are the initialized nodes; Size and SpotSize what they
	// hold, in thousandths of a vCPU (of a GPU where every pool has them).
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

// An Event is one thing that happened.
type Event struct {
	At   policy.Time
	Kind Kind

	// Subject names the node, workload, fault, budget or pool that it happened to;
	// Object what else took part: the market of a node, the workload of a pod.
	// Both may be empty.
	Subject, Object string

	// Amount is replicas, pods short, or micro-dollars, by kind.
	Amount int64
}

// A Decision is one step of the policy that did or held something back.
type Decision struct {
	At, Wake policy.Time
	Entries  []Entry
}

// A Verb is what an entry of a plan does.
type Verb uint8

// The verbs, in the order in which a plan is carried out.
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

	// Subject is the node, pod, workload, budget or pool that it is about, Pool
	// the pool, empty where it has none; Market the first market of a launch.
	Subject, Pool, Market string

	// Detail is what else the entry says, as "share 0.80 of 12 markets".
	Detail string

	// Why has the reason, the dollars on both sides and the runner-up.
	Why policy.Why
}
