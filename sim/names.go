package sim

import (
	"time"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/controller"
	"github.com/spotter-dev/spotter/sim/result"
	"github.com/spotter-dev/spotter/sim/setup"
)

type (
	// Prepared is what all runs of a scenario share.
	Prepared = setup.Prepared
	// Unschedulable is a workload whose pods fit no node that can be bought.
	Unschedulable = setup.Unschedulable
	// Delays are how long things take in the simulated cluster.
	Delays = setup.Delays
	// Breakable is a forecaster whose model fails on demand.
	Breakable = controller.Breakable
)

// Prepare prepares runs of w: see [setup.Prepare].
func Prepare(w *scenarios.BoundScenario) (*Prepared, error) { return setup.Prepare(w) }

// DefaultDelays returns the delays of a cluster on EC2, and those of Rackspace Spot where they differ.
func DefaultDelays() Delays { return setup.DefaultDelays() }

type (
	// Result is what a run did and what it cost.
	Result = result.Result
	// WorkloadResult is the part of a Result that one workload has.
	WorkloadResult = result.WorkloadResult
	// GangResult is what gangs came to.
	GangResult = result.GangResult
	// BudgetResult is what a GPU budget came to.
	BudgetResult = result.BudgetResult
	// Outages are the incidents of a workload or of a run.
	Outages = result.Outages
	// OutageCause is why pods were missed.
	OutageCause = result.OutageCause
	// CauseOutage is the part of an outage that has one cause.
	CauseOutage = result.CauseOutage
	// CauseOutages are the parts of an outage by cause.
	CauseOutages = result.CauseOutages
	// Incident is a time in which a workload had too few pods.
	Incident = result.Incident
	// Sample is the totals of a run at an instant.
	Sample = result.Sample
	// Held is how many nodes of a market there are.
	Held = result.Held
	// Taken is a node that the provider took.
	Taken = result.Taken
	// WorkloadState is the state of a workload at an instant.
	WorkloadState = cluster.WorkloadState
)

// The causes of outages.
const (
	CauseReclaim     = result.CauseReclaim
	CauseRefused     = result.CauseRefused
	CauseMove        = result.CauseMove
	CauseProvisioner = result.CauseProvisioner
	CauseFault       = result.CauseFault
	CauseBudget      = result.CauseBudget
	CausePreemption  = result.CausePreemption
	CauseGrowth      = result.CauseGrowth
	OutageCauses     = result.OutageCauses
	IncidentGap      = result.IncidentGap
)

// OutageMinutes returns a sum of times below what is required in minutes, rounded half up.
func OutageMinutes(outage time.Duration) int64 { return result.OutageMinutes(outage) }
