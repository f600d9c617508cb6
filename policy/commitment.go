package policy

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// A Commitment is capacity on demand that was paid for in advance: a reserved
// instance, or a savings plan. Nodes on demand that it covers cost nothing more,
// and it is paid for whether it covers any or not. So no decision saves its fee,
// and one that leaves it unused wastes it.
type Commitment struct {
	// Name is unique among the commitments of a snapshot.
	Name string

	// Region, Zone, Family and Type say which nodes on demand it covers. An
	// empty one matches all.
	Region, Zone, Family, Type string

	// Unit is what Amount counts; Amount is the most that it covers at once. It
	// is what this cluster may count on, less than all of it where an account
	// has other uses for it. Unused is the part that covers no node now.
	Unit           CoverUnit
	Amount, Unused int64

	// Fee is what the commitment costs per hour, used or not; NoPrice where that
	// is not known. It is for reports: no price that is compared has it in it.
	Fee Money
}

// CommitmentMax is the greatest amount of a commitment, a million dollars an
// hour: beyond it lies a slip of the pen, and sums would leave their range.
const CommitmentMax = int64(1_000_000 * Dollar)

// A CoverUnit is what the amount of a commitment counts.
type CoverUnit uint8

// The units of commitments.
const (
	// CoverNodes counts nodes: a reserved instance of one type.
	CoverNodes CoverUnit = iota

	// CoverSizes counts the provider's sizes within a family, sixteen to a
	// "large": reserved instances that are flexible in size. See SizeUnits.
	CoverSizes

	// CoverDollars counts micro-dollars an hour at the price on demand: a savings
	// plan. One that commits to spend 7 dollars an hour at a discount of 30 %
	// covers nodes that cost 10.
	CoverDollars
)

// String returns the word used in output.
func (u CoverUnit) String() string { return [...]string{"nodes", "sizes", "dollars"}[u] }

// SizeUnits returns how large an instance type of AWS is within its family,
// sixteen for a "large" (four times the factor that AWS publishes); 0 for a name
// without a size.
func SizeUnits(instanceType string) int64 {
	const large, xlarge = 16, 32
	_, size, _ := strings.Cut(instanceType, ".")
	size = strings.TrimPrefix(size, "metal-")
	switch size {
	case "nano":
		return large / 16
	case "micro":
		return large / 8
	case "small":
		return large / 4
	case "medium":
		return large / 2
	case "large":
		return large
	case "xlarge":
		return xlarge
	}
	n, ok := strings.CutSuffix(size, "xlarge")
	if !ok {
		n, ok = strings.CutSuffix(size, "xl")
	}
	times, err := strconv.ParseInt(n, 10, 16)
	if !ok || err != nil || times <= 0 {
		return 0
	}
	return times * xlarge
}

// Takes returns how much of c one node of market m takes, of type t in the zone
// of that name; 0 where c does not cover it.
func (c *Commitment) Takes(m *Market, t *InstanceType, zone string) int64 {
	if m.Capacity != OnDemand || c.Region != "" && c.Region != m.Region || c.Zone != "" && c.Zone != zone ||
		c.Family != "" && c.Family != t.Family || c.Type != "" && c.Type != t.Name {
		return 0
	}
	switch c.Unit {
	case CoverSizes:
		return SizeUnits(t.Name)
	case CoverDollars:
		return int64(m.OnDemand)
	}
	return 1
}

// Scope says in words which nodes c covers, as in "10 nodes of m5.large in zone
// use1-az1".
func (c *Commitment) Scope() string {
	var s string
	switch c.Unit {
	case CoverNodes:
		s = strconv.FormatInt(c.Amount, 10) + " node"
		if c.Amount != 1 {
			s += "s"
		}
	case CoverSizes:
		s = "the size of " + strconv.FormatFloat(float64(c.Amount)/16, 'f', -1, 64) + " large nodes"
	case CoverDollars:
		s = Money(c.Amount).Short() + " an hour on demand"
	}
	for _, x := range [...]struct{ word, value string }{{" of ", c.Type}, {" of family ", c.Family}, {" in zone ", c.Zone}, {" in region ", c.Region}} {
		if x.value != "" {
			s += x.word + x.value
		}
	}
	return s
}

// A Coverage says what commitments pay for of a number of nodes on demand, and
// so what one node more costs and what one fewer saves.
//
// Commitments are used as providers do: first those for a zone, then those for a
// type, for a family, and for all, ties by name; each on whatever runs and
// matches, in the order of price, the dearest first. So it does not matter which
// node came first, and what is used follows from the numbers alone.
//
// Amounts are at the price on demand of the catalog. Where a node costs another
// price now, the part that is left open is the same.
type Coverage struct {
	markets []Market
	terms   []term

	// order holds the markets that some commitment covers, place where each market
	// stands in it, one more than its index, or 0.
	order []MarketID
	place []int32

	// count is the number of nodes by place in order, paid what commitments pay
	// of them per hour, and open what they leave of all, both at list prices.
	count []int64
	paid  []Money
	open  Money

	unused []int64 // by commitment
	left   []Money // scratch of apply, by place in order
}

// A term is one commitment, with what a node of each market in order takes of
// it.
type term struct {
	index  int
	amount int64
	takes  []int64
}

