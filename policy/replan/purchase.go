package replan

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// offersMax is how many of the cheapest offers of a pool are considered.
const offersMax = 96

// A Purchase is what is bought in place of nodes.
type Purchase struct {
	Bought [][]policy.MarketID // for each new node the markets in which it may be, cheapest first
	Cost   policy.Money        // of the first markets, per hour
}

// Trusted reports whether the guardrails, as they are by default, let a node of m be
// bought by choice.
func Trusted(m *policy.Market) bool { return m.Trusted(policy.ConfidenceMin) }

// Offers returns what can be bought of a capacity type for pool in the markets for
// which may holds, cheapest first.
func Offers(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType, may func(*policy.Market) bool) []placement.Offer {
	return Labelled(s, pool, Sales(s, pool, capacity, may))
}

// Sales returns what Offers does without labels and taints, which cost far more to make than
// all the rest.
func Sales(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType, may func(*policy.Market) bool) []placement.Offer {
	sales := slices.DeleteFunc(placement.Sales(s, pool, capacity), func(o placement.Offer) bool { return !may(&s.Markets[o.Market]) })
	slices.SortStableFunc(sales, func(x, y placement.Offer) int {
		return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.Market, y.Market))
	})
	return sales[:min(len(sales), offersMax)]
}

// Labelled returns the offers of sales for pool.
func Labelled(s *policy.Snapshot, pool policy.PoolID, sales []placement.Offer) []placement.Offer {
	markets := make([]policy.MarketID, len(sales))
	for i := range sales {
		markets[i] = sales[i].Market
	}
	return placement.OffersIn(s, pool, markets)
}

// Markets returns for each of bins the markets in which its node may be bought,
// cheapest first. The provider chooses among them, so that each node may cost more than
// its cheapest market by spare. It reports false where the headroom does not suffice
// for all of them.
func Markets(s *policy.Snapshot, left placement.Headroom, offers []placement.Offer, bins []placement.Bin, spare policy.Money) ([][]policy.MarketID, bool) {
	left = left.Clone()
	nodes := make([][]policy.MarketID, len(bins))
	for i := range bins {
		most := offers[bins[i].Offers[0]].Price + spare
		for _, o := range bins[i].Offers {
			x := &offers[o]
			if len(nodes[i]) < placement.MarketsMax && x.Price <= most && left.Has(x.Market) {
				nodes[i] = append(nodes[i], x.Market)
			}
		}
		if len(nodes[i]) == 0 {
			return nil, false
		}
		if s.Markets[nodes[i][0]].Auction() {
			nodes[i] = nodes[i][:1] // a bid is for one class of machine
		}
		left.Take(nodes[i])
	}
	return nodes, true
}

// Launch returns the launch of the i-th node that replaces a node of pool, in one of
// markets. Tokens of one instant differ by key and i.
func Launch(s *policy.Snapshot, pool *policy.Pool, key string, i int, markets []policy.MarketID, replaces policy.NodeID, why policy.Why) policy.Launch {
	if len(markets) > 1 {
		why.RunnerUp = s.Markets[markets[1]].Name
	}
	return policy.Launch{
		Token: policy.Token(s.Now, pool.Name, key, i), Pool: pool.ID, Markets: markets, Replaces: replaces,
		Bid: placement.BidIn(&s.Markets[markets[0]]), Why: why,
	}
}
