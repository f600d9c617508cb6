package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A PodPhase is a phase in the life of a pod.
type PodPhase uint8

// The phases of a pod, in order.
const (
	PodGone        PodPhase = iota // the slot is empty
	PodPending                     // no node yet
	PodStarting                    // bound, not yet ready
	PodReady                       // serving
	PodTerminating                 // deletion requested, still using its node
)

// String returns the name used in output.
func (p PodPhase) String() string {
	return [...]string{"gone", "pending", "starting", "ready", "terminating"}[p]
}

// A Pod is one pod at the time Snapshot.Now. The properties that it shares with other pods are in
// its Template.
type Pod struct {
	ID   PodID
	Name string // "namespace/name"; empty in a free slot

	// UID distinguishes the pod from other pods of the same name; empty without an API server.
	// Decisions do not depend on it.
	UID string

	Template TemplateID
	Phase    PodPhase

	// Gated reports whether scheduling gates keep the pod from being scheduled.
	Gated bool

	// DoNotDisrupt reports whether the pod has the annotation karpenter.sh/do-not-disrupt.
	DoNotDisrupt bool

	// Node is the node on which the pod runs, and Nominated the node to which it is nominated; None
	// if there is no such node.
	Node      NodeID
	Nominated NodeID

	// VolumeZone is the zone of its bound zonal volumes, or None.
	VolumeZone ZoneID

	// Created, Bound and ReadySince are the times when the pod was created, was bound and became
	// ready; zero if that has not happened.
	Created, Bound, ReadySince Time

	// Deleting is the time when its deletion was requested; zero if it was not.
	Deleting Time

	// DeletionCost is the annotation controller.kubernetes.io/pod-deletion-cost, or 0 without it:
	// when a ReplicaSet scales down, it deletes pods with a lower cost first among equally ready
	// pods. DeletionCostFixed reports whether another controller set it, so that Spotter must not
	// change it.
	DeletionCost      int32
	DeletionCostFixed bool
}

// An EndedPod is a pod that ended since the previous snapshot.
type EndedPod struct {
	Name     string
	Template TemplateID
	Node     string // name of the last node that it ran on; empty without one

	// Start is the time when it was bound, End the time when it ended.
	Start, End Time

	// Cause is the reason why it ended.
	Cause EndCause
}

// An EndCause is the reason why a pod ended.
type EndCause uint8

// The causes of a pod's end.
const (
	EndUnknown   EndCause = iota
	EndFinished           // it completed its work
	EndScaled             // its workload was scaled down
	EndEvicted            // Spotter or a provisioner evicted it
	EndReclaimed          // its node was reclaimed
	EndPreempted          // a pod with a higher priority preempted it
	EndGang               // another pod of its gang ended, or its gang was not ready in time
)

// String returns the name used in output.
func (c EndCause) String() string {
	return [...]string{"unknown", "finished", "scaled", "evicted", "reclaimed", "preempted", "gang"}[c]
}

// A WorkloadKind is the kind of the owner of a pod.
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

// A Workload is an owner of pods.
type Workload struct {
	ID   WorkloadID
	Name string // "namespace/name"
	Kind WorkloadKind
	UID  string // see Pod.UID

	// Replicas is the desired number of pods, Ready the number of ready ones.
	Replicas, Ready int32

	// Deadline is the time at which a Job must be finished; zero without one. Work is its remaining
	// work according to its checkpoints, in pod-time, if known.
	Deadline Time
	Work     time.Duration

	// Suspended reports whether a Job is suspended: it has no pods until it is resumed. PausedBy is
	// the budget for which Spotter suspended it; empty if Spotter did not.
	Suspended bool
	PausedBy  string
}

// A DeviceUse is an amount of an accelerator in thousandths of a device.
type DeviceUse struct {
	Resource string
	Amount   int64
}

// A Template contains the specification that pods have in common.
type Template struct {
	ID        TemplateID
	Workload  WorkloadID
	Name      string // "namespace/name" of the workload
	Namespace string

	// Requests are the effective requests of one pod: the larger of the sum over its containers and
	// the requests of any init container (with sidecars added to both), plus overhead.
	// Requests.Pods is 1. GPUResource is the extended resource that Requests.GPU counts.
	Requests    Resources
	GPUResource string

	// Devices are the accelerators that a pod uses under names other than GPUResource: slices of
	// devices, and devices from resource claims. They are ascending by Resource and used by budgets
	// only. Uncounted reports whether a pod uses devices whose number is unknown.
	Devices   []DeviceUse `json:",omitempty"`
	Uncounted bool        `json:",omitempty"`

	// CPUUse is the mean CPU use of a pod in milli-CPU: the stated or assumed fraction of its
	// request. It matters only on burstable types.
	CPUUse int64 `json:",omitempty"`

	// AssumedCPU and AssumedMemory are added to Requests when the scheduler scores nodes, in
	// milli-CPU and bytes: 100 and 200 MiB for each container that does not state the request.
	AssumedCPU, AssumedMemory int64

	Labels []Label

	// Priority is the priority of the pod's PriorityClass, whose name is PriorityClass.
	// PreemptionNever reports whether the pod never preempts other pods.
	Priority        int32
	PriorityClass   string
	PreemptionNever bool

	// NodeSelector must match completely. Affinity is the required node affinity: at least one term
	// must match; no terms match every node. Preferred only changes the score.
	NodeSelector []Label
	Affinity     []NodeTerm
	Preferred    []PreferredNodeTerm

	PodAffinity     []PodTerm
	PodAntiAffinity []PodTerm
	Spread          []Spread
	Tolerations     []Toleration
	HostPorts       []HostPort

	// Volumes are the volumes of one pod that come from claims.
	Volumes []Volume

	// Grace is the termination grace period.
	Grace time.Duration

	// Startup is the time from binding to ready if the user stated it, otherwise 0.
	Startup time.Duration

	// OutagePenalty is the penalty in hours of pod value per incident. It is negative if the user
	// stated none.
	OutagePenalty float64

	// OutageCost is the cost of an outage per hour that the user stated instead of the penalty; 0
	// if none was stated.
	OutageCost Money

	// Duration is the running time of a pod of a Job, and Checkpoint the time between its
	// checkpoints, as stated by the user; 0 if not stated.
	Duration, Checkpoint time.Duration

	// Gang is the number of pods that only work together, including this one: if one of them stops,
	// all stop, and lose the work since their last checkpoints. 0 means that the pod works
	// independently.
	Gang int32

	// MigrationTier is SpotVortex's annotation (0, 1 or 2); negative if it is absent.
	MigrationTier int8

	// Critical reports whether pods must not be moved in haste. GracefulOnly reports whether they
	// may only be moved gracefully.
	Critical, GracefulOnly bool

	// SafeToEvict and NotSafeToEvict report whether the annotation
	// cluster-autoscaler.kubernetes.io/safe-to-evict is true or false; neither is set without the
	// annotation. A pod that no controller would recreate may be evicted if SafeToEvict is set.
	SafeToEvict, NotSafeToEvict bool

	// DaemonSet reports whether one pod runs on every node that it fits.
	DaemonSet bool

	// PDBs are the PodDisruptionBudgets that select the pods, ascending.
	PDBs []PDBID
}

