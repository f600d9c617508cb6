package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/sim"
)

func TestParseGate(t *testing.T) {
	for _, x := range []struct {
		text string
		want Gate
	}{
		{"outage_delta.max<=0", Gate{Metric: "outage_delta", Statistic: Max, Op: "<=", Value: 0}},
		{"  net_profit_improvement_pct.median >= 2 ", Gate{Metric: "net_profit_improvement_pct", Statistic: Median, Op: ">=", Value: 2}},
		{"spot:regret.p95<0.25", Gate{Policy: "spot", Metric: "regret", Statistic: P95, Op: "<", Value: 0.25}},
		{"spotvortex:compat=true:bill_usd.mean>1e3", Gate{Policy: "spotvortex:compat=true", Metric: "bill_usd",
			Statistic: Mean, Op: ">", Value: 1000}},
		{"static:share=0.5:outage_delta.min != -3", Gate{Policy: "static:share=0.5", Metric: "outage_delta", Statistic: Min,
			Op: "!=", Value: -3}},
		{"static:share=0.3:jobs_missed.p75==0", Gate{Policy: "static:share=0.3", Metric: "jobs_missed", Statistic: P75, Op: "==", Value: 0}},
		{"karpetrack vs static:share=0.5:regret.window_max <= 0.2", Gate{Policy: "karpetrack", Versus: "static:share=0.5",
			Metric: "regret", Statistic: WindowMax, Op: "<=", Value: 0.2}},
		{"vs spot:net_savings_delta_pct.low>2", Gate{Versus: "spot", Metric: "net_savings_delta_pct", Statistic: Low, Op: ">", Value: 2}},
		{"in my worlds/a:b.yaml:regret.median<1", Gate{Scenario: "my worlds/a:b.yaml", Metric: "regret", Statistic: Median, Op: "<", Value: 1}},
		{"spot vs static in web-week:outage_delta.windows_positive==0",
			Gate{Policy: "spot", Versus: "static", Scenario: "web-week", Metric: "outage_delta", Statistic: WindowsPositive, Op: "==", Value: 0}},
	} {
		got, err := ParseGate(x.text)
		if err != nil || got != x.want {
			t.Errorf("ParseGate(%q) = %+v, %v, want %+v", x.text, got, err, x.want)
		}
		if again, err := ParseGate(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q and read as %+v, %v", x.text, got, again, err)
		}
	}
	for _, x := range []struct{ text, says string }{
		{"", "want [POLICY:]METRIC.STAT OP VALUE"},
		{"outage_delta<=0", "want [POLICY:]METRIC.STAT"},
		{"outage_delta.max=<0", "want [POLICY:]METRIC.STAT"},
		{"outage_delta.max=0", "want [POLICY:]METRIC.STAT"},
		{"outage_delta.max<=", "want [POLICY:]METRIC.STAT"},
		{"outage.max<=0", "there is no metric \"outage\"; did you mean outage_cost_usd, outage_minutes, "},
		{"outage_minuts.max<=0", "; did you mean outage_minutes?"},
		{"profit.max<=0", "there is no metric \"profit\"; the metrics are bill_usd, "},
		{"outage_delta.p50<=0", "there is no statistic \"p50\"; the statistics are [mean median p5"},
		{"outage_delta.max<=few", `"few" is not a number`},
		{"outage_delta.max<=NaN", `"NaN" is not a number`},
		{"outage_delta.max<=Inf", `"Inf" is not a number`},
		{":outage_delta.max<=0", "the policy before the colon is empty"},
		{"spot static:outage_delta.max<=0", `"spot static" is not [POLICY] [vs POLICY] [in SCENARIO]`},
		{"spot vs :outage_delta.max<=0", "is not [POLICY] [vs POLICY]"},
		{"in :outage_delta.max<=0", "is not [POLICY]"},
		{"outage_incidents.low>0", "there is no interval of outage_incidents"},
	} {
		if _, err := ParseGate(x.text); !errors.Is(err, ErrGate) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("ParseGate(%q) gives the error %v, want one saying %q", x.text, err, x.says)
		}
	}
}

