package placement

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// refusalMemory is how long a market that refused us is not asked again.
const refusalMemory = 30 * time.Minute

// MarketsMax is the most markets that one launch names. More of them would only add more expensive
// ones.
const MarketsMax = 15

// NodeLabels returns the labels that a node bought for pool in market m will
// carry, ascending by key: those of its type, of the pool, and above both what
// Kubernetes and its provisioner say of every node. Only the host name is left
// out, which no two nodes share.
func NodeLabels(types []policy.InstanceType, zones []string, pool *policy.Pool, m *policy.Market) []policy.Label {
	t := &types[m.Type]
	labels := make([]policy.Label, 0, 7+len(t.Labels)+len(pool.Labels))
	labels = append(labels,
		policy.Label{Key: "karpenter.sh/capacity-type", Value: m.Capacity.String()},
		policy.Label{Key: "karpenter.sh/nodepool", Value: pool.Name},
		policy.Label{Key: "kubernetes.io/arch", Value: t.Arch},
		policy.Label{Key: "kubernetes.io/os", Value: "linux"},
		policy.Label{Key: "node.kubernetes.io/instance-type", Value: t.Name},
		policy.Label{Key: "topology.kubernetes.io/region", Value: m.Region},
		policy.Label{Key: "topology.kubernetes.io/zone", Value: zones[m.Zone]},
	)
	return withLabels(withLabels(labels, pool.Labels), t.Labels)
}

// withLabels inserts more into labels, both ascending, where the key is not there.
func withLabels(labels, more []policy.Label) []policy.Label {
	i := 0
	for _, l := range more {
		for i < len(labels) && labels[i].Key < l.Key {
			i++
		}
		if i == len(labels) || labels[i].Key != l.Key {
			labels = slices.Insert(labels, i, l)
		}
	}
	return labels
}

