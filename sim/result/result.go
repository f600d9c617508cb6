// Package result contains the results of simulator runs.
package result

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A Result is the outcome of one run and its costs, over the metered window. Every figure is
// defined in docs/measures.md.
type Result struct {
	Scenario string
	Policy   string
	Seed     uint64
	Window   billing.Span

	// Bill is the cost of the nodes, fees included. It is the sum of OnDemandBill and SpotBill.
	Bill, OnDemandBill, SpotBill policy.Money

	// Fees are the part of Bill other than the prices of nodes, including surplus CPU credits.
	// OnDemandFees are the fees of on-demand nodes; see [policy.Pool].
	Fees         policy.NodeFees
	OnDemandFees policy.Money

	// Slowed is the total time for which nodes without CPU credits were slowed down to their
	// baseline.
	Slowed time.Duration

	// CommitmentFee is the amount paid in advance for the window, or policy.NoPrice if it is not
	// known. It is in no bill, because it is the same under every policy. Spared is the amount by
	// which commitments reduced the cost of nodes.
	CommitmentFee, Spared policy.Money

	// UnservedCost is 2 × Unserved, IncidentCost the penalties of incidents, and JobCost the cost
	// of work that was not finished in time. OutageCost is their sum.
	UnservedCost, IncidentCost, JobCost, OutageCost policy.Money

	// Unserved is the integral of missing pods × pod value over time.
	Unserved policy.Money

	Outages

	// Availability is the mean over workloads of the fraction of time with ready ≥ desired, in [0,
	// 1].
	Availability float64

	// VoluntaryEvictions counts evictions by Spotter and the provisioner, ReclaimEvictions
	// evictions because of a reclaim and pods lost with reclaimed nodes. PodDays is the time for
	// which pods were bound, in days, summed over pods.
	VoluntaryEvictions, ReclaimEvictions int64
	PodDays                              float64

	// TimeToReadyP50 and TimeToReadyP95 are percentiles of the time from a pod's creation until it
	// is ready.
	TimeToReadyP50, TimeToReadyP95 time.Duration

	// Launches counts launched nodes, Refusals refused launches, Reclaims running nodes that the
	// provider took, Notices and Recommendations those that the provider gave, and Drains drained
	// nodes. Interruptions counts nodes that were reclaimed or got a notice, each once, and Outbid
	// the part of them whose price exceeded their bid.
	//
	// WarmUpLaunches counts nodes launched before the metered window.
	Launches, WarmUpLaunches, Refusals, Reclaims, Notices, Recommendations, Interruptions, Outbid, Drains int64

	// NodeHours and SpotHours are the hours of initialized nodes. CapacityHours are vCPU-hours, or
	// GPU-hours if every pool has GPUs, and SpotShare is the Spot fraction of them, in [0, 1].
	NodeHours, SpotHours     float64
	CapacityHours, SpotShare float64

	// JobsDone and JobsMissed count job instances. WorkLost is the work that had to be repeated.
	JobsDone, JobsMissed int64
	WorkLost             time.Duration

	Gangs GangResult

	// Queues are the results of Kueue's queues, ascending by name; nil without any.
	Queues []QueueResult

	// SpotBarred is the time for which pools were on demand because their loss budgets were used
	// up, summed over pools.
	SpotBarred time.Duration

	Workloads []WorkloadResult

	// KeptOut is the part of Unserved behind a closed gate.
	KeptOut policy.Money

	Budgets []BudgetResult

	// NamespaceCosts divides the cost of the nodes among namespaces, in dollars. A run leaves it
	// nil; an observer of the run may fill it in.
	NamespaceCosts map[string]float64

	// Decisions is the number of steps, Events the number of handled events.
	Decisions, Events int64

	// Weather is the digest of everything exogenous, Hash the hash of the event log.
	Weather, Hash [32]byte

	// Samples are the totals of the run at each multiple of Config.Sample after the start of the
	// window, and at its end. Held lists the numbers of nodes by market at these instants, with an
	// entry wherever a number differs from the previous sample. Taken lists the nodes that Reclaims
	// counts, in order. All three are empty if Config.Sample is 0.
	Samples []Sample
	Held    []Held
	Taken   []Taken

	// Unschedulable describes the pods that fit no node that can be launched, with the reason, one
	// line for each workload. Warnings also contains these lines.
	Unschedulable []string

	// Warnings are problems that did not stop the run, each once.
	Warnings []string

	// Violations describe, in sentences, the settings of manifests that the run violated, such as a
	// Spot share above the maximum of a pool. It is empty if there was no violation.
	Violations []string
}

