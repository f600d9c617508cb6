package billing

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// covered returns a snapshot of three on-demand markets and a spot one, with
// nodes in them as counted.
func covered(commitments []policy.Commitment, counts ...int) *policy.Snapshot {
	s := &policy.Snapshot{Now: 1, Zones: []string{"a", "b"}, Commitments: commitments}
	for i, name := range []string{"m5.2xlarge", "m5.large", "m5.xlarge"} {
		s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(i), Name: name, Family: "m5"})
	}
	for i, m := range []policy.Market{
		{Name: "large-a", Type: 1, Zone: 0, OnDemand: 96_000},
		{Name: "large-b", Type: 1, Zone: 1, OnDemand: 96_000},
		{Name: "2xlarge-a", Type: 0, Zone: 0, OnDemand: 384_000},
		{Name: "large-spot", Type: 1, Zone: 0, OnDemand: 96_000, Capacity: policy.Spot, Price: 30_000},
	} {
		m.ID, m.Region, m.Offered = policy.MarketID(i), "r", true
		if m.Capacity == policy.OnDemand {
			m.Price = m.OnDemand
		}
		s.Markets = append(s.Markets, m)
	}
	for m, n := range counts {
		for range n {
			s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(len(s.Nodes)), Name: fmt.Sprint("n", len(s.Nodes)),
				Phase: policy.NodeInitialized, Market: policy.MarketID(m)})
		}
	}
	return s
}

// TestCoverage: what one node more costs and one fewer saves, for each way of
// paying in advance.
func TestCoverage(t *testing.T) {
	ri := func(name, zone string, n int64) policy.Commitment {
		return policy.Commitment{Name: name, Type: "m5.large", Zone: zone, Amount: n}
	}
	flexible := policy.Commitment{Name: "f", Family: "m5", Unit: policy.CoverSizes, Amount: 3 * policy.SizeUnits("m5.large")}
	plan := policy.Commitment{Name: "p", Unit: policy.CoverDollars, Amount: 500_000}
	for _, x := range []struct {
		about            string
		commitments      []policy.Commitment
		counts           []int
		market           policy.MarketID
		marginal, saving policy.Money
	}{
		{"nothing paid for", nil, []int{1}, 0, 96_000, 96_000},
		{"one of two is used", []policy.Commitment{ri("r", "", 2)}, []int{1}, 0, 0, 0},
		{"in any zone", []policy.Commitment{ri("r", "", 2)}, []int{1}, 1, 0, 0},
		{"both are used", []policy.Commitment{ri("r", "", 2)}, []int{1, 1}, 0, 96_000, 0},
		{"a third runs, to which it passes", []policy.Commitment{ri("r", "", 2)}, []int{1, 2}, 0, 96_000, 96_000},
		{"for another zone", []policy.Commitment{ri("r", "b", 2)}, []int{1}, 0, 96_000, 96_000},
		{"the zonal one is used first", []policy.Commitment{ri("r", "", 1), ri("z", "a", 1)}, []int{1}, 1, 0, 0},
		{"never for spot", []policy.Commitment{ri("r", "", 2)}, nil, 3, 30_000, 30_000},
		{"never for another type", []policy.Commitment{ri("r", "", 2)}, []int{0, 0, 1}, 2, 384_000, 384_000},
		{"three large are three quarters of a 2xlarge", []policy.Commitment{flexible}, nil, 2, 96_000, 0},
		{"of which one is used", []policy.Commitment{flexible}, []int{1}, 2, 192_000, 0},
		{"a plan covers dollars", []policy.Commitment{plan}, nil, 2, 0, 0},
		{"116 of the next node's 384", []policy.Commitment{plan}, []int{0, 0, 1}, 2, 268_000, 0},
		{"and all but 116 of the second is saved", []policy.Commitment{plan}, []int{0, 0, 2}, 2, 384_000, 268_000},
		{"instances first, the plan for the rest", []policy.Commitment{plan, ri("r", "", 1)}, []int{6}, 0, 76_000, 0},
	} {
		c := CoverageOf(covered(x.commitments, x.counts...))
		saving := c.Saving(x.market)
		if int(x.market) >= len(x.counts) || x.counts[x.market] == 0 {
			saving = x.saving // there is no node to let go
		}
		if got := c.Marginal(x.market); got != x.marginal || saving != x.saving {
			t.Errorf("%s: one more costs %v and one fewer saves %v, want %v and %v", x.about, got, saving, x.marginal, x.saving)
		}
	}
}