// Offers returns what can be bought for pool with the given capacity type now,
// in the order of the pool's markets. A market that refused us within the last
// half hour is left out. The price is what one more node costs with its fees, beyond
// what was paid for in advance.
func Offers(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []Offer {
	return offersUnder(s, billing.CoverageOf(s), pool, capacity)
}

// Sales returns what Offers does without labels and taints, for those who ask what
// is sold at what price and not whether pods may run there: to make labels costs
// far more than all the rest of an offer.
func Sales(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []Offer {
	cover, markets := billing.CoverageOf(s), OpenMarkets(s, pool, capacity)
	offers := make([]Offer, 0, len(markets))
	for _, m := range markets {
		offers = append(offers, saleOf(s, cover, pool, m))
	}
	return offers
}

// OffersIn returns the offers of Offers in the given markets alone, in their order.
// It saves to make out the others where a few of many are wanted.
func OffersIn(s *policy.Snapshot, pool policy.PoolID, markets []policy.MarketID) []Offer {
	cover := billing.CoverageOf(s)
	offers := make([]Offer, 0, len(markets))
	for _, m := range markets {
		offers = append(offers, OfferOf(s, cover, pool, m))
	}
	return offers
}

// Tags keeps the labels of what is offered to a pool from step to step: to make them
// costs more than all the rest of an offer, and they hardly ever change. The zero
// value is ready; it serves one goroutine at a time.
type Tags struct{ made []tagged } // by market

// A tagged is what labels were made of, and the labels.
type tagged struct {
	capacity                       policy.CapacityType
	pool, name, arch, region, zone string
	ofPool, ofType, labels         []policy.Label
}

// OffersIn returns what the function of this name does.
func (x *Tags) OffersIn(s *policy.Snapshot, pool policy.PoolID, markets []policy.MarketID) []Offer {
	cover := billing.CoverageOf(s)
	offers := make([]Offer, 0, len(markets))
	for _, m := range markets {
		o := saleOf(s, cover, pool, m)
		o.Labels, o.Taints = x.Labels(s, &s.Pools[pool], m), s.Pools[pool].Taints
		offers = append(offers, o)
	}
	return offers
}

// Labels returns what NodeLabels does. Lists are never written, and the source lists are kept alive
// here, so that no other list is allocated at the address of one of them.
func (x *Tags) Labels(s *policy.Snapshot, pool *policy.Pool, id policy.MarketID) []policy.Label {
	if len(x.made) != len(s.Markets) {
		x.made = make([]tagged, len(s.Markets))
	}
	k, m := &x.made[id], &s.Markets[id]
	t := &s.Types[m.Type]
	if k.labels == nil || k.capacity != m.Capacity || k.pool != pool.Name || k.name != t.Name || k.arch != t.Arch ||
		k.region != m.Region || k.zone != s.Zones[m.Zone] || !slices.Equal(k.ofPool, pool.Labels) ||
		!slices.Equal(k.ofType, t.Labels) {
		*k = tagged{
			capacity: m.Capacity, pool: pool.Name, name: t.Name, arch: t.Arch, region: m.Region, zone: s.Zones[m.Zone],
			ofPool: pool.Labels, ofType: t.Labels, labels: NodeLabels(s.Types, s.Zones, pool, m),
		}
	}
	return k.labels
}

// OpenMarkets returns the markets that Offers has offers of.
func OpenMarkets(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []policy.MarketID {
	return slices.DeleteFunc(MarketsOf(s, pool, capacity), func(m policy.MarketID) bool { return !Open(s, m) })
}

// offersUnder returns the offers at the prices that cover leaves.
func offersUnder(s *policy.Snapshot, cover *billing.Coverage, pool policy.PoolID,
	capacity policy.CapacityType) []Offer {
	var offers []Offer
	for _, m := range OpenMarkets(s, pool, capacity) {
		offers = append(offers, OfferOf(s, cover, pool, m))
	}
	return offers
}

// MarketsOf returns the markets of pool that have the given capacity type.
func MarketsOf(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []policy.MarketID {
	var markets []policy.MarketID
	for _, m := range s.Pools[pool].Markets {
		if s.Markets[m].Capacity == capacity {
			markets = append(markets, m)
		}
	}
	return markets
}

// Open reports whether m is offered, has not refused us lately and, if it is an
// auction, charges no more than the node is worth.
func Open(s *policy.Snapshot, m policy.MarketID) bool {
	x := &s.Markets[m]
	refused := x.Experience.Refused
	return x.Offered && (refused == 0 || s.Now.Sub(refused) >= refusalMemory) && !x.Outpriced()
}

// OfferOf returns the offer for pool in market m at the price that cover leaves.
func OfferOf(s *policy.Snapshot, cover *billing.Coverage, pool policy.PoolID, m policy.MarketID) Offer {
	o := saleOf(s, cover, pool, m)
	o.Labels, o.Taints = NodeLabels(s.Types, s.Zones, &s.Pools[pool], &s.Markets[m]), s.Pools[pool].Taints
	return o
}

// saleOf returns the offer without its labels and taints.
func saleOf(s *policy.Snapshot, cover *billing.Coverage, pool policy.PoolID, m policy.MarketID) Offer {
	t := &s.Types[s.Markets[m].Type]
	return Offer{
		Pool: pool, Market: m, Price: offered(cover, s, pool, m),
		Allocatable: t.Allocatable, VolumesMax: t.VolumesMax, GPUResource: t.GPUResource,
	}
}

// BidIn returns the most to pay in m where it takes bids, else 0. A node is
// charged the market's price whatever was bid, so the bid is the on-demand price of
// the node.
func BidIn(m *policy.Market) policy.Money {
	if !m.Auction() {
		return 0
	}
	return policy.Bid(max(m.OnDemand, m.Charge()))
}

// Bid returns the highest bid for a node of pool in one of its auctions. A steer
// carries it for whoever buys for the pool. It is 0 without auctions.
func Bid(s *policy.Snapshot, pool policy.PoolID) policy.Money {
	bid := policy.Money(0)
	for _, m := range s.Pools[pool].Markets {
		bid = max(bid, BidIn(&s.Markets[m]))
	}
	return bid
}

// Named returns what of markets, cheapest first, one launch names: of one capacity type, at most
// MarketsMax, or the first alone if it is an auction, where a bid is for one
// class of machine. Where the first was paid for in advance, others are named only
// if they cost no more beyond that: the provider chooses by list prices.
func Named(s *policy.Snapshot, cover *billing.Coverage, markets []policy.MarketID) []policy.MarketID {
	if len(markets) == 0 {
		return nil
	}
	first := &s.Markets[markets[0]]
	if first.Auction() {
		return markets[:1]
	}
	if least := cover.Marginal(first.ID); least < first.Charge() {
		for i, m := range markets {
			if cover.Marginal(m) > least {
				markets = markets[:i]
				break
			}
		}
	}
	if at := slices.IndexFunc(markets,
		func(m policy.MarketID) bool { return s.Markets[m].Capacity != first.Capacity }); at >= 0 {
		markets = markets[:at]
	}
	return markets[:min(len(markets), MarketsMax)]
}
