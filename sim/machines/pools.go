package machines

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// Pools are the pools of nodes: what they may buy and what they have.
type Pools struct {
	*Machines

	All    []policy.Pool // as in every snapshot
	State  []PoolState
	bounds []kept
}

// A PoolState is the steer of a pool: what the policy lets it buy.
type PoolState struct {
	Share     float64
	Exact     bool
	Fallback  bool
	Mixed     bool         // a single NodePool of both capacity types, if Karpenter serves the pool
	EmptyOnly bool         // remove only empty nodes, whatever the manifest allows
	Bid       policy.Money // in auctions; 0 bids the on-demand price
	Allowed   []bool       // by market; nil allows all of the pool
}

// Buy launches one node in one of the markets, with the labels of a choice. It returns false if the
// provider has no capacity, the call fails, or the limits or maximum price of the pool forbid it.
func (pl *Pools) Buy(pool policy.PoolID, markets []policy.MarketID, choice int, token string) (policy.NodeID, bool) {
	if pl.Market.CallFails() {
		pl.Refused(pool)
		return policy.None, false
	}
	markets = pl.Affordable(pool, markets)
	if len(markets) == 0 || pl.Full(pool, nil) {
		return policy.None, false // prices or the number of nodes have risen since the choice
	}
	return pl.BuyAt(pool, markets, pl.StandingBid(pool, markets), choice, token)
}

// BuyAt launches one node in one of the markets at a bid. It returns false if the provider has no
// capacity.
func (pl *Pools) BuyAt(pool policy.PoolID, markets []policy.MarketID, bid policy.Money, choice int,
	token string) (policy.NodeID, bool) {
	m, slot, ok := pl.Market.Allocate(markets, market.Allocation{Bid: bid, Number: pl.Launches.Number})
	if !ok {
		pl.Refuse(pool, markets)
		return policy.None, false
	}
	return pl.Launches.Launch(Order{pool, m, slot, choice}, token, bid), true
}

// Counted returns the resources that count against the limits of pool. Nodes that Karpenter is
// deleting do not count (nodePoolResources in state/cluster.go of Karpenter 1.14.1).
func (pl *Pools) Counted(pool policy.PoolID) policy.Resources {
	p := &pl.All[pool]
	used := p.Used
	if p.Limits == (policy.Resources{}) {
		return used
	}
	for _, d := range pl.Drains.Active {
		id := pl.Drains.All[d].Node
		if n := &pl.Nodes.All[id]; n.Pool == pool && pl.Drains.deletes(id) {
			used = used.Minus(pl.Scenario.Types[pl.Scenario.Markets[n.Market].Type].Capacity)
		}
	}
	return used
}

// Full reports whether pool has as many nodes as it may, not counting the nodes in without and
// nodes that Karpenter is deleting. In static pools, the latter count (ReserveNodeCount in
// state/statenodepool.go).
func (pl *Pools) Full(pool policy.PoolID, without []policy.NodeID) bool {
	own := pl.Prepared.Own(pool)
	if own == nil || own.NodesMax == 0 {
		return false
	}
	left, static := own.NodesMax, pl.Prepared.Static(pool) != nil
	for i := range pl.Nodes.All {
		n := &pl.Nodes.All[i]
		if n.Pool == pool && n.Phase != policy.NodeGone && !slices.Contains(without, n.ID) &&
			(static || !pl.Drains.deletes(n.ID)) {
			left--
		}
	}
	return left <= 0
}

// Affords reports whether the current price of market m is within the maximum price of pool.
func (pl *Pools) Affords(pool policy.PoolID, m policy.MarketID) bool {
	if pl.All[pool].PriceMax == 0 {
		return true
	}
	x := pl.Scenario.Markets[m]
	x.Price, _ = pl.Market.Price(m)
	return pl.All[pool].Affords(&x)
}

// Affordable returns the markets whose current price is within the maximum price of pool, and whose
// zone no zonal shift avoids.
func (pl *Pools) Affordable(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if pl.All[pool].PriceMax == 0 && pl.Shifted == nil {
		return markets
	}
	return slices.DeleteFunc(slices.Clone(markets), func(m policy.MarketID) bool {
		return !pl.Affords(pool, m) ||
			pl.Away(pool, m)
	})
}

// PricedOut reports whether pool could buy on demand if it had no maximum price.
func (pl *Pools) PricedOut(pool policy.PoolID) bool {
	if pl.All[pool].PriceMax == 0 {
		return false
	}
	dear := false
	for i := range pl.Prepared.Offers[pool] {
		if m := pl.Prepared.Offers[pool][i].Market; pl.Scenario.Markets[m].Capacity == policy.OnDemand {
			if pl.Affords(pool, m) {
				return false
			}
			dear = true
		}
	}
	return dear
}

