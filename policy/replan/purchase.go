package replan

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// offersMax is the maximum number of offers of a pool that are considered, the cheapest first.
const offersMax = 96

// A Purchase is a set of new nodes that replace others.
type Purchase struct {
	Bought [][]policy.MarketID // for each new node the acceptable markets, cheapest first
	Cost   policy.Money        // of the first markets, per hour

	// Quality describes how close to optimal the packing is known to be.
	Quality string
}

// Trusted reports whether the default guardrails allow policies to buy nodes in m by choice.
func Trusted(m *policy.Market) bool { return m.Trusted(policy.ConfidenceMin) }

// An Offering is the set of nodes of one capacity type that may be bought for a pool by choice,
// cheapest first.
type Offering struct {
	s     *policy.Snapshot
	pool  policy.PoolID
	sales []placement.Offer // without labels and taints, which are expensive to build
	made  []placement.Offer // with labels and taints; built on demand

	// Floor is a lower bound of the prices on offer.
	Floor placement.Floor
}

// NewOffering returns the offers in the open markets that satisfy may.
func NewOffering(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType,
	may func(*policy.Market) bool) *Offering {
	sales := slices.DeleteFunc(placement.Sales(s, pool, capacity),
		func(o placement.Offer) bool { return !may(&s.Markets[o.Market]) })
	slices.SortStableFunc(sales, func(x, y placement.Offer) int {
		return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.Market, y.Market))
	})
	sales = sales[:min(len(sales), offersMax)]
	return &Offering{s: s, pool: pool, sales: sales, Floor: placement.FloorOf(sales)}
}

// Offers returns the offers, cheapest first.
func (o *Offering) Offers() []placement.Offer {
	if o.made == nil {
		markets := make([]policy.MarketID, len(o.sales))
		for i := range o.sales {
			markets[i] = o.sales[i].Market
		}
		o.made = placement.OffersIn(o.s, o.pool, markets)
	}
	return o.made
}

// Buy packs pods, which must be unbound, onto at most nodesMax new nodes. It reports whether these
// cost at most most and may be bought. If the packing costs more, the purchase contains only its
// cost. If the pods do not fit on that many nodes, or limits or quotas do not allow the nodes, the
// purchase is zero.
func (o *Offering) Buy(m *Moves, pods []policy.Pod, nodesMax int, most policy.Money) (Purchase, bool) {
	offers := o.Offers()
	packing := placement.Pack(m.Space, pods, offers)
	bins, total := packing.Bins, packing.Total
	switch {
	case len(bins) == 0 || len(packing.Unplaced) > 0 || len(bins) > nodesMax:
		return Purchase{}, false
	case total > most:
		return Purchase{Cost: total}, false
	}
	bought, ok := Markets(o.s, m.Headroom, offers, bins, (most-total)/policy.Money(len(bins)))
	if !ok {
		return Purchase{}, false
	}
	p := Purchase{Bought: bought, Quality: packing.Quality(m.Space, pods, offers)}
	for _, markets := range bought { // limits can force markets that are more expensive than those of the packing
		p.Cost += o.s.Markets[markets[0]].Charge()
	}
	return p, p.Cost <= most
}

// Markets returns, for each of bins, the markets in which its node may be bought, cheapest first.
// The provider chooses among them, so each node may cost up to spare more than in its cheapest
// market. It returns false if the headroom is not sufficient for all bins.
func Markets(s *policy.Snapshot, left placement.Headroom, offers []placement.Offer, bins []placement.Bin,
	spare policy.Money) ([][]policy.MarketID, bool) {
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
			nodes[i] = nodes[i][:1] // a bid applies to one class of machine
		}
		left.Take(nodes[i])
	}
	return nodes, true
}
