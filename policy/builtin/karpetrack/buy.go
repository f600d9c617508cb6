package karpetrack

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A purchase is what is bought in place of nodes: for each machine the markets
// in which it may be, cheapest first.
type purchase struct {
	nodes   [][]policy.MarketID
	cost    policy.Money // of the cheapest, per hour
	quality string       // how good the packing is known to be
}

// A marketplace is what a pool may buy by choice, after what was planned so far.
type marketplace struct {
	s        *policy.Snapshot
	pool     *policy.Pool
	pods     *occupancy
	headroom placement.Headroom

	// These are made when they are first asked for, by capacity type: what is sold, cheapest
	// first, the same with the labels of its nodes, and what none of it is below.
	sales, offers [2][]placement.Offer
	floor         [2]placement.Floor
	sold, made    [2]bool
}

// salesOf returns what can be bought of a capacity type, cheapest first, without labels.
func (k *marketplace) salesOf(c policy.CapacityType) []placement.Offer {
	if !k.sold[c] {
		k.sold[c] = true
		k.sales[c] = replan.Sales(k.s, k.pool.ID, c, k.trusted)
		k.floor[c] = placement.FloorOf(k.sales[c])
	}
	return k.sales[c]
}

// floorOf returns what nothing that can be bought of a capacity type is below.
func (k *marketplace) floorOf(c policy.CapacityType) placement.Floor {
	k.salesOf(c)
	return k.floor[c]
}

// offersOf returns what can be bought of a capacity type, cheapest first.
func (k *marketplace) offersOf(c policy.CapacityType) []placement.Offer {
	if !k.made[c] {
		k.made[c] = true
		k.offers[c] = replan.Labelled(k.s, k.pool.ID, k.salesOf(c))
	}
	return k.offers[c]
}

// trusted reports whether a node is bought in m by choice: on demand, or where the
// forecast is good enough and none of our nodes was taken within a day: what takes
// one may take more. In an auction a loss is answered by a higher bid.
func (k *marketplace) trusted(m *policy.Market) bool {
	lost := m.Experience.Reclaimed
	return m.Capacity != policy.Spot || replan.Trusted(m) && (m.Auction() || lost == 0 || k.s.Now.Sub(lost) >= shaken)
}

// purchase packs pods, which are bound nowhere, onto at most nodesMax new
// machines of one capacity type, and reports whether they cost no more than most.
func (k *marketplace) purchase(c policy.CapacityType, pods []policy.Pod, nodesMax int, most policy.Money) (purchase, bool) {
	if len(k.salesOf(c)) == 0 || k.floor[c].Cost(k.pods.requested(pods))*(1-1e-9) > most.Float() {
		return purchase{}, false
	}
	offers := k.offersOf(c)
	packing := placement.Pack(k.pods.space(), pods, offers)
	bins := packing.Bins
	if len(bins) == 0 || len(packing.Unplaced) > 0 || len(bins) > nodesMax || packing.Total > most {
		return purchase{}, false
	}
	p := purchase{quality: packing.Quality(k.pods.space(), pods, offers)}
	var ok bool
	if p.nodes, ok = replan.Markets(k.s, k.headroom, offers, bins, (most-packing.Total)/policy.Money(len(bins))); !ok {
		return purchase{}, false
	}
	p.cost = k.dearest(p.nodes)
	return p, p.cost <= most
}

// dearest returns what the first markets of nodes cost together, which limits
// may have made more than the packing's.
func (k *marketplace) dearest(nodes [][]policy.MarketID) policy.Money {
	total := policy.Money(0)
	for _, markets := range nodes {
		total += k.s.Markets[markets[0]].Charge()
	}
	return total
}
