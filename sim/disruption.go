package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// drains are the nodes that are being emptied.
type drains struct {
	*environment
	autoscaler    *autoscaler
	checker       *checker
	consolidation *consolidation
	nodes         *nodes
	launches      *launches
	removals      *removals
	pdbs          *disruptionBudgets
	pods          *pods
	pools         *pools
	queue         *schedulingQueue
	scaleDown     *scaleDown
	sched         *scheduler.Scheduler
	serving       *serving
	space         *placement.Space

	all    []drain
	active []int32 // those under way
}

// A drain empties one node and gives it back.
type drain struct {
	gen    int32 // changes when the drain ends
	node   policy.NodeID
	active bool
	forced bool // the provider takes the node at the deadline
	pods   bool // there were pods on the node when it began

	// after are the tokens of nodes to wait for, none when the waiting is over.
	// cordoned says that the node takes no more pods.
	after    []string
	cordoned bool
	deadline policy.Time
	retryAt  policy.Time
	retries  int
	actor    policy.Actor

	// until is when the terminationGracePeriod of the node ends, 0 for without end.
	until policy.Time

	// least is when Karpenter terminates the instance at the earliest, 0 while the
	// NodeClaim is not deleted.
	least policy.Time
}

// start begins to drain node id, once the nodes that came of the tokens in
// after are initialized. Without a deadline it gets the usual limit. A node
// that is drained already is only hurried.
func (ds *drains) start(id policy.NodeID, after []string, deadline policy.Time, actor policy.Actor) {
	n, x := &ds.nodes.all[id], &ds.nodes.state[id]
	forced := n.ReclaimAt != 0
	if x.drain >= 0 {
		d := &ds.all[x.drain]
		if forced && !d.forced {
			d.forced, d.deadline, d.after = true, n.ReclaimAt, nil
			ds.proceed(int(x.drain), d.gen)
		}
		return
	}
	if deadline == 0 {
		deadline = ds.q.Now.Add(ds.delays.DrainMax)
		if actor == policy.ActorKarpenter && len(after) > 0 {
			deadline = ds.q.Now.Add(ds.delays.ReplaceMax)
		}
	}
	if forced {
		deadline, after = n.ReclaimAt, nil
	}
	i := slices.IndexFunc(ds.all, func(d drain) bool { return !d.active })
	if i < 0 {
		i = len(ds.all)
		ds.all = append(ds.all, drain{})
	}
	ds.all[i] = drain{gen: ds.all[i].gen + 1, node: id, active: true, forced: forced, pods: x.pods > 0, after: after, deadline: deadline, actor: actor}
	ds.active = append(ds.active, int32(i))
	x.drain, n.ActedBy = int32(i), actor
	if actor == policy.ActorKarpenter {
		ds.consolidation.karpenter.wantReplicas(n.Pool)
	}
	ds.nodes.touch(id)
	ds.q.Add(max(deadline, ds.q.Now), engine.DrainContinues, int32(i), 0, ds.all[i].gen)
	ds.proceed(i, ds.all[i].gen)
}

// proceed does what can be done now about drain i.
func (ds *drains) proceed(i int, gen int32) {
	d := &ds.all[i]
	if !d.active || d.gen != gen {
		return
	}
	// Karpenter never gives up a node that it has begun to delete.
	begun := d.actor == policy.ActorKarpenter && d.after == nil || d.least != 0
	if !d.forced && !begun && ds.q.Now >= d.deadline {
		ds.undo(i)
		return
	}
	wait, failed := ds.waits(d.after)
	if failed {
		ds.undo(i)
		return
	}
	// Karpenter taints a node before its replacement is there, so that no pods come
	// to it any more (disruption/queue.go, StartCommand).
	if !d.cordoned && (!wait || d.actor == policy.ActorKarpenter) {
		ds.cordon(d)
	}
	if wait {
		return
	}
	d.after = nil
	if d.actor == policy.ActorKarpenter {
		ds.deleteClaim(i)
	}
	ds.boundGrace(i)
	blocked := false
	for _, p := range append([]policy.PodID(nil), ds.space.Pods(d.node)...) {
		if ds.scenario.Templates[ds.pods.all[p].Template].DaemonSet || ds.pods.all[p].Phase == policy.PodTerminating {
			continue
		}
		if gentle := ds.nodes.state[d.node].gentle && d.actor == policy.ActorUs && !d.forced; gentle && !ds.serving.spare(p) || !ds.evict(p, d.forced, d.actor) {
			blocked = !ds.killed(d, p) || blocked
		}
	}
	if ds.nodes.state[d.node].pods == 0 || d.until != 0 && ds.q.Now >= d.until {
		// An instance from whose zone a zonal shift leads away is not ended meanwhile.
		if n := &ds.nodes.all[d.node]; d.forced || !ds.away(n.Pool, n.Market) {
			if ds.deleteClaim(i); d.least <= ds.q.Now {
				ds.removals.delete(d.node)
			}
			return
		}
		blocked = true
	}
	if blocked && d.retryAt <= ds.q.Now {
		d.retryAt = ds.q.Now.Add(ds.retryAfter(d))
		ds.q.Add(d.retryAt, engine.DrainContinues, int32(i), 0, gen)
	}
}

