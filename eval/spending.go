package eval

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/sim"
)

// month is a twelfth of a year, as the clouds' calculators have it.
const month = 730 * time.Hour

// A Spending is what a policy spends in a month of 730 hours, the mean over runs.
type Spending struct {
	// Bill, of which SpotBill, and OutageCost, of which JobCost, are in dollars.
	Bill, SpotBill, OutageCost, JobCost float64

	OutageMinutes float64

	// Capacity and SpotCapacity are in vCPU-hours, in GPU-hours where every pool
	// has GPUs.
	Capacity, SpotCapacity float64

	// OnDemandBill and OnDemandCost, which has the cost of outages as well, are
	// those of on-demand in the same runs, in dollars.
	OnDemandBill, OnDemandCost float64

	// Costs has Bill + OutageCost of every run, in the order of the runs.
	Costs []float64

	// Rough says that SpotBill, JobCost, Capacity and SpotCapacity are not known,
	// since an older program did the runs.
	Rough bool
}

// Cost returns bill and outage cost in dollars.
func (s *Spending) Cost() float64 { return s.Bill + s.OutageCost }

// SpotShare returns the spot part of the capacity, in [0, 1].
func (s *Spending) SpotShare() float64 { return ratio(s.SpotCapacity, s.Capacity) }

// SavedPct returns the net savings in percent of the on-demand bill, unknown
// where nothing was billed.
func (s *Spending) SavedPct() Value {
	if s.OnDemandBill <= 0 {
		return Value{}
	}
	return Value{(s.OnDemandCost - s.Cost()) / s.OnDemandBill * 100, true}
}

// Spending returns what policy p, a place in Config.Policies, spends in g over
// the runs that are there under it and under on-demand.
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

// OverBaseline summarizes what policy p saves in g more than the baseline, outages deducted, in
// dollars a month: run by run under the same weather.
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

// spendingOf returns what r spends, which ran for so long.
func spendingOf(r, onDemand *sim.Result, window time.Duration) Spending {
	s := Spending{
		Bill: r.Bill.Float(), SpotBill: r.SpotBill.Float(), OutageCost: r.OutageCost.Float(), JobCost: r.JobCost.Float(),
		OutageMinutes: float64(r.OutageMinutes), Capacity: r.CapacityHours, SpotCapacity: r.CapacityHours * r.SpotShare,
		OnDemandBill: onDemand.Bill.Float(), OnDemandCost: (onDemand.Bill + onDemand.OutageCost).Float(),
	}
	s.scale(float64(month) / float64(window))
	return s
}

// amounts are all that can be summed up.
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

// average turns the sums over runs into means.
func (s *Spending) average() {
	if n := len(s.Costs); n > 0 {
		s.scale(1 / float64(n))
	}
}

// A CauseKind is a kind of reason for which more or less is spent.
type CauseKind string

// The kinds of causes. A change of one factor of the bill, such as a price, is
// weighted with the means of the others (Bennet's indicator).
const (
	CauseSpotShare     CauseKind = "spot share"      // another part of the capacity is spot
	CauseCapacity      CauseKind = "capacity"        // more or less of it is held
	CauseSpotPrice     CauseKind = "spot price"      // an hour of Spot capacity has another price
	CauseOnDemandPrice CauseKind = "on-demand price" // likewise on demand
	CauseOutages       CauseKind = "outages"         // missing pods and penalties of incidents
	CauseJobs          CauseKind = "jobs"            // work not done in time
	CauseBill          CauseKind = "bill"            // one of the first four; which is not known
)

// A Cause is a part of what is spent more (above 0) or less, in dollars a month.
type Cause struct {
	Kind   CauseKind
	Amount float64
}

// Causes splits the difference of the costs of two spendings, largest part
// first. The parts add up to the difference, and from after to before each is the
// same with the other sign.
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

// billCauses splits the difference of two bills, each capacity × (share of spot ×
// its price + share of on-demand × its price). What is not of the share and the
// prices is of the capacity.
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

// ratios returns amount/of before and after. Where there is nothing to divide by
// it is that of the other.
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

// ratio returns a/b, 0 where there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
