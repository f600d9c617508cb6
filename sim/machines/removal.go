package machines

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
)

// Removals removes drained and lost nodes from the cluster.
type Removals struct {
	*Machines
}

// stop ends the costs of a node and frees its slot.
func (rm *Removals) stop(id policy.NodeID) {
	rm.Bills.charge(id, rm.Clock.Now)
	if rm.Nodes.State[id].Held {
		rm.Nodes.Hold(id, false)
		rm.Pools.hold(id)
	}
	rm.Market.Free(rm.Nodes.All[id].Market, rm.of[id].slot)
	rm.Stopped.Publish(id)
}

// vanish removes a node that is gone from the counts of its pool and market.
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

// Delete terminates a node and removes its Node object.
func (rm *Removals) Delete(id policy.NodeID) {
	if !rm.of[id].billed {
		rm.Terminating.Publish(id)
		rm.stop(id)
	}
	rm.Log.Add(rm.Clock.Now, engine.RecordDeleted, rm.Nodes.All[id].Name, "", 0)
	rm.Forget(id)
	rm.Clock.Add(rm.Clock.Now.Add(rm.Delays.Shutdown), engine.ClaimGone, 0, 0, 0)
}

// Forget removes the Node object and the pods that are bound to it.
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

// expire drains a node that has reached the pool's expireAfter, like Karpenter and like an Auto
// Scaling group with a maximum instance lifetime: no replacement is launched first. Pools without a
// provisioner do not expire nodes, but a policy may replace them. expire is repeated while the node
// exists, because its drain may be cancelled, or another actor may have started one.
func (rm *Removals) expire(id policy.NodeID) {
	if rm.of[id].billed {
		return
	}
	rm.Clock.Add(rm.Clock.Now.Add(rm.Delays.DrainMax+rm.Delays.EvictRetry), engine.NodeExpires, int32(id), 0,
		rm.Nodes.Gen(id))
	n, actor := &rm.Nodes.All[id], policy.ActorKarpenter
	if rm.Scenario.Pools[n.Pool].Provisioner == policy.ProvisionerClusterAutoscaler {
		actor = policy.ActorNTH // the group terminates the instance, and the node termination handler drains it first
	}
	if n.Phase == policy.NodeInitialized && rm.of[id].drain < 0 {
		rm.Drains.Start(id, nil, 0, actor)
		rm.Changed.Publish(struct{}{})
	}
}
