package placement

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// refusalMemory is the time for which a market that refused a launch is not tried again.
const refusalMemory = 30 * time.Minute

// MarketsMax is the maximum number of markets in one launch. Further markets would only be more
// expensive.
const MarketsMax = 15

// NodeLabels returns the labels of a node launched for pool in market m, ascending by key: the
// labels of its type, those of the pool, and with precedence over both, those that Kubernetes and
// the provisioner set on every node. The host name is omitted, because it differs for every node.
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

// withLabels inserts the labels of more whose keys are not in labels. Both lists must be ascending.
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

// Offers returns the offers for pool with the given capacity type at Snapshot.Now, in the order of
// the pool's markets. Markets that refused a launch within the last half hour are omitted. The
// price is the marginal cost of one node including fees, after commitments.
func Offers(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []Offer {
	return offersUnder(s, billing.CoverageOf(s), pool, capacity)
}

// Sales returns the same offers as Offers, without labels and taints. It is for callers that need
// only prices and sizes: building the labels costs far more than the rest of an offer.
func Sales(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []Offer {
	cover, markets := billing.CoverageOf(s), OpenMarkets(s, pool, capacity)
	offers := make([]Offer, 0, len(markets))
	for _, m := range markets {
		offers = append(offers, saleOf(s, cover, pool, m))
	}
	return offers
}

// OffersIn returns the offers in the given markets, in their order. It is cheaper than Offers if
// only a few markets are needed. It does not check whether the markets are open.
func OffersIn(s *policy.Snapshot, pool policy.PoolID, markets []policy.MarketID) []Offer {
	cover := billing.CoverageOf(s)
	offers := make([]Offer, 0, len(markets))
	for _, m := range markets {
		offers = append(offers, OfferOf(s, cover, pool, m))
	}
	return offers
}

// Tags caches the labels of offers to a pool between steps: building them costs more than the rest
// of an offer, and they rarely change. The zero value is ready to use. It must not be used
// concurrently.
type Tags struct{ made []tagged } // by market

// A tagged contains labels and the values from which they were built.
type tagged struct {
	capacity                       policy.CapacityType
	pool, name, arch, region, zone string
	ofPool, ofType, labels         []policy.Label
}

// OffersIn is like the function [OffersIn], except that it uses cached labels.
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

// Labels is like [NodeLabels], except that it uses cached labels. Label lists are never modified.
// The cache keeps the source lists alive, so that no other list can be allocated at the same
// address.
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

// OpenMarkets returns the markets of the offers that Offers returns.
func OpenMarkets(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []policy.MarketID {
	return slices.DeleteFunc(MarketsOf(s, pool, capacity), func(m policy.MarketID) bool { return !Open(s, m) })
}

// offersUnder returns the offers at the prices that result from cover.
func offersUnder(s *policy.Snapshot, cover *billing.Coverage, pool policy.PoolID,
	capacity policy.CapacityType) []Offer {
	var offers []Offer
	for _, m := range OpenMarkets(s, pool, capacity) {
		offers = append(offers, OfferOf(s, cover, pool, m))
	}
	return offers
}

// MarketsOf returns the markets of pool with the given capacity type.
func MarketsOf(s *policy.Snapshot, pool policy.PoolID, capacity policy.CapacityType) []policy.MarketID {
	var markets []policy.MarketID
	for _, m := range s.Pools[pool].Markets {
		if s.Markets[m].Capacity == capacity {
			markets = append(markets, m)
		}
	}
	return markets
}

// Open reports whether m is offered, has not refused a launch recently and, if it is an auction,
// does not cost more than on demand.
func Open(s *policy.Snapshot, m policy.MarketID) bool {
	x := &s.Markets[m]
	refused := x.Experience.Refused
	return x.Offered && (refused == 0 || s.Now.Sub(refused) >= refusalMemory) && !x.Outpriced()
}

// OfferOf returns the offer for pool in market m at the price that results from cover.
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

// BidIn returns the bid for a node in m if m takes bids, and 0 otherwise. A node is charged the
// market price whatever the bid, so the bid is based on the on-demand price of the node.
func BidIn(m *policy.Market) policy.Money {
	if !m.Auction() {
		return 0
	}
	return policy.Bid(max(m.OnDemand, m.Charge()))
}

// Bid returns the highest bid for a node of pool in any of its auctions, or 0 without auctions. A
// steer passes it to the provisioner of the pool.
func Bid(s *policy.Snapshot, pool policy.PoolID) policy.Money {
	bid := policy.Money(0)
	for _, m := range s.Pools[pool].Markets {
		bid = max(bid, BidIn(&s.Markets[m]))
	}
	return bid
}

// Named returns the markets that one launch names, given markets with the cheapest first. They have
// one capacity type and are at most MarketsMax. If the first market is an auction, it is the only
// one, because a bid applies to one class of machine. If commitments pay for a node in the first
// market, others are named only if they cost no more after commitments, since the provider chooses
// by list price.
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
