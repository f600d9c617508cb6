package machines

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// Drains are the drains of nodes.
type Drains struct {
	*Machines

	All    []Drain
	Active []int32 // indices of the active drains
}

// A Drain empties one node and releases it.
type Drain struct {
	gen    int32 // incremented when the drain ends
	Node   policy.NodeID
	active bool
	Forced bool // the provider takes the node at the deadline
	Pods   bool // whether pods were on the node at the start

	// after are the tokens of nodes to wait for; empty once the wait is over. cordoned reports
	// whether the node no longer accepts pods.
	after    []string
	cordoned bool
	deadline policy.Time
	retryAt  policy.Time
	retries  int
	Actor    policy.Actor

	// until is the end of the terminationGracePeriod of the node, or 0 without one.
	until policy.Time

	// least is the earliest time at which Karpenter terminates the instance, or 0 while the
	// NodeClaim is not deleted.
	least policy.Time
}

// Start starts to drain node id once the nodes of the tokens in after are initialized. A deadline
// of 0 means the default limit. A node that is already being drained only gets the earlier deadline
// of a reclaim.
func (ds *Drains) Start(id policy.NodeID, after []string, deadline policy.Time, actor policy.Actor) {
	n, x := &ds.Nodes.All[id], &ds.of[id]
	forced := n.ReclaimAt != 0
	if x.drain >= 0 {
		d := &ds.All[x.drain]
		if forced && !d.Forced {
			d.Forced, d.deadline, d.after = true, n.ReclaimAt, nil
			ds.proceed(int(x.drain), d.gen)
		}
		return
	}
	if deadline == 0 {
		deadline = ds.Clock.Now.Add(ds.Delays.DrainMax)
		if actor == policy.ActorKarpenter && len(after) > 0 {
			deadline = ds.Clock.Now.Add(ds.Delays.ReplaceMax)
		}
	}
	if forced {
		deadline, after = n.ReclaimAt, nil
	}
	i := slices.IndexFunc(ds.All, func(d Drain) bool { return !d.active })
	if i < 0 {
		i = len(ds.All)
		ds.All = append(ds.All, Drain{})
	}
	ds.All[i] = Drain{gen: ds.All[i].gen + 1, Node: id, active: true, Forced: forced,
		Pods: ds.Nodes.State[id].Pods > 0, after: after, deadline: deadline, Actor: actor}
	ds.Active = append(ds.Active, int32(i))
	x.drain = int32(i)
	ds.Nodes.SetActor(id, actor)
	ds.DrainBegun.Publish(id)
	ds.Clock.Add(max(deadline, ds.Clock.Now), engine.DrainContinues, int32(i), 0, ds.All[i].gen)
	ds.proceed(i, ds.All[i].gen)
}

// proceed takes the next steps of drain i that are possible now.
func (ds *Drains) proceed(i int, gen int32) {
	d := &ds.All[i]
	if !d.active || d.gen != gen {
		return
	}
	// Karpenter never cancels the deletion of a node.
	begun := d.Actor == policy.ActorKarpenter && d.after == nil || d.least != 0
	if !d.Forced && !begun && ds.Clock.Now >= d.deadline {
		ds.undo(i)
		return
	}
	wait, failed := ds.waits(d.after)
	if failed {
		ds.undo(i)
		return
	}
	// Karpenter taints a node before its replacement exists, so that no more pods are placed on it
	// (disruption/queue.go, StartCommand).
	if !d.cordoned && (!wait || d.Actor == policy.ActorKarpenter) {
		ds.cordon(d)
	}
	if wait {
		return
	}
	d.after = nil
	if d.Actor == policy.ActorKarpenter {
		ds.deleteClaim(i)
	}
	ds.boundGrace(i)
	blocked := false
	for _, p := range append([]policy.PodID(nil), ds.Space.Pods(d.Node)...) {
		if ds.Scenario.Templates[ds.Pods.All[p].Template].DaemonSet || ds.Pods.All[p].Phase == policy.PodTerminating {
			continue
		}
		gentle := ds.of[d.Node].gentle && d.Actor == policy.ActorUs && !d.Forced
		if gentle && !ds.Serving.Spare(p) || !ds.evict(p, d.Forced, d.Actor) {
			blocked = !ds.killed(d, p) || blocked
		}
	}
	if ds.Nodes.State[d.Node].Pods == 0 || d.until != 0 && ds.Clock.Now >= d.until {
		// An instance in a zone that a zonal shift avoids is not terminated during the shift.
		if n := &ds.Nodes.All[d.Node]; d.Forced || !ds.Away(n.Pool, n.Market) {
			if ds.deleteClaim(i); d.least <= ds.Clock.Now {
				ds.Removals.Delete(d.Node)
			} else if n.Phase == policy.NodeDraining && ds.Nodes.State[d.Node].Pods == 0 {
				ds.Nodes.Leave(d.Node)
			}
			return
		}
		blocked = true
	}
	if blocked && d.retryAt <= ds.Clock.Now {
		d.retryAt = ds.Clock.Now.Add(ds.retryAfter(d))
		ds.Clock.Add(d.retryAt, engine.DrainContinues, int32(i), 0, gen)
	}
}

