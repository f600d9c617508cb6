package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
)

// static returns the NodePool of a pool that keeps a fixed number of nodes, nil for another.
func (p *Prepared) static(pool policy.PoolID) *scenarios.NodePool {
	if own := p.own(pool); own != nil && own.Static {
		return own
	}
	return nil
}

// retryReplicas is how long Karpenter waits where it could not launch all replicas
// (pkg/controllers/static/provisioning/controller.go).
const retryReplicas = 30 * time.Second

// wantReplicas plans to launch what a static pool is missing at the end of this instant.
func (kp *karpenterProvisioner) wantReplicas(pool policy.PoolID) {
	if kp.prepared.static(pool) != nil {
		kp.q.Add(kp.q.Now, engine.ReplicasFill, int32(pool), 0, 0)
	}
}

// fillReplicas launches what a static pool is missing: a node that is deleted counts no more,
// and whether pods need one makes no difference.
func (kp *karpenterProvisioner) fillReplicas(pool policy.PoolID) {
	for range kp.missingReplicas(pool) {
		if _, ok := kp.pools.buy(pool, kp.replicaMarkets(pool), 0, ""); !ok {
			kp.q.Add(kp.q.Now.Add(retryReplicas), engine.ReplicasFill, int32(pool), 0, 0)
			return
		}
	}
}

// missingReplicas returns how many nodes a static pool lacks.
func (kp *karpenterProvisioner) missingReplicas(pool policy.PoolID) int {
	missing := kp.prepared.static(pool).Replicas
	for i := range kp.nodes.all {
		n, x := &kp.nodes.all[i], &kp.nodes.state[i]
		if n.Pool == pool && n.Phase != policy.NodeGone && !x.billed && (x.drain < 0 || kp.drains.all[x.drain].actor != policy.ActorKarpenter) {
			missing--
		}
	}
	return max(0, missing)
}

// replicaMarkets returns the markets that may sell a node of a static pool.
func (kp *karpenterProvisioner) replicaMarkets(pool policy.PoolID) []policy.MarketID {
	types := kp.scenario.Pools[pool].CapacityTypes
	offers := kp.addOffers(nil, pool, pool, slices.Contains(types, policy.Spot), slices.Contains(types, policy.OnDemand))
	offers = slices.DeleteFunc(offers, func(o placement.Offer) bool { return o.Choice > 0 }) // they are equal but for labels
	markets := make([]policy.MarketID, len(offers))
	for i := range offers {
		markets[i] = offers[i].Market
	}
	return kp.request(pool, markets)
}

// withoutStatic leaves out the offers of static pools, which buy for no pod.
func (p *Prepared) withoutStatic(offers []placement.Offer) []placement.Offer {
	return slices.DeleteFunc(offers, func(o placement.Offer) bool { return p.static(o.Pool) != nil })
}
