package eval

import "time"

// MonthHours is the number of hours in a month, as in the bills of cloud providers.
const MonthHours = 730

// A Today is the current cost of the nodes of a cluster: their number multiplied by their price. It
// is not simulated, so it has no outages.
type Today struct {
	// Name of the cost, such as "today's bill".
	Name string `json:"name"`
	// Number of nodes whose price is known.
	Nodes int `json:"nodes"`
	// Fraction of their vCPUs on Spot, in [0, 1].
	SpotShare float64 `json:"spot_share"`
	// Cost in dollars per month of 730 hours.
	Month float64 `json:"usd_month"`

	// Times is the size of the cluster divided by the size of the simulated part.
	Times int `json:"-"`
}

// PerMonth returns the factor from the bill of a window to the monthly bill of the cluster.
func (t *Today) PerMonth(window time.Duration) float64 {
	return float64(max(t.Times, 1)) * MonthHours / window.Hours()
}

// Saved returns the savings of a monthly bill, in percent of the current cost; 0 if that is 0.
func (t *Today) Saved(month float64) float64 {
	if t.Month <= 0 {
		return 0
	}
	return 100 * (1 - month/t.Month)
}

// MetricSavedToday is the metric of savings relative to [Today].
const MetricSavedToday = "saved_today_pct"

// Saved returns the savings of a run in dollars and in percent: relative to the current cost of the
// cluster if that is known, else to the on-demand bill.
func (c *Config) Saved(run *RunRow) (usd, pct Value) {
	metric, _ := c.Savings()
	if usd = run.Value("net_savings_usd"); c.Today != nil {
		usd = run.Value("bill_usd")
		usd.V = c.Today.Month/c.Today.PerMonth(run.Bound.Duration) - usd.V
	}
	return usd, run.Value(metric)
}

// Savings returns the metric by which policies are ranked, and the amount that it is a percentage
// of.
func (c *Config) Savings() (metric, of string) {
	if c.Today != nil {
		return MetricSavedToday, c.Today.Name
	}
	return "net_savings_pct", "the on-demand bill"
}

func savedToday(m *match) (float64, bool) {
	if m.today <= 0 {
		return 0, false
	}
	return 100 * (1 - m.run.Bill.Float()/m.today), true
}
