package billing

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Coverage computes which part of the cost of on-demand nodes commitments pay, and so what one
// more node costs and what one node fewer saves.
//
// Commitments are applied as providers apply them: first those for a zone, then those for a type,
// then those for a family, then all others; ties are broken by name. Each commitment is applied to
// the running nodes that match it, the most expensive first. The order in which nodes were launched
// does not matter.
//
// Amounts are at the on-demand price of the catalog. If a node is charged another price,
// commitments pay the same share of that price.
type Coverage struct {
	markets []policy.Market
	terms   []term

	// order lists the markets that some commitment covers, the most expensive first. place is, by
	// market, one more than its index in order, or 0 if no commitment covers it.
	order []policy.MarketID
	place []int32

	// count is the number of nodes and paid what commitments pay for them per hour, both by index
	// in order. open is what commitments leave unpaid for all nodes per hour. All amounts are at
	// list prices.
	count []int64
	paid  []policy.Money
	open  policy.Money

	unused []int64        // by commitment, in its unit
	left   []policy.Money // scratch space of apply, by index in order
}

// A term is one commitment, with the units of it that a node of each market in order uses.
type term struct {
	index  int
	amount int64
	takes  []int64
}

// NewCoverage returns the coverage of zero nodes by commitments. The tables must be those of one
// snapshot; they are not copied.
func NewCoverage(types []policy.InstanceType, zones []string, markets []policy.Market,
	commitments []policy.Commitment) *Coverage {
	c := &Coverage{markets: markets, unused: make([]int64, len(commitments))}
	first := make([]int, len(commitments))
	for i := range first {
		first[i] = i
	}
	slices.SortFunc(first, func(a, b int) int { return usedBefore(&commitments[a], &commitments[b]) })
	takes := func(i int, m *policy.Market) int64 { return commitments[i].Takes(m, &types[m.Type], zones[m.Zone]) }
	for i := range markets {
		m := &markets[i]
		if m.OnDemand > 0 && slices.ContainsFunc(first, func(k int) bool { return takes(k, m) > 0 }) {
			c.order = append(c.order, m.ID)
		}
	}
	slices.SortFunc(c.order, func(a, b policy.MarketID) int {
		return cmp.Or(cmp.Compare(markets[b].OnDemand, markets[a].OnDemand), cmp.Compare(a, b))
	})
	c.place = make([]int32, len(markets))
	for k, m := range c.order {
		c.place[m] = int32(k + 1)
	}
	for _, k := range first {
		t := term{index: k, amount: commitments[k].Amount}
		for _, m := range c.order {
			t.takes = append(t.takes, takes(k, &markets[m]))
		}
		c.terms = append(c.terms, t)
	}
	n := len(c.order)
	c.count, c.paid, c.left = make([]int64, n), make([]policy.Money, n), make([]policy.Money, n)
	c.update()
	return c
}

// usedBefore compares two commitments by the order in which they are applied.
func usedBefore(c, d *policy.Commitment) int {
	open := func(s string) int {
		if s == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(c.Unit, d.Unit), cmp.Compare(open(c.Zone), open(d.Zone)),
		cmp.Compare(open(c.Type), open(d.Type)),
		cmp.Compare(open(c.Family), open(d.Family)), cmp.Compare(open(c.Region), open(d.Region)), cmp.Compare(c.Name, d.Name))
}

// CoverageOf returns the coverage of the nodes of s by its commitments. Nodes that are launching or
// leaving are included, since all of them are charged.
func CoverageOf(s *policy.Snapshot) *Coverage {
	if len(s.Commitments) == 0 {
		return &Coverage{markets: s.Markets}
	}
	c := NewCoverage(s.Types, s.Zones, s.Markets, s.Commitments)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase != policy.NodeGone && n.Market >= 0 {
			if k := c.at(n.Market); k >= 0 {
				c.count[k]++
			}
		}
	}
	c.update()
	return c
}

// Add adds n nodes of market m; a negative n removes nodes.
func (c *Coverage) Add(m policy.MarketID, n int) {
	if k := c.at(m); k >= 0 && n != 0 {
		c.count[k] += int64(n)
		c.update()
	}
}

