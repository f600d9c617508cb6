package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// pools are what the pools of nodes may buy and hold.
type pools struct {
	*environment
	consolidation *consolidation
	decider       *decider
	market        *market.Market
	nodes         *nodes
	launches      *launches

	all    []policy.Pool // as every snapshot shows them
	state  []poolState
	bounds []kept
}

// buy launches one node in one of the markets, with the labels of a choice. It reports false
// when the provider has none to give, or the call fails.
func (pl *pools) buy(pool policy.PoolID, markets []policy.MarketID, choice int, token string) (policy.NodeID, bool) {
	if pl.market.CallFails() {
		pl.refused(pool)
		return policy.None, false
	}
	markets = pl.affordable(pool, markets)
	if len(markets) == 0 || pl.full(pool, nil) {
		return policy.None, false // they were cheaper when they were chosen, or there were fewer nodes
	}
	bid := pl.standingBid(pool, markets)
	m, slot, ok := pl.market.Allocate(markets, bid, pl.launches.launched)
	if !ok {
		pl.refuse(pool, markets)
		return policy.None, false
	}
	return pl.launches.launch(order{pool, m, slot, choice}, token, bid), true
}

// full reports whether pool holds as many nodes as it may once some are gone.
func (pl *pools) full(pool policy.PoolID, without []policy.NodeID) bool {
	own := pl.prepared.own(pool)
	if own == nil || own.NodesMax == 0 {
		return false
	}
	left := own.NodesMax
	for i := range pl.nodes.all {
		if n := &pl.nodes.all[i]; n.Pool == pool && n.Phase != policy.NodeGone && !slices.Contains(without, n.ID) {
			left--
		}
	}
	return left <= 0
}

// affords reports whether a node of market m costs no more now than pool may pay.
func (pl *pools) affords(pool policy.PoolID, m policy.MarketID) bool {
	if pl.all[pool].PriceMax == 0 {
		return true
	}
	x := pl.scenario.Markets[m]
	x.Price, _ = pl.market.Price(m)
	return pl.all[pool].Affords(&x)
}

// affordable returns those of markets of which a node costs no more now than pool
// may pay, and from which no zonal shift leads away.
func (pl *pools) affordable(pool policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	if pl.all[pool].PriceMax == 0 && pl.shifted == nil {
		return markets
	}
	return slices.DeleteFunc(slices.Clone(markets), func(m policy.MarketID) bool { return !pl.affords(pool, m) || pl.away(pool, m) })
}

// pricedOut reports whether pool could buy on demand if it were not for the most
// that it may pay.
func (pl *pools) pricedOut(pool policy.PoolID) bool {
	if pl.all[pool].PriceMax == 0 {
		return false
	}
	dear := false
	for i := range pl.prepared.offers[pool] {
		if m := pl.prepared.offers[pool][i].Market; pl.scenario.Markets[m].Capacity == policy.OnDemand {
			if pl.affords(pool, m) {
				return false
			}
			dear = true
		}
	}
	return dear
}

// standingBid is what is bid for pool where a launch does not say: what the
// pool was set to, else the most that a node of the markets is worth.
func (pl *pools) standingBid(pool policy.PoolID, markets []policy.MarketID) policy.Money {
	bid := policy.Money(0)
	for _, m := range markets {
		x := &pl.scenario.Markets[m]
		switch {
		case !x.Auction():
		case pl.state[pool].bid > 0:
			return pl.all[pool].Bid(pl.state[pool].bid)
		default:
			bid = max(bid, pl.all[pool].Bid(x.OnDemand))
		}
	}
	return bid
}

// refuse notes that none of the markets had a node.
func (pl *pools) refuse(pool policy.PoolID, markets []policy.MarketID) {
	pl.market.Refuse(markets)
	pl.consolidation.offers.forget()
	pl.refused(pool)
}

// refused makes the policy hear of a refused launch.
func (pl *pools) refused(pool policy.PoolID) {
	pl.all[pool].Refused = pl.q.Now
	pl.bounds[pool].refuse(pl.q.Now, pl.window)
	if pl.q.Now >= pl.window.From {
		pl.result.Refusals++
	}
	pl.log.Add(pl.q.Now, engine.RecordRefused, pl.all[pool].Name, "", 0)
	pl.decider.plan(pl.q.Now.Add(collect))
}

// init begins with what the scenario says of the pools.
func (pl *pools) init() {
	pl.all = slices.Clone(pl.scenario.Pools)
	pl.state = make([]poolState, len(pl.all))
	pl.bounds = make([]kept, len(pl.all))
	pl.nodes.sizes = make([]poolSize, len(pl.all))
	for i := range pl.all {
		p := &pl.all[i]
		pl.state[i] = poolState{share: defaultShare(p), fallback: p.OnDemandFallback, mixed: pl.prepared.static(policy.PoolID(i)) != nil}
		pl.bounds[i] = kept{bounds: p.Share, limits: p.Limits, forced: !p.OnDemandFallback}
	}
}
