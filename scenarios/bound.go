package scenarios

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A BoundScenario is a scenario bound to the prices of a trace: all that a run needs,
// in dense tables whose ids are those of every Snapshot of the run. It is read
// by any number of runs at once and never written.
type BoundScenario struct {
	Settings

	// TraceDigest is the SHA-256 of the trace's content in the window. It goes into every run's hash.
	TraceDigest [32]byte

	Types []policy.InstanceType
	Zones []string

	// Markets hold what does not change; prices are in Prices, of the same
	// length. A market on-demand has a curve of one point.
	Markets []policy.Market
	Prices  []PriceCurve

	// Available, per market, is a recorded availability; nil without one.
	Available []AvailabilityCurve

	// Signals, per market, are the published data other than prices; nil where the trace has none.
	Signals []SignalCurve

	Pools     []policy.Pool
	Templates []policy.Template

	// NodePools, by pool, hold what only a NodePool can request; nil for a CapacityPool, and if no
	// pool is a NodePool.
	NodePools []*NodePool

	// ScalingGroups, by pool, are the Auto Scaling groups that are described; nil for other pools,
	// and if no pool is an Auto Scaling group.
	ScalingGroups []*ScalingGroup

	// sizes are, by pool, what nodes of a type have for pods where that is not what Types
	// has; nil where it is everywhere.
	sizes []map[policy.TypeID]policy.Resources

	// Workloads has one Template each: Templates[i] is that of Workloads[i].
	Workloads []Workload
	PDBs      []policy.PDB

	// Gangs are jobs whose pods work only all together, ascending by name.
	Gangs []Gang

	// Seeds are the nodes of a StartCluster of StartNodes.
	Seeds []NodeSeed

	// Commitments are what was paid for in advance, ascending by name. They are
	// the same for every policy.
	Commitments []policy.Commitment

	// Reservations are those that NodePools may launch into.
	Reservations []Reservation

	Faults []Fault

	// Truth is how what is drawn departs from the model that policies know; see
	// [BoundScenario.Under].
	Truth weather.Truth

	Trace TraceInfo
}

// GroupBounds bound the desired size of an Auto Scaling group; a Max of 0 leaves
// it to the limits of the pool.
type GroupBounds struct{ Min, Max int }

// Reclaims says where the reclaims of w come from: "recorded" where every Spot market has a
// recorded availability, "modelled" where none has, and "decided by price and bid" where all are
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

// A PriceCurve is a market's price over the run: Price[i] in force from At[i]. The first At is at
// or before the start of warm-up. policy.NoPrice means not offered.
type PriceCurve struct {
	At    []policy.Time
	Price []policy.Money
}

// A SignalCurve is the data published about a market other than its price, over the run: element i
// of a column is in force from At[i]. A column is nil where the trace does not have it. A curve
// without points means that nothing is ever published.
type SignalCurve struct {
	At []policy.Time

	// Score is the placement score, below zero where it is unknown.
	Score []int8

	// Bids are those at the 20th, 50th and 80th percentile, 0 where unknown.
	Bids [3][]policy.Money

	// Band is the band of interruption, below zero before the first one. It is nil where reclaims
	// are drawn: they are drawn from the band at the start, which then holds for the run. Otherwise
	// forecasts would follow a band that reclaims do not.
	Band []int8

	// Hazard is a forecast of reclaims per node-hour that the trace brings, made
	// from data before its time; below zero where it brings none.
	Hazard []float64
}

// HazardAt returns the hazard that the trace forecasts at now, and whether it
// forecasts one.
func (c *SignalCurve) HazardAt(now policy.Time) (hazard float64, ok bool) {
	i := c.inForce(now)
	if i < 0 || c.Hazard == nil || c.Hazard[i] < 0 {
		return 0, false
	}
	return c.Hazard[i], true
}

// inForce returns the element that is in force at now, -1 before the first.
func (c *SignalCurve) inForce(now policy.Time) int {
	i, exact := slices.BinarySearch(c.At, now)
	if !exact {
		i--
	}
	return i
}

// Publish writes into m what is in force at now.
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

// An AvailabilityCurve says when a recorded availability changed: from At[i] on
// it was Available[i].
type AvailabilityCurve struct {
	At        []policy.Time
	Available []bool

	// Nodes[i] is how many nodes could be had from At[i] on, above 0 where
	// Available[i]; nil where only whether one could be had was recorded.
	Nodes []int32

	// Gap[i] is how long before At[i] the market was last looked at, in
	// milliseconds: the change happened at one instant in (At[i] − Gap[i],
	// At[i]]. It is nil where all instants are exact.
	Gap []policy.Time
}

// A TraceInfo describes where prices come from; every output contains it.
type TraceInfo struct {
	// Name is the file or folder, or that of an embedded trace.
	Name string

	// From and To are the span of the whole trace.
	From, To policy.Time

	// Synthetic says that the trace was generated and not recorded, Scripted that its prices were
	// written by hand. Modelled says that it was recorded, but without prices: those are a share of
	// the price on demand.
	Synthetic, Scripted, Modelled bool

	// Availability says that reclaims are recorded and not modelled.
	Availability bool

	// About is one line: how it was made, or where it was recorded.
	About string

	// Traffic counts what was read of its files for all runs that have the same;
	// nil where it has none.
	Traffic *trace.Traffic
}

