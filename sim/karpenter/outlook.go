package karpenter

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
)

// An outlook finds out cheaply that nodes cannot go. It rules out nothing that a simulation would let go.
type outlook struct {
	nodes      *nodeOrder
	candidates *candidateList

	slots []slots
	count []int32
	met   []policy.TemplateID
	room  int64 // the most CPU free on a node that may take pods of candidates

	// spot and others are what new nodes may be: of NodePools whose new nodes may always be
	// spot, and of the others.
	spot, others sales

	version uint64 // of the offers that they are made of; 0 for none
	offered uint64 // a digest of these
	turn    uint32
}

// sales are what new nodes may be.
type sales struct {
	list   []sale
	least  policy.Money // the lowest price
	sorted bool         // by price
}

// A sale is the price of a new node, and the room that DaemonSet pods leave there.
type sale struct {
	price policy.Money
	room  policy.Resources
}

func (s *sales) add(x sale) {
	if len(s.list) == 0 || x.price < s.least {
		s.least = x.price
	}
	s.list = append(s.list, x)
}

// cheaper reports whether some cost less than price.
func (s *sales) cheaper(price policy.Money) bool { return len(s.list) > 0 && s.least < price }

// hold reports whether one that costs less than price holds need.
func (s *sales) hold(need *policy.Resources, price policy.Money) bool {
	if !s.cheaper(price) {
		return false
	}
	if !s.sorted {
		slices.SortFunc(s.list, func(a, b sale) int { return cmp.Compare(a.price, b.price) })
		s.sorted = true
	}
	for i := range s.list {
		switch x := &s.list[i]; {
		case x.price >= price:
			return false
		case need.Within(x.room):
			return true
		}
	}
	return false
}

// slots is how many pods of a template the nodes that take pods of candidates have room
// for, were they the only ones; no more than slotsMax. It is known for one turn.
type slots struct {
	n    int32
	turn uint32
}

const slotsMax = 1 << 12

// read takes the offers down, where they are others than the last time.
func (ol *outlook) read(c *Cluster, offers []placement.Offer, version uint64) {
	if version != 0 && version == ol.version {
		return
	}
	ol.spot, ol.others, ol.version = sales{list: ol.spot.list[:0]}, sales{list: ol.others.list[:0]}, version
	ol.offered = uint64(len(offers))
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
		list.add(sale{x.Price, x.Allocatable.Minus(c.Space.Daemons(x.Labels, x.Taints))})
		ol.offered = portable.Mix(portable.Mix(ol.offered, uint64(x.Market)), uint64(x.Price))
	}
}

// begin readies the outlook for searches in a state of the cluster.
func (ol *outlook) begin(c *Cluster, d *Disruptor) {
	ol.nodes, ol.candidates = &d.nodes, &d.candidates
	ol.read(c, d.simulator.batch.Offers, d.simulator.batch.OffersVersion)
	ol.room = 0
	for at := range ol.nodes.order[:ol.nodes.initialized] {
		if !ol.nodes.shut[at] {
			ol.room = max(ol.room, ol.nodes.cpu[at])
		}
	}
	for len(ol.slots) < len(c.Templates) {
		ol.slots, ol.count = append(ol.slots, slots{}), append(ol.count, 0)
	}
	ol.turn++
}

// digestOf returns the digest of all that a search reads besides what is marked as a
// change.
func (d *Disruptor) digestOf() uint64 {
	digest := portable.Mix(portable.Mix(uint64(len(d.candidates.used)), d.outlook.offered), d.candidates.digest)
	for _, left := range d.budgets.allowance {
		digest = portable.Mix(digest, uint64(left))
	}
	for at, shut := range d.nodes.shut {
		if shut {
			digest = portable.Mix(digest, uint64(d.nodes.order[at]))
		}
	}
	return digest
}

// hopeless reports that some pods of the candidates find no room on other nodes, and
// that no node that costs less than the candidates holds these. Spot nodes are not
// replaced by one of a pool that sells nothing else (compute).
func (ol *outlook) hopeless(c *Cluster, candidates []Candidate) bool {
	var need policy.Resources
	var price policy.Money
	full, fromSpot := true, !c.SpotToSpot
	for i := range candidates {
		x := &ol.candidates.cache[candidates[i].Node] // read when the candidates were listed
		need, full = need.Plus(x.need), full && x.cpu > ol.room
		if x.starting {
			return false // it may go to nodes under consolidateAfter, whose room is not counted
		}
		price += candidates[i].Price
		fromSpot = fromSpot && c.Markets[candidates[i].market].Capacity == policy.Spot
	}
	cheaper, overfull := ol.cheaper(price, fromSpot), need.Pods > 0
	if !full {
		need, overfull = ol.shortage(c, candidates)
	}
	if need.Pods == 0 || !cheaper {
		return overfull && !cheaper
	}
	return !ol.others.hold(&need, price) && (fromSpot || !ol.spot.hold(&need, price))
}

