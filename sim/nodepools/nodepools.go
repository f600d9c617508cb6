// Package nodepools simulates Karpenter's controllers: they launch nodes for pending pods, keep
// static pools at their size, remove unneeded nodes and drain nodes that the provider reclaims.
package nodepools

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/machines"
)

// A Karpenter runs Karpenter's controllers for the pools that it serves.
type Karpenter struct {
	*machines.Machines

	provisioner   *provisioner
	consolidation *consolidation
	tracker       *nodeTracker
}

// New returns the Karpenter of a run.
func New(ms *machines.Machines) *Karpenter {
	k := &Karpenter{Machines: ms}
	k.provisioner = &provisioner{Karpenter: k}
	k.consolidation = &consolidation{Karpenter: k, launches: make([]int, len(ms.Scenario.Pools))}
	k.consolidation.poll.last = firstPoll(ms.Seed)
	k.tracker = &nodeTracker{Karpenter: k}
	k.provisioner.init()
	k.watch()
	return k
}

// watch subscribes the controllers to events.
func (k *Karpenter) watch() {
	kp, cs, tr := k.provisioner, k.consolidation, k.tracker
	k.Clock.On(engine.Provision, func(*engine.Event) { kp.provision() })
	k.Clock.On(engine.ReplicasFill, func(e *engine.Event) { kp.fillReplicas(policy.PoolID(e.A)) })
	k.Clock.On(engine.Disrupt, func(*engine.Event) { cs.disrupt() })

	k.PodPending.Subscribe(func(policy.PodID) { kp.lastPending, kp.fresh = k.Clock.Now, true })
	k.PodsWait.Subscribe(func(int) { kp.want() })
	k.PodsOfNode.Subscribe(tr.notePods)
	k.PodBound.Subscribe(func(p policy.PodID) {
		cs.noteChange()
		k.notePodEvent(p)
	})
	k.PodEnding.Subscribe(k.notePodEvent)
	k.PodReady.Subscribe(cs.notePodReady)
	k.PodUnprotected.Subscribe(cs.notePodReady)
	k.PodEnded.Subscribe(func(cluster.EndedPod) { cs.noteChange() })

	k.NodeChanged.Subscribe(tr.noteNode)
	k.Nominations.Subscribe(tr.keepNominated)
	k.Disowned.Subscribe(tr.noteNode)
	k.Launched.Subscribe(func(n policy.NodeID) {
		cs.noteReserved(n)
		tr.list(n)
		cs.noteChange()
	})
	k.NodeReady.Subscribe(func(n policy.NodeID) {
		tr.joined(n)
		cs.noteChange()
	})
	k.Noticed.Subscribe(kp.interrupted)
	k.Stopped.Subscribe(func(n policy.NodeID) {
		cs.noteReserved(n)
		kp.wantReplicas(k.Nodes.All[n].Pool)
	})
	k.NodeGone.Subscribe(func(n policy.NodeID) {
		tr.unlist(n)
		cs.look() // a disruption budget may allow more
		if len(k.Queue.Pending) > 0 {
			kp.want()
		}
	})
	k.Changed.Subscribe(func(struct{}) { cs.noteChange() })
	k.DrainBegun.Subscribe(func(n policy.NodeID) {
		if x := &k.Nodes.All[n]; x.ActedBy == policy.ActorKarpenter {
			kp.wantReplicas(x.Pool)
			kp.want()
		}
	})
	k.DrainEnded.Subscribe(func(policy.NodeID) { cs.look() })
	k.NoCapacity.Subscribe(func(policy.PoolID) { cs.offers.forget() })
}

// notePodEvent records that a pod was bound to a node, or starts to leave it.
func (k *Karpenter) notePodEvent(p policy.PodID) {
	if x := &k.Pods.All[p]; !k.Scenario.Templates[x.Template].DaemonSet {
		k.tracker.notePodEvent(x.Node)
	}
}

// Start launches the nodes of static pools.
func (k *Karpenter) Start() {
	for p := range k.Pools.All {
		k.provisioner.wantReplicas(policy.PoolID(p))
	}
}

// Steered updates the controllers after the steers of pools changed.
func (k *Karpenter) Steered() {
	k.consolidation.offers.forget()
	if len(k.Queue.Pending) > 0 {
		k.provisioner.want()
	}
	k.consolidation.noteChange()
}

// ShiftZones updates the controllers after a zonal shift started or ended: Karpenter offers nothing
// in zones that shifts avoid, and evaluates its nodes again (base_resolver.go, where offerings are
// available, and instance.go, Delete, of karpenter-provider-aws).
func (k *Karpenter) ShiftZones() {
	k.consolidation.reread = true
	k.consolidation.offers.forget()
	k.consolidation.noteChange()
	k.provisioner.want()
}