// deleteClaim deletes the NodeClaim of a drained node, if it is one of Karpenter's, unless
// that is done. Karpenter drains the node for a while from then on although it is empty.
func (ds *drains) deleteClaim(i int) {
	d := &ds.all[i]
	if d.least != 0 || ds.pools.all[ds.nodes.all[d.node].Pool].Provisioner != policy.ProvisionerKarpenter {
		return
	}
	if d.actor != policy.ActorKarpenter {
		ds.consolidation.noteChange()
	}
	d.least = ds.q.Now.Add(ds.delays.DrainMin)
	ds.q.Add(d.least, engine.DrainContinues, int32(i), 0, d.gen)
}

// boundGrace notes by when the node of a drain is gone: Karpenter bounds what it begins to
// delete by the terminationGracePeriod of the NodePool.
func (ds *drains) boundGrace(i int) {
	d := &ds.all[i]
	own := ds.prepared.own(ds.nodes.all[d.node].Pool)
	if own == nil || own.TerminationGrace == 0 || d.until != 0 || d.actor != policy.ActorKarpenter {
		return
	}
	d.until = ds.q.Now.Add(own.TerminationGrace)
	ds.q.Add(d.until, engine.DrainContinues, int32(i), 0, d.gen)
}

// killed deletes a pod whose eviction is refused, whatever keeps it, when what is left of
// the terminationGracePeriod of its node is the time that it may take to end
// (terminator.go, DeleteExpiringPods). It reports false before that.
func (ds *drains) killed(d *drain, id policy.PodID) bool {
	if d.until == 0 || ds.q.Now.Add(ds.scenario.Templates[ds.pods.all[id].Template].Grace) < d.until {
		return false
	}
	ds.remove(id, false, d.actor)
	return true
}

// cordon lets the node of a drain take no more pods.
func (ds *drains) cordon(d *drain) {
	n := &ds.nodes.all[d.node]
	d.cordoned = true
	n.Phase = policy.NodeDraining
	ds.space.SetNode(n)
	ds.sched.Changed(d.node)
	ds.nodes.touch(d.node)
	ds.log.Add(ds.q.Now, engine.RecordDraining, n.Name, "", int64(d.deadline))
	if ds.q.Now >= ds.window.From {
		ds.result.Drains++
	}
}

// wake lets the drains that wait for the node of a token look again: it
// is there now, or will never be.
func (ds *drains) wake(token string) {
	if token == "" {
		return
	}
	for _, d := range ds.active {
		if slices.Contains(ds.all[d].after, token) {
			ds.q.Add(ds.q.Now, engine.DrainContinues, d, 0, ds.all[d].gen)
		}
	}
}

// waits reports whether a node of one of the tokens is still on its way, and
// whether one will never come.
func (ds *drains) waits(tokens []string) (wait, failed bool) {
	for _, t := range tokens {
		n, ok := ds.launches.tokens[t]
		switch {
		case !ok:
			return false, true
		case ds.nodes.all[n].Phase < policy.NodeInitialized:
			wait = true
		case ds.nodes.all[n].Phase > policy.NodeInitialized:
			return false, true
		}
	}
	return wait, false
}

