// Package cluster simulates Kubernetes: the objects of the API server and their watches, the
// scheduler, the kubelets and the controllers of workloads. Other packages add and remove nodes,
// and decide which pods are evicted.
package cluster

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/scheduler"
	"github.com/spotter-dev/spotter/sim/setup"
)

// A Cluster is the state and the behaviour of Kubernetes in a run: the API server's objects with
// their watches, the scheduler, the kubelets and the controllers of workloads. It does not depend
// on the code that launches nodes or makes decisions.
type Cluster struct {
	*setup.Run
	Watches

	// Space maps nodes to their pods and decides which pods fit where.
	Space *placement.Space
	sched *scheduler.Scheduler

	Nodes      *Nodes
	Pods       *Pods
	Queue      *SchedulingQueue
	Workloads  *Workloads
	PDBs       *DisruptionBudgets
	Jobs       *Jobs
	Gangs      *Gangs
	Kueue      *Kueue
	Serving    *Serving
	GPUBudgets *GPUBudgets

	checked recount
}

// New returns the cluster of a run, without nodes and pods.
func New(run *setup.Run) *Cluster {
	c := &Cluster{Run: run, Space: placement.New(run.Scenario.Templates, run.Scenario.Zones)}
	c.sched = scheduler.New(c.Space, run.Scenario.Templates, c.spreadTogether)
	c.Nodes = &Nodes{Cluster: c, Sizes: make([]PoolSize, len(run.Scenario.Pools))}
	c.Pods = &Pods{Cluster: c}
	c.Queue = &SchedulingQueue{Cluster: c, failed: make([]bool, len(run.Scenario.Templates)),
		stays: make([]bool, len(run.Scenario.Templates))}
	c.Workloads = &Workloads{Cluster: c}
	c.PDBs = &DisruptionBudgets{Cluster: c}
	c.Jobs = &Jobs{Cluster: c}
	c.Gangs = &Gangs{Cluster: c}
	c.Kueue = &Kueue{Cluster: c}
	c.Serving = &Serving{Cluster: c}
	c.GPUBudgets = &GPUBudgets{Cluster: c}
	c.Workloads.init()
	c.Jobs.init()
	c.Gangs.init()
	c.Kueue.init()
	c.GPUBudgets.init()
	c.subscribe()
	return c
}

// subscribe registers the handlers of the events of the cluster.
func (c *Cluster) subscribe() {
	on := c.Clock.On
	on(engine.ReplicasChange, func(e *engine.Event) { c.Workloads.stepReplicas(policy.WorkloadID(e.A), int(e.B)) })
	on(engine.RollsOut, func(e *engine.Event) { c.Workloads.rollOut(policy.WorkloadID(e.A)) })
	on(engine.GrowthCounts, func(e *engine.Event) { c.Workloads.countGrowth(policy.WorkloadID(e.A)) })
	on(engine.PodsRetried, func(e *engine.Event) { c.Workloads.retry(policy.WorkloadID(e.A)) })
	on(engine.PodsWritten, func(*engine.Event) { c.Workloads.write() })
	on(engine.JobReleased, func(e *engine.Event) { c.Jobs.release(policy.WorkloadID(e.A), int(e.B)) })
	on(engine.JobDue, func(e *engine.Event) { c.Jobs.settle(int(e.A), c.Clock.Now) })
	on(engine.GangTimer, func(e *engine.Event) { c.Gangs.handle(e.A, e.B, e.Gen) })
	on(engine.QueueCycle, func(*engine.Event) { c.Kueue.cycle() })
	on(engine.Schedule, func(*engine.Event) { c.Queue.schedule() })
	ofPod := func(kind engine.Kind, f func(policy.PodID, int32)) {
		on(kind, func(e *engine.Event) {
			if c.Pods.State[e.A].gen == e.Gen {
				f(policy.PodID(e.A), e.B)
			}
		})
	}
	ofPod(engine.PodReady, func(p policy.PodID, _ int32) { c.Pods.ready(p) })
	ofPod(engine.PodGone, func(p policy.PodID, cause int32) { c.Pods.remove(p, policy.EndCause(cause)) })
	ofPod(engine.PodFinished, func(p policy.PodID, _ int32) { c.Jobs.podFinished(p) })
	ofPod(engine.PodUnprotected, func(p policy.PodID, _ int32) { c.Pods.unprotect(p) })
}

// spreadTogether reports whether kube-scheduler's default constraints spread pods of t and u
// together: they do so for pods of one ReplicaSet or StatefulSet. Scenarios have no Services, so
// pods of Jobs and bare pods are not spread.
func (c *Cluster) spreadTogether(t, u *policy.Template) bool {
	if t.Workload != u.Workload || t.Workload < 0 {
		return false
	}
	kind := c.Scenario.Workloads[t.Workload].Kind
	return kind == policy.KindDeployment || kind == policy.KindStatefulSet
}

// Watches are the topics that other packages can subscribe to, like the watches of the API server.
type Watches struct {
	// NodeChanged publishes each node of which something changed that the API shows, or whose drain
	// starts or is cancelled.
	NodeChanged engine.Topic[policy.NodeID]

	// NodeReady publishes a node that accepts pods from now on. NodeGone publishes a node whose
	// object is being removed, while its name is still known.
	NodeReady, NodeGone engine.Topic[policy.NodeID]

	// Nominations publishes a node to which one more pending pod was nominated, Disowned a node
	// that lost a nominated pod.
	Nominations, Disowned engine.Topic[policy.NodeID]

	// PodPending publishes a new pod that waits for the scheduler, PodsWait the number of pods that
	// the scheduler could not place.
	PodPending engine.Topic[policy.PodID]
	PodsWait   engine.Topic[int]

	// PodChanged publishes each pod of which something changed that the API shows.
	PodChanged engine.Topic[policy.PodID]

	// PodBound publishes a pod that was bound to its node, PodReady a pod that became ready there,
	// and PodUnprotected a pod that may be disrupted from now on.
	PodBound, PodReady, PodUnprotected engine.Topic[policy.PodID]

	// PodEnding publishes a bound pod whose termination starts, with a grace period.
	PodEnding engine.Topic[policy.PodID]

	// PodsOfNode publishes a node when the set of its pods, or the phase or deletion cost of one,
	// has changed.
	PodsOfNode engine.Topic[policy.NodeID]

	// PodEnded publishes a pod that is gone, and PodLeft the node that it was on, after its
	// workload has reacted.
	PodEnded engine.Topic[EndedPod]
	PodLeft  engine.Topic[policy.NodeID]

	// WorkloadChanged publishes each workload of which something changed that the API shows,
	// ServingChanged a workload whose serving pods or required number of them changed, and
	// PDBsChanged a workload whose PodDisruptionBudgets changed.
	WorkloadChanged, ServingChanged, PDBsChanged engine.Topic[policy.WorkloadID]
}

// An EndedPod is a pod that is gone and the node that it was on, or policy.None if it was never
// bound.
type EndedPod struct {
	policy.EndedPod
	Node policy.NodeID
}
