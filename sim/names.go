package sim

import (
	"time"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/controller"
	"github.com/spotter-dev/spotter/sim/groups"
	"github.com/spotter-dev/spotter/sim/result"
	"github.com/spotter-dev/spotter/sim/setup"
)

// What runs begin with, see [setup].
type (
	Prepared      = setup.Prepared
	Unschedulable = setup.Unschedulable
	Delays        = setup.Delays
	Autoscaler    = groups.Settings
	Breakable     = controller.Breakable
)

// Prepare prepares runs of w: see [setup.Prepare].
func Prepare(w *scenarios.BoundScenario) (*Prepared, error) { return setup.Prepare(w) }

// DefaultDelays returns the delays of a cluster on EC2, and those of Rackspace Spot where they differ.
func DefaultDelays() Delays { return setup.DefaultDelays() }

// DefaultAutoscaler returns the defaults of the Cluster Autoscaler: see [groups.DefaultSettings].
func DefaultAutoscaler() Autoscaler { return groups.DefaultSettings() }

// What runs come to, see [result].
type (
	Result         = result.Result
	WorkloadResult = result.WorkloadResult
	GangResult     = result.GangResult
	BudgetResult   = result.BudgetResult
	Outages        = result.Outages
	OutageCause    = result.OutageCause
	CauseOutage    = result.CauseOutage
	CauseOutages   = result.CauseOutages
	Incident       = result.Incident
	Sample         = result.Sample
	Held           = result.Held
	Taken          = result.Taken
	WorkloadState  = cluster.WorkloadState
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