// deleteClaim deletes the NodeClaim of a drained node of Karpenter, unless it is already deleted.
// From then on, Karpenter drains the node for at least a while, even if it is empty.
func (ds *Drains) deleteClaim(i int) {
	d := &ds.All[i]
	if d.least != 0 || ds.Pools.All[ds.Nodes.All[d.Node].Pool].Provisioner != policy.ProvisionerKarpenter {
		return
	}
	if d.Actor != policy.ActorKarpenter {
		ds.Changed.Publish(struct{}{})
	}
	d.least = ds.Clock.Now.Add(ds.Delays.DrainMin)
	ds.Clock.Add(d.least, engine.DrainContinues, int32(i), 0, d.gen)
}

// boundGrace sets the time by which the node of a drain must be gone: Karpenter bounds a deletion
// by the terminationGracePeriod of the NodePool.
func (ds *Drains) boundGrace(i int) {
	d := &ds.All[i]
	own := ds.Prepared.Own(ds.Nodes.All[d.Node].Pool)
	if own == nil || own.TerminationGrace == 0 || d.until != 0 || d.Actor != policy.ActorKarpenter {
		return
	}
	d.until = ds.Clock.Now.Add(own.TerminationGrace)
	ds.Clock.Add(d.until, engine.DrainContinues, int32(i), 0, d.gen)
}

// killed deletes a pod whose eviction is refused, whatever the reason, once the rest of its node's
// terminationGracePeriod is no longer than the pod's own grace period (terminator.go,
// DeleteExpiringPods). It returns false before that.
func (ds *Drains) killed(d *Drain, id policy.PodID) bool {
	if d.until == 0 || ds.Clock.Now.Add(ds.Scenario.Templates[ds.Pods.All[id].Template].Grace) < d.until {
		return false
	}
	ds.remove(id, false, d.Actor)
	return true
}

// cordon makes the node of a drain accept no more pods.
func (ds *Drains) cordon(d *Drain) {
	n := &ds.Nodes.All[d.Node]
	d.cordoned = true
	ds.Nodes.Cordon(d.Node)
	ds.Log.Add(ds.Clock.Now, engine.RecordDraining, n.Name, "", int64(d.deadline))
	if ds.Metered() {
		ds.Result.Drains++
	}
}

// wake re-evaluates the drains that wait for the node of a token, which exists now or will never
// exist.
func (ds *Drains) wake(token string) {
	if token == "" {
		return
	}
	for _, d := range ds.Active {
		if slices.Contains(ds.All[d].after, token) {
			ds.Clock.Add(ds.Clock.Now, engine.DrainContinues, d, 0, ds.All[d].gen)
		}
	}
}

// waits reports whether a node of one of the tokens is not initialized yet, and whether one will
// never be.
func (ds *Drains) waits(tokens []string) (wait, failed bool) {
	for _, t := range tokens {
		n, ok := ds.Launches.Tokens[t]
		switch {
		case !ok:
			return false, true
		case ds.Nodes.All[n].Phase < policy.NodeInitialized:
			wait = true
		case ds.Nodes.All[n].Phase > policy.NodeInitialized:
			return false, true
		}
	}
	return wait, false
}

