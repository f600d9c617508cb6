package setup

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Delays are the durations of processes in the simulated cluster. A Config can replace each of
// them.
type Delays struct {
	// The time from the launch of a node until its kubelet registers is drawn uniformly from
	// RegisterMin to RegisterMax. Initialize is the time from then until the node accepts pods.
	// Linux nodes on EC2 take 30–60 s to register (AWS documentation and field reports on
	// Karpenter).
	RegisterMin, RegisterMax time.Duration
	Initialize               time.Duration

	// RackspaceRegisterMin and RackspaceRegisterMax replace RegisterMin and RegisterMax for nodes
	// of Rackspace Spot. Its staff state 8 to 9 minutes from the order, because the machine must
	// usually be taken from a lower bid first (2025-05).
	RackspaceRegisterMin, RackspaceRegisterMax time.Duration

	// RackspaceNotice is the time from the notice, which is given when the market price exceeds a
	// node's bid, until Rackspace Spot takes the node; see [policy.NoticeLead].
	RackspaceNotice time.Duration

	// PodWrites is the maximum number of pods that the ReplicaSet controller creates or deletes per
	// second, or 0 for no maximum. PodWritesBurst is the number of writes that may be made at once.
	// The defaults of kube-controller-manager are --kube-api-qps=20 and --kube-api-burst=30, as in
	// kind and kubeadm. Clouds do not publish their values, so the default is no maximum.
	PodWrites, PodWritesBurst int

	// Pull is how long the first pod of a template waits for its image on a node, Start how long a
	// container takes to start, and Ready how long a pod without a declared start-up time then
	// takes to become ready.
	Pull, Start, Ready time.Duration

	// Terminate is how long a pod takes to end after its deletion, at most its grace period.
	Terminate time.Duration

	// Detect is how long the loss of a node remains unnoticed: the node monitor grace period, 50 s
	// since Kubernetes 1.32.
	Detect time.Duration

	// EvictRetry is the wait after a PodDisruptionBudget refused an eviction. Karpenter's eviction
	// queue backs off up to 10 s.
	EvictRetry time.Duration

	// DrainMin is the shortest time from the deletion of a NodeClaim until Karpenter terminates the
	// instance, even for an empty node (node/termination/controller.go, MinDrainTime: 5 s). Until
	// then, and no longer, the node counts against disruption budgets.
	DrainMin time.Duration

	// Shutdown is the time from the termination of the instance until it has shut down and
	// Karpenter removes the NodeClaim, which counts as a change of the cluster. The instance costs
	// nothing in this time. EC2 takes seconds to some minutes, often more than the 50 s after which
	// a Node counts as lost (kubernetes-sigs/karpenter issue 2467). The kwok provider takes no
	// time.
	Shutdown time.Duration

	// DrainMax is how long a drain without a deadline is tried before it is cancelled.
	DrainMax time.Duration

	// ReplaceMax is how long Karpenter waits for replacement nodes (disruption/queue.go,
	// minRetryDuration: 10 min; longer only if it replaces more than 7,500 nodes at once).
	ReplaceMax time.Duration

	// BatchIdle and BatchMax close the provisioner's batch window: BatchIdle after the last new
	// pod, and at the latest BatchMax after the first (Karpenter: 1 s and 10 s).
	BatchIdle, BatchMax time.Duration

	// Unavailable is how long no launch is requested from a market that refused one (Karpenter's
	// cache of insufficient capacity: 3 min).
	Unavailable time.Duration
}

// ReadyAfter returns how long a running container takes to become ready. startup is the start-up
// time that its template declares, or 0 if it declares none.
func (d *Delays) ReadyAfter(startup time.Duration) time.Duration {
	if startup > 0 {
		return startup
	}
	return d.Ready
}

// JobRound returns an upper bound of the time for one completion of a job on an existing node,
// including the start of the pod. Ready is included even if the template declares a shorter start-up
// time, and Pull is not: callers add it once per node.
func (d *Delays) JobRound(startup, work time.Duration) time.Duration {
	return d.Start + max(d.Ready, startup) + work
}

// Register returns the minimum and maximum time until nodes of m register.
func (d *Delays) Register(m *policy.Market) (least, most time.Duration) {
	if m.Provider == policy.Rackspace {
		return d.RackspaceRegisterMin, d.RackspaceRegisterMax
	}
	return d.RegisterMin, d.RegisterMax
}

// DefaultDelays returns the delays of a cluster on EC2, and those of Rackspace Spot where they
// differ.
func DefaultDelays() Delays {
	return Delays{
		RegisterMin: 30 * time.Second, RegisterMax: 60 * time.Second, Initialize: 10 * time.Second,
		RackspaceRegisterMin: 8 * time.Minute, RackspaceRegisterMax: 9 * time.Minute, RackspaceNotice: policy.NoticeLead(policy.Rackspace),
		Pull: 15 * time.Second, Start: 2 * time.Second, Ready: 10 * time.Second,
		Terminate: 5 * time.Second, Detect: 50 * time.Second, EvictRetry: 10 * time.Second,
		DrainMin: 5 * time.Second, Shutdown: 45 * time.Second, DrainMax: 15 * time.Minute, ReplaceMax: 10 * time.Minute,
		BatchIdle: time.Second, BatchMax: 10 * time.Second,
		Unavailable: 3 * time.Minute,
	}
}
