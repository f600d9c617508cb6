package nodepools

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
)

// retryReplicas is how long Karpenter waits after it could not launch all replicas
// (pkg/controllers/static/provisioning/controller.go).
const retryReplicas = 30 * time.Second

// wantReplicas plans the launch of the missing nodes of a static pool, at the end of this instant.
func (kp *provisioner) wantReplicas(pool policy.PoolID) {
	if kp.Prepared.Static(pool) != nil {
		kp.Clock.Add(kp.Clock.Now, engine.ReplicasFill, int32(pool), 0, 0)
	}
}

// fillReplicas launches the missing nodes of a static pool, whether or not pods need them. A node
// that is being deleted no longer counts.
func (kp *provisioner) fillReplicas(pool policy.PoolID) {
	for range kp.missingReplicas(pool) {
		if _, ok := kp.Pools.Buy(pool, kp.replicaMarkets(pool), 0, ""); !ok {
			kp.Clock.Add(kp.Clock.Now.Add(retryReplicas), engine.ReplicasFill, int32(pool), 0, 0)
			return
		}
	}
}

// missingReplicas returns the number of missing nodes of a static pool.
func (kp *provisioner) missingReplicas(pool policy.PoolID) int {
	missing := kp.Prepared.Static(pool).Replicas
	for i := range kp.Nodes.All {
		n := &kp.Nodes.All[i]
		if n.Pool == pool && kp.Runs(n.ID) && n.ActedBy != policy.ActorKarpenter {
			missing--
		}
	}
	return max(0, missing)
}

// replicaMarkets returns the markets in which a node of a static pool can be launched.
func (kp *provisioner) replicaMarkets(pool policy.PoolID) []policy.MarketID {
	types := kp.Scenario.Pools[pool].CapacityTypes
	offers := kp.addOffers(nil, pool, pool, slices.Contains(types, policy.Spot), slices.Contains(types, policy.OnDemand))
	offers = slices.DeleteFunc(offers, func(o placement.Offer) bool { return o.Choice > 0 }) // differ only in labels
	markets := make([]policy.MarketID, len(offers))
	for i := range offers {
		markets[i] = offers[i].Market
	}
	return kp.request(pool, markets)
}
