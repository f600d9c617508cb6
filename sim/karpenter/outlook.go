package karpenter

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
)

// An outlook determines with little work that nodes cannot be removed. It never excludes nodes
// whose removal a simulation would allow.
type outlook struct {
	nodes      *nodeOrder
	candidates *candidateList

	free int64 // total free CPU of the nodes that accept pods of candidates, in milli-CPU

	// spot and others are the possible new nodes: spot those of NodePools whose new nodes may
	// always be Spot, others all other ones.
	spot, others sales

	version uint64 // version of the offers that spot and others were computed from; 0 for none
	offered uint64 // digest of these offers
}

// sales are the possible new nodes: the lowest price for each size.
type sales struct {
	of    []sale
	least policy.Money // lowest price, or noPrice if there are no nodes
}

// A sale is a possible new node. cpu, in milli-CPU, includes the requests of DaemonSet pods.
type sale struct {
	cpu   int64
	price policy.Money
}

func (s *sales) add(cpu int64, price policy.Money) {
	s.least = min(s.least, price)
	if at := slices.IndexFunc(s.of, func(x sale) bool { return x.cpu == cpu }); at >= 0 {
		s.of[at].price = min(s.of[at].price, price)
		return
	}
	s.of = append(s.of, sale{cpu, price})
}

// cheaper reports whether a node costs less than price.
func (s *sales) cheaper(price policy.Money) bool { return s.least < price }

// hold reports whether a node that costs less than price has the given CPU for pods.
func (s *sales) hold(cpu int64, price policy.Money) bool {
	return s.cheaper(price) && slices.ContainsFunc(s.of, func(x sale) bool { return x.price < price && cpu <= x.cpu })
}

// read reads the offers, unless their version is unchanged.
func (ol *outlook) read(c *Cluster, offers []placement.Offer, version uint64) {
	if version != 0 && version == ol.version {
		return
	}
	ol.version, ol.offered = version, uint64(len(offers))
	ol.spot, ol.others = sales{ol.spot.of[:0], noPrice}, sales{ol.others.of[:0], noPrice}
	choosy := slices.ContainsFunc(c.Templates, choosesCapacity)
	list := &ol.others
	for i := range offers {
		x := &offers[i]
		if i == 0 || x.Pool != offers[i-1].Pool {
			list = &ol.others
			if spotPool(c, offers, x.Pool, choosy) {
				list = &ol.spot
			}
		}
		list.add(x.Allocatable.CPU, x.Price)
		ol.offered = portable.Mix(portable.Mix(ol.offered, uint64(x.Market)), uint64(x.Price))
	}
}

// begin prepares the outlook for searches in a state of the cluster.
func (ol *outlook) begin(c *Cluster, d *Disruptor) {
	ol.nodes, ol.candidates = &d.nodes, &d.candidates
	ol.read(c, d.simulator.batch.Offers, d.simulator.batch.OffersVersion)
	ol.free = 0
	for at := range ol.nodes.order[:ol.nodes.initialized] {
		ol.free += ol.freeAt(int32(at))
	}
}

// digestOf returns the digest of everything that a search reads except what is marked as a change.
func (d *Disruptor) digestOf() uint64 {
	digest := portable.Mix(portable.Mix(uint64(len(d.candidates.used)), d.outlook.offered), d.candidates.digest)
	for _, left := range d.disruptionBudgets.allowance {
		digest = portable.Mix(digest, uint64(left))
	}
	for at, shut := range d.nodes.shut {
		if shut {
			digest = portable.Mix(digest, uint64(d.nodes.order[at]))
		}
	}
	return digest
}

// hopeless reports whether the candidates cannot be removed for lack of CPU: their pods request
// more than other nodes have free, and no new node that costs less than the candidates has the
// rest. Spot nodes are not replaced by a node that may be Spot; see compute.
func (ol *outlook) hopeless(c *Cluster, candidates []Candidate) bool {
	var price policy.Money
	short, fromSpot := -ol.free, !c.SpotToSpot
	for i := range candidates {
		x := &ol.candidates.cache[candidates[i].Node] // read when the candidates were listed
		if x.starting {
			return false // the pod may be placed on nodes under consolidateAfter, whose free CPU is not counted
		}
		short += x.cpu + ol.freeAt(ol.nodes.place[candidates[i].Node])
		price += candidates[i].Price
		fromSpot = fromSpot && c.Markets[candidates[i].market].Capacity == policy.Spot
	}
	return short > 0 && !ol.others.hold(short, price) && (fromSpot || !ol.spot.hold(short, price))
}

// freeAt returns the free CPU, in milli-CPU, of the node at a position of the order. It returns 0
// if the node does not accept pods of candidates.
func (ol *outlook) freeAt(at int32) int64 {
	if at < 0 || int(at) >= ol.nodes.initialized || ol.nodes.shut[at] {
		return 0
	}
	return max(ol.nodes.cpu[at], 0)
}

// spotPool reports whether every claim in a pool allows Spot: the pool allows Spot, and either it
// offers nothing else or pods do not choose capacity types (capacityTypes).
func spotPool(c *Cluster, offers []placement.Offer, pool policy.PoolID, choosy bool) bool {
	if spot, _ := c.View.CapacityTypes(pool); !spot {
		return false
	}
	return !slices.ContainsFunc(offers, func(o placement.Offer) bool {
		capacity := c.Markets[o.Market].Capacity
		return o.Pool == pool && capacity != policy.Spot && (capacity == policy.Reserved || choosy)
	})
}

// choosesCapacity reports whether the placement of pods of t may depend on capacity types.
func choosesCapacity(t policy.Template) bool {
	names := func(r policy.Requirement) bool { return r.Key == labelCapacityType }
	apart := func(x policy.PodTerm) bool { return x.TopologyKey == labelCapacityType }
	return slices.ContainsFunc(t.NodeSelector, func(l policy.Label) bool { return l.Key == labelCapacityType }) ||
		slices.ContainsFunc(t.Affinity, func(x policy.NodeTerm) bool { return slices.ContainsFunc(x.Labels, names) }) ||
		slices.ContainsFunc(t.Preferred, func(x policy.PreferredNodeTerm) bool {
			return slices.ContainsFunc(x.Term.Labels,
				names)
		}) ||
		slices.ContainsFunc(t.PodAffinity, apart) || slices.ContainsFunc(t.PodAntiAffinity, apart) ||
		slices.ContainsFunc(t.Spread, func(x policy.Spread) bool { return x.TopologyKey == labelCapacityType })
}

// cheaper reports whether a new node may cost less than price. If fromSpot is true, nodes that may
// be Spot do not count.
func (ol *outlook) cheaper(price policy.Money, fromSpot bool) bool {
	return ol.others.cheaper(price) || !fromSpot && ol.spot.cheaper(price)
}

// A fruitless is a search that found nothing, although no disruption budget excluded candidates.
type fruitless struct {
	changes, digest uint64
	took            time.Duration
}

// same reports whether a search would find nothing again: no change was marked since, and
// everything else that it reads is unchanged.
func (f fruitless) same(d *Disruptor, s *ConsolidationState) bool {
	return f.changes == s.changes && f.digest == d.digest
}
