package eval

import (
	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A match is one run and the runs that it is compared with, of the same case and seed. onDemand and
// baseline are nil if their runs are missing.
type match struct {
	run, onDemand, baseline *sim.Result

	// savings and baseSavings are the net savings of run and baseline. They are only valid if the
	// results that they are computed from exist.
	savings, baseSavings policy.Money

	// bound is the bound of the case and seed, nil if it is open. config contains the discounts of
	// the comparison, nil for a run outside a comparison.
	bound  *oracle.Bound
	config *Config

	// today is the current cost of the cluster over the length of the window, in dollars; 0 if
	// unknown.
	today float64
}

// measure returns the values of all metrics, in order.
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

// Savings returns the savings of r relative to the on-demand run of the same case and seed, after
// the cost of outages.
func Savings(r, onDemand *sim.Result) policy.Money { return cost(onDemand) - cost(r) }

// cost returns the objective that policies minimize.
func cost(r *sim.Result) policy.Money { return r.Bill + r.OutageCost }

// percentOfBill returns amount in percent of the on-demand bill. It returns false if that bill is
// unknown or 0.
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

// RowOf returns a single run with its metrics relative to the on-demand run of the same case and
// seed, which may be nil.
func RowOf(j Job, r, onDemand *sim.Result) RunRow {
	return RunRow{Job: j, Result: r, Values: match{run: r, onDemand: onDemand}.measure()}
}

// measure sets the values of all runs.
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
