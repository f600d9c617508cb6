package karpenter

import (
	"slices"
	"time"

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
	free  int64 // the CPU free on all of these

	// spot and others are what new nodes may be: of NodePools whose new nodes may always be
	// spot, and of the others.
	spot, others sales

	// goods are what is offered, by position in the list of offers, and rooms what DaemonSet
	// pods leave of a new node, by kind.
	goods []good
	rooms []policy.Resources

	version uint64 // of the offers that they are made of; 0 for none
	offered uint64 // a digest of these
	turn    uint32
}

// A good is what an offer sells, whatever it costs: a new node of a kind.
type good struct {
	// labels and taints point to the first element of these lists, and labelsN and taintsN are
	// their lengths: lists are never written.
	labels           *policy.Label
	taints           *policy.Taint
	labelsN, taintsN int

	allocatable policy.Resources
	kind        int32
}

// sales are what new nodes may be.
type sales struct {
	prices []policy.Money // the lowest one by kind, noPrice for none
	least  policy.Money   // of these
}

// begin forgets the prices of the given number of kinds.
func (s *sales) begin(kinds int) {
	s.prices, s.least = s.prices[:0], noPrice
	for range kinds {
		s.prices = append(s.prices, noPrice)
	}
}

func (s *sales) add(kind int32, price policy.Money) {
	s.prices[kind], s.least = min(s.prices[kind], price), min(s.least, price)
}

// cheaper reports whether some cost less than price.
func (s *sales) cheaper(price policy.Money) bool { return s.least < price }

// hold reports whether a new node that costs less than price holds need.
func (ol *outlook) hold(s *sales, need *policy.Resources, price policy.Money) bool {
	if !s.cheaper(price) {
		return false
	}
	for kind, x := range s.prices {
		if x < price && holds(&ol.rooms[kind], need) {
			return true
		}
	}
	return false
}

// holds reports whether a new node with this room may hold need: a resource that is not requested
// may be overdrawn by DaemonSet pods.
func holds(room, need *policy.Resources) bool {
	return need.Pods <= room.Pods &&
		(need.CPU == 0 || need.CPU <= room.CPU) &&
		(need.Memory == 0 || need.Memory <= room.Memory) &&
		(need.Storage == 0 || need.Storage <= room.Storage) &&
		(need.GPU == 0 || need.GPU <= room.GPU)
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
	ol.version, ol.offered = version, uint64(len(offers))
	for i := range offers {
		ol.readGood(c, i, &offers[i])
	}
	ol.spot.begin(len(ol.rooms))
	ol.others.begin(len(ol.rooms))
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
		list.add(ol.goods[i].kind, x.Price)
		ol.offered = portable.Mix(portable.Mix(ol.offered, uint64(x.Market)), uint64(x.Price))
	}
}

// readGood reads what the offer at a position sells, where that is not what it was: as a rule
// prices alone change.
func (ol *outlook) readGood(c *Cluster, at int, x *placement.Offer) {
	now := good{allocatable: x.Allocatable, labelsN: len(x.Labels), taintsN: len(x.Taints)}
	if len(x.Labels) > 0 {
		now.labels = &x.Labels[0]
	}
	if len(x.Taints) > 0 {
		now.taints = &x.Taints[0]
	}
	if at == len(ol.goods) {
		ol.goods = append(ol.goods, good{kind: -1})
	}
	g := &ol.goods[at]
	if now.kind = g.kind; now == *g {
		return
	}
	room := x.Allocatable.Minus(c.Space.Daemons(x.Labels, x.Taints))
	if now.kind = int32(slices.Index(ol.rooms, room)); now.kind < 0 {
		now.kind, ol.rooms = int32(len(ol.rooms)), append(ol.rooms, room)
	}
	*g = now
}

// begin readies the outlook for searches in a state of the cluster.
func (ol *outlook) begin(c *Cluster, d *Disruptor) {
	ol.nodes, ol.candidates = &d.nodes, &d.candidates
	ol.read(c, d.simulator.batch.Offers, d.simulator.batch.OffersVersion)
	ol.room, ol.free = 0, 0
	for at := range ol.nodes.order[:ol.nodes.initialized] {
		if cpu := ol.freeAt(int32(at)); cpu > 0 {
			ol.room, ol.free = max(ol.room, cpu), ol.free+cpu
		}
	}
	for len(ol.slots) < len(c.Templates) {
		ol.slots, ol.count = append(ol.slots, slots{}), append(ol.count, 0)
	}
	ol.turn++
}

// digestOf returns the digest of everything that a search reads except what is marked as a change.
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
// replaced by one that may be spot (compute).
func (ol *outlook) hopeless(c *Cluster, candidates []Candidate) bool {
	var need policy.Resources
	var price policy.Money
	full, fromSpot, free := true, !c.SpotToSpot, ol.free
	for i := range candidates {
		x := &ol.candidates.cache[candidates[i].Node] // read when the candidates were listed
		need, full = need.Plus(x.need), full && x.cpu > ol.room
		if x.starting {
			return false // it may go to nodes under consolidateAfter, whose room is not counted
		}
		free -= ol.freeAt(ol.nodes.place[candidates[i].Node])
		price += candidates[i].Price
		fromSpot = fromSpot && c.Markets[candidates[i].market].Capacity == policy.Spot
	}
	if short := (policy.Resources{CPU: need.CPU - free}); short.CPU > 0 && !ol.replaces(&short, price, fromSpot) {
		return true
	}
	cheaper, overfull := ol.cheaper(price, fromSpot), need.Pods > 0
	if !full {
		need, overfull = ol.shortage(c, candidates)
	}
	if need.Pods == 0 || !cheaper {
		return overfull && !cheaper
	}
	return !ol.replaces(&need, price, fromSpot)
}

// replaces reports whether a new node that costs less than price holds need; with fromSpot
// not one that may be spot.
func (ol *outlook) replaces(need *policy.Resources, price policy.Money, fromSpot bool) bool {
	return ol.hold(&ol.others, need, price) || !fromSpot && ol.hold(&ol.spot, need, price)
}

// freeAt returns the CPU free for pods of candidates on the node of this place in the order,
// 0 where it takes none.
func (ol *outlook) freeAt(at int32) int64 {
	if at < 0 || int(at) >= ol.nodes.initialized || ol.nodes.shut[at] {
		return 0
	}
	return max(ol.nodes.cpu[at], 0)
}

// shortage returns the requests of the candidates' pods for which there is no room, given the other
// pods of their template, and whether there is no room for all pods that are as large.
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
		slices.ContainsFunc(t.Preferred, func(x policy.PreferredNodeTerm) bool {
			return slices.ContainsFunc(x.Term.Labels,
				names)
		}) ||
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

// cheaper reports whether a new node may cost less than price; with fromSpot not one that
// may be spot.
func (ol *outlook) cheaper(price policy.Money, fromSpot bool) bool {
	return ol.others.cheaper(price) || !fromSpot && ol.spot.cheaper(price)
}

// A fruitless search found nothing, and was not kept from it by a budget.
type fruitless struct {
	changes, digest uint64
	took            time.Duration
}

// same reports whether a search would find nothing again: no change was marked since, and
// everything else that it reads is unchanged.
func (f fruitless) same(d *Disruptor, s *ConsolidationState) bool {
	return f.changes == s.changes && f.digest == d.digest
}
