package setup

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Delays are how long things take in the simulated cluster. Each is a plain
// figure of the field, and each can be replaced in a Config.
type Delays struct {
	// Register is from the launch of a node until its kubelet has joined, drawn
	// evenly between the two; Initialize is from there until it takes pods.
	// Linux nodes on EC2 take 30–60 s to join (AWS documentation and field
	// reports on Karpenter).
	RegisterMin, RegisterMax time.Duration
	Initialize               time.Duration

	// Rackspace Spot joins and warns more slowly. RackspaceRegister is for its
	// nodes what Register is for others: its staff name 8 to 9 minutes from the
	// order, since a machine is mostly taken from a lower bid first (2025-05).
	// RackspaceNotice is from the instant at which the market price rises above
	// a node's bid, when the provider says so, until it takes the node: see
	// [policy.NoticeLead].
	RackspaceRegisterMin, RackspaceRegisterMax, RackspaceNotice time.Duration

	// PodWrites is how many pods the ReplicaSet controller makes or deletes per second, 0 for
	// no bound, and PodWritesBurst how many at once before that. kube-controller-manager
	// has --kube-api-qps=20 and --kube-api-burst=30 by default, as in kind and kubeadm;
	// clouds do not publish theirs, so that there is no bound by default.
	PodWrites, PodWritesBurst int

	// Pull is how long the first pod of a template waits for its image on a
	// node; Start how long a container takes to start, and Ready how long a
	// pod without a stated start-up time then takes to be ready.
	Pull, Start, Ready time.Duration

	// Terminate is how long a pod takes to end when it is asked to, at most
	// its grace period.
	Terminate time.Duration

	// Detect is how long the loss of a node is not noticed: the node monitor
	// grace period, 50 s since Kubernetes 1.32.
	Detect time.Duration

	// EvictRetry is how long an eviction waits that a budget refused.
	// Karpenter's eviction queue backs off up to 10 s.
	EvictRetry time.Duration

	// DrainMin is the shortest time from the deletion of a NodeClaim until Karpenter
	// terminates the instance, however few pods the node has
	// (node/termination/controller.go, MinDrainTime: 5 s). The node counts against
	// disruption budgets until then, and no longer.
	DrainMin time.Duration

	// Shutdown is from then on until the instance has shut down and Karpenter removes the
	// NodeClaim, which counts as a change of the cluster. The instance costs nothing
	// meanwhile. EC2 takes seconds to some minutes, often more than the 50 s after which
	// a Node counts as lost (kubernetes-sigs/karpenter issue 2467). The kwok provider
	// takes no time.
	Shutdown time.Duration

	// DrainMax is how long a drain without a deadline is tried before it is
	// undone.
	DrainMax time.Duration

	// ReplaceMax is how long Karpenter waits for the nodes that replace others
	// (disruption/queue.go, minRetryDuration: 10 min; more only where it replaces
	// more than 7,500 nodes at once).
	ReplaceMax time.Duration

	// BatchIdle and BatchMax close the provisioner's batch window: this long
	// after the last new pod, or after the first (Karpenter: 1 s and 10 s).
	BatchIdle, BatchMax time.Duration

	// Unavailable is how long a market that refused is not asked again
	// (Karpenter's cache of insufficient capacity: 3 min).
	Unavailable time.Duration
}

// ReadyAfter returns how long a container takes to be ready once it runs, where its
// template states a start-up time; 0 states none.
func (d *Delays) ReadyAfter(stated time.Duration) time.Duration {
	if stated > 0 {
		return stated
	}
	return d.Ready
}

// JobRound returns how long one completion of a job takes at most on a node that is
// there, its start included.
func (d *Delays) JobRound(stated, work time.Duration) time.Duration {
	return d.Start + max(d.Ready, stated) + work
}

// Register returns how long nodes of m take at least and at most to join.
func (d *Delays) Register(m *policy.Market) (least, most time.Duration) {
	if m.Provider == policy.Rackspace {
		return d.RackspaceRegisterMin, d.RackspaceRegisterMax
	}
	return d.RegisterMin, d.RegisterMax
}

// DefaultDelays returns the delays of a cluster on EC2, and those of Rackspace
// Spot where they differ.
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
