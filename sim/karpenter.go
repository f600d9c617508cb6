package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/fleet"
)

// A poolState is what a pool was ordered to buy.
type poolState struct {
	share    float64
	exact    bool
	fallback bool
	mixed    bool         // one NodePool of both capacity types, where Karpenter serves the pool
	empty    bool         // remove empty nodes only, whatever the manifest says
	bid      policy.Money // in auctions; 0 is what a node is worth there
	allowed  []bool       // by market; nil means all of the pool
	launches int
}

// defaultShare is what a pool buys before a policy has spoken: on-demand only,
// as all policies enter the warm-up on on-demand nodes.
func defaultShare(p *policy.Pool) float64 { return p.Share.Min }

// want opens the batch window of the provisioner, or leaves it open.
// New pods do not wait until those are tried again for which nothing was found.
func (kp *karpenterProvisioner) want() {
	kp.autoscaler.want()
	if kp.onlyGroups {
		return
	}
	at := kp.q.Now.Add(kp.delays.BatchIdle)
	if kp.provisionAt != 0 && (!kp.fresh || kp.provisionAt <= at) {
		return
	}
	kp.batchFrom = kp.q.Now
	kp.plan(at)
}

func (kp *karpenterProvisioner) plan(at policy.Time) {
	kp.provisionAt = at
	kp.q.Add(at, engine.Provision, 0, 0, 0)
}

// retryProvision is how long the provisioner waits after a refusal.
const retryProvision = 10 * time.Second

// provision buys nodes for the pending pods, as Karpenter does: all of them are placed
// anew each time, on nodes that are there or on their way and on new ones.
func (kp *karpenterProvisioner) provision() {
	if kp.provisionAt != kp.q.Now {
		return // overtaken by an earlier look
	}
	quiet, longest := kp.lastPending.Add(kp.delays.BatchIdle), kp.batchFrom.Add(kp.delays.BatchMax)
	if next := min(quiet, longest); next > kp.q.Now {
		kp.plan(next)
		return
	}
	kp.provisionAt, kp.fresh = 0, false
	pods, refused, again := kp.place()
	for _, id := range pods {
		kp.pods.state[id].stuck = !refused
	}
	switch {
	case refused || again:
		kp.batchFrom = kp.q.Now.Add(retryProvision)
	case len(pods) > 0:
		kp.batchFrom = kp.q.Now.Add(kp.delays.Unavailable) // nothing to buy: look again when markets reopen
	default:
		return
	}
	kp.plan(kp.batchFrom)
}

func (sq *schedulingQueue) nominate(id policy.PodID, n policy.NodeID) {
	sq.pods.all[id].Nominated = n
	sq.nodes.state[n].nominated++
	sq.nodes.all[n].Nominated = sq.q.Now
	sq.consolidation.tracker.keepNominated(n)
	sq.pods.touch(id)
	sq.nodes.touch(n)
}

// addOffers adds to list what pool may buy now, of the capacity types wanted, as offers
// of a NodePool of the given id.
func (kp *karpenterProvisioner) addOffers(list []placement.Offer, pool, as policy.PoolID, spot, onDemand bool) []placement.Offer {
	x, limits, used := &kp.pools.state[pool], kp.pools.all[pool].Limits, kp.pools.all[pool].Used
	limited := limits != (policy.Resources{})
	offers := kp.prepared.offers[pool]
	for i := range offers {
		o := &offers[i]
		m := &kp.scenario.Markets[o.Market]
		left := 0
		switch m.Capacity {
		case policy.Reserved:
			if left = kp.market.Left(o.Market); left == 0 || !x.mixed {
				continue
			}
		default:
			isSpot := m.Capacity == policy.Spot
			if isSpot && !spot || !isSpot && !onDemand || x.allowed != nil && !x.allowed[o.Market] || x.mixed && kp.onlyReserved(pool) {
				continue
			}
		}
		price, offered := kp.believed(pool, o.Market)
		if !offered || !kp.pools.affords(pool, o.Market) || kp.market.Closed(o.Market) || kp.away(pool, o.Market) || limited && !allowed(limits, used, kp.scenario.Types[m.Type].Capacity) {
			continue
		}
		list = append(list, *o)
		added := &list[len(list)-1]
		added.Price, added.Pool, added.Max = price, as, left
	}
	return list
}

// believed returns what Karpenter takes a node of a market to cost, and whether it is offered.
func (kp *karpenterProvisioner) believed(pool policy.PoolID, m policy.MarketID) (policy.Money, bool) {
	price, offered := kp.market.Believed(m)
	if own := kp.prepared.own(pool); own != nil && offered {
		if change, changed := own.Prices[m]; changed {
			price = change.Of(price)
		}
	}
	return price, offered
}

// onlyReserved reports whether the NodePool of pool launches into reservations alone.
func (kp *karpenterProvisioner) onlyReserved(pool policy.PoolID) bool {
	own := kp.prepared.own(pool)
	return own != nil && own.OnlyReserved
}

// allowed reports whether used and more stay within limits; zero components
// of limits are unlimited.
func allowed(limits, used, more policy.Resources) bool {
	sum := used.Plus(more)
	return (limits.CPU == 0 || sum.CPU <= limits.CPU) && (limits.Memory == 0 || sum.Memory <= limits.Memory) &&
		(limits.GPU == 0 || sum.GPU <= limits.GPU)
}

