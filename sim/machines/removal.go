package machines

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// Removals take nodes out of the cluster that are emptied or lost.
type Removals struct {
	*Machines
}

// stop ends what a node costs and frees its slot.
func (rm *Removals) stop(id policy.NodeID) {
	rm.Bills.charge(id, rm.Clock.Now)
	if rm.Nodes.State[id].Held {
		rm.Nodes.Hold(id, false)
		rm.Pools.hold(id)
	}
	rm.Market.Free(rm.Nodes.All[id].Market, rm.of[id].slot)
	rm.Stopped.Publish(id)
}

// vanish takes a node that is gone out of what pools and markets count.
func (rm *Removals) vanish(id policy.NodeID) {
	n := &rm.Nodes.All[id]
	if rm.Nodes.State[id].Lost {
		rm.Reclaims.noteReclaim(id)
	}
	rm.Market.Forget(n.Market)
	rm.Pools.use(n.Pool, policy.Resources{}.Minus(rm.Scenario.Types[rm.Scenario.Markets[n.Market].Type].Capacity))
	if n.Phase < policy.NodeInitialized {
		rm.Launches.arrive(id)
	}
}

// Delete gives a node back.
func (rm *Removals) Delete(id policy.NodeID) {
	if !rm.of[id].billed {
		rm.Terminating.Publish(id)
		rm.stop(id)
	}
	rm.Log.Add(rm.Clock.Now, engine.RecordDeleted, rm.Nodes.All[id].Name, "", 0)
	rm.Forget(id)
	rm.Clock.Add(rm.Clock.Now.Add(rm.Delays.Shutdown), engine.ClaimGone, 0, 0, 0)
}

// Forget removes the Node object, and with it the pods that were bound.
func (rm *Removals) Forget(id policy.NodeID) {
	rm.vanish(id)
	if d := rm.of[id].drain; d >= 0 {
		rm.Drains.end(int(d))
	}
	rm.Nodes.Remove(id)
	if token := rm.Nodes.All[id].Token; token != "" {
		delete(rm.Launches.Tokens, token)
		rm.Drains.wake(token)
	}
}

// expire empties a node that has reached the pool's expireAfter, as Karpenter does
// and as an Auto Scaling group with a greatest age of its instances: no other is
// bought first. Pools without a provisioner expire no nodes, and a policy
// may replace them. It is tried again for as long as the node is there: a drain may
// be given up, by a budget that allows none or because another actor had begun it.
func (rm *Removals) expire(id policy.NodeID) {
	if rm.of[id].billed {
		return
	}
	rm.Clock.Add(rm.Clock.Now.Add(rm.Delays.DrainMax+rm.Delays.EvictRetry), engine.NodeExpires, int32(id), 0,
		rm.Nodes.Gen(id))
	n, actor := &rm.Nodes.All[id], policy.ActorKarpenter
	if rm.Scenario.Pools[n.Pool].Provisioner == policy.ProvisionerClusterAutoscaler {
		actor = policy.ActorNTH // the group ends the instance, and this drains it first
	}
	if n.Phase == policy.NodeInitialized && rm.of[id].drain < 0 {
		rm.Drains.Start(id, nil, 0, actor)
		rm.Changed.Publish(struct{}{})
	}
}