// undo gives a drain up and lets the node take pods again.
func (ds *drains) undo(i int) {
	d := &ds.all[i]
	n := &ds.nodes.all[d.node]
	ds.log.Add(ds.q.Now, engine.RecordUndrained, n.Name, "", 0)
	if d.actor == policy.ActorClusterAutoscaler {
		ds.scaleDown.failed = ds.q.Now
	}
	if d.cordoned && n.Phase == policy.NodeDraining {
		n.Phase = policy.NodeInitialized
		ds.space.SetNode(n)
		ds.sched.Changed(d.node)
	}
	ds.end(i)
	ds.queue.want()
}

// end frees the drain's place.
func (ds *drains) end(i int) {
	d := &ds.all[i]
	n := &ds.nodes.all[d.node]
	n.ActedBy = policy.ActorNone
	ds.nodes.state[d.node].drain = -1
	ds.nodes.touch(d.node)
	d.active = false
	d.gen++
	if k := slices.Index(ds.active, int32(i)); k >= 0 {
		ds.active = slices.Delete(ds.active, k, k+1)
	}
	ds.autoscaler.want()
	ds.consolidation.look()
}

// spare reports whether the workload of a pod can do without it: whether as many
// of the others are ready as must be of the number that it wants. Jobs have no
// such number, and a pod that is the only one wanted is never spared: it goes when
// it is asked to.
func (sv *serving) spare(id policy.PodID) bool {
	p := &sv.pods.all[id]
	t := &sv.scenario.Templates[p.Template]
	if p.Phase != policy.PodReady || t.Workload < 0 || sv.scenario.Workloads[t.Workload].Job != nil {
		return true
	}
	g := &sv.of[t.Workload]
	return g.wanted <= 1 || g.seen-1 >= sv.requiredOf(t.Workload, g.wanted)
}

// evict asks for the eviction of a pod as the API server answers it: a budget
// may refuse it, and a pod under two budgets is refused for ever. Nobody asks for one
// that its owner keeps where it is, unless the node is taken: Karpenter heeds its own
// annotation alone, others that of the Cluster Autoscaler too.
func (ds *drains) evict(id policy.PodID, forced bool, by policy.Actor) bool {
	p := &ds.pods.all[id]
	t := &ds.scenario.Templates[p.Template]
	if p.Phase == policy.PodReady || p.Phase == policy.PodStarting {
		if len(t.PDBs) > 1 || !forced && (p.DoNotDisrupt || t.NotSafeToEvict && by != policy.ActorKarpenter) {
			return false
		}
		if len(t.PDBs) == 1 && !ds.pdbs.allows(t.PDBs[0], p.Phase) {
			return false
		}
		if ds.cfg.Check && p.Phase == policy.PodReady {
			ds.checker.checkEviction(id)
		}
	}
	ds.remove(id, forced, by)
	return true
}

// remove deletes a pod of a node that is drained.
func (ds *drains) remove(id policy.PodID, forced bool, by policy.Actor) {
	p := &ds.pods.all[id]
	ds.log.Add(ds.q.Now, engine.RecordEvicted, p.Name, ds.nodes.all[p.Node].Name, 0)
	if ds.q.Now >= ds.window.From {
		if forced {
			ds.result.ReclaimEvictions++
		} else {
			ds.result.VoluntaryEvictions++
		}
	}
	ds.serving.missed(id, ds.serving.evictionOf(p.Node, forced, by))
	ds.pods.delete(id, policy.EndEvicted)
}

// retryAfter returns how long a refused eviction waits: Karpenter doubles the time
// from 100 ms (node/termination/terminator/eviction.go).
func (ds *drains) retryAfter(d *drain) time.Duration {
	if d.actor != policy.ActorKarpenter || d.retries >= 10 {
		return ds.delays.EvictRetry
	}
	d.retries++
	return min(100*time.Millisecond<<(d.retries-1), ds.delays.EvictRetry)
}

// allows reports whether budget b lets a pod in the given phase be evicted.
func (db *disruptionBudgets) allows(b policy.PDBID, phase policy.PodPhase) bool {
	x := &db.all[b]
	if phase == policy.PodReady {
		return x.Allowed > 0
	}
	return x.AlwaysAllowUnhealthy || x.Allowed > 0 || x.Healthy >= x.Desired && x.Desired > 0
}
