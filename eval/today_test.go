package eval

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// TestSavedToday measures a bill of a week against what half a cluster costs in a month of 730
// hours: $1,460 is $336 a week, half of it $168, of which a bill of $42 saves three quarters.
func TestSavedToday(t *testing.T) {
	c := &Config{Policies: []string{"x"}, Today: &Today{Name: "today's bill", Month: 1460, Times: 2}}
	w := &scenarios.BoundScenario{Settings: scenarios.Settings{Duration: 7 * 24 * time.Hour}}
	run := RunRow{Job: Job{Case: Case{Bound: w}, Policy: "x"}, Result: &sim.Result{Bill: 42 * policy.Dollar}}
	run.Values = match{run: run.Result, today: c.Today.Month / c.Today.PerMonth(w.Duration)}.measure()
	usd, pct := c.Saved(&run)
	if near := func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }; !usd.Known || !pct.Known || !near(usd.V, 126) || !near(pct.V, 75) {
		t.Errorf("saved are %+v, %+v", usd, pct)
	}
	month := 42 * c.Today.PerMonth(w.Duration)
	if got := c.Today.Saved(month); got-pct.V > 1e-9 || pct.V-got > 1e-9 {
		t.Errorf("a month of $%.2f saves %v%%, its run %v%%", month, got, pct.V)
	}
	if v := (match{run: run.Result}).measure(); v[mustMetric(MetricSavedToday)].Known {
		t.Error("it is known what is saved where it is not known what is paid")
	}
}