// shortage returns what the pods of the candidates ask for that find no room beside the
// others of their template, and whether there is no room for all that are as large.
func (ol *outlook) shortage(c *Cluster, candidates []Candidate) (need policy.Resources, overfull bool) {
	ol.met = ol.met[:0]
	for i := range candidates {
		for _, m := range ol.candidates.cache[candidates[i].Node].displaced {
			if ol.count[m.template] == 0 {
				ol.met = append(ol.met, m.template)
			}
			ol.count[m.template] += m.n
		}
	}
	for _, t := range ol.met {
		room := ol.slotsOf(c, t)
		if room == slotsMax {
			continue
		}
		for i := 0; i < len(candidates) && room > 0; i++ {
			room -= ol.slotsAt(c, t, ol.nodes.place[candidates[i].Node])
		}
		r := &c.Templates[t].Requests
		if left := ol.count[t] - room; left > 0 {
			need = need.Plus(r.Scale(int64(left)))
		}
		for _, u := range ol.met {
			if x := &c.Templates[u].Requests; u != t && x.CPU >= r.CPU && x.Memory >= r.Memory {
				room -= ol.count[u]
			}
		}
		overfull = overfull || ol.count[t] > room
	}
	for _, t := range ol.met {
		ol.count[t] = 0
	}
	return need, overfull
}

// spotPool reports whether every claim in a pool allows spot: the pool may be spot, and it
// offers nothing else, or pods are not choosy about capacity types (capacityTypes).
func spotPool(c *Cluster, offers []placement.Offer, pool policy.PoolID, choosy bool) bool {
	if spot, _ := c.View.CapacityTypes(pool); !spot {
		return false
	}
	return !slices.ContainsFunc(offers, func(o placement.Offer) bool {
		capacity := c.Markets[o.Market].Capacity
		return o.Pool == pool && capacity != policy.Spot && (capacity == policy.Reserved || choosy)
	})
}

// choosesCapacity reports whether pods of t, or where they run, may tell capacity types apart.
func choosesCapacity(t policy.Template) bool {
	names := func(r policy.Requirement) bool { return r.Key == labelCapacityType }
	apart := func(x policy.PodTerm) bool { return x.TopologyKey == labelCapacityType }
	return slices.ContainsFunc(t.NodeSelector, func(l policy.Label) bool { return l.Key == labelCapacityType }) ||
		slices.ContainsFunc(t.Affinity, func(x policy.NodeTerm) bool { return slices.ContainsFunc(x.Labels, names) }) ||
		slices.ContainsFunc(t.Preferred, func(x policy.PreferredNodeTerm) bool { return slices.ContainsFunc(x.Term.Labels, names) }) ||
		slices.ContainsFunc(t.PodAffinity, apart) || slices.ContainsFunc(t.PodAntiAffinity, apart) ||
		slices.ContainsFunc(t.Spread, func(x policy.Spread) bool { return x.TopologyKey == labelCapacityType })
}

// slotsOf returns for how many pods of t there is room on nodes that take pods of
// candidates, on the candidates' own too, and slotsMax for that many or more.
func (ol *outlook) slotsOf(c *Cluster, t policy.TemplateID) int32 {
	s := &ol.slots[t]
	if s.turn == ol.turn {
		return s.n
	}
	*s = slots{turn: ol.turn}
	if c.Templates[t].Requests.CPU > ol.room {
		return 0
	}
	for at := int32(0); int(at) < ol.nodes.initialized && s.n < slotsMax; at++ {
		s.n += ol.slotsAt(c, t, at)
	}
	s.n = min(s.n, slotsMax)
	return s.n
}

// slotsAt returns how many more pods of t the node of this place in the order has the
// CPU and the memory for: none if it takes no pods of candidates.
func (ol *outlook) slotsAt(c *Cluster, t policy.TemplateID, at int32) int32 {
	r := &c.Templates[t].Requests
	if at < 0 || int(at) >= ol.nodes.initialized || ol.nodes.shut[at] || ol.nodes.cpu[at] < r.CPU {
		return 0
	}
	most := int64(slotsMax)
	if r.CPU > 0 {
		most = min(most, ol.nodes.cpu[at]/r.CPU)
	}
	if r.Memory > 0 {
		most = min(most, c.Space.Free(ol.nodes.order[at]).Memory/r.Memory)
	}
	return int32(max(most, 0))
}

// cheaper reports whether a new node may cost less than price; with fromSpot not one of a
// pool that sells nothing but spot.
func (ol *outlook) cheaper(price policy.Money, fromSpot bool) bool {
	return ol.others.cheaper(price) || !fromSpot && ol.spot.cheaper(price)
}

// A fruitless search found nothing, and was not kept from it by a budget.
type fruitless struct{ changes, digest uint64 }

// same reports whether a search would find nothing again: nothing was marked as
// changed since, and what it reads besides is as it was.
func (f fruitless) same(d *Disruptor, s *ConsolidationState) bool {
	return f.changes == s.changes && f.digest == d.digest
}
