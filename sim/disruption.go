package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

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
}

// startDrain begins to drain node id, once the nodes that came of the tokens in
// after are initialized. Without a deadline it gets the usual limit. A node
// that is drained already is only hurried.
func (r *run) startDrain(id policy.NodeID, after []string, deadline policy.Time, actor policy.Actor) {
	n, x := &r.nodes[id], &r.nodeX[id]
	forced := n.ReclaimAt != 0
	if x.drain >= 0 {
		d := &r.drains[x.drain]
		if forced && !d.forced {
			d.forced, d.deadline, d.after = true, n.ReclaimAt, nil
			r.continueDrain(int(x.drain), d.gen)
		}
		return
	}
	if deadline == 0 {
		deadline = r.q.now.Add(r.delays.DrainMax)
		if actor == policy.ActorKarpenter && len(after) > 0 {
			deadline = r.q.now.Add(r.delays.ReplaceMax)
		}
	}
	if forced {
		deadline, after = n.ReclaimAt, nil
	}
	i := slices.IndexFunc(r.drains, func(d drain) bool { return !d.active })
	if i < 0 {
		i = len(r.drains)
		r.drains = append(r.drains, drain{})
	}
	r.drains[i] = drain{gen: r.drains[i].gen + 1, node: id, active: true, forced: forced, pods: x.pods > 0, after: after, deadline: deadline, actor: actor}
	r.active = append(r.active, int32(i))
	x.drain, n.ActedBy = int32(i), actor
	if actor == policy.ActorKarpenter {
		r.unconsolidated() // the node is marked for deletion
	}
	r.touchNode(id)
	r.q.add(max(deadline, r.q.now), evDrain, int32(i), 0, r.drains[i].gen)
	r.continueDrain(i, r.drains[i].gen)
}

// continueDrain does what can be done now about drain i.
func (r *run) continueDrain(i int, gen int32) {
	d := &r.drains[i]
	if !d.active || d.gen != gen {
		return
	}
	// Karpenter never gives up a node that it has begun to delete.
	begun := d.actor == policy.ActorKarpenter && d.after == nil
	if !d.forced && !begun && r.q.now >= d.deadline {
		r.undoDrain(i)
		return
	}
	wait, failed := r.waits(d.after)
	if failed {
		r.undoDrain(i)
		return
	}
	// Karpenter taints a node before its replacement is there, so that no pods come
	// to it any more (disruption/queue.go, StartCommand).
	if !d.cordoned && (!wait || d.actor == policy.ActorKarpenter) {
		r.cordon(d)
	}
	if wait {
		return
	}
	d.after = nil
	blocked := false
	for _, p := range append([]policy.PodID(nil), r.space.Pods(d.node)...) {
		if r.world.Templates[r.pods[p].Template].DaemonSet || r.pods[p].Phase == policy.PodTerminating {
			continue
		}
		if gentle := r.nodeX[d.node].gentle && d.actor == policy.ActorUs && !d.forced; gentle && !r.spare(p) || !r.evict(p, d.forced, d.actor) {
			blocked = true
		}
	}
	if r.nodeX[d.node].pods == 0 {
		r.deleteNode(d.node)
		return
	}
	if blocked && d.retryAt <= r.q.now {
		d.retryAt = r.q.now.Add(r.evictRetry(d))
		r.q.add(d.retryAt, evDrain, int32(i), 0, gen)
	}
}

// cordon lets the node of a drain take no more pods.
func (r *run) cordon(d *drain) {
	n := &r.nodes[d.node]
	d.cordoned = true
	n.Phase = policy.NodeDraining
	r.space.SetNode(n)
	r.sched.Changed(d.node)
	r.touchNode(d.node)
	r.log.add(r.q.now, logDraining, n.Name, "", int64(d.deadline))
	if r.q.now >= r.window.From {
		r.result.Drains++
	}
}

// wakeDrains lets the drains that wait for the node of a token look again: it
// is there now, or will never be.
func (r *run) wakeDrains(token string) {
	if token == "" {
		return
	}
	for _, d := range r.active {
		if slices.Contains(r.drains[d].after, token) {
			r.q.add(r.q.now, evDrain, d, 0, r.drains[d].gen)
		}
	}
}

