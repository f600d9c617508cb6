package sim

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/sim/fleet"
)

// A poolState is what a pool was told to buy.
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

// wantProvision opens the batch window of the provisioner, or leaves it open.
// New pods do not wait until those are tried again for which nothing was found.
func (r *run) wantProvision() {
	r.wantScan()
	if r.onlyGroups {
		return
	}
	at := r.q.now.Add(r.delays.BatchIdle)
	if r.provisionAt != 0 && (!r.fresh || r.provisionAt <= at) {
		return
	}
	r.batchFrom = r.q.now
	r.planProvision(at)
}

func (r *run) planProvision(at policy.Time) {
	r.provisionAt = at
	r.q.add(at, evProvision, 0, 0, 0)
}

// retryProvision is how long the provisioner waits after a refusal.
const retryProvision = 10 * time.Second

// provision buys nodes for the pending pods, as Karpenter does: all of them are placed
// anew each time, on nodes that are there or on their way and on new ones.
func (r *run) provision() {
	if r.provisionAt != r.q.now {
		return // overtaken by an earlier look
	}
	quiet, longest := r.lastPending.Add(r.delays.BatchIdle), r.batchFrom.Add(r.delays.BatchMax)
	if next := min(quiet, longest); next > r.q.now {
		r.planProvision(next)
		return
	}
	r.provisionAt, r.fresh = 0, false
	pods, refused, again := r.place()
	for _, id := range pods {
		r.podX[id].stuck = !refused
	}
	switch {
	case refused || again:
		r.batchFrom = r.q.now.Add(retryProvision)
	case len(pods) > 0:
		r.batchFrom = r.q.now.Add(r.delays.Unavailable) // nothing to buy: look again when markets reopen
	default:
		return
	}
	r.planProvision(r.batchFrom)
}

// reserveNominated keeps the places that pending pods were promised.
func (r *run) reserveNominated() {
	for _, id := range r.pending {
		p := &r.pods[id]
		if p.Phase == policy.PodPending && p.Nominated != policy.None {
			r.space.Reserve(p, p.Nominated)
		}
	}
}

// unplaced returns the pending pods that find no room on a node on its way,
// and promises places to the others.
func (r *run) unplaced() []policy.Pod {
	failed := r.failedScratch()
	var rest []policy.Pod
	for _, id := range r.pending {
		p := &r.pods[id]
		if p.Phase != policy.PodPending || p.Gated || p.Nominated != policy.None {
			continue
		}
		if failed[p.Template] && p.VolumeZone == policy.None {
			rest = append(rest, *p)
			continue
		}
		found := false
		for _, n := range r.inflight {
			if r.space.CheckExpected(p, n) == place.OK {
				r.space.Reserve(p, n)
				r.nominate(id, n)
				found = true
				break
			}
		}
		if !found {
			failed[p.Template] = true
			rest = append(rest, *p)
		}
	}
	return rest
}

func (r *run) nominate(id policy.PodID, n policy.NodeID) {
	r.pods[id].Nominated = n
	r.nodeX[n].nominated++
	r.nodes[n].Nominated = r.q.now
	r.keepNominated(n)
	r.touchPod(id)
	r.touchNode(n)
}

