package machines

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// Pools are what the pools of nodes may buy and hold.
type Pools struct {
	*Machines

	All    []policy.Pool // as every snapshot shows them
	State  []PoolState
	bounds []kept
}

// A PoolState is what a pool was ordered to buy.
type PoolState struct {
	Share     float64
	Exact     bool
	Fallback  bool
	Mixed     bool         // one NodePool of both capacity types, where Karpenter serves the pool
	EmptyOnly bool         // remove empty nodes only, whatever the manifest says
	Bid       policy.Money // in auctions; 0 is what a node is worth there
	Allowed   []bool       // by market; nil means all of the pool
}

// Buy launches one node in one of the markets, with the labels of a choice. It reports false
// when the provider has none to give, or the call fails.
func (pl *Pools) Buy(pool policy.PoolID, markets []policy.MarketID, choice int, token string) (policy.NodeID, bool) {
	if pl.Market.CallFails() {
		pl.Refused(pool)
		return policy.None, false
	}
	markets = pl.Affordable(pool, markets)
	if len(markets) == 0 || pl.Full(pool, nil) {
		return policy.None, false // they were cheaper when they were chosen, or there were fewer nodes
	}
	return pl.BuyAt(pool, markets, pl.StandingBid(pool, markets), choice, token)
}

// BuyAt launches one node in one of the markets at a bid. It reports false when the provider has none
// to give.
func (pl *Pools) BuyAt(pool policy.PoolID, markets []policy.MarketID, bid policy.Money, choice int,
	token string) (policy.NodeID, bool) {
	m, slot, ok := pl.Market.Allocate(markets, market.Allocation{Bid: bid, Number: pl.Launches.Number})
	if !ok {
		pl.Refuse(pool, markets)
		return policy.None, false
	}
	return pl.Launches.Launch(Order{pool, m, slot, choice}, token, bid), true
}

// Counted returns what counts against the limits of pool: nodes that Karpenter takes down do not
// (nodePoolResources in state/cluster.go of Karpenter 1.14.1).
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

// Full reports whether pool holds as many nodes as it may once some are gone. Static pools count
// those that Karpenter takes down, too (ReserveNodeCount in state/statenodepool.go).
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

// Affords reports whether a node of market m costs no more now than pool may pay.
func (pl *Pools) Affords(pool policy.PoolID, m policy.MarketID) bool {
	if pl.All[pool].PriceMax == 0 {
		return true
	}
	x := pl.Scenario.Markets[m]
	x.Price, _ = pl.Market.Price(m)
	return pl.All[pool].Affords(&x)
}

// Affordable returns those of markets of which a node costs no more now than pool
// may pay, and from which no zonal shift leads away.
func (pl *Pools) Affordable(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if pl.All[pool].PriceMax == 0 && pl.Shifted == nil {
		return markets
	}
	return slices.DeleteFunc(slices.Clone(markets), func(m policy.MarketID) bool {
		return !pl.Affords(pool, m) ||
			pl.Away(pool, m)
	})
}

// PricedOut reports whether pool could buy on demand if it were not for the most
// that it may pay.
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

// StandingBid is what is bid for pool where a launch does not say: what the
// pool was set to, else the most that a node of the markets is worth.
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

// Refuse notes that none of the markets had a node.
func (pl *Pools) Refuse(pool policy.PoolID, markets []policy.MarketID) {
	pl.Market.Refuse(markets)
	pl.NoCapacity.Publish(pool)
	pl.Refused(pool)
}

// Refused makes the policy hear of a refused launch.
func (pl *Pools) Refused(pool policy.PoolID) {
	pl.All[pool].Refused = pl.Clock.Now
	pl.bounds[pool].refuse(pl.Clock.Now, pl.Window)
	if pl.Metered() {
		pl.Result.Refusals++
	}
	pl.Log.Add(pl.Clock.Now, engine.RecordRefused, pl.All[pool].Name, "", 0)
	pl.PoolRefused.Publish(pool)
}

// init sets the initial state from what the scenario says of the pools: until a policy has decided
// they buy only on demand, as all policies enter the warm-up on on-demand nodes.
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

// Allowed reports whether used and more stay within limits; zero components
// of limits are unlimited.
func Allowed(limits, used, more policy.Resources) bool {
	sum := used.Plus(more)
	return (limits.CPU == 0 || sum.CPU <= limits.CPU) && (limits.Memory == 0 || sum.Memory <= limits.Memory) &&
		(limits.GPU == 0 || sum.GPU <= limits.GPU)
}

// WantsSpot reports whether a node of market m brings the pool's share nearer
// to the wanted one as spot than as on-demand.
func (pl *Pools) WantsSpot(pool policy.PoolID, m policy.MarketID) bool {
	size := pl.Nodes.Sizes[pool]
	more := float64(pl.SizeOf(m))
	wanted := pl.State[pool].Share * (float64(size.Total) + more)
	// As spot it misses by |spot + more − wanted|, as on-demand by |spot − wanted|.
	return float64(size.Spot)+more/2 <= wanted
}

// SizeOf returns the size of a node of market m: its vCPU, or GPUs where those are counted.
func (pl *Pools) SizeOf(m policy.MarketID) int64 {
	t := &pl.Scenario.Types[pl.Scenario.Markets[m].Type]
	if pl.Prepared.InGPUs {
		return t.Allocatable.GPU
	}
	return t.VCPU
}

// Divided reports whether a pool of Karpenter is two NodePools of which the one for
// spot is limited to its part, as live/karpenter writes them where a ratio is exact.
func (x *PoolState) Divided() bool { return x.Exact && !x.Mixed && x.Share > 0 && x.Share < 1 }

// EmptyOnly reports whether only empty nodes of pool may be deleted: what the pool was ordered, or an exact
// share that others must keep.
func (pl *Pools) EmptyOnly(pool policy.PoolID) bool {
	return pl.State[pool].EmptyOnly || pl.State[pool].Exact
}

// RefreshDisruptionBudgets sets which disruption budgets of pool are in force now. The
// list is shared with snapshots and with other runs, so a change makes a new
// one.
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

// use notes that nodes of pool hold more of what its limits count, or less.
func (pl *Pools) use(pool policy.PoolID, more policy.Resources) {
	pl.All[pool].Used = pl.All[pool].Used.Plus(more)
	pl.bounds[pool].use(pl.Clock.Now, pl.Window, pl.All[pool].Used)
}

// hold follows a node that counts as capacity held from now on, or no longer.
func (pl *Pools) hold(id policy.NodeID) {
	x, d := &pl.Nodes.State[id], int64(1)
	if !x.Held {
		d = -1
	}
	pl.bounds[pl.Nodes.All[id].Pool].hold(pl.Clock.Now, pl.Window, x.Size, d, x.Spot)
}
