package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A PodPhase is where a pod is in its life.
type PodPhase uint8

// The phases of a pod, in order.
const (
	PodGone        PodPhase = iota // the slot is empty
	PodPending                     // no node yet
	PodStarting                    // bound, not yet ready
	PodReady                       // serving
	PodTerminating                 // deletion requested, still holding its node
)

// String returns the name used in output.
func (p PodPhase) String() string {
	return [...]string{"gone", "pending", "starting", "ready", "terminating"}[p]
}

// A Pod is one pod as seen at Snapshot.Now. What it shares with its siblings
// is in its Template.
type Pod struct {
	ID   PodID
	Name string // "namespace/name"; empty in a free slot

	// UID distinguishes it from another pod of its name; empty where there is no API
	// server. No decision depends on it.
	UID string

	Template TemplateID
	Phase    PodPhase

	// Gated says that scheduling gates keep the pod from being scheduled.
	Gated bool

	// DoNotDisrupt says that the pod carries karpenter.sh/do-not-disrupt.
	DoNotDisrupt bool

	// Node is where it runs, Nominated where it is promised a place; or None.
	Node      NodeID
	Nominated NodeID

	// VolumeZone is the zone of its bound zonal volumes, or None.
	VolumeZone ZoneID

	// Created, Bound and ReadySince are when each began; zero if not yet.
	Created, Bound, ReadySince Time

	// Deleting is when its deletion was requested; zero if it was not.
	Deleting Time

	// DeletionCost is the annotation controller.kubernetes.io/pod-deletion-cost, 0 without: when a
	// ReplicaSet shrinks, of pods that are equally ready those with a lower cost are deleted first.
	// DeletionCostFixed says that another controller set it, and that Spotter must not change it.
	DeletionCost      int32
	DeletionCostFixed bool
}

// An EndedPod is a pod that went away since the snapshot before.
type EndedPod struct {
	Name     string
	Template TemplateID
	Node     string // name of the node it last ran on; empty if none

	// Start is when it was bound, End when it was gone.
	Start, End Time

	// Cause is why it ended.
	Cause EndCause
}

// An EndCause is why a pod ended.
type EndCause uint8

// The causes of a pod's end.
const (
	EndUnknown   EndCause = iota
	EndFinished           // it did its work
	EndScaled             // its workload wants fewer
	EndEvicted            // we or a provisioner evicted it
	EndReclaimed          // it went down with a node that the provider took
	EndPreempted          // a pod of higher priority took its place
	EndGang               // another pod of its gang ended, or its gang was not ready in time
)

// String returns the name used in output.
func (c EndCause) String() string {
	return [...]string{"unknown", "finished", "scaled", "evicted", "reclaimed", "preempted", "gang"}[c]
}

// A WorkloadKind is what owns a pod.
type WorkloadKind uint8

// The kinds of owner.
const (
	KindBare WorkloadKind = iota
	KindDeployment
	KindStatefulSet
	KindJob
	KindDaemonSet
)

// String returns the Kubernetes kind.
func (k WorkloadKind) String() string {
	return [...]string{"Pod", "Deployment", "StatefulSet", "Job", "DaemonSet"}[k]
}

// A Workload is a controller of pods.
type Workload struct {
	ID   WorkloadID
	Name string // "namespace/name"
	Kind WorkloadKind
	UID  string // as that of a Pod

	// Replicas is the number wanted now, Ready the number serving.
	Replicas, Ready int32

	// Deadline is when a job must be done; zero without one. Work is the rest of it according to
	// its checkpoints, if known, in pod-time.
	Deadline Time
	Work     time.Duration

	// Suspended says that a job is suspended: it has no pods until it is resumed. PausedBy is the
	// budget for which Spotter suspended it; empty for none.
	Suspended bool
	PausedBy  string
}

// A DeviceUse is an amount of an accelerator in thousandths of a device.
type DeviceUse struct {
	Resource string
	Amount   int64
}