// InfoOf returns the description of a trace.
func InfoOf(tr *trace.Trace) TraceInfo {
	return TraceInfo{
		Name: tr.Name, From: tr.WholeFrom, To: tr.WholeTo, Synthetic: tr.Synthetic, Scripted: tr.Scripted, About: tr.About,
		Modelled: tr.Meta[trace.MetaModelled] != "",
	}
}

// Prices says in a word where the prices come from.
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

// A Workload is a controller of pods with what it wants over time.
type Workload struct {
	policy.Workload

	// Schedule is the number of replicas wanted, ascending by At; the first
	// holds before. A job has none.
	Schedule []ReplicaStep

	// Rollouts are when a new version of a Deployment is rolled out, ascending.
	Rollouts []policy.Time

	// Job is set for KindJob.
	Job *Job

	// OutagePenalty is what an incident costs, in hours of pod value.
	OutagePenalty float64

	// OutageCostPerHour replaces the penalty when above zero.
	OutageCostPerHour policy.Money

	// Expendable reports that other pods are expected to preempt its pods, as those of a
	// pause pod that keeps capacity free: it has no outages.
	Expendable bool

	// DoNotDisrupt says that its pods carry karpenter.sh/do-not-disrupt, which protects them
	// for ProtectedFor from their start, 0 without end.
	DoNotDisrupt bool
	ProtectedFor time.Duration

	// LocalStorage says that its pods write to the disk of their node, by a
	// volume of kind emptyDir or hostPath: the Cluster Autoscaler leaves such
	// nodes alone.
	LocalStorage bool
}

// A ReplicaStep is a change of the wanted replicas.
type ReplicaStep struct {
	At       policy.Time
	Replicas int32
}

// A Job is work that ends.
type Job struct {
	// Releases are the instants at which one instance each is created.
	Releases []policy.Time

	// Pods is how many pods run at once, Completions how many must finish.
	Pods, Completions int32

	// Work is the running time that one completion needs.
	Work time.Duration

	// Checkpoint is how often finished work is made safe; 0 means never.
	Checkpoint time.Duration

	// Deadline after release by which the instance must be done; 0 means none.
	Deadline time.Duration
}

// A Gang is one or more jobs whose pods work only all together: they start when all are ready, and
// when one is lost, all end and are created again.
type Gang struct {
	Name string // "namespace/name"

	// Workloads are its jobs, each of which has as many pods as completions and
	// the same releases.
	Workloads []policy.WorkloadID

	// Size is the number of pods of all jobs together.
	Size int32

	// RestartsMax is how often the gang is created again before it fails for good; below zero,
	// there is no limit.
	RestartsMax int32

	// ReadyTimeout is how long after its admission all pods must be ready, or
	// they are deleted and the gang is admitted again later. RecoveryTimeout is
	// the same after a pod of a gang at work was lost. 0 is without end.
	ReadyTimeout, RecoveryTimeout time.Duration
}

// A NodeSeed is a number of equal nodes present from the start.
type NodeSeed struct {
	Pool   policy.PoolID
	Market policy.MarketID
	Count  int

	// Pods run on each of them from the start, ascending by workload.
	Pods []PodsOnNode
}

// A FaultKind is a kind of disturbance that a scenario orders.
type FaultKind uint8

// The kinds of fault.
const (
	FaultZoneOutage       FaultKind = iota // every node of a zone is lost, launches refused
	FaultCapacityShortage                  // a capacity shortage of given depth on matching markets
	FaultPriceRamp                         // prices multiplied, rising linearly to Factor
	FaultAPIThrottle                       // calls fail with probability Share
	FaultAPIError                          // every call fails
	FaultLateNotice                        // notices come Delay late, or never
	FaultSlowNodes                         // start-up takes Factor times as long
	FaultControllerDown                    // no steps; memory is reloaded afterwards
	FaultModelFails                        // the forecaster returns errors
	FaultOnDemandRefused                   // on-demand launches are refused
	FaultZonalShift                        // Karpenter stays out of a zone, and ends nothing there
)

// A ModelFailure says how a trained model fails.
type ModelFailure uint8

// The ways in which a model fails. The first is that it does not.
const (
	ModelWorks ModelFailure = iota
	ModelGone               // every call is an error, as when its files are lost
	ModelLate               // no call ends in time
	ModelNaN                // every result is not a number
)

// A Fault is one disturbance, of limited length, that a scenario orders.
type Fault struct {
	Kind     FaultKind
	At       policy.Time
	Duration time.Duration

	// Zone, Type and Capacity restrict it; empty matches all. Capacity is
	// "spot" or "on-demand".
	Zone, Type, Capacity string

	// ZoneNumber, when above 0, is what Zone was taken from: the place of a zone
	// among those of the bound scenario, counted from 1.
	ZoneNumber int

	// Share is a probability or a depth in (0, 1]; Factor a multiple; Delay a
	// lateness. Each is read by the kinds that need it.
	Share  float64
	Factor float64
	Delay  time.Duration

	// Model is how a FaultModelFails fails; ModelWorks means ModelGone there.
	Model ModelFailure
}
