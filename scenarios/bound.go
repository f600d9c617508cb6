package scenarios

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A BoundScenario is a scenario bound to the prices of a trace. It contains all that a run needs,
// in dense tables whose ids equal those in every Snapshot of the run. It is immutable and may be
// read by concurrent runs.
type BoundScenario struct {
	Settings

	// TraceDigest is the SHA-256 of the trace's content in the window. It is part of every run's
	// hash.
	TraceDigest [32]byte

	Types []policy.InstanceType
	Zones []string

	// Markets contain the constant properties of markets. Prices, of the same length, contain their
	// prices; the curve of an on-demand market has one point.
	Markets []policy.Market
	Prices  []PriceCurve

	// Available, indexed by market, is the recorded availability; nil if none is recorded.
	Available []AvailabilityCurve

	// Signals, indexed by market, are the published data other than prices; nil if the trace has
	// none.
	Signals []SignalCurve

	Pools     []policy.Pool
	Templates []policy.Template

	// NodePools, indexed by pool, contain the settings that only a NodePool has. An element is nil
	// for a CapacityPool; the slice is nil if no pool is a NodePool.
	NodePools []*NodePool

	// ScalingGroups, indexed by pool, are the described Auto Scaling groups. An element is nil for
	// other pools; the slice is nil if no pool is an Auto Scaling group.
	ScalingGroups []*ScalingGroup

	// sizes, indexed by pool, are the allocatable resources of the instance types for which they
	// differ from Types; nil if none differ.
	sizes []map[policy.TypeID]policy.Resources

	// Workloads have one Template each: Templates[i] is the template of Workloads[i].
	Workloads []Workload
	PDBs      []policy.PDB

	// Gangs are the groups of jobs that need all their pods at once, ascending by name.
	Gangs []Gang

	// Queues are those of Kueue, nil without any.
	Queues *QueueSetup

	// Seeds are the nodes of a start cluster of the kind StartNodes.
	Seeds []NodeSeed

	// Commitments are the reserved instances and savings plans, ascending by name. They are the
	// same for every policy.
	Commitments []policy.Commitment

	// Reservations are the capacity reservations that NodePools may launch into.
	Reservations []Reservation

	Faults []Fault

	// Truth is the deviation of the drawn weather and prices from the model that policies know; see
	// [BoundScenario.Under].
	Truth weather.Truth

	Trace TraceInfo
}

// GroupBounds are the bounds of the desired size of an Auto Scaling group. A Max of 0 means that
// only the limits of the pool apply.
type GroupBounds struct{ Min, Max int }

// Reclaims describes the source of the reclaims of w: "recorded" if every Spot market has a
// recorded availability, "modelled" if none has, and "decided by price and bid" if all are
// auctions.
func (w *BoundScenario) Reclaims() string {
	auctions, recorded, others := 0, 0, 0
	for i := range w.Markets {
		switch m := &w.Markets[i]; {
		case m.Capacity != policy.Spot:
		case m.Auction():
			auctions++
		case i < len(w.Available) && len(w.Available[i].At) > 0:
			recorded++
		default:
			others++
		}
	}
	said, seen := "modelled", "recorded"
	if w.Trace.Synthetic {
		seen = "generated"
	}
	switch {
	case recorded > 0 && others > 0:
		said = seen + " in part and modelled elsewhere"
	case recorded > 0:
		said = seen
	}
	switch {
	case auctions == 0:
		return said
	case recorded+others == 0:
		return "decided by price and bid"
	}
	return said + ", and in auctions decided by price and bid"
}

// A PriceCurve is the price of a market over the run: Price[i] applies from At[i] on. The first At
// is at or before the start of the warm-up. policy.NoPrice means not offered.
type PriceCurve struct {
	At    []policy.Time
	Price []policy.Money
}

// A SignalCurve is the data published about a market other than its price, over the run: element i
// of a column applies from At[i] on. A column is nil if the trace does not have it. A curve without
// points means that nothing is ever published.
type SignalCurve struct {
	At []policy.Time

	// Score is the placement score, negative where unknown.
	Score []int8

	// Bids are the bids at the 20th, 50th and 80th percentile, 0 where unknown.
	Bids [3][]policy.Money

	// Band is the interruption band, negative before the first one. It is nil where reclaims are
	// drawn: the band at the start then holds for the whole run, and forecasts must not follow a
	// changing band that reclaims ignore.
	Band []int8

	// Hazard is the trace's forecast of reclaims per node-hour, made from earlier data only;
	// negative where the trace has none.
	Hazard []float64
}

