package nodepools

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/fleet"
	"github.com/spotter-dev/spotter/sim/machines"
)

// want opens the batch window of the provisioner, or leaves it open. A new pod shortens the wait
// for a retry of pods that could not be placed.
func (kp *provisioner) want() {
	if kp.onlyGroups {
		return
	}
	at := kp.Clock.Now.Add(kp.Delays.BatchIdle)
	if kp.provisionAt != 0 && (!kp.fresh || kp.provisionAt <= at) {
		return
	}
	kp.batchFrom = kp.Clock.Now
	kp.plan(at)
}

func (kp *provisioner) plan(at policy.Time) {
	kp.provisionAt = at
	kp.Clock.Add(at, engine.Provision, 0, 0, 0)
}

// retryProvision is how long the provisioner waits after a refused launch.
const retryProvision = 10 * time.Second

// retryPending is the interval at which Karpenter reconsiders a pending pod
// (provisioning/controller.go, PodController).
const retryPending = 10 * time.Second

// lastLook returns when Karpenter last placed the pending pods. The run leaves out evaluations with
// the same result as the last one, but Karpenter carries them out while a pod waits.
func (kp *provisioner) lastLook() policy.Time {
	return kp.looked.Add(kp.Clock.Now.Sub(kp.looked) / retryPending * retryPending)
}

// provision launches nodes for the pending pods, like Karpenter: each time, it places all of them
// again, on existing, launching and new nodes.
func (kp *provisioner) provision() {
	if kp.provisionAt != kp.Clock.Now {
		return // replaced by an earlier evaluation
	}
	quiet, longest := kp.lastPending.Add(kp.Delays.BatchIdle), kp.batchFrom.Add(kp.Delays.BatchMax)
	if next := min(quiet, longest); next > kp.Clock.Now {
		kp.plan(next)
		return
	}
	kp.provisionAt, kp.fresh = 0, false
	pods, refused, again := kp.place()
	switch {
	case refused || again:
		kp.batchFrom = kp.Clock.Now.Add(retryProvision)
	case len(pods) > 0:
		kp.batchFrom = kp.Clock.Now.Add(kp.Delays.Unavailable) // nothing to launch: try again when markets reopen
	default:
		return
	}
	kp.plan(kp.batchFrom)
}

// addOffers appends the offers that pool can launch now, of the given capacity types, to list. as
// is the id of their NodePool.
func (kp *provisioner) addOffers(list []placement.Offer, pool, as policy.PoolID, spot,
	onDemand bool) []placement.Offer {
	x, limits, used := &kp.Pools.State[pool], kp.Pools.All[pool].Limits, kp.Pools.Counted(pool)
	limited := limits != (policy.Resources{})
	offers := kp.Prepared.Offers[pool]
	for i := range offers {
		o := &offers[i]
		m := &kp.Scenario.Markets[o.Market]
		left := 0
		switch m.Capacity {
		case policy.Reserved:
			if left = kp.Market.Left(o.Market); left == 0 || !x.Mixed {
				continue
			}
		default:
			isSpot := m.Capacity == policy.Spot
			if isSpot && !spot || !isSpot && !onDemand || x.Allowed != nil && !x.Allowed[o.Market] ||
				x.Mixed && kp.onlyReserved(pool) {
				continue
			}
		}
		price, offered := kp.believed(pool, o.Market)
		if !offered || !kp.Pools.Affords(pool, o.Market) || kp.Market.Closed(o.Market) || kp.Away(pool, o.Market) ||
			limited && !machines.Allowed(limits, used, kp.Scenario.Types[m.Type].Capacity) {
			continue
		}
		list = append(list, *o)
		added := &list[len(list)-1]
		added.Price, added.Pool, added.Max = price, as, left
	}
	return list
}

// believed returns the price that Karpenter assumes for a node of a market, and whether the market
// is offered.
func (kp *provisioner) believed(pool policy.PoolID, m policy.MarketID) (policy.Money, bool) {
	price, offered := kp.Market.Believed(m)
	if own := kp.Prepared.Own(pool); own != nil && offered {
		if change, changed := own.Prices[m]; changed {
			price = change.Of(price)
		}
	}
	return price, offered
}

// onlyReserved reports whether the NodePool of pool launches only into reservations.
func (kp *provisioner) onlyReserved(pool policy.PoolID) bool {
	own := kp.Prepared.Own(pool)
	return own != nil && own.OnlyReserved
}

