package karpenter

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
)

// An outlook tells cheaply that nodes cannot go. It rules out nothing that a
// simulation would let go.
type outlook struct {
	room int64 // the most CPU free on a node that may take pods of candidates

	// spot and others are what new nodes may be: of NodePools that sell nothing but spot,
	// and of the others.
	spot, others sales

	version uint64 // of the offers that they are made of; 0 for none
	digest  uint64 // of these
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
func (o *outlook) read(c *Cluster, offers []placement.Offer, version uint64) {
	if version != 0 && version == o.version {
		return
	}
	*o = outlook{spot: sales{list: o.spot.list[:0]}, others: sales{list: o.others.list[:0]}, version: version}
	o.digest = uint64(len(offers))
	list := &o.others
	for i := range offers {
		x := &offers[i]
		if i == 0 || x.Pool != offers[i-1].Pool {
			list = &o.others
			if spotPool(c, offers, x.Pool) {
				list = &o.spot
			}
		}
		list.add(sale{x.Price, x.Allocatable.Minus(c.Space.Daemons(x.Labels, x.Taints))})
		o.digest = portable.Mix(portable.Mix(o.digest, uint64(x.Market)), uint64(x.Price))
	}
}

// lookOut fills the outlook, and the digest of all that a search reads besides what
// is marked as a change.
func (d *Disruptor) lookOut(c *Cluster) {
	o := &d.outlook
	o.read(c, d.batch.Offers, d.batch.OffersVersion)
	o.room = 0
	for at := range d.order[:d.initialized] {
		if !d.shut[at] {
			o.room = max(o.room, d.cpu[at])
		}
	}
	for len(d.slots) < len(c.Templates) {
		d.slots, d.count = append(d.slots, slots{}), append(d.count, 0)
	}
	d.turn++
	digest := portable.Mix(uint64(len(d.used)), o.digest)
	for i := range d.used {
		x := &d.used[i]
		digest = portable.Mix(portable.Mix(digest, uint64(x.Node)), portable.Mix(uint64(x.Price), math.Float64bits(x.Cost)))
	}
	d.allowance = append(d.allowance[:0], d.budgets(c, SingleNode)...) // that of several nodes, too
	for _, left := range d.allowance {
		digest = portable.Mix(digest, uint64(left))
	}
	for at, shut := range d.shut {
		if shut {
			digest = portable.Mix(digest, uint64(d.order[at]))
		}
	}
	d.digest = digest
}

// hopeless reports that some pods of the candidates find no room on other nodes, and
// that no node that costs less than the candidates holds these. Spot nodes are not
// replaced by one of a pool that sells nothing else (compute).
func (d *Disruptor) hopeless(c *Cluster, candidates []Candidate) bool {
	o := &d.outlook
	var need policy.Resources
	var price policy.Money
	full, fromSpot := true, !c.SpotToSpot
	for i := range candidates {
		x := d.about(c, candidates[i].Node)
		need, full = need.Plus(x.need), full && x.cpu > o.room
		if x.starting {
			return false // it may go to nodes under consolidateAfter, whose room is not counted
		}
		price += candidates[i].Price
		fromSpot = fromSpot && c.spot(candidates[i].Node)
	}
	cheaper, crowded := o.cheaper(price, fromSpot), need.Pods > 0
	if !full {
		need, crowded = d.shortage(c, candidates)
	}
	if need.Pods == 0 || !cheaper {
		return crowded && !cheaper
	}
	return !o.others.hold(&need, price) && (fromSpot || !o.spot.hold(&need, price))
}

// shortage returns what the pods of the candidates ask for that find no room beside the
// others of their template, and whether there is no room for all that are as large.
func (d *Disruptor) shortage(c *Cluster, candidates []Candidate) (need policy.Resources, crowded bool) {
	d.met = d.met[:0]
	for i := range candidates {
		for _, m := range d.about(c, candidates[i].Node).movers {
			if d.count[m.template] == 0 {
				d.met = append(d.met, m.template)
			}
			d.count[m.template] += m.n
		}
	}
	for _, t := range d.met {
		room := d.slotsOf(c, t)
		if room == slotsMax {
			continue
		}
		for i := 0; i < len(candidates) && room > 0; i++ {
			room -= d.slotsAt(c, t, d.place[candidates[i].Node])
		}
		r := &c.Templates[t].Requests
		if left := d.count[t] - room; left > 0 {
			need = need.Plus(r.Scale(int64(left)))
		}
		for _, u := range d.met {
			if x := &c.Templates[u].Requests; u != t && x.CPU >= r.CPU && x.Memory >= r.Memory {
				room -= d.count[u]
			}
		}
		crowded = crowded || d.count[t] > room
	}
	for _, t := range d.met {
		d.count[t] = 0
	}
	return need, crowded
}

// spotPool reports whether a pool offers nothing but spot: a claim in it allows spot.
func spotPool(c *Cluster, offers []placement.Offer, pool policy.PoolID) bool {
	if spot, _ := c.View.CapacityTypes(pool); !spot {
		return false
	}
	return !slices.ContainsFunc(offers, func(o placement.Offer) bool {
		return o.Pool == pool && c.Markets[o.Market].Capacity != policy.Spot
	})
}

// slotsOf returns for how many pods of t there is room on nodes that take pods of
// candidates, on the candidates' own too, and slotsMax for that many or more.
func (d *Disruptor) slotsOf(c *Cluster, t policy.TemplateID) int32 {
	s := &d.slots[t]
	if s.turn == d.turn {
		return s.n
	}
	*s = slots{turn: d.turn}
	if c.Templates[t].Requests.CPU > d.outlook.room {
		return 0
	}
	for at := int32(0); int(at) < d.initialized && s.n < slotsMax; at++ {
		s.n += d.slotsAt(c, t, at)
	}
	s.n = min(s.n, slotsMax)
	return s.n
}

// slotsAt returns how many more pods of t the node of this place in the order has the
// CPU and the memory for: none if it takes no pods of candidates.
func (d *Disruptor) slotsAt(c *Cluster, t policy.TemplateID, at int32) int32 {
	r := &c.Templates[t].Requests
	if at < 0 || int(at) >= d.initialized || d.shut[at] || d.cpu[at] < r.CPU {
		return 0
	}
	most := int64(slotsMax)
	if r.CPU > 0 {
		most = min(most, d.cpu[at]/r.CPU)
	}
	if r.Memory > 0 {
		most = min(most, c.Space.Free(d.order[at]).Memory/r.Memory)
	}
	return int32(max(most, 0))
}

// cheaper reports whether a new node may cost less than price; with fromSpot not one of a
// pool that sells nothing but spot.
func (o *outlook) cheaper(price policy.Money, fromSpot bool) bool {
	return o.others.cheaper(price) || !fromSpot && o.spot.cheaper(price)
}

// A fruitless search found nothing, and was not kept from it by a budget.
type fruitless struct{ changes, digest uint64 }

// same reports whether a search would find nothing again: nothing was marked as
// changed since, and what it reads besides is as it was.
func (f fruitless) same(d *Disruptor, s *ConsolidationState) bool {
	return f.changes == s.changes && f.digest == d.digest
}