// waits reports whether a node of one of the tokens is still on its way, and
// whether one will never come.
func (r *run) waits(tokens []string) (wait, failed bool) {
	for _, t := range tokens {
		n, ok := r.tokens[t]
		switch {
		case !ok:
			return false, true
		case r.nodes[n].Phase < policy.NodeInitialized:
			wait = true
		case r.nodes[n].Phase > policy.NodeInitialized:
			return false, true
		}
	}
	return wait, false
}

// undoDrain gives a drain up and lets the node take pods again.
func (r *run) undoDrain(i int) {
	d := &r.drains[i]
	n := &r.nodes[d.node]
	r.log.add(r.q.now, logUndrained, n.Name, "", 0)
	if d.actor == policy.ActorClusterAutoscaler {
		r.auto.failed = r.q.now
	}
	if d.cordoned && n.Phase == policy.NodeDraining {
		n.Phase = policy.NodeInitialized
		r.space.SetNode(n)
		r.sched.Changed(d.node)
	}
	r.endDrain(i)
	r.wantSchedule()
}

// endDrain frees the drain's place.
func (r *run) endDrain(i int) {
	d := &r.drains[i]
	n := &r.nodes[d.node]
	n.ActedBy = policy.ActorNone
	r.nodeX[d.node].drain = -1
	r.touchNode(d.node)
	d.active = false
	d.gen++
	if k := slices.Index(r.active, int32(i)); k >= 0 {
		r.active = slices.Delete(r.active, k, k+1)
	}
	r.wantScan()
	r.unconsolidated()
}

// spare reports whether the workload of a pod can do without it: whether as many
// of the others are ready as must be of the number that it wants. Jobs have no
// such number, and a pod that is the only one wanted is never spared: it goes when
// it is asked to.
func (r *run) spare(id policy.PodID) bool {
	p := &r.pods[id]
	t := &r.world.Templates[p.Template]
	if p.Phase != policy.PodReady || t.Workload < 0 || r.world.Workloads[t.Workload].Job != nil {
		return true
	}
	g := &r.gauges[t.Workload]
	return g.wanted <= 1 || g.seen-1 >= r.requiredOf(t.Workload, g.wanted)
}

// evict asks for the eviction of a pod as the API server answers it: a budget
// may refuse it, and a pod under two budgets is refused for ever. Nobody asks for one
// that its owner keeps where it is, unless the node is taken: Karpenter heeds its own
// annotation alone, others that of the Cluster Autoscaler too.
func (r *run) evict(id policy.PodID, forced bool, by policy.Actor) bool {
	p := &r.pods[id]
	t := &r.world.Templates[p.Template]
	if p.Phase == policy.PodReady || p.Phase == policy.PodStarting {
		if len(t.PDBs) > 1 || !forced && (p.DoNotDisrupt || t.NotSafeToEvict && by != policy.ActorKarpenter) {
			return false
		}
		if len(t.PDBs) == 1 && !r.allows(t.PDBs[0], p.Phase) {
			return false
		}
		if r.cfg.Check && p.Phase == policy.PodReady {
			r.checkEviction(id)
		}
	}
	r.log.add(r.q.now, logEvicted, p.Name, r.nodes[p.Node].Name, 0)
	if r.q.now >= r.window.From {
		if forced {
			r.result.ReclaimEvictions++
		} else {
			r.result.VoluntaryEvictions++
		}
	}
	r.missed(id, r.evictionOf(p.Node, forced, by))
	r.deletePod(id, policy.EndEvicted)
	return true
}

// evictRetry returns how long a refused eviction waits: Karpenter doubles the time
// from 100 ms (node/termination/terminator/eviction.go).
func (r *run) evictRetry(d *drain) time.Duration {
	if d.actor != policy.ActorKarpenter || d.retries >= 10 {
		return r.delays.EvictRetry
	}
	d.retries++
	return min(100*time.Millisecond<<(d.retries-1), r.delays.EvictRetry)
}

// allows reports whether budget b lets a pod in the given phase be evicted.
func (r *run) allows(b policy.PDBID, phase policy.PodPhase) bool {
	x := &r.pdbs[b]
	if phase == policy.PodReady {
		return x.Allowed > 0
	}
	return x.AlwaysAllowUnhealthy || x.Allowed > 0 || x.Healthy >= x.Desired && x.Desired > 0
}