// HazardAt returns the trace's forecast of reclaims per node-hour at now, and whether there is one.
func (c *SignalCurve) HazardAt(now policy.Time) (hazard float64, ok bool) {
	i := c.inForce(now)
	if i < 0 || c.Hazard == nil || c.Hazard[i] < 0 {
		return 0, false
	}
	return c.Hazard[i], true
}

// inForce returns the index of the element that applies at now, or -1 before the first.
func (c *SignalCurve) inForce(now policy.Time) int {
	i, exact := slices.BinarySearch(c.At, now)
	if !exact {
		i--
	}
	return i
}

// Publish writes the data that applies at now into m.
func (c *SignalCurve) Publish(m *policy.Market, now policy.Time) {
	i := c.inForce(now)
	m.PlacementScore, m.BidPercentiles = -1, [3]policy.Money{}
	if i < 0 {
		return
	}
	if c.Score != nil {
		m.PlacementScore = max(-1, c.Score[i])
	}
	for k, bids := range c.Bids {
		if bids != nil {
			m.BidPercentiles[k] = bids[i]
		}
	}
	if c.Band != nil && c.Band[i] >= 0 {
		m.Band, m.BandModelled = policy.Band(c.Band[i]), false
	}
}

// An AvailabilityCurve is the recorded availability of a market: Available[i] applies from At[i]
// on.
type AvailabilityCurve struct {
	At        []policy.Time
	Available []bool

	// Nodes[i] is the number of nodes available from At[i] on; it is above 0 if Available[i]. It is
	// nil if the recording has no numbers.
	Nodes []int32

	// Gap[i] is the time between the previous observation of the market and At[i], in milliseconds:
	// the change happened in (At[i] − Gap[i], At[i]]. It is nil if all times are exact.
	Gap []policy.Time
}

// A TraceInfo describes the origin of prices. Every output contains it.
type TraceInfo struct {
	// Name is the file, the folder or the name of the embedded trace.
	Name string

	// From and To delimit the whole trace.
	From, To policy.Time

	// Synthetic reports that the trace was generated, Scripted that its prices were written by
	// hand, and Modelled that it was recorded without prices: its prices are a share of the
	// on-demand price.
	Synthetic, Scripted, Modelled bool

	// Availability reports that reclaims are recorded and not modelled.
	Availability bool

	// About describes in one line how the trace was made or where it was recorded.
	About string

	// Traffic counts what runs with the same trace read from its files; nil if the trace has no
	// counter.
	Traffic *trace.Traffic
}

// InfoOf returns the description of a trace.
func InfoOf(tr *trace.Trace) TraceInfo {
	return TraceInfo{
		Name: tr.Name, From: tr.WholeFrom, To: tr.WholeTo, Synthetic: tr.Synthetic, Scripted: tr.Scripted, About: tr.About,
		Modelled: tr.Meta[trace.MetaModelled] != "",
	}
}

// Prices returns the origin of the prices in one word.
func (t *TraceInfo) Prices() string {
	switch {
	case t.Synthetic:
		return "synthetic"
	case t.Scripted:
		return "scripted"
	case t.Modelled:
		return "modelled"
	}
	return "recorded"
}

// A Workload is a controller of pods with its demand over time.
type Workload struct {
	policy.Workload

	// Schedule is the number of desired replicas, ascending by At. The first step also applies
	// before its time. A job has no schedule.
	Schedule []ReplicaStep

	// Rollouts are the times at which a new version of a Deployment is rolled out, ascending.
	Rollouts []policy.Time

	// Job is set for KindJob.
	Job *Job

	// OutagePenalty is the cost of an incident, in hours of pod value.
	OutagePenalty float64

	// OutageCostPerHour replaces OutagePenalty if above zero.
	OutageCostPerHour policy.Money

	// Expendable reports that other pods are expected to preempt its pods, like pause pods that
	// reserve capacity. It has no outages.
	Expendable bool

	// DoNotDisrupt reports that its pods have the annotation karpenter.sh/do-not-disrupt, which
	// protects them for ProtectedFor from their start; 0 means without limit.
	DoNotDisrupt bool
	ProtectedFor time.Duration

	// LocalStorage reports that its pods write to the disk of their node, through a volume of type
	// emptyDir or hostPath. The Cluster Autoscaler does not remove such nodes.
	LocalStorage bool
}