// A Template is the specification that pods have in common.
type Template struct {
	ID        TemplateID
	Workload  WorkloadID
	Name      string // "namespace/name" of the workload
	Namespace string

	// Requests are the effective requests of one pod: the larger of the sum
	// of containers and each init container (sidecars added to both), plus
	// overhead. Requests.Pods is 1. GPUResource is what Requests.GPU counts.
	Requests    Resources
	GPUResource string

	// Devices are the accelerators that a pod holds under names other than GPUResource:
	// slices of devices, and devices by resource claims. They are ascending by Resource,
	// and only budgets read them. Uncounted reports that a pod holds devices of which the
	// number is not known.
	Devices   []DeviceUse `json:",omitempty"`
	Uncounted bool        `json:",omitempty"`

	// CPUUse is the CPU that a pod uses on average, in thousandths of a core: the part of its
	// request that was stated, or that is assumed. It counts only on burstable types.
	CPUUse int64 `json:",omitempty"`

	// AssumedCPU and AssumedMemory are what the scheduler adds to Requests when it
	// scores nodes, in thousandths of a core and in bytes: 100 and 200 MiB for each
	// container that states none of them.
	AssumedCPU, AssumedMemory int64

	Labels []Label

	// Priority is that of the priority class; PriorityClass is its name.
	Priority        int32
	PriorityClass   string
	PreemptionNever bool

	// NodeSelector must all match. Affinity is the required node affinity: at
	// least one term must match; no terms means anything. Preferred only
	// changes the score.
	NodeSelector []Label
	Affinity     []NodeTerm
	Preferred    []PreferredNodeTerm

	PodAffinity     []PodTerm
	PodAntiAffinity []PodTerm
	Spread          []Spread
	Tolerations     []Toleration
	HostPorts       []HostPort

	// Volumes are the claims of one pod.
	Volumes []Volume

	// Grace is the termination grace period.
	Grace time.Duration

	// Startup is the time from binding to ready when the user stated it, else 0.
	Startup time.Duration

	// OutagePenalty is in hours, and below zero when the user stated none.
	OutagePenalty float64

	// OutageCost is what the user stated that an hour of an outage costs, in
	// place of the penalty; 0 when nothing was stated.
	OutageCost Money

	// Duration is how long a pod of a job works, and Checkpoint how often it
	// makes its work safe, as the user stated them; 0 when nothing was stated.
	Duration, Checkpoint time.Duration

	// Gang is how many pods work only all together, this one counted: with one of
	// them all stop, and do again what none of them had made safe. 0 says that the
	// pod works on its own.
	Gang int32

	// MigrationTier is SpotVortex's annotation (0, 1 or 2); below zero if it is absent.
	MigrationTier int8

	// Critical pods are not moved in haste; GracefulOnly says it for the way.
	Critical, GracefulOnly bool

	// SafeToEvict and NotSafeToEvict are the annotation
	// cluster-autoscaler.kubernetes.io/safe-to-evict, when it says true and when it says false. A
	// pod that no controller would create again may be evicted if it is marked as safe.
	SafeToEvict, NotSafeToEvict bool

	// DaemonSet says that one pod runs on every node that it fits.
	DaemonSet bool

	// PDBs are those that select the pods, ascending.
	PDBs []PDBID
}

// PenaltyHours returns the hours of pod value that an incident costs for each missing pod: as
// stated, else 12, 4 or 1 for a high, normal or low priority class. A class is known by its name,
// in which the word "high", "critical" or "low" appears.
func (t *Template) PenaltyHours() float64 {
	class := strings.ToLower(t.PriorityClass)
	switch {
	case t.OutagePenalty >= 0:
		return t.OutagePenalty
	case strings.Contains(class, "high"), strings.Contains(class, "critical"):
		return 12
	case strings.Contains(class, "low"):
		return 1
	}
	return 4
}

// Bare reports whether no controller would create a pod of t again.
func (s *Snapshot) Bare(t *Template) bool {
	return t.Workload == None || s.Workloads[t.Workload].Kind == KindBare
}

// An Operator compares a label with values.
type Operator uint8

// The operators of Kubernetes selectors.
const (
	OpIn Operator = iota
	OpNotIn
	OpExists
	OpDoesNotExist
	OpGt
	OpLt
)

// A Requirement is one condition on labels.
type Requirement struct {
	Key    string
	Op     Operator
	Values []string
}

// MetBy reports whether a label with the given value meets r, or if there is false, whether a
// missing label does.
func (r *Requirement) MetBy(value string, there bool) bool {
	if there && value == AnyValue {
		return r.Op != OpDoesNotExist
	}
	switch r.Op {
	case OpIn:
		return there && slices.Contains(r.Values, value)
	case OpNotIn:
		return !there || !slices.Contains(r.Values, value)
	case OpExists:
		return there
	case OpDoesNotExist:
		return !there
	}
	if !there || len(r.Values) != 1 {
		return false
	}
	have, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	want, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return false
	}
	if r.Op == OpGt {
		return have > want
	}
	return have < want
}