// NewCoverage returns the coverage of no nodes by commitments. The tables are
// those of a snapshot and are shared.
func NewCoverage(types []InstanceType, zones []string, markets []Market, commitments []Commitment) *Coverage {
	c := &Coverage{markets: markets, unused: make([]int64, len(commitments))}
	first := make([]int, len(commitments))
	for i := range first {
		first[i] = i
	}
	slices.SortFunc(first, func(a, b int) int { return commitments[a].before(&commitments[b]) })
	takes := func(i int, m *Market) int64 { return commitments[i].Takes(m, &types[m.Type], zones[m.Zone]) }
	for i := range markets {
		m := &markets[i]
		if m.OnDemand > 0 && slices.ContainsFunc(first, func(k int) bool { return takes(k, m) > 0 }) {
			c.order = append(c.order, m.ID)
		}
	}
	slices.SortFunc(c.order, func(a, b MarketID) int {
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
	c.count, c.paid, c.left = make([]int64, n), make([]Money, n), make([]Money, n)
	c.settle()
	return c
}

// before orders commitments as they are used.
func (c *Commitment) before(d *Commitment) int {
	open := func(s string) int {
		if s == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(c.Unit, d.Unit), cmp.Compare(open(c.Zone), open(d.Zone)), cmp.Compare(open(c.Type), open(d.Type)),
		cmp.Compare(open(c.Family), open(d.Family)), cmp.Compare(open(c.Region), open(d.Region)), cmp.Compare(c.Name, d.Name))
}

// Coverage returns what the commitments of s pay for of its nodes, those on
// their way and those on their way out included: all of them are charged.
func (s *Snapshot) Coverage() *Coverage {
	if len(s.Commitments) == 0 {
		return &Coverage{markets: s.Markets}
	}
	c := NewCoverage(s.Types, s.Zones, s.Markets, s.Commitments)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase != NodeGone && n.Market >= 0 {
			if k := c.at(n.Market); k >= 0 {
				c.count[k]++
			}
		}
	}
	c.settle()
	return c
}

// Marginal returns what one more node of market m costs per hour now: nothing
// while commitments cover it, else what it is charged. Where many markets are
// asked, Coverage is to be made once.
func (s *Snapshot) Marginal(m MarketID) Money { return s.Coverage().Marginal(m) }

// Add counts n more nodes of market m, fewer if n is negative.
func (c *Coverage) Add(m MarketID, n int) {
	if k := c.at(m); k >= 0 && n != 0 {
		c.count[k] += int64(n)
		c.settle()
	}
}

// Marginal returns what one more node of market m costs per hour now.
func (c *Coverage) Marginal(m MarketID) Money {
	k := c.at(m)
	if k < 0 {
		return c.markets[m].Charge()
	}
	c.count[k]++
	more := c.apply(nil) - c.open
	c.count[k]--
	return c.part(m, more)
}

// Saving returns what one node fewer of market m saves per hour now: nothing
// where commitments pay for it and cover no other node instead. It is 0 where m
// has no node that counts.
func (c *Coverage) Saving(m MarketID) Money {
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

// part returns what of the charge of a node of m is left open where open is left
// of its list price.
func (c *Coverage) part(m MarketID, open Money) Money {
	x := &c.markets[m]
	open = min(max(open, 0), x.OnDemand)
	if charge := x.Charge(); charge != x.OnDemand {
		return Money(ratioUp(int64(charge), int64(open), int64(x.OnDemand)))
	}
	return open
}

// Covers reports whether some commitment covers nodes of market m, be it used up
// or not.
func (c *Coverage) Covers(m MarketID) bool { return c.at(m) >= 0 }

// Paid returns what commitments pay per hour of all nodes of market m, at its
// price on demand.
func (c *Coverage) Paid(m MarketID) Money {
	if k := c.at(m); k >= 0 {
		return c.paid[k]
	}
	return 0
}

// Unused returns what of commitment i covers no node.
func (c *Coverage) Unused(i int) int64 { return c.unused[i] }

// at returns the place of m in order, negative where no commitment covers it.
func (c *Coverage) at(m MarketID) int {
	if c.place == nil {
		return -1
	}
	return int(c.place[m]) - 1
}

func (c *Coverage) settle() { c.open = c.apply(c.unused) }

// apply uses the commitments on the nodes that are counted, and returns what is
// left of the list prices of these. With unused it also keeps who paid what.
func (c *Coverage) apply(unused []int64) Money {
	for k, m := range c.order {
		c.left[k] = Money(c.count[k]) * c.markets[m].OnDemand
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
			// Rounded down, so that nobody pays less than the part that is open.
			c.left[k] -= min(c.left[k], Money(ratio(used, list, t.takes[k])))
			units -= used
		}
		if unused != nil {
			unused[t.index] = units
		}
	}
	open := Money(0)
	for k, m := range c.order {
		open += c.left[k]
		if unused != nil {
			c.paid[k] = Money(c.count[k])*c.markets[m].OnDemand - c.left[k]
		}
	}
	return open
}

// ratio returns a·b/d rounded down, without overflow in between.
func ratio(a, b, d int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(high, low, uint64(d))
	return int64(q)
}

// ratioUp returns a·b/d rounded up.
func ratioUp(a, b, d int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(high, low, uint64(d))
	if r > 0 {
		q++
	}
	return int64(q)
}
