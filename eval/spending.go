package eval

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/sim"
)

// month is a twelfth of a year, as in the price calculators of cloud providers.
const month = 730 * time.Hour

// A Spending is the monthly spending of a policy, in a month of 730 hours, as the mean over runs.
type Spending struct {
	// All in dollars. SpotBill is a part of Bill, JobCost a part of OutageCost.
	Bill, SpotBill, OutageCost, JobCost float64

	OutageMinutes float64

	// Capacity and SpotCapacity are in vCPU-hours, or in GPU-hours if every pool has GPUs.
	Capacity, SpotCapacity float64

	// OnDemandBill and OnDemandCost are those of on-demand in the same runs, in dollars.
	// OnDemandCost includes the cost of outages.
	OnDemandBill, OnDemandCost float64

	// Costs contains Bill + OutageCost of every run, in the order of the runs.
	Costs []float64

	// Rough reports whether SpotBill, JobCost, Capacity and SpotCapacity are unknown, because an
	// older program executed the runs.
	Rough bool
}

// Cost returns bill and outage cost in dollars.
func (s *Spending) Cost() float64 { return s.Bill + s.OutageCost }

// SpotShare returns the fraction of capacity on Spot, in [0, 1].
func (s *Spending) SpotShare() float64 { return ratio(s.SpotCapacity, s.Capacity) }

// SavedPct returns the net savings in percent of the on-demand bill, unknown if that bill is 0.
func (s *Spending) SavedPct() Value {
	if s.OnDemandBill <= 0 {
		return Value{}
	}
	return Value{(s.OnDemandCost - s.Cost()) / s.OnDemandBill * 100, true}
}

// Spending returns the spending of policy p, an index of Config.Policies, over the runs of g for
// which an on-demand run exists.
func (r *Report) Spending(g *Group, p int) Spending {
	var out Spending
	n := len(r.Config.Policies)
	for _, i := range r.RunsOf(g, p) {
		onDemand := &r.Runs[i-i%n+slices.Index(r.Config.Policies, OnDemand)]
		if r.Runs[i].Err == nil && onDemand.Err == nil {
			x := spendingOf(r.Runs[i].Result, onDemand.Result, r.Runs[i].Bound.Duration)
			out.add(&x)
		}
	}
	out.average()
	return out
}

// OverBaseline summarizes the savings of policy p in g in excess of the baseline's, after the cost
// of outages, in dollars per month. Runs are compared in the same weather.
func (r *Report) OverBaseline(g *Group, p int) Summary {
	base := slices.Index(r.Config.Policies, r.Config.Baseline)
	windows := make([][]float64, len(g.Cases))
	for w, k := range g.Cases {
		months := MonthHours / r.Config.Cases[k].Bound.Duration.Hours()
		for _, i := range r.indices(k, p) {
			saved, other := r.Runs[i].Value("net_savings_usd"), r.Runs[i-p+base].Value("net_savings_usd")
			if saved.Known && other.Known {
				windows[w] = append(windows[w], (saved.V-other.V)*months)
			}
		}
	}
	return Summarize(windows, r.Config.errorRate())
}

// spendingOf returns the spending of r in a window of the given length, scaled to a month.
func spendingOf(r, onDemand *sim.Result, window time.Duration) Spending {
	s := Spending{
		Bill: r.Bill.Float(), SpotBill: r.SpotBill.Float(), OutageCost: r.OutageCost.Float(), JobCost: r.JobCost.Float(),
		OutageMinutes: float64(r.OutageMinutes), Capacity: r.CapacityHours, SpotCapacity: r.CapacityHours * r.SpotShare,
		OnDemandBill: onDemand.Bill.Float(), OnDemandCost: (onDemand.Bill + onDemand.OutageCost).Float(),
	}
	s.scale(float64(month) / float64(window))
	return s
}

// amounts returns pointers to all additive fields.
func (s *Spending) amounts() [9]*float64 {
	return [9]*float64{&s.Bill, &s.SpotBill, &s.OutageCost, &s.JobCost, &s.OutageMinutes, &s.Capacity, &s.SpotCapacity,
		&s.OnDemandBill, &s.OnDemandCost}
}

