// Package result has what a run of the simulator did and what it cost.
package result

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A Result is what one run did and what it cost, over the metered window.
// Every figure is defined in the README under "What is measured".
type Result struct {
	Scenario string
	Policy   string
	Seed     uint64
	Window   billing.Span

	// Bill is what the nodes cost, of which OnDemandBill and SpotBill, fees included.
	Bill, OnDemandBill, SpotBill policy.Money

	// Fees are the part of Bill other than the prices of nodes, surplus CPU credits included, and
	// OnDemandFees those of on-demand nodes: see [policy.Pool].
	Fees         policy.NodeFees
	OnDemandFees policy.Money

	// Slowed is for how long nodes without CPU credits were slowed down to their baseline.
	Slowed time.Duration

	// CommitmentFee is what was paid in advance for the window, in no bill since it
	// is the same whatever is done; policy.NoPrice where that is not known. Spared
	// is what the nodes would have cost more without.
	CommitmentFee, Spared policy.Money

	// UnservedCost is 2 × unserved, IncidentCost the penalties of incidents,
	// JobCost that of work not finished in time. OutageCost is their sum.
	UnservedCost, IncidentCost, JobCost, OutageCost policy.Money

	// Unserved is the integral of missing pods × pod value.
	Unserved policy.Money

	Outages

	// Availability is the mean over workloads of the share of time with
	// ready ≥ desired, in [0, 1].
	Availability float64

	// Evictions by us, the provisioner or consolidation; and pods lost with
	// reclaimed nodes. PodDays is the number of days that pods were bound.
	VoluntaryEvictions, ReclaimEvictions int64
	PodDays                              float64

	// TimeToReady are the times from a pod's creation to ready, in order of
	// size: the 50th and the 95th percentile.
	TimeToReadyP50, TimeToReadyP95 time.Duration

	// Launches counts nodes bought, Refusals launches refused, Reclaims nodes
	// that the provider took while they ran, Notices and Recommendations those given,
	// Interruptions nodes that were reclaimed or had a notice, each once, Outbid those
	// of them with a price above their bid, Drains nodes drained.
	//
	// WarmUpLaunches counts nodes bought before the metered window.
	Launches, WarmUpLaunches, Refusals, Reclaims, Notices, Recommendations, Interruptions, Outbid, Drains int64

	// NodeHours and SpotHours are in hours of initialized nodes; SpotShare is
	// the spot part of the CapacityHours held: vCPU-hours, in scenarios with GPUs
	// only GPU-hours.
	NodeHours, SpotHours     float64
	CapacityHours, SpotShare float64

	// JobsDone and JobsMissed count instances; WorkLost is work done twice.
	JobsDone, JobsMissed int64
	WorkLost             time.Duration

	Gangs GangResult

	// SpotBarred is for how long pools were on demand because their loss budgets were used up,
	// summed over pools.
	SpotBarred time.Duration

	Workloads []WorkloadResult

	// KeptOut is the part of Unserved that was missing behind a closed gate.
	KeptOut policy.Money

	Budgets []BudgetResult

	// NamespaceCosts divides what the nodes cost among namespaces, in dollars. A run leaves it nil;
	// who watches it and wants to know fills it in.
	NamespaceCosts map[string]float64

	// Decisions is the number of steps, Events that of events handled.
	Decisions, Events int64

	// Weather covers everything exogenous, Hash everything that happened.
	Weather, Hash [32]byte

	// Samples are the totals of the run at each multiple of Config.Sample after the start of the
	// window, and at its end. Held has the markets of the nodes at these instants, with an entry
	// wherever their number differs from that of the sample before. Taken are the reclaims in
	// order, one for each that Reclaims counts. All are empty where Config.Sample is 0.
	Samples []Sample
	Held    []Held
	Taken   []Taken

	// Unschedulable says which pods fit no node that can be bought, and why, one line for each
	// workload. Warnings have these lines too.
	Unschedulable []string

	// Warnings are faults that did not stop the run, each kind once.
	Warnings []string

	// Violations say in plain sentences what of the manifests the run did not
	// keep, such as a share of spot above what a pool allows. Empty for a run that
	// kept all.
	Violations []string
}

// A WorkloadResult is the part of a Result that one workload has.
type WorkloadResult struct {
	Name     string
	Kind     policy.WorkloadKind
	PodValue policy.Money // per hour
	Outages
	Unserved     policy.Money
	OutageCost   policy.Money
	Availability float64
	SpotShare    float64 // spot part of its ready pod-hours
}

// A GangResult is what the gangs of a run came to: pods that work only all
// together.
type GangResult struct {
	// Started counts instances that began to work for the first time within the
	// window, NotStarted those that never did, and Failed those that were lost
	// more often than they may be.
	Started, NotStarted, Failed int64

	// WaitP50 and WaitP95 are the times from the release of an instance to the
	// first instant at which all of its pods were ready, in order of size: the
	// 50th and the 95th percentile of those that started.
	WaitP50, WaitP95 time.Duration

	// Restarts counts how often all pods were created again because one was lost,
	// Requeues how often because they were not ready in time.
	Restarts, Requeues int64
}

// A BudgetResult is what one budget came to.
type BudgetResult struct {
	Name   string
	Action policy.BudgetAction

	// GPUHours are device-hours that its pods held within the metered window,
	// counted apart from the ledger.
	GPUHours float64

	// WindowHours and WindowCost are what the ledger has within the budget's own
	// window at the last decision, and Peak the largest part of a quota that it
	// ever had: 1 is all of it.
	WindowHours float64
	WindowCost  policy.Money
	Peak        float64

	// OverMinutes is how long it was spent, ClosedMinutes how long its gate was
	// closed; Evictions are pods evicted and Pauses jobs suspended for it.
	OverMinutes, ClosedMinutes int64
	Evictions, Pauses          int64
}

// A Sample is the totals of a run at an instant, counted from the start of the metered window. At
// its end Bill, OutageCost and Outages are those of the Result.
type Sample struct {
	At policy.Time

	// Bill is what the nodes that ran would have cost had they all stopped at At,
	// where commitments may cover them without the least time that is billed;
	// OutageCost counts incidents in hand as if they were over, and jobs once they
	// are due.
	Bill, OutageCost policy.Money

	// Outages have those in hand as if they were over.
	Outages

	// Notices and Reclaims are those of Result, Evictions pods evicted by choice.
	Notices, Reclaims, Evictions int64

	// Nodes and SpotNodes are the initialized ones; Size and SpotSize what they
	// hold, in vCPUs, or in GPUs where every pool has them.
	Nodes, SpotNodes, Size, SpotSize int64
}

// A Taken is one node that the provider took.
type Taken struct {
	At     policy.Time
	Market policy.MarketID
}

// A Held is how many initialized nodes of a market there are from the sample at At on.
type Held struct {
	At     policy.Time
	Market policy.MarketID
	Nodes  int64
}