func TestGateMet(t *testing.T) {
	for _, x := range []struct {
		op                  string
		below, equal, above bool
	}{
		{"<", true, false, false},
		{"<=", true, true, false},
		{">", false, false, true},
		{">=", false, true, true},
		{"==", false, true, false},
		{"!=", true, false, true},
	} {
		g := Gate{Op: x.op, Value: 2}
		if g.met(1) != x.below || g.met(2) != x.equal || g.met(3) != x.above {
			t.Errorf("1, 2, 3 %s 2 = %v, %v, %v", x.op, g.met(1), g.met(2), g.met(3))
		}
	}
}

// mustGate parses a gate that a test relies on.
func mustGate(t *testing.T, text string) Gate {
	t.Helper()
	g, err := ParseGate(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGatePolicies looks at whom a gate holds for: everybody who is on trial,
// or the one that is named, be it the baseline.
func TestGatePolicies(t *testing.T) {
	c := shown()
	c.Gates = []Gate{mustGate(t, "outage_delta.max<=0"), mustGate(t, "spotvortex:outage_minutes.max<=0")}
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range r.Gates {
		got = append(got, g.Policy)
	}
	if want := "spot static spotvortex"; strings.Join(got, " ") != want {
		t.Errorf("gates were held against %v, want %s", got, want)
	}
	if !r.Failed() || r.ExitCode() != 1 {
		t.Errorf("Failed() = %v, ExitCode() = %d with a policy that has outages", r.Failed(), r.ExitCode())
	}
	for _, g := range r.Gates {
		if (g.Policy == "spot") == g.Pass {
			t.Errorf("gate %v on %s passes: %v", g.Gate, g.Policy, g.Pass)
		}
		if g.Policy == "spot" && r.Runs[g.Run].value(mustMetric("outage_delta")).V != g.Actual.V {
			t.Errorf("gate %v names a run that does not have the value %v", g.Gate, g.Actual)
		}
	}
}

// TestMissingRunFailsGate: a run that failed fails every gate on its policy,
// whatever the others came to, and one of on-demand fails all that need it.
func TestMissingRunFailsGate(t *testing.T) {
	for _, x := range []struct{ broken, gate, policy string }{
		{"static", "static:outage_minutes.max<=1000", "static"},
		{OnDemand, "static:net_savings_usd.mean>=-1000", "static"},
		{"spotvortex", "static:outage_delta.max<=1000", "static"},
	} {
		c := shown()
		c.Gates = []Gate{mustGate(t, x.gate)}
		r, err := Run(context.Background(), c, fake{fail: func(j Job) bool { return j.Policy == x.broken && j.Seed == 2 && j.Window == 1 }}.run)
		if err != nil {
			t.Fatal(err)
		}
		if g := r.Gates[0]; g.Pass || g.Missing != 1 || !g.Actual.Known {
			t.Errorf("without a run of %s gate %s is %+v, want it to fail for 1 missing run", x.broken, x.gate, g)
		}
		if r.ExitCode() != 3 || r.Missing() != 1 {
			t.Errorf("without a run of %s the exit code is %d and %d are missing", x.broken, r.ExitCode(), r.Missing())
		}
	}
}

// TestGateVersus judges a policy by another one in place of the baseline: what
// compares by itself does so with that one, of the rest the difference counts.
func TestGateVersus(t *testing.T) {
	c := shown()
	c.Gates = []Gate{
		mustGate(t, "spot vs static:outage_delta.max<=0"),
		mustGate(t, "spot vs static:spot_share.min==0.5"),
		mustGate(t, "spot vs static:net_savings_delta_pct.median>0"),
		mustGate(t, "vs static:spot_share.max<=0"),
	}
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	var minutes []float64
	var deltas []float64
	for i := 0; i < len(r.Runs); i += 4 {
		onDemand, spot, static := r.Runs[i].Result, r.Runs[i+1].Result, r.Runs[i+2].Result
		minutes = append(minutes, float64(spot.OutageMinutes-static.OutageMinutes))
		deltas = append(deltas, float64(cost(static)-cost(spot))/float64(onDemand.Bill)*100)
	}
	for i, want := range []float64{summarize(minutes).Max, 0.5, summarize(deltas).Median, 0.5} {
		if got := r.Gates[i].Actual.V; math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is judged by %v, want %v", r.Gates[i].Gate, got, want)
		}
	}
	if len(r.Gates) != 4 || r.Gates[3].Policy != "spot" {
		t.Errorf("the gate for everybody is held against %v, want spot alone: static is what it is compared with", r.Gates[3:])
	}
}

// TestGateWindows judges windows: a window's value is the median over its
// seeds, of one scenario where the gate names one.
func TestGateWindows(t *testing.T) {
	c := shown()
	c.Cases, c.Gates = cases(9, "web-week", "batch-night"), nil
	for _, text := range []string{
		"spot in batch-night:net_savings_delta_pct.window_min>=0",
		"spot in batch-night:net_savings_delta_pct.window_max<0",
		"spot in batch-night:net_savings_delta_pct.windows_positive>=1",
		"static in batch-night:net_savings_delta_pct.windows_positive==0",
		"spot in batch-night:net_savings_delta_pct.low<0",
	} {
		c.Gates = append(c.Gates, mustGate(t, text))
	}
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	m := mustMetric("net_savings_delta_pct")
	least, greatest := 0, 0
	report := &r.Groups[1].Policies[1]
	for k, w := range report.Windows {
		if w.Medians[m].V < report.Windows[least].Medians[m].V {
			least = k
		}
		if w.Medians[m].V > report.Windows[greatest].Medians[m].V {
			greatest = k
		}
	}
	interval := report.Summaries[m].MedianInterval
	for i, want := range []struct {
		actual float64
		window int
		pass   bool
	}{
		{report.Windows[least].Medians[m].V, 9 + least, true},
		{report.Windows[greatest].Medians[m].V, 9 + greatest, false},
		{1, -1, true}, {0, -1, true}, {interval.Low, -1, false},
	} {
		if g := r.Gates[i]; g.Actual.V != want.actual || g.Case != want.window || g.Pass != want.pass {
			t.Errorf("%v: %+v, want %+v", g.Gate, g, want)
		}
	}
	for _, text := range []string{"spot vs nobody:regret.max<1", "spot in nowhere:regret.max<1"} {
		c.Gates = []Gate{mustGate(t, text)}
		if _, err := Run(context.Background(), c, fake{}.run); !errors.Is(err, ErrConfig) {
			t.Errorf("%s gives the error %v, want %v", text, err, ErrConfig)
		}
	}
}

// TestGatePerScenario: without a scenario each is judged on its own, and a gate
// that holds in the mean of all and not in one of them fails.
func TestGatePerScenario(t *testing.T) {
	c := shown()
	c.Cases, c.Gates = cases(1, "web-week", "batch-night", "shop"), []Gate{
		mustGate(t, "spot:outage_minutes.median <= 10"), mustGate(t,
			"spot in shop:outage_minutes.median <= 10"), mustGate(t, "outage_minutes.max >= 0"),
	}
	runner := func(ctx context.Context, j Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		r.OutageMinutes = map[string]int64{"batch-night": 12}[j.Scenario]
		return r, err
	}
	r, err := Run(context.Background(), c, runner)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range r.Gates {
		g := &r.Gates[i]
		got = append(got, fmt.Sprintf("%s in %s is %v: %v", g.Policy, g.Scenario, g.Actual.V, g.Pass))
	}
	want := []string{
		"spot in web-week is 0: true", "spot in batch-night is 12: false", "spot in shop is 0: true", "spot in shop is 0: true",
		"spot in web-week is 0: true", "spot in batch-night is 12: true", "spot in shop is 0: true",
		"static in web-week is 0: true", "static in batch-night is 12: true", "static in shop is 0: true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.ExitCode() != 1 {
		t.Errorf("exit code %d with a gate that one scenario fails", r.ExitCode())
	}
}