func (s *Spending) scale(by float64) {
	for _, x := range s.amounts() {
		*x *= by
	}
}

// add adds the spending of one run.
func (s *Spending) add(run *Spending) {
	from := run.amounts()
	for i, x := range s.amounts() {
		*x += *from[i]
	}
	s.Costs = append(s.Costs, run.Cost())
	s.Rough = s.Rough || run.Rough
}

// average converts sums over runs to means.
func (s *Spending) average() {
	if n := len(s.Costs); n > 0 {
		s.scale(1 / float64(n))
	}
}

// A CauseKind is a kind of cause of a change of spending.
type CauseKind string

// The kinds of causes. The effect of a change of one factor of the bill, such as a price, is
// weighted with the means of the other factors (Bennet's indicator).
const (
	CauseSpotShare     CauseKind = "spot share"      // a different fraction of capacity is on Spot
	CauseCapacity      CauseKind = "capacity"        // the amount of capacity differs
	CauseSpotPrice     CauseKind = "spot price"      // the price per hour of Spot capacity differs
	CauseOnDemandPrice CauseKind = "on-demand price" // the price per hour of on-demand capacity differs
	CauseOutages       CauseKind = "outages"         // missing pods and penalties of incidents
	CauseJobs          CauseKind = "jobs"            // work that is not done in time
	CauseBill          CauseKind = "bill"            // one of the first four, if it is unknown which
)

// A Cause is a part of the increase (positive) or decrease of spending, in dollars per month.
type Cause struct {
	Kind   CauseKind
	Amount float64
}

// Causes splits the difference of two spendings by cause, the largest part first. The parts sum to
// the difference. Exchanging before and after changes the sign of each part.
func Causes(before, after *Spending) []Cause {
	jobs := after.JobCost - before.JobCost
	out := []Cause{
		{CauseOutages, after.OutageCost - before.OutageCost - jobs},
		{CauseJobs, jobs},
	}
	if before.Rough || after.Rough {
		out = []Cause{{CauseOutages, after.OutageCost - before.OutageCost}, {CauseBill, after.Bill - before.Bill}}
	} else {
		out = append(out, billCauses(before, after)...)
	}
	slices.SortStableFunc(out, func(a, b Cause) int { return cmp.Compare(math.Abs(b.Amount), math.Abs(a.Amount)) })
	return out
}

// billCauses splits the difference of two bills, each of which is capacity × (Spot share × Spot
// price + on-demand share × on-demand price). The part that neither the share nor the prices
// explain is attributed to capacity.
func billCauses(before, after *Spending) []Cause {
	mean := func(a, b float64) float64 { return (a + b) / 2 }
	share, shareAfter := ratios(before.SpotCapacity, before.Capacity, after.SpotCapacity, after.Capacity)
	spot, spotAfter := ratios(before.SpotBill, before.SpotCapacity, after.SpotBill, after.SpotCapacity)
	fixed, fixedAfter := ratios(before.Bill-before.SpotBill, before.Capacity-before.SpotCapacity,
		after.Bill-after.SpotBill, after.Capacity-after.SpotCapacity)
	capacity, part := mean(before.Capacity, after.Capacity), mean(share, shareAfter)
	out := []Cause{
		{CauseSpotShare, capacity * (shareAfter - share) * (mean(spot, spotAfter) - mean(fixed, fixedAfter))},
		{CauseSpotPrice, capacity * part * (spotAfter - spot)},
		{CauseOnDemandPrice, capacity * (1 - part) * (fixedAfter - fixed)},
	}
	rest := after.Bill - before.Bill
	for _, x := range out {
		rest -= x.Amount
	}
	return append(out, Cause{CauseCapacity, rest})
}

// ratios returns amount/of before and after. If one of them has no denominator, it equals the
// other.
func ratios(amount, of, amountAfter, ofAfter float64) (before, after float64) {
	before, after = ratio(amount, of), ratio(amountAfter, ofAfter)
	switch {
	case of <= 0:
		before = after
	case ofAfter <= 0:
		after = before
	}
	return before, after
}

// ratio returns a/b, or 0 if b is not positive.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