// Lapse ends the commitment with index i.
func (c *Coverage) Lapse(i int) {
	for k := range c.terms {
		if c.terms[k].index == i {
			c.terms[k].amount = 0
		}
	}
	c.update()
}

// Marginal returns the cost per hour of one more node of market m: 0 while commitments cover it,
// otherwise what it is charged.
func (c *Coverage) Marginal(m policy.MarketID) policy.Money {
	k := c.at(m)
	if k < 0 {
		return c.markets[m].Charge()
	}
	c.count[k]++
	more := c.apply(nil) - c.open
	c.count[k]--
	return c.part(m, more)
}

// Saving returns what one node fewer of market m saves per hour. It is 0 if commitments pay for the
// node and would cover no other node instead, or if m has no node.
func (c *Coverage) Saving(m policy.MarketID) policy.Money {
	k := c.at(m)
	if k < 0 {
		return c.markets[m].Charge()
	}
	if c.count[k] == 0 {
		return 0
	}
	c.count[k]--
	less := c.open - c.apply(nil)
	c.count[k]++
	return c.part(m, less)
}

// part scales open, the unpaid part of the list price of a node of m, to what the node is charged.
func (c *Coverage) part(m policy.MarketID, open policy.Money) policy.Money {
	x := &c.markets[m]
	open = min(max(open, 0), x.OnDemand)
	if charge := x.Charge(); charge != x.OnDemand {
		return policy.Money(ratioUp(int64(charge), int64(open), int64(x.OnDemand)))
	}
	return open
}

// Covers reports whether some commitment covers nodes of market m, even if that commitment is used
// up.
func (c *Coverage) Covers(m policy.MarketID) bool { return c.at(m) >= 0 }

// Paid returns what commitments pay per hour for all nodes of market m, at its on-demand price.
func (c *Coverage) Paid(m policy.MarketID) policy.Money {
	if k := c.at(m); k >= 0 {
		return c.paid[k]
	}
	return 0
}

// Unused returns the amount of commitment i that covers no node, in the unit of the commitment.
func (c *Coverage) Unused(i int) int64 { return c.unused[i] }

// at returns the index of m in order, or a negative number if no commitment covers m.
func (c *Coverage) at(m policy.MarketID) int {
	if c.place == nil {
		return -1
	}
	return int(c.place[m]) - 1
}

// update applies the commitments to the counted nodes.
func (c *Coverage) update() { c.open = c.apply(c.unused) }

// apply applies the commitments to the counted nodes and returns what is left unpaid of their list
// prices. If unused is not nil, it also sets unused and c.paid.
func (c *Coverage) apply(unused []int64) policy.Money {
	for k, m := range c.order {
		c.left[k] = policy.Money(c.count[k]) * c.markets[m].OnDemand
	}
	for i := range c.terms {
		t := &c.terms[i]
		units := t.amount
		for k, m := range c.order {
			if t.takes[k] == 0 || c.left[k] == 0 || units == 0 {
				continue
			}
			list := int64(c.markets[m].OnDemand)
			used := min(units, ratioUp(int64(c.left[k]), t.takes[k], list))
			// Rounded down, so that no bill is below the part that is left unpaid.
			c.left[k] -= min(c.left[k], policy.Money(ratio(used, list, t.takes[k])))
			units -= used
		}
		if unused != nil {
			unused[t.index] = units
		}
	}
	open := policy.Money(0)
	for k, m := range c.order {
		open += c.left[k]
		if unused != nil {
			c.paid[k] = policy.Money(c.count[k])*c.markets[m].OnDemand - c.left[k]
		}
	}
	return open
}

// ratio returns a·b/d rounded down. The product may exceed 64 bits.
func ratio(a, b, d int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(high, low, uint64(d))
	return int64(q)
}

// ratioUp returns a·b/d rounded up. The product may exceed 64 bits.
func ratioUp(a, b, d int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(high, low, uint64(d))
	if r > 0 {
		q++
	}
	return int64(q)
}