// A WorkloadResult is the part of a Result for one workload.
type WorkloadResult struct {
	Name     string
	Kind     policy.WorkloadKind
	PodValue policy.Money // per hour
	Outages
	Unserved     policy.Money
	OutageCost   policy.Money
	Availability float64
	SpotShare    float64 // Spot fraction of its ready pod-hours, in [0, 1]
}

// A GangResult is the result of the gangs of a run: groups of pods that work only all together.
type GangResult struct {
	// Started counts instances that first started to work within the window, NotStarted those that
	// never did, and Failed those that exceeded their maximum number of restarts.
	Started, NotStarted, Failed int64

	// WaitP50 and WaitP95 are percentiles of the time from the release of an instance to the first
	// instant at which all of its pods were ready, over the started instances.
	WaitP50, WaitP95 time.Duration

	// Restarts counts how often all pods of an instance were created again because one was lost,
	// Requeues how often because they were not ready in time.
	Restarts, Requeues int64
}

// A QueueResult is the result of one ClusterQueue of Kueue.
type QueueResult struct {
	Name string

	// Admitted counts how often a workload got quota within the window, Preempted how often one lost it
	// to another, and Pending the workloads that waited at the end.
	Admitted, Preempted, Pending int64

	// WaitP50 and WaitP95 are percentiles of the time that a workload waited until it was admitted, from
	// its release or from when it lost its quota.
	WaitP50, WaitP95 time.Duration
}

// A BudgetResult is the result of one GPU budget.
type BudgetResult struct {
	Name   string
	Action policy.BudgetAction

	// GPUHours are the device-hours of its pods within the metered window, counted independently of
	// the ledger.
	GPUHours float64

	// WindowHours and WindowCost are the ledger's totals in the budget's own window at the last
	// decision. Peak is the highest fraction of a quota that was used; 1 is the whole quota.
	WindowHours float64
	WindowCost  policy.Money
	Peak        float64

	// OverMinutes is the time for which it was spent, ClosedMinutes the time for which its gate was
	// closed. Evictions counts pods evicted and Pauses jobs suspended to enforce it.
	OverMinutes, ClosedMinutes int64
	Evictions, Pauses          int64
}

// A Sample contains the totals of a run at an instant, counted from the start of the metered
// window. At its end, Bill, OutageCost and Outages equal those of the Result.
type Sample struct {
	At policy.Time

	// Bill is the cost of the nodes as if all running ones stopped at At, without the minimum
	// billed time for nodes that commitments may cover. OutageCost counts open incidents as if they
	// ended at At, and jobs once they are due.
	Bill, OutageCost policy.Money

	// Outages include open incidents as if they ended at At.
	Outages

	// Notices and Reclaims are as in Result. Evictions counts voluntary evictions.
	Notices, Reclaims, Evictions int64

	// Nodes and SpotNodes count initialized nodes. Size and SpotSize are their sizes, in vCPUs, or
	// in GPUs if every pool has them.
	Nodes, SpotNodes, Size, SpotSize int64
}

// A Taken is a node that the provider reclaimed.
type Taken struct {
	At     policy.Time
	Market policy.MarketID
}

// A Held is the number of initialized nodes of a market from the sample at At on.
type Held struct {
	At     policy.Time
	Market policy.MarketID
	Nodes  int64
}