// undo cancels a drain and lets the node accept pods again.
func (ds *Drains) undo(i int) {
	d := &ds.All[i]
	n := &ds.Nodes.All[d.Node]
	ds.Log.Add(ds.Clock.Now, engine.RecordUndrained, n.Name, "", 0)
	ds.DrainUndone.Publish(d.Node)
	if d.cordoned && n.Phase == policy.NodeDraining {
		ds.Nodes.Uncordon(d.Node)
	}
	ds.end(i)
	ds.Queue.Want()
}

// end ends a drain and frees its slot.
func (ds *Drains) end(i int) {
	d := &ds.All[i]
	ds.of[d.Node].drain = -1
	ds.Nodes.SetActor(d.Node, policy.ActorNone)
	d.active = false
	d.gen++
	if k := slices.Index(ds.Active, int32(i)); k >= 0 {
		ds.Active = slices.Delete(ds.Active, k, k+1)
	}
	ds.DrainEnded.Publish(d.Node)
}

// evict requests the eviction of a pod, and reports whether the API server accepts it: a
// PodDisruptionBudget may refuse it, and the eviction of a pod with two is always refused. Unless
// the provider takes the node, no eviction is requested for a pod whose owner forbids it. Karpenter
// respects only its own annotation, and respects it even then (IsEvictable in
// pkg/utils/pod/scheduling.go). Other actors also respect the annotation of the Cluster Autoscaler.
func (ds *Drains) evict(id policy.PodID, forced bool, by policy.Actor) bool {
	p := &ds.Pods.All[id]
	t := &ds.Scenario.Templates[p.Template]
	if p.Phase == policy.PodReady || p.Phase == policy.PodStarting {
		kept := p.DoNotDisrupt && (!forced || by == policy.ActorKarpenter) ||
			t.NotSafeToEvict && !forced && by != policy.ActorKarpenter
		if len(t.PDBs) > 1 || kept {
			return false
		}
		if len(t.PDBs) == 1 && !ds.PDBs.Allows(t.PDBs[0], p.Phase) {
			return false
		}
	}
	ds.CheckEviction(id)
	ds.remove(id, forced, by)
	return true
}

// remove evicts a pod of a node that is being drained.
func (ds *Drains) remove(id policy.PodID, forced bool, by policy.Actor) {
	p := &ds.Pods.All[id]
	ds.Pods.Evict(id, ds.Serving.EvictionOf(p.Node, forced, by), ds.Scenario.Templates[p.Template].Grace, forced)
}

// retryAfter returns the wait after a refused eviction. Karpenter doubles it from 100 ms
// (node/termination/terminator/eviction.go).
func (ds *Drains) retryAfter(d *Drain) time.Duration {
	if d.Actor != policy.ActorKarpenter || d.retries >= 10 {
		return ds.Delays.EvictRetry
	}
	d.retries++
	return min(100*time.Millisecond<<(d.retries-1), ds.Delays.EvictRetry)
}

// podLeft re-evaluates the drain of a node, if there is one.
func (ds *Drains) podLeft(id policy.NodeID) {
	if i := ds.of[id].drain; i >= 0 {
		ds.proceed(int(i), ds.All[i].gen)
	}
}

// deletes reports whether Karpenter is deleting a node.
func (ds *Drains) deletes(id policy.NodeID) bool {
	d := ds.of[id].drain
	return d >= 0 && (ds.All[d].Actor == policy.ActorKarpenter || ds.All[d].least != 0)
}

// Drained reports whether a node is being drained.
func (ds *Drains) Drained(id policy.NodeID) bool { return ds.of[id].drain >= 0 }

// SetGentle sets whether a drain by Spotter must not reduce a workload of a node below its required
// number of pods.
func (ds *Drains) SetGentle(id policy.NodeID, gentle bool) { ds.of[id].gentle = gentle }