// addOffers adds to list what pool may buy now, of the capacity types wanted, as offers
// of a NodePool of the given id.
func (r *run) addOffers(list []place.Offer, pool, as policy.PoolID, spot, onDemand bool) []place.Offer {
	x, limits, used := &r.poolX[pool], r.pools[pool].Limits, r.pools[pool].Used
	limited := limits != (policy.Resources{})
	offers := r.stage.offers[pool]
	for i := range offers {
		o := &offers[i]
		m := &r.world.Markets[o.Market]
		isSpot := m.Capacity == policy.Spot
		if isSpot && !spot || !isSpot && !onDemand || x.allowed != nil && !x.allowed[o.Market] {
			continue
		}
		price, offered := r.price(o.Market)
		if !offered || !r.affords(pool, o.Market) || r.market[o.Market].unavailable > r.q.now || limited && !allowed(limits, used, r.world.Types[m.Type].Capacity) {
			continue
		}
		list = append(list, *o)
		added := &list[len(list)-1]
		added.Price, added.Pool = price, as
	}
	return list
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
func (r *run) launchBin(pods []policy.Pod, pending int, offers []place.Offer, b place.Bin) bool {
	pool := offers[b.Offers[0]].Pool % policy.PoolID(len(r.pools))
	tries := r.tries(pool, offers, b)
	for _, markets := range tries {
		markets = r.request(markets)
		if len(markets) == 0 {
			continue
		}
		if n, ok := r.buy(pool, markets, ""); ok {
			for _, i := range b.Pods {
				if i < pending {
					r.promise(pods[i].ID, n)
				}
			}
			return true
		}
	}
	if first := tries[0]; len(first) > 0 && r.world.Markets[first[0]].Capacity == policy.Spot {
		for _, i := range b.Pods {
			if i < pending {
				r.refusedSpot(pods[i].ID)
			}
		}
	}
	return false
}

// tries returns the markets that are asked for the node of a bin, those of the capacity
// type that brings the share nearest to what is wanted, and then the ones that are asked
// where these refuse. A NodeClaim of both capacity types is asked for once: its
// markets that refused are left out when Karpenter makes the next one for the pods.
func (r *run) tries(pool policy.PoolID, offers []place.Offer, b place.Bin) [2][]policy.MarketID {
	var spot, onDemand, all []policy.MarketID
	for _, o := range b.Offers {
		m := offers[o].Market
		switch {
		case r.poolX[pool].mixed:
			all = append(all, m)
		case r.world.Markets[m].Capacity == policy.Spot:
			spot = append(spot, m)
		default:
			onDemand = append(onDemand, m)
		}
	}
	if r.poolX[pool].mixed {
		return [2][]policy.MarketID{all}
	}
	first, second := onDemand, spot
	if len(spot) > 0 && (len(onDemand) == 0 || r.wantsSpot(pool, spot[0])) {
		first, second = spot, onDemand
	}
	return [2][]policy.MarketID{first, r.alternatives(pool, first, second)}
}

// interrupted is what Karpenter does when its queue of interruptions says that a node is
// about to be taken: it does not ask for the market any more for a while, and drains the
// node (handleNodeClaim in pkg/controllers/interruption/controller.go of
// karpenter-provider-aws). A rebalance recommendation changes nothing there.
func (r *run) interrupted(id policy.NodeID) {
	n := &r.nodes[id]
	ms := &r.market[n.Market]
	ms.unavailable = max(ms.unavailable, r.q.now.Add(r.delays.Unavailable))
	r.kar.offersUntil = 0
	if n.Phase == policy.NodeInitialized {
		r.startDrain(id, nil, n.ReclaimAt, policy.ActorKarpenter)
	}
}

// alternatives returns what is tried when the first capacity type is refused:
// on-demand in place of spot where the pool falls back, and never spot in place
// of on-demand beyond the wanted share.
func (r *run) alternatives(pool policy.PoolID, first, second []policy.MarketID) []policy.MarketID {
	if len(first) > 0 && (r.world.Markets[first[0]].Capacity != policy.Spot || !r.poolX[pool].fallback) {
		return nil
	}
	return second
}

// request reduces what a NodeClaim allows, cheapest first, to what the provider is asked
// for.
func (r *run) request(markets []policy.MarketID) []policy.MarketID {
	list := r.requestBuf[:0]
	for _, m := range markets {
		price, _ := r.price(m)
		x := &r.world.Markets[m]
		list = append(list, fleet.Offering{Market: m, Type: x.Type, Price: price, Spot: x.Capacity == policy.Spot, Exotic: r.exotic[x.Type]})
	}
	r.requestBuf = list
	markets = markets[:0]
	for _, o := range fleet.Request(list) {
		markets = append(markets, o.Market)
	}
	return markets
}

// wantsSpot reports whether a node of market m brings the pool's share nearer
// to the wanted one as spot than as on-demand.
func (r *run) wantsSpot(pool policy.PoolID, m policy.MarketID) bool {
	spot, total := r.sizes(pool)
	more := float64(r.sizeOf(m))
	wanted := r.poolX[pool].share * (float64(total) + more)
	// As spot it misses by |spot + more − wanted|, as on-demand by |spot − wanted|.
	return float64(spot)+more/2 <= wanted
}

func (r *run) sizeOf(m policy.MarketID) int64 {
	t := &r.world.Types[r.world.Markets[m].Type]
	if r.stage.gpuWorld {
		return t.Allocatable.GPU
	}
	return t.VCPU
}

// sizes returns the spot part and all of the capacity that pool holds or has on
// its way, nodes that are going left out.
func (r *run) sizes(pool policy.PoolID) (spot, total int64) {
	for i := range r.nodes {
		n, x := &r.nodes[i], &r.nodeX[i]
		if n.Pool != pool || n.Phase == policy.NodeGone || n.Phase > policy.NodeInitialized || x.drain >= 0 {
			continue
		}
		total += x.size
		if x.spot {
			spot += x.size
		}
	}
	return spot, total
}
