package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// charged returns what a node costs at market prices where there is a reserve
// price.
func charged(prices []policy.Money, reserve policy.Money) []policy.Money {
	if reserve == 0 {
		return prices
	}
	out := slices.Clone(prices)
	for i := range out {
		if out[i] != policy.NoPrice {
			out[i] = max(out[i], reserve)
		}
	}
	return out
}

// tooLow reports whether market m is an auction that turns bid away: the least
// that it accepts is the market price, or the reserve price if that is higher.
func (r *run) tooLow(m policy.MarketID, bid policy.Money) bool {
	x := &r.world.Markets[m]
	price, offered := r.price(m)
	return x.Auction() && (!offered || bid < max(price, x.Reserve))
}

// standingBid is what is bid for pool where a launch does not say: what the
// pool was told, else the most that a node of the markets is worth.
func (r *run) standingBid(pool policy.PoolID, markets []policy.MarketID) policy.Money {
	bid := policy.Money(0)
	for _, m := range markets {
		x := &r.world.Markets[m]
		switch {
		case !x.Auction():
		case r.poolX[pool].bid > 0:
			return r.pools[pool].Bid(r.poolX[pool].bid)
		default:
			bid = max(bid, r.pools[pool].Bid(x.OnDemand))
		}
	}
	return bid
}

// outbid returns when the market price first exceeds the bid of node id, and the
// loss of the node that follows: the provider says so at that instant and takes
// the node a notice later, whatever the price does meanwhile. It reads prices to
// come, so nothing of it may reach a snapshot before the notice.
func (r *run) outbid(id policy.NodeID) (lost weather.Reclaim, at policy.Time, ok bool) {
	n := &r.nodes[id]
	if !r.world.Markets[n.Market].Auction() {
		return lost, 0, false
	}
	if at, ok = r.stage.exceeds(n.Market, n.Launched, n.Bid); !ok {
		return lost, 0, false
	}
	lost = weather.Reclaim{At: at.Add(r.delays.RackspaceNotice), Notice: at}
	if lead, promised := r.world.Truth.LeadOf(lost.At-at), lost.At-at; lead != promised {
		lost.Notice = lost.At - lead
		if lead == 0 {
			lost.Notice = 0
		}
	}
	for i := range r.world.Faults {
		f := &r.world.Faults[i]
		if f.Kind != scenarios.FaultLateNotice || at < f.At || at >= f.At.Add(f.Duration) {
			continue
		}
		key := chance.New(r.cfg.Seed, "auction-notice", r.world.Markets[n.Market].Name).At2(uint64(r.nodeX[id].slot), uint64(at))
		if key.At1(uint64(f.At)).Float() >= f.Share || lost.Notice == 0 {
			continue
		}
		lost.Notice = lost.Notice.Add(f.Delay)
		if f.Delay == 0 || lost.Notice >= lost.At {
			lost.Notice = 0 // it would come after the node is gone
		}
	}
	return lost, at, true
}

// exceeds returns the first instant, not before from, at which the price of
// market m is above bid. A market that is not offered has no price that could
// be.
func (s *Stage) exceeds(m policy.MarketID, from policy.Time, bid policy.Money) (policy.Time, bool) {
	c := &s.prices[m]
	i, found := slices.BinarySearch(c.At, from)
	if !found {
		i = max(i-1, 0)
	}
	for ; i < len(c.At); i++ {
		if c.Price[i] != policy.NoPrice && c.Price[i] > bid {
			return max(c.At[i], from), true
		}
	}
	return 0, false
}