// launchBin launches the node of a bin and nominates the bin's pending pods to it, which are the
// first pending ones of pods. It returns false if the launch was refused.
func (kp *provisioner) launchBin(pods []policy.Pod, pending int, offers []placement.Offer, b placement.Bin) bool {
	pool := offers[b.Offers[0]].Pool % policy.PoolID(len(kp.Pools.All))
	tries := kp.tries(pool, offers, b)
	for _, markets := range tries {
		markets = kp.withinLimits(pool, kp.request(pool, markets))
		if len(markets) == 0 {
			continue
		}
		if n, ok := kp.Pools.Buy(pool, markets, offers[b.Offers[0]].Choice, ""); ok {
			for _, i := range b.Pods {
				if i < pending {
					kp.Queue.Promise(pods[i].ID, n)
				}
			}
			return true
		}
	}
	if first := tries[0]; len(first) > 0 && kp.Scenario.Markets[first[0]].Capacity == policy.Spot {
		for _, i := range b.Pods {
			if i < pending {
				kp.Serving.RefusedSpot(pods[i].ID)
			}
		}
	}
	return false
}

// tries returns two lists of markets to request for the node of a bin: those of the capacity type
// that brings the share nearest to its target, and the alternatives if these refuse. A NodeClaim of
// both capacity types is requested once: Karpenter excludes the markets that refused when it
// creates the next NodeClaim for the pods.
func (kp *provisioner) tries(pool policy.PoolID, offers []placement.Offer, b placement.Bin) [2][]policy.MarketID {
	var spot, onDemand, all []policy.MarketID
	choice := offers[b.Offers[0]].Choice
	for _, o := range b.Offers {
		m := offers[o].Market
		switch {
		case offers[o].Choice != choice:
		case kp.Pools.State[pool].Mixed:
			all = append(all, m)
		case kp.Scenario.Markets[m].Capacity == policy.Spot:
			spot = append(spot, m)
		default:
			onDemand = append(onDemand, m)
		}
	}
	if kp.Pools.State[pool].Mixed {
		return [2][]policy.MarketID{all}
	}
	first, second := onDemand, spot
	if len(spot) > 0 && (len(onDemand) == 0 || kp.Pools.WantsSpot(pool, spot[0])) {
		first, second = spot, onDemand
	}
	return [2][]policy.MarketID{first, kp.alternatives(pool, first, second)}
}

// withinLimits drops the markets whose nodes exceed the remaining limits of the user's NodePool. If
// it is split into two halves, each counts the nodes of both, but not what the other launches in
// the same evaluation.
func (kp *provisioner) withinLimits(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if kp.Prepared.Own(pool) == nil {
		return markets
	}
	limits, used := kp.Pools.All[pool].Limits, kp.Pools.Counted(pool)
	return slices.DeleteFunc(markets, func(m policy.MarketID) bool {
		return !machines.Allowed(limits, used, kp.Scenario.Types[kp.Scenario.Markets[m].Type].Capacity)
	})
}

// interrupted handles a reclaim notice like Karpenter's interruption queue: it requests no launches
// from the market for a while, and deletes the NodeClaim, which terminates a node that is not
// initialized and drains others (handleNodeClaim in pkg/controllers/interruption/utils.go of
// karpenter-provider-aws). Karpenter ignores rebalance recommendations.
func (kp *provisioner) interrupted(id policy.NodeID) {
	n := &kp.Nodes.All[id]
	if !kp.Pools.State[n.Pool].Mixed {
		return
	}
	kp.Market.Close(n.Market)
	kp.consolidation.offers.forget()
	if n.Phase < policy.NodeInitialized {
		kp.Removals.Delete(id)
		return
	}
	kp.Drains.Start(id, nil, n.ReclaimAt, policy.ActorKarpenter)
	kp.consolidation.noteChange()
}

// alternatives returns the markets to request if the first capacity type is refused: on-demand
// instead of Spot if the pool allows the fallback, but never Spot instead of on-demand beyond the
// target share.
func (kp *provisioner) alternatives(pool policy.PoolID, first, second []policy.MarketID) []policy.MarketID {
	if len(first) > 0 && (kp.Scenario.Markets[first[0]].Capacity != policy.Spot || !kp.Pools.State[pool].Fallback) {
		return nil
	}
	return second
}

// request reduces the markets that a NodeClaim of pool allows, cheapest first, to those in the
// request to the provider. A provider that takes the cheapest open market gets all of them, of
// either capacity type (toNode in kwok/cloudprovider/cloudprovider.go).
func (kp *provisioner) request(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if kp.Market.LowestPrice {
		return markets
	}
	list := kp.requestBuf[:0]
	for _, m := range markets {
		price, _ := kp.believed(pool, m)
		x := &kp.Scenario.Markets[m]
		list = append(list, fleet.Offering{Market: m, Type: x.Type, Price: price, Capacity: x.Capacity,
			Block: kp.Market.Block(m), Exotic: kp.exotic[x.Type]})
	}
	kp.requestBuf = list
	markets = markets[:0]
	for _, o := range fleet.Request(list, len(kp.Prepared.Rules[pool].MinValues) > 0) {
		markets = append(markets, o.Market)
	}
	return markets
}
