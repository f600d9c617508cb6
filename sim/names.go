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
	// Prepared is the state that all runs of a scenario share.
	Prepared = setup.Prepared
	// Unschedulable is a workload whose pods fit no node that can be launched.
	Unschedulable = setup.Unschedulable
	// Delays are the durations of processes in the simulated cluster.
	Delays = setup.Delays
	// ModelFaulter is a forecaster whose model can be made to fail.
	ModelFaulter = controller.ModelFaulter
)

// Prepare prepares runs of w; see [setup.Prepare].
func Prepare(w *scenarios.BoundScenario) (*Prepared, error) { return setup.Prepare(w) }

// DefaultDelays returns the delays of a cluster on EC2, and those of Rackspace Spot where they
// differ.
func DefaultDelays() Delays { return setup.DefaultDelays() }

type (
	// Result is the outcome of a run and its costs.
	Result = result.Result
	// WorkloadResult is the part of a Result for one workload.
	WorkloadResult = result.WorkloadResult
	// GangResult is the result of the gangs of a run.
	GangResult = result.GangResult
	// BudgetResult is the result of one GPU budget.
	BudgetResult = result.BudgetResult

	// QueueResult is the result of one of Kueue's queues.
	QueueResult = result.QueueResult
	// Outages are the incidents of a workload or of a run.
	Outages = result.Outages
	// OutageCause is the cause for which pods were missing.
	OutageCause = result.OutageCause
	// CauseOutage is the part of an outage with one cause.
	CauseOutage = result.CauseOutage
	// CauseOutages are the parts of an outage by cause.
	CauseOutages = result.CauseOutages
	// Incident is an interval in which a workload had fewer ready pods than required.
	Incident = result.Incident
	// Sample contains the totals of a run at an instant.
	Sample = result.Sample
	// Held is the number of initialized nodes of a market from a sample on.
	Held = result.Held
	// Taken is a node that the provider reclaimed.
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

// OutageMinutes converts the time below the required level to minutes, rounded half up.
func OutageMinutes(outage time.Duration) int64 { return result.OutageMinutes(outage) }
