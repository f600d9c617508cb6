package eval

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestParseGate(t *testing.T) {
	for _, x := range []struct {
		text string
		want Gate
	}{
		{"outage_delta.max<=0", Gate{"", "outage_delta", Max, "<=", 0}},
		{"  net_profit_improvement_pct.median >= 2 ", Gate{"", "net_profit_improvement_pct", Median, ">=", 2}},
		{"spot:regret.p95<0.25", Gate{"spot", "regret", P95, "<", 0.25}},
		{"spotvortex:compat=true:bill_usd.mean>1e3", Gate{"spotvortex:compat=true", "bill_usd", Mean, ">", 1000}},
		{"static:share=0.5:outage_delta.min != -3", Gate{"static:share=0.5", "outage_delta", Min, "!=", -3}},
		{"static:share=0.3:jobs_missed.p75==0", Gate{"static:share=0.3", "jobs_missed", P75, "==", 0}},
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
		{"outage.max<=0", "there is no metric \"outage\"; the metrics are bill_usd, "},
		{"outage_delta.p50<=0", "there is no statistic \"p50\"; the statistics are [mean median p5"},
		{"outage_delta.max<=few", `"few" is not a number`},
		{"outage_delta.max<=NaN", `"NaN" is not a number`},
		{"outage_delta.max<=Inf", `"Inf" is not a number`},
		{":outage_delta.max<=0", "the policy before the colon is empty"},
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
