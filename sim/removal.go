package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// stop ends what a node costs and frees its slot.
func (ns *nodes) stop(id policy.NodeID) {
	ns.bills.charge(id, ns.q.Now)
	ns.hold(id, false)
	ns.watch.node(id)
	ns.market.Free(ns.all[id].Market, ns.state[id].slot)
	ns.groups.leave(id)
}

// vanish takes a node that is gone out of what the cluster counts.
func (ns *nodes) vanish(id policy.NodeID) {
	n := &ns.all[id]
	if ns.state[id].lost {
		ns.noteReclaim(id)
	}
	ns.market.Forget(n.Market)
	typ := &ns.scenario.Types[ns.scenario.Markets[n.Market].Type]
	ns.pools.all[n.Pool].Used = ns.pools.all[n.Pool].Used.Minus(typ.Capacity)
	ns.pools.bounds[n.Pool].use(ns.q.Now, ns.window, ns.pools.all[n.Pool].Used)
	if n.Phase < policy.NodeInitialized {
		for i, y := range ns.inflight {
			if y == id {
				ns.inflight = append(ns.inflight[:i], ns.inflight[i+1:]...)
				break
			}
		}
	}
}

// delete gives back a node that was emptied.
func (ns *nodes) delete(id policy.NodeID) {
	if !ns.state[id].billed {
		ns.groups.release(id)
		ns.stop(id)
	}
	ns.log.Add(ns.q.Now, engine.RecordDeleted, ns.all[id].Name, "", 0)
	ns.forget(id)
}

// forget removes the Node object, and with it the pods that were bound.
func (ns *nodes) forget(id policy.NodeID) {
	x := &ns.state[id]
	lost := x.lost
	ns.vanish(id)
	if x.drain >= 0 {
		ns.drains.end(int(x.drain))
	}
	cause := policy.EndEvicted
	if lost {
		cause = policy.EndReclaimed
	}
	for _, p := range slices.Clone(ns.space.Pods(id)) {
		if ns.pods.all[p].Phase != policy.PodTerminating {
			if lost {
				ns.serving.missed(p, ns.serving.lossOf(id)) // it may have come after the loss
			}
			ns.pods.retire(p)
		}
		ns.pods.remove(p, cause)
	}
	n := &ns.all[id]
	if x.nominated > 0 {
		for _, p := range ns.queue.pending {
			if ns.pods.all[p].Nominated == id {
				ns.pods.all[p].Nominated = policy.None
				ns.pods.touch(p)
			}
		}
	}
	ns.space.RemoveNode(id)
	ns.sched.Removed(id)
	if n.Token != "" {
		delete(ns.tokens, n.Token)
		ns.drains.wake(n.Token)
	}
	ns.consolidation.unlist(id)
	ns.consolidation.noteChange()
	n.Phase, n.Name = policy.NodeGone, ""
	ns.state[id].gen++
	ns.touch(id)
	ns.free = append(ns.free, id)
	if lost {
		ns.decider.plan(ns.q.Now)
	}
	if len(ns.queue.pending) > 0 {
		ns.karpenter.want()
	}
}

// expire empties a node that has reached the pool's expireAfter, as Karpenter does
// and as an Auto Scaling group with a greatest age of its instances: no other is
// bought first. Where nobody provisions nobody expires nodes either, and a policy
// may replace them. It is tried again for as long as the node is there: a drain may
// be given up, by a budget that allows none or because somebody else had begun it.
func (ns *nodes) expire(id policy.NodeID) {
	if ns.state[id].billed {
		return
	}
	ns.q.Add(ns.q.Now.Add(ns.delays.DrainMax+ns.delays.EvictRetry), engine.NodeExpires, int32(id), 0, ns.state[id].gen)
	actor := policy.ActorKarpenter
	if ns.groups.serves(ns.all[id].Pool) {
		actor = policy.ActorNTH // the group ends the instance, and this drains it first
	}
	if ns.all[id].Phase == policy.NodeInitialized && ns.state[id].drain < 0 {
		ns.drains.start(id, nil, 0, actor)
	}
}
