package eval

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A cluster of 1,000 vCPU-hours at $0.02 on Spot and $0.05 on demand goes from all
// on Spot to half of it: half of 1,000 hours costs $0.03 more, which is $15. Outages
// cost $4, of which jobs that are late $1.
func TestCauses(t *testing.T) {
	before := Spending{Bill: 20, SpotBill: 20, Capacity: 1000, SpotCapacity: 1000}
	after := Spending{Bill: 35, SpotBill: 10, Capacity: 1000, SpotCapacity: 500, OutageCost: 4, JobCost: 1}
	want := []Cause{{CauseSpotShare, 15}, {CauseOutages, 3}, {CauseJobs, 1}, {}, {}, {}}
	for i, got := range Causes(&before, &after) {
		if i < 3 && got.Kind != want[i].Kind || math.Abs(got.Amount-want[i].Amount) > 1e-9 {
			t.Errorf("cause %d is %+v, want %+v", i, got, want[i])
		}
	}
	before = Spending{Bill: 35, SpotBill: 10, Capacity: 1000, SpotCapacity: 500}
	after = Spending{Bill: 84, SpotBill: 20, Capacity: 2000, SpotCapacity: 1000, OutageCost: 2, JobCost: 2}
	// Twice the capacity at a mean of $0.0385 is $38.50, and 750 hours of on-demand
	// at $0.064 for $0.05 are $10.50.
	want = []Cause{{CauseCapacity, 38.5}, {CauseOnDemandPrice, 10.5}, {CauseJobs, 2}}
	for i, got := range Causes(&before, &after)[:3] {
		if got.Kind != want[i].Kind || math.Abs(got.Amount-want[i].Amount) > 1e-9 {
			t.Errorf("cause %d is %+v, want %+v", i, got, want[i])
		}
	}
	before.Rough = true
	if got := Causes(&before, &after); len(got) != 2 || got[0] != (Cause{CauseBill, 49}) || got[1] != (Cause{CauseOutages, 2}) {
		t.Errorf("of a side with a bill alone: %+v", got)
	}
}

// Causes add up to the difference, and turn their signs when the sides are swapped,
// whatever is 0.
func TestCausesAddUp(t *testing.T) {
	amount := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1, 1e4))
	side := rapid.Custom(func(t *rapid.T) Spending {
		s := Spending{SpotBill: amount.Draw(t, "spot"), JobCost: amount.Draw(t, "jobs"), SpotCapacity: amount.Draw(t, "spot capacity")}
		s.Bill, s.OutageCost = s.SpotBill+amount.Draw(t, "on demand"), s.JobCost+amount.Draw(t, "outages")
		s.Capacity = s.SpotCapacity + amount.Draw(t, "capacity")
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := side.Draw(t, "a"), side.Draw(t, "b")
		sum, there := 0.0, map[CauseKind]float64{}
		for _, c := range Causes(&a, &b) {
			sum += c.Amount
			there[c.Kind] = c.Amount
		}
		if math.Abs(sum-(b.Cost()-a.Cost())) > 1e-3 {
			t.Fatalf("they add up to %v, the difference is %v", sum, b.Cost()-a.Cost())
		}
		for _, c := range Causes(&b, &a) {
			if math.Abs(c.Amount+there[c.Kind]) > 1e-3 {
				t.Fatalf("%s is %v there and %v back", c.Kind, there[c.Kind], c.Amount)
			}
		}
	})
}

// TestCompareSpending: before and after are a month's means over the pairs, so a
// change of the bill by $1 in a run of a day is one of $30.42.
func TestCompareSpending(t *testing.T) {
	c := shown()
	r, err := Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	o := &fakeOther{config: &r.Config, change: func(x *OtherRun) {
		if x.Policy == "spot" {
			x.Bill -= 1_000_000
			x.Hash, x.Rough = "ff"+x.Hash[2:], true
		}
	}}
	if err := r.Compare(t.Context(), Against{Other: o}, fake{}.run); err != nil {
		t.Fatal(err)
	}
	days := c.Cases[0].Bound.Duration.Hours() / 24
	for _, x := range r.Comparison.Changes {
		rise, want := x.After.Bill-x.Before.Bill, 0.0
		if x.Policy == "spot" {
			want = 730.0 / 24 / days
		}
		if math.Abs(rise-want) > 1e-9 || len(x.Before.Costs) != x.Pairs || len(x.After.Costs) != x.Pairs ||
			x.Before.Rough != (x.Policy == "spot") {
			t.Errorf("%s: the bill rises by %v a month, want %v; %d and %d costs of %d pairs", x.Policy, rise, want,
				len(x.Before.Costs), len(x.After.Costs), x.Pairs)
		}
		now := r.Spending(r.Group(x.Scenario), slices.Index(r.Config.Policies, x.Policy))
		if len(r.Comparison.Seeds) == len(c.Seeds) && (math.Abs(now.Bill-x.After.Bill) > 1e-9 || now.Rough) {
			t.Errorf("%s: after is %v and the report has %v", x.Policy, x.After.Bill, now.Bill)
		}
		if saved := x.After.SavedPct(); !saved.Known || x.Policy == OnDemand && math.Abs(saved.V) > 1e-9 {
			t.Errorf("%s saves %v of what on-demand costs", x.Policy, saved)
		}
	}
}

// Of one run, what a policy saves over the baseline is the difference of what both spend in a month.
func TestOverBaseline(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "web-week"), DefaultSeeds(1), nil
	r, err := Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	g := &r.Groups[0]
	base := r.Spending(g, slices.Index(r.Config.Policies, r.Config.Baseline))
	for p, name := range r.Config.Policies {
		own, over := r.Spending(g, p), r.OverBaseline(g, p)
		if want := base.Cost() - own.Cost(); over.N != 1 || math.Abs(over.Median-want) > 1e-3 || (want == 0) != (name == r.Config.Baseline) {
			t.Errorf("%s saves %v a month over %s, want %v", name, over.Median, r.Config.Baseline, want)
		}
	}
}
