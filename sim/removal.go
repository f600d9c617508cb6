package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// removals take nodes out of the cluster that are emptied or lost.
type removals struct {
	*environment
	nodes         *nodes
	bills         *bills
	consolidation *consolidation
	decider       *decider
	drains        *drains
	groups        *scalingGroups
	karpenter     *karpenterProvisioner
	launches      *launches
	market        *market.Market
	pods          *pods
	pools         *pools
	queue         *schedulingQueue
	reclaims      *reclaims
	sched         *scheduler.Scheduler
	serving       *serving
	space         *placement.Space
	watch         *watch
}

// stop ends what a node costs and frees its slot.
func (rm *removals) stop(id policy.NodeID) {
	rm.bills.charge(id, rm.q.Now)
	rm.nodes.hold(id, false)
	rm.watch.node(id)
	rm.market.Free(rm.nodes.all[id].Market, rm.nodes.state[id].slot)
	rm.consolidation.noteReserved(rm.nodes.all[id].Market)
	rm.groups.leave(id)
	rm.karpenter.wantReplicas(rm.nodes.all[id].Pool)
}

// vanish takes a node that is gone out of what the cluster counts.
func (rm *removals) vanish(id policy.NodeID) {
	n := &rm.nodes.all[id]
	if rm.nodes.state[id].lost {
		rm.reclaims.noteReclaim(id)
	}
	rm.market.Forget(n.Market)
	typ := &rm.scenario.Types[rm.scenario.Markets[n.Market].Type]
	rm.pools.all[n.Pool].Used = rm.pools.all[n.Pool].Used.Minus(typ.Capacity)
	rm.pools.bounds[n.Pool].use(rm.q.Now, rm.window, rm.pools.all[n.Pool].Used)
	if n.Phase < policy.NodeInitialized {
		for i, y := range rm.launches.inflight {
			if y == id {
				rm.launches.inflight = append(rm.launches.inflight[:i], rm.launches.inflight[i+1:]...)
				break
			}
		}
	}
}

// delete gives back a node that was emptied.
func (rm *removals) delete(id policy.NodeID) {
	if !rm.nodes.state[id].billed {
		rm.groups.release(id)
		rm.stop(id)
	}
	rm.log.Add(rm.q.Now, engine.RecordDeleted, rm.nodes.all[id].Name, "", 0)
	rm.forget(id)
	rm.q.Add(rm.q.Now.Add(rm.delays.Shutdown), engine.ClaimGone, 0, 0, 0)
}

// forget removes the Node object, and with it the pods that were bound.
func (rm *removals) forget(id policy.NodeID) {
	x := &rm.nodes.state[id]
	lost := x.lost
	rm.vanish(id)
	if x.drain >= 0 {
		rm.drains.end(int(x.drain))
	}
	cause := policy.EndEvicted
	if lost {
		cause = policy.EndReclaimed
	}
	for _, p := range slices.Clone(rm.space.Pods(id)) {
		if rm.pods.all[p].Phase != policy.PodTerminating {
			if lost {
				rm.serving.missed(p, rm.serving.lossOf(id)) // it may have come after the loss
			}
			rm.pods.retire(p)
		}
		rm.pods.remove(p, cause)
	}
	n := &rm.nodes.all[id]
	if x.nominated > 0 {
		for _, p := range rm.queue.pending {
			if rm.pods.all[p].Nominated == id {
				rm.pods.all[p].Nominated = policy.None
				rm.pods.touch(p)
			}
		}
	}
	rm.space.RemoveNode(id)
	rm.sched.Removed(id)
	if n.Token != "" {
		delete(rm.launches.tokens, n.Token)
		rm.drains.wake(n.Token)
	}
	rm.consolidation.tracker.unlist(id)
	rm.consolidation.look() // a budget may allow more
	n.Phase, n.Name = policy.NodeGone, ""
	rm.nodes.state[id].gen++
	rm.nodes.touch(id)
	rm.nodes.free = append(rm.nodes.free, id)
	if lost {
		rm.decider.plan(rm.q.Now)
	}
	if len(rm.queue.pending) > 0 {
		rm.karpenter.want()
	}
}

// expire empties a node that has reached the pool's expireAfter, as Karpenter does
// and as an Auto Scaling group with a greatest age of its instances: no other is
// bought first. Where nobody provisions nobody expires nodes either, and a policy
// may replace them. It is tried again for as long as the node is there: a drain may
// be given up, by a budget that allows none or because somebody else had begun it.
func (rm *removals) expire(id policy.NodeID) {
	if rm.nodes.state[id].billed {
		return
	}
	rm.q.Add(rm.q.Now.Add(rm.delays.DrainMax+rm.delays.EvictRetry), engine.NodeExpires, int32(id), 0, rm.nodes.state[id].gen)
	actor := policy.ActorKarpenter
	if rm.groups.serves(rm.nodes.all[id].Pool) {
		actor = policy.ActorNTH // the group ends the instance, and this drains it first
	}
	if rm.nodes.all[id].Phase == policy.NodeInitialized && rm.nodes.state[id].drain < 0 {
		rm.drains.start(id, nil, 0, actor)
		rm.consolidation.noteChange()
	}
}