// launchBin buys the node of a bin and promises its place to those of the bin's pods that
// are pending: the first ones.
func (kp *karpenterProvisioner) launchBin(pods []policy.Pod, pending int, offers []placement.Offer, b placement.Bin) bool {
	pool := offers[b.Offers[0]].Pool % policy.PoolID(len(kp.pools.all))
	tries := kp.tries(pool, offers, b)
	for _, markets := range tries {
		markets = kp.withinLimits(pool, kp.request(pool, markets))
		if len(markets) == 0 {
			continue
		}
		if n, ok := kp.pools.buy(pool, markets, offers[b.Offers[0]].Choice, ""); ok {
			for _, i := range b.Pods {
				if i < pending {
					kp.queue.promise(pods[i].ID, n)
				}
			}
			return true
		}
	}
	if first := tries[0]; len(first) > 0 && kp.scenario.Markets[first[0]].Capacity == policy.Spot {
		for _, i := range b.Pods {
			if i < pending {
				kp.serving.refusedSpot(pods[i].ID)
			}
		}
	}
	return false
}

// tries returns the markets that are asked for the node of a bin, those of the capacity
// type that brings the share nearest to what is wanted, and then the ones that are asked
// where these refuse. A NodeClaim of both capacity types is asked for once: its
// markets that refused are left out when Karpenter makes the next one for the pods.
func (kp *karpenterProvisioner) tries(pool policy.PoolID, offers []placement.Offer, b placement.Bin) [2][]policy.MarketID {
	var spot, onDemand, all []policy.MarketID
	choice := offers[b.Offers[0]].Choice
	for _, o := range b.Offers {
		m := offers[o].Market
		switch {
		case offers[o].Choice != choice:
		case kp.pools.state[pool].mixed:
			all = append(all, m)
		case kp.scenario.Markets[m].Capacity == policy.Spot:
			spot = append(spot, m)
		default:
			onDemand = append(onDemand, m)
		}
	}
	if kp.pools.state[pool].mixed {
		return [2][]policy.MarketID{all}
	}
	first, second := onDemand, spot
	if len(spot) > 0 && (len(onDemand) == 0 || kp.pools.wantsSpot(pool, spot[0])) {
		first, second = spot, onDemand
	}
	return [2][]policy.MarketID{first, kp.alternatives(pool, first, second)}
}

// withinLimits leaves out what is more than the limits of the user's NodePool leave. Both
// halves that one is steered by count what is held by both, but not what the other buys at
// the same look.
func (kp *karpenterProvisioner) withinLimits(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if kp.prepared.own(pool) == nil {
		return markets
	}
	p := &kp.pools.all[pool]
	return slices.DeleteFunc(markets, func(m policy.MarketID) bool {
		return !allowed(p.Limits, p.Used, kp.scenario.Types[kp.scenario.Markets[m].Type].Capacity)
	})
}

// interrupted is what Karpenter does when its queue of interruptions says that a node is
// about to be taken: it does not ask for the market any more for a while, and drains the
// node (handleNodeClaim in pkg/controllers/interruption/controller.go of
// karpenter-provider-aws). A rebalance recommendation changes nothing there.
func (kp *karpenterProvisioner) interrupted(id policy.NodeID) {
	n := &kp.nodes.all[id]
	kp.market.Close(n.Market)
	kp.consolidation.offers.forget()
	if n.Phase == policy.NodeInitialized {
		kp.drains.start(id, nil, n.ReclaimAt, policy.ActorKarpenter)
		kp.consolidation.noteChange()
	}
}

// alternatives returns what is tried when the first capacity type is refused:
// on-demand in place of spot where the pool falls back, and never spot in place
// of on-demand beyond the wanted share.
func (kp *karpenterProvisioner) alternatives(pool policy.PoolID, first, second []policy.MarketID) []policy.MarketID {
	if len(first) > 0 && (kp.scenario.Markets[first[0]].Capacity != policy.Spot || !kp.pools.state[pool].fallback) {
		return nil
	}
	return second
}

// request reduces what a NodeClaim of pool allows, cheapest first, to what the provider is
// asked for.
func (kp *karpenterProvisioner) request(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	list := kp.requestBuf[:0]
	for _, m := range markets {
		price, _ := kp.believed(pool, m)
		x := &kp.scenario.Markets[m]
		list = append(list, fleet.Offering{Market: m, Type: x.Type, Price: price, Capacity: x.Capacity, Block: kp.market.Block(m), Exotic: kp.exotic[x.Type]})
	}
	kp.requestBuf = list
	markets = markets[:0]
	for _, o := range fleet.Request(list, len(kp.prepared.rules[pool].MinValues) > 0) {
		markets = append(markets, o.Market)
	}
	return markets
}

// wantsSpot reports whether a node of market m brings the pool's share nearer
// to the wanted one as spot than as on-demand.
func (pl *pools) wantsSpot(pool policy.PoolID, m policy.MarketID) bool {
	size := pl.nodes.sizes[pool]
	more := float64(pl.sizeOf(m))
	wanted := pl.state[pool].share * (float64(size.total) + more)
	// As spot it misses by |spot + more − wanted|, as on-demand by |spot − wanted|.
	return float64(size.spot)+more/2 <= wanted
}

func (pl *pools) sizeOf(m policy.MarketID) int64 {
	t := &pl.scenario.Types[pl.scenario.Markets[m].Type]
	if pl.prepared.inGPUs {
		return t.Allocatable.GPU
	}
	return t.VCPU
}