// A ReplicaStep is a change of the desired replicas.
type ReplicaStep struct {
	At       policy.Time
	Replicas int32
}

// A Job is a workload that runs to completion.
type Job struct {
	// Releases are the times at which instances are created, one at each.
	Releases []policy.Time

	// Pods is the number of pods that run at once, Completions the number that must finish.
	Pods, Completions int32

	// Work is the running time that one completion requires.
	Work time.Duration

	// Checkpoint is the interval at which finished work is saved; 0 means never.
	Checkpoint time.Duration

	// Deadline is the time after its release by which an instance must finish; 0 means none.
	Deadline time.Duration
}

// A Gang is a group of jobs that needs all its pods at once: they start when all are ready, and
// when one is lost, all are ended and created again.
type Gang struct {
	Name string // "namespace/name"

	// Workloads are its jobs. Each has as many pods as completions, and all have the same releases.
	Workloads []policy.WorkloadID

	// Size is the number of pods of all its jobs together.
	Size int32

	// RestartsMax is how often the gang is created again before it fails permanently; negative
	// means no limit.
	RestartsMax int32

	// ReadyTimeout is the time after admission within which all pods must be ready; otherwise they
	// are deleted and the gang is admitted again later. RecoveryTimeout is the same after the loss
	// of a pod of a running gang. 0 means no limit.
	ReadyTimeout, RecoveryTimeout time.Duration
}

// A NodeSeed is a number of equal nodes that exist at the start.
type NodeSeed struct {
	Pool   policy.PoolID
	Market policy.MarketID
	Count  int

	// Pods are the pods that run on each of the nodes at the start, ascending by workload.
	Pods []PodsOnNode
}

// A FaultKind is a kind of fault that a scenario injects.
type FaultKind uint8

// The kinds of fault.
const (
	FaultZoneOutage       FaultKind = iota // all nodes of a zone are lost and launches refused
	FaultCapacityShortage                  // matching markets have a capacity shortage of depth Share
	FaultPriceRamp                         // prices rise linearly to Factor times their value
	FaultAPIThrottle                       // calls fail with probability Share
	FaultAPIError                          // every call fails
	FaultLateNotice                        // notices arrive Delay late, or never
	FaultSlowNodes                         // start-up takes Factor times as long
	FaultControllerDown                    // no steps; memory is reloaded afterwards
	FaultModelFails                        // the forecaster returns errors
	FaultOnDemandRefused                   // on-demand launches are refused
	FaultZonalShift                        // Karpenter launches no nodes in a zone and ends none there
)

// A ModelFailure is a way in which a trained model fails.
type ModelFailure uint8

// The ways in which a model fails; the first is no failure.
const (
	ModelWorks ModelFailure = iota
	ModelGone               // every call returns an error, as if its files were lost
	ModelLate               // no call returns in time
	ModelNaN                // every result is not a number
)

// A Fault is one fault of limited duration that a scenario injects.
type Fault struct {
	Kind     FaultKind
	At       policy.Time
	Duration time.Duration

	// Zone, Type and Capacity restrict the fault to matching markets; empty matches all. Capacity
	// is "spot" or "on-demand".
	Zone, Type, Capacity string

	// ZoneNumber, if above 0, is the number of the zone among the zones of the bound scenario,
	// counted from 1. Zone is set from it.
	ZoneNumber int

	// Share is a probability or a depth in (0, 1], Factor a multiple, and Delay a duration. Each
	// applies only to some kinds.
	Share  float64
	Factor float64
	Delay  time.Duration

	// Model is how the model fails in a FaultModelFails, where ModelWorks means ModelGone.
	Model ModelFailure
}
