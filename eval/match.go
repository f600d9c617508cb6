package eval

import (
	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim"
)

// A match is one run with those that it is measured against, of the same
// case and seed. onDemand and baseline are nil when their run is missing.
type match struct {
	run, onDemand, baseline *sim.Result

	// savings and baseSavings are the net savings of run and baseline. They are valid only if the
	// results from which they are computed are.
	savings, baseSavings policy.Money

	// oracle, slotsOracle and onDemandOracle are the bounds of the case and seed.
	oracle, slotsOracle, onDemandOracle policy.Money

	discount1y, discount3y float64

	// today is what the cluster costs as it is for as long as the window; 0 where that is
	// not known.
	today float64
}

// measure returns the values of all metrics of m, in their order.
func (m match) measure() []Value {
	if m.onDemand != nil {
		m.savings = Savings(m.run, m.onDemand)
		if m.baseline != nil {
			m.baseSavings = Savings(m.baseline, m.onDemand)
		}
	}
	values := make([]Value, len(metrics))
	for i := range metrics {
		if v, ok := metrics[i].value(&m); ok {
			values[i] = Value{v, true}
		}
	}
	return values
}

// Savings returns what r saves against the run of on-demand in the same case and seed,
// outages deducted.
func Savings(r, onDemand *sim.Result) policy.Money { return cost(onDemand) - cost(r) }

// cost is what a policy is to make small.
func cost(r *sim.Result) policy.Money { return r.Bill + r.OutageCost }

// committed returns the net savings against on-demand's nodes under a
// commitment that saves the share discount of their price.
func (m *match) committed(discount float64) policy.Money {
	if m.onDemand == nil {
		return 0
	}
	return billing.Committed(m.onDemand.Bill-m.onDemand.Fees.Total(), discount) + m.onDemand.Fees.Total() +
		m.onDemand.OutageCost - cost(m.run)
}

// percentOfBill returns amount in percent of the on-demand bill, unknown where
// nothing was billed.
func (m *match) percentOfBill(amount policy.Money) (float64, bool) {
	if m.onDemand == nil || m.onDemand.Bill <= 0 {
		return 0, false
	}
	return float64(amount) / float64(m.onDemand.Bill) * 100, true
}

// floored reports whether the baseline saves too little to be a denominator.
func (m *match) floored() bool {
	return m.onDemand != nil && absolute(m.baseSavings) < m.onDemand.Bill.Times(improvementFloor)
}

// RowOf returns a single run with its figures, measured against the on-demand run of the same case
// and seed, which may be nil.
func RowOf(j Job, r, onDemand *sim.Result) RunRow {
	row := RunRow{Job: j, Result: r, Values: match{run: r, onDemand: onDemand}.measure()}
	forgetBounds(row.Values)
	for _, name := range commitmentMetrics {
		row.Values[mustMetric(name)] = Value{}
	}
	return row
}

// commitmentMetrics are those that say something of commitments that a comparison assumes.
var commitmentMetrics = []string{"net_savings_vs_1y_usd", "net_savings_vs_1y_pct", "net_savings_vs_3y_usd",
	"net_savings_vs_3y_pct"}

// measure fills the values of all runs.
func measure(c *Config, runs []RunRow, seeded []oracle.Bound) {
	n := len(c.Policies)
	for i := 0; i < len(runs); i += n {
		bound := seeded[i/n]
		m := match{oracle: bound.Cost, slotsOracle: bound.Slots, onDemandOracle: bound.OnDemand, discount1y: c.Discount1y,
			discount3y: c.Discount3y}
		if c.Today != nil {
			m.today = c.Today.Month / c.Today.PerMonth(runs[i].Bound.Duration)
		}
		for j := i; j < i+n; j++ {
			if runs[j].Policy == OnDemand {
				m.onDemand = runs[j].Result
			}
			if runs[j].Policy == c.Baseline {
				m.baseline = runs[j].Result
			}
		}
		for j := i; j < i+n; j++ {
			if runs[j].Err == nil {
				m.run = runs[j].Result
				runs[j].Values = m.measure()
				if bound.Open {
					forgetBounds(runs[j].Values)
				}
			}
		}
	}
}

// boundMetrics are those that say something of the oracle.
var boundMetrics = []string{
	"oracle_usd", "oracle_on_demand_usd", "oracle_slots_usd", "packing_overhead", "regret", "regret_slots", "attainable_share", "attainable_share_slots",
}

// forgetBounds makes what is measured against the oracle unknown.
func forgetBounds(values []Value) {
	for _, name := range boundMetrics {
		values[mustMetric(name)] = Value{}
	}
}