// TestCoverageUnused: what is left of each commitment, the special ones first.
func TestCoverageUnused(t *testing.T) {
	s := covered([]policy.Commitment{
		{Name: "all", Unit: policy.CoverDollars, Amount: 100_000},
		{Name: "any", Type: "m5.large", Amount: 2},
		{Name: "here", Type: "m5.large", Zone: "a", Amount: 1},
	}, 2, 0, 1)
	c := CoverageOf(s)
	for i, want := range []int64{0, 1, 0} {
		if got := c.Unused(i); got != want {
			t.Errorf("%s: %d unused, want %d", s.Commitments[i].Name, got, want)
		}
	}
	if got, want := c.Paid(0), policy.Money(192_000); got != want {
		t.Errorf("commitments pay %v an hour of the large nodes, want %v", got, want)
	}
	if got, want := c.Paid(2), policy.Money(100_000); got != want {
		t.Errorf("commitments pay %v an hour of the 2xlarge node, want %v", got, want)
	}
}

// TestMarginalPrice: where the price now is not that of the catalog, the open
// part of it is charged.
func TestMarginalPrice(t *testing.T) {
	s := covered([]policy.Commitment{{Name: "p", Unit: policy.CoverDollars, Amount: 72_000}})
	s.Markets[0].Price = 192_000 // twice the catalog's
	if got, want := CoverageOf(s).Marginal(0), policy.Money(48_000); got != want {
		t.Errorf("a node of which a quarter is open costs %v, want %v", got, want)
	}
}

// TestCoverageProperties: no node costs less than nothing or more than its price,
// none is more than paid, what one node adds is what it saves when it goes, and
// no more is used than there is.
func TestCoverageProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var commitments []policy.Commitment
		for i := range rapid.IntRange(0, 4).Draw(t, "commitments") {
			c := policy.Commitment{
				Name: fmt.Sprint("c", i), Zone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"),
				Unit:   policy.CoverUnit(rapid.IntRange(0, 2).Draw(t, "unit")),
				Amount: int64(rapid.IntRange(0, 5).Draw(t, "amount")),
			}
			switch c.Unit {
			case policy.CoverNodes:
				c.Type = rapid.SampledFrom([]string{"m5.large", "m5.2xlarge"}).Draw(t, "type")
			case policy.CoverSizes:
				c.Family, c.Zone = "m5", ""
				c.Amount *= 9
			case policy.CoverDollars:
				c.Amount *= 77_777
			}
			commitments = append(commitments, c)
		}
		count := rapid.IntRange(0, 4)
		s := covered(commitments, count.Draw(t, "0"), count.Draw(t, "1"), count.Draw(t, "2"))
		c := CoverageOf(s)
		for m := range s.Markets[:3] {
			id, price := policy.MarketID(m), s.Markets[m].Price
			nodes := 0
			for i := range s.Nodes {
				if s.Nodes[i].Market == id {
					nodes++
				}
			}
			if paid := c.Paid(id); paid < 0 || paid > policy.Money(nodes)*price {
				t.Fatalf("%v an hour is paid of %d nodes at %v", paid, nodes, price)
			}
			more := c.Marginal(id)
			c.Add(id, 1)
			if less := c.Saving(id); less != more || more < 0 || more > price {
				t.Fatalf("a node of %s at %v adds %v and saves %v", s.Markets[m].Name, price, more, less)
			}
			c.Add(id, -1)
			if again := c.Marginal(id); again != more {
				t.Fatalf("a node that came and went has changed %v to %v", more, again)
			}
		}
		for i := range commitments {
			if u := c.Unused(i); u < 0 || u > commitments[i].Amount {
				t.Fatalf("%d of %d is unused", u, commitments[i].Amount)
			}
		}
	})
}
