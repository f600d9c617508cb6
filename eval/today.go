package eval

import "time"

// MonthHours is how many hours a month has, as bills of clouds count them.
const MonthHours = 730

// A Today is what the nodes of a cluster cost as they are: their number times their price.
// It is not simulated, so it has no outages.
type Today struct {
	// What the cost is called, as "today's bill".
	Name string `json:"name"`
	// Nodes whose price is known.
	Nodes int `json:"nodes"`
	// Spot part of their vCPUs.
	SpotShare float64 `json:"spot_share"`
	// Dollars a month of 730 hours.
	Month float64 `json:"usd_month"`

	// Times is how many times as large the cluster is as the part of it that is run.
	Times int `json:"-"`
}

// PerMonth returns the factor by which the bill of a window becomes the cluster's of a month.
func (t *Today) PerMonth(window time.Duration) float64 {
	return float64(max(t.Times, 1)) * MonthHours / window.Hours()
}

// Saved returns what a bill of a month saves, in percent of what is paid; 0 where
// nothing is.
func (t *Today) Saved(month float64) float64 {
	if t.Month <= 0 {
		return 0
	}
	return 100 * (1 - month/t.Month)
}

// MetricSavedToday is the metric of what a run saves against [Today].
const MetricSavedToday = "saved_today_pct"

// Saved returns what a run saves in dollars and in percent: of what the cluster costs today
// where that is known, else of the on-demand bill.
func (c *Config) Saved(run *RunRow) (usd, pct Value) {
	metric, _ := c.Savings()
	if usd = run.Value("net_savings_usd"); c.Today != nil {
		usd = run.Value("bill_usd")
		usd.V = c.Today.Month/c.Today.PerMonth(run.Bound.Duration) - usd.V
	}
	return usd, run.Value(metric)
}

// Savings returns the metric by which policies are ranked, and what it is a percentage of.
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