// PenaltyHours returns the cost of an incident for each missing pod, in hours of pod value: the
// stated penalty, or else 12, 4 or 1 for a high, normal or low priority class. A class is high if
// its name contains "high" or "critical", and low if it contains "low".
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

// Bare reports whether no controller would recreate a pod of t.
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

// MetBy reports whether a label with the given value satisfies r. If there is false, it reports
// whether a missing label does.
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

// MetByLabels reports whether labels satisfy r.
func (r *Requirement) MetByLabels(labels []Label) bool {
	value, there := FindLabel(labels, r.Key)
	return r.MetBy(value, there)
}

// A NodeTerm contains requirements that must all match the labels of a node, and Fields that must
// all match its name (metadata.name).
type NodeTerm struct {
	Labels []Requirement
	Fields []Requirement
}

// A PreferredNodeTerm adds Weight (1–100) to the score of nodes that match.
type PreferredNodeTerm struct {
	Weight int32
	Term   NodeTerm
}

// A Selector matches pods by labels; all requirements must match. The zero value matches nothing;
// Everything matches all pods.
type Selector struct {
	Requirements []Requirement
	Everything   bool
}

// A PodTerm is one term of pod affinity or anti-affinity.
type PodTerm struct {
	// Weight is 0 for a required term, otherwise 1–100.
	Weight      int32
	Selector    Selector
	Namespaces  []string // empty means the pod's own namespace, unless AllSpaces is set
	AllSpaces   bool
	TopologyKey string
}

// A Spread is one topology spread constraint.
type Spread struct {
	TopologyKey string
	MaxSkew     int32
	MinDomains  int32 // 0 means not set

	// Soft means ScheduleAnyway: the constraint only changes the score.
	Soft     bool
	Selector Selector

	// IgnoreAffinity means nodeAffinityPolicy: Ignore. HonorTaints means nodeTaintsPolicy: Honor.
	// The zero values are the defaults of Kubernetes.
	IgnoreAffinity bool
	HonorTaints    bool
}

// A Toleration lets a pod run on a node with a matching taint.
type Toleration struct {
	Key    string // an empty key with Exists matches every key
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

// A Volume is a volume that a pod claims.
type Volume struct {
	// Zonal means that the pod must run in the zone in which the volume was first bound.
	Zonal bool

	// Once means ReadWriteOncePod: two pods cannot use the claim at the same time.
	Once bool

	// Claim is the name of a claim that all pods of the template share; empty means one claim per
	// pod.
	Claim string
}

// A PDB is a PodDisruptionBudget with the status that the API server reports.
type PDB struct {
	ID        PDBID
	Name      string // "namespace/name"
	Namespace string
	Selector  Selector

	// Allowed, Healthy, Desired and Expected are the status fields
	// disruptionsAllowed, currentHealthy, desiredHealthy and expectedPods.
	Allowed, Healthy, Desired, Expected int32

	// AlwaysAllowUnhealthy means unhealthyPodEvictionPolicy: AlwaysAllow.
	AlwaysAllowUnhealthy bool

	// One of MinAvailable and MaxUnavailable is set, as a count or a percentage.
	MinAvailable, MaxUnavailable Quantity
}

// Uncounted reports whether an eviction of q is allowed regardless of p.Allowed, because q is not
// ready.
func (p *PDB) Uncounted(q *Pod) bool {
	return q.Phase == PodStarting && (p.AlwaysAllowUnhealthy || p.Desired > 0 && p.Healthy >= p.Desired)
}

// A Quantity is a count or a percentage, like IntOrString in Kubernetes.
type Quantity struct {
	Set     bool
	Percent bool
	N       int32
}

// Of returns q as a count, where a percentage refers to n and is rounded up as in the disruption
// controller.
func (q Quantity) Of(n int32) int32 {
	if !q.Percent {
		return q.N
	}
	return int32((int64(q.N)*int64(n) + 99) / 100)
}

// Required returns the number of the expected pods that must be healthy: minAvailable, or expected
// minus maxUnavailable, but at least 0.
func (p *PDB) Required(expected int32) int32 {
	if p.MinAvailable.Set {
		return p.MinAvailable.Of(expected)
	}
	return max(0, expected-p.MaxUnavailable.Of(expected))
}