// StandingBid returns the bid of pool for launches without a bid of their own: the bid of its
// steer, or the highest on-demand price of the auctions among the markets. Both are bounded by the
// pool. It returns 0 if no market is an auction.
func (pl *Pools) StandingBid(pool policy.PoolID, markets []policy.MarketID) policy.Money {
	bid := policy.Money(0)
	for _, m := range markets {
		x := &pl.Scenario.Markets[m]
		switch {
		case !x.Auction():
		case pl.State[pool].Bid > 0:
			return pl.All[pool].Bid(pl.State[pool].Bid)
		default:
			bid = max(bid, pl.All[pool].Bid(x.OnDemand))
		}
	}
	return bid
}

// Refuse records that none of the markets had capacity for pool.
func (pl *Pools) Refuse(pool policy.PoolID, markets []policy.MarketID) {
	pl.Market.Refuse(markets)
	pl.NoCapacity.Publish(pool)
	pl.Refused(pool)
}

// Refused records a refused launch and publishes it.
func (pl *Pools) Refused(pool policy.PoolID) {
	pl.All[pool].Refused = pl.Clock.Now
	pl.bounds[pool].refuse(pl.Clock.Now, pl.Window)
	if pl.Metered() {
		pl.Result.Refusals++
	}
	pl.Log.Add(pl.Clock.Now, engine.RecordRefused, pl.All[pool].Name, "", 0)
	pl.PoolRefused.Publish(pool)
}

// init sets the initial state from the scenario's pools. Until the first decision of a policy, the
// target of a pool is its minimum Spot share, so all policies start from the same cluster.
func (pl *Pools) init() {
	pl.All = slices.Clone(pl.Scenario.Pools)
	pl.State = make([]PoolState, len(pl.All))
	pl.bounds = make([]kept, len(pl.All))
	for i := range pl.All {
		p := &pl.All[i]
		pl.State[i] = PoolState{Share: p.Share.Min, Fallback: p.OnDemandFallback,
			Mixed: pl.Prepared.Static(policy.PoolID(i)) != nil}
		pl.bounds[i] = kept{bounds: p.Share, limits: p.Limits, forced: !p.OnDemandFallback}
	}
}

// Allowed reports whether used plus more is within limits. Zero components of limits are unlimited.
func Allowed(limits, used, more policy.Resources) bool {
	sum := used.Plus(more)
	return (limits.CPU == 0 || sum.CPU <= limits.CPU) && (limits.Memory == 0 || sum.Memory <= limits.Memory) &&
		(limits.GPU == 0 || sum.GPU <= limits.GPU)
}

// WantsSpot reports whether a Spot node of market m brings the pool's share nearer to its target
// than an on-demand node.
func (pl *Pools) WantsSpot(pool policy.PoolID, m policy.MarketID) bool {
	size := pl.Nodes.Sizes[pool]
	more := float64(pl.SizeOf(m))
	wanted := pl.State[pool].Share * (float64(size.Total) + more)
	// With a Spot node, the distance is |spot + more − wanted|, with an on-demand node |spot −
	// wanted|.
	return float64(size.Spot)+more/2 <= wanted
}

// SizeOf returns the size of a node of market m, in vCPUs, or in GPUs where those are counted.
func (pl *Pools) SizeOf(m policy.MarketID) int64 {
	t := &pl.Scenario.Types[pl.Scenario.Markets[m].Type]
	if pl.Prepared.InGPUs {
		return t.Allocatable.GPU
	}
	return t.VCPU
}

// Divided reports whether a pool of Karpenter consists of two NodePools, of which the Spot one is
// limited to its share, as live/karpenter writes them for an exact ratio.
func (x *PoolState) Divided() bool { return x.Exact && !x.Mixed && x.Share > 0 && x.Share < 1 }

// EmptyOnly reports whether only empty nodes of pool may be removed, because of its steer or
// because its share is exact.
func (pl *Pools) EmptyOnly(pool policy.PoolID) bool {
	return pl.State[pool].EmptyOnly || pl.State[pool].Exact
}

// RefreshDisruptionBudgets updates which disruption budgets of pool are active now. The list is
// shared with snapshots and other runs, so it is copied before a change.
func (pl *Pools) RefreshDisruptionBudgets(pool policy.PoolID) {
	p := &pl.All[pool]
	for i := range p.Budgets {
		b := &p.Budgets[i]
		if active := kube.InForce(b, pl.Clock.Now); active != b.Active {
			p.Budgets = slices.Clone(p.Budgets)
			p.Budgets[i].Active = active
		}
	}
}

// use adds more, which may be negative, to the used resources of pool.
func (pl *Pools) use(pool policy.PoolID, more policy.Resources) {
	pl.All[pool].Used = pl.All[pool].Used.Plus(more)
	pl.bounds[pool].use(pl.Clock.Now, pl.Window, pl.All[pool].Used)
}

// hold updates the size of a pool when a node starts or stops to count as capacity held.
func (pl *Pools) hold(id policy.NodeID) {
	x, d := &pl.Nodes.State[id], int64(1)
	if !x.Held {
		d = -1
	}
	pl.bounds[pl.Nodes.All[id].Pool].hold(pl.Clock.Now, pl.Window, x.Size, d, x.Spot)
}
