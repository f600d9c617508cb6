package eval

import (
	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A match is one run with those that it is measured against, of the same
// case and seed. onDemand and baseline are nil when their run is missing.
type match struct {
	run, onDemand, baseline *sim.Result

	// savings and baseSavings are the net savings of run and baseline. They are valid only if the
	// results from which they are computed are.
	savings, baseSavings policy.Money

	// bound is that of the case and seed, nil where it is open, and config has the discounts of the
	// comparison, nil for a run outside one.
	bound  *oracle.Bound
	config *Config

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
	return RunRow{Job: j, Result: r, Values: match{run: r, onDemand: onDemand}.measure()}
}

// measure fills the values of all runs.
func measure(c *Config, runs []RunRow, seeded []oracle.Bound) {
	n := len(c.Policies)
	for i := 0; i < len(runs); i += n {
		m := match{config: c}
		if bound := &seeded[i/n]; !bound.Open {
			m.bound = bound
		}
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
			}
		}
	}
}