// MetByLabels reports whether labels meet r.
func (r *Requirement) MetByLabels(labels []Label) bool {
	value, there := FindLabel(labels, r.Key)
	return r.MetBy(value, there)
}

// A NodeTerm holds requirements that must all match a node's labels, and
// Fields that must match its name (metadata.name).
type NodeTerm struct {
	Labels []Requirement
	Fields []Requirement
}

// A PreferredNodeTerm adds Weight (1–100) to the score of nodes that match.
type PreferredNodeTerm struct {
	Weight int32
	Term   NodeTerm
}

// A Selector matches pods by labels; all requirements must hold. The zero
// value matches nothing; Everything matches all.
type Selector struct {
	Requirements []Requirement
	Everything   bool
}

// A PodTerm is one term of pod affinity or anti-affinity.
type PodTerm struct {
	// Weight is 0 for a required term, else 1–100.
	Weight      int32
	Selector    Selector
	Namespaces  []string // none means the pod's own, unless AllNamespaces
	AllSpaces   bool
	TopologyKey string
}

// A Spread is one topology spread constraint.
type Spread struct {
	TopologyKey string
	MaxSkew     int32
	MinDomains  int32 // 0 means not set

	// Soft is ScheduleAnyway: it only changes the score.
	Soft     bool
	Selector Selector

	// IgnoreAffinity is nodeAffinityPolicy: Ignore; HonorTaints is
	// nodeTaintsPolicy: Honor. The zero value is Kubernetes' default.
	IgnoreAffinity bool
	HonorTaints    bool
}

// A Toleration lets a pod onto a node with a matching taint.
type Toleration struct {
	Key    string // empty with Exists matches every key
	Exists bool   // the operator; otherwise the values must be equal
	Value  string
	Effect TaintEffect
}

// A HostPort is a port of the node that a pod occupies.
type HostPort struct {
	IP       string // empty means every address
	Port     int32
	Protocol string // "TCP", "UDP", "SCTP"
}

// A Volume is a persistent claim of a pod.
type Volume struct {
	// Zonal volumes fix the pod to the zone in which they were first bound.
	Zonal bool

	// Once is ReadWriteOncePod: no two pods may use one claim at a time.
	Once bool

	// Claim names a claim shared by all pods of the template; empty means one
	// claim per pod.
	Claim string
}

// A PDB is a PodDisruptionBudget and its state as the API server reports it.
type PDB struct {
	ID        PDBID
	Name      string // "namespace/name"
	Namespace string
	Selector  Selector

	// Allowed, Healthy, Desired and Expected are the status fields
	// disruptionsAllowed, currentHealthy, desiredHealthy and expectedPods.
	Allowed, Healthy, Desired, Expected int32

	// AlwaysAllowUnhealthy is unhealthyPodEvictionPolicy: AlwaysAllow.
	AlwaysAllowUnhealthy bool

	// MinAvailable or MaxUnavailable is set, as a count or a percentage.
	MinAvailable, MaxUnavailable Quantity
}

// Uncounted reports whether an eviction of q is allowed whatever p allows, since q is
// not ready anyway.
func (p *PDB) Uncounted(q *Pod) bool {
	return q.Phase == PodStarting && (p.AlwaysAllowUnhealthy || p.Desired > 0 && p.Healthy >= p.Desired)
}

// A Quantity is a count or a percentage, as Kubernetes' IntOrString.
type Quantity struct {
	Set     bool
	Percent bool
	N       int32
}

// Of returns q of n, percentages rounded up as the disruption controller does.
func (q Quantity) Of(n int32) int32 {
	if !q.Percent {
		return q.N
	}
	return int32((int64(q.N)*int64(n) + 99) / 100)
}

// Required returns the least number of the expected pods that p wants healthy:
// minAvailable, or expected less maxUnavailable, never below 0.
func (p *PDB) Required(expected int32) int32 {
	if p.MinAvailable.Set {
		return p.MinAvailable.Of(expected)
	}
	return max(0, expected-p.MaxUnavailable.Of(expected))
}
