package format

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/sim"
)

// cases returns windows of scenarios.
func cases(windows int, names ...string) []eval.Case {
	var out []eval.Case
	for _, n := range names {
		for w := range windows {
			out = append(out, eval.Case{Scenario: n, Window: w, Bound: evaltest.Scenario(n, w)})
		}
	}
	return out
}

// errCloud is what the fake's failing runs fail with.
var errCloud = errors.New("the cloud fell down")

// A fake makes up results, see [evaltest.Result].
type fake struct {
	fail func(eval.Job) bool
	slow func(eval.Job)
}

func (f fake) run(_ context.Context, j eval.Job) (*sim.Result, error) {
	if f.slow != nil {
		f.slow(j)
	}
	if f.fail != nil && f.fail(j) {
		return nil, errCloud
	}
	return evaltest.Result(evaltest.Run{Scenario: j.Scenario, Window: j.Window, Bound: j.Bound, Policy: j.Policy, Seed: j.Seed}), nil
}

// shown is the configuration that outputs are shown with.
func shown() eval.Config {
	c := eval.DefaultConfig()
	c.Policies, c.Baseline = []string{eval.OnDemand, "spot", "static", "spotvortex"}, "spotvortex"
	c.Cases = cases(2, "web-week")
	c.Seeds = eval.DefaultSeeds(5)
	c.Gates = []eval.Gate{
		{Metric: "net_profit_improvement_pct", Statistic: eval.Median, Op: ">=", Value: 2},
		{Metric: "outage_delta", Statistic: eval.Max, Op: "<=", Value: 0},
	}
	c.Version = "v0.1.0"
	c.Invocation = "spotter eval web-week --windows 2 --seeds 5"
	return c
}

// policyReport returns the report on a policy in the first scenario.
func policyReport(r *eval.Report, name string) *eval.PolicyReport {
	i := slices.IndexFunc(r.Groups[0].Policies, func(p eval.PolicyReport) bool { return p.Policy == name })
	return &r.Groups[0].Policies[i]
}

func mustGate(t *testing.T, text string) eval.Gate {
	t.Helper()
	g, err := eval.ParseGate(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// stoppedAfter returns the report on a comparison that does one run at a time and is stopped at
// the end of the last of the given number of runs.
func stoppedAfter(t *testing.T, c eval.Config, runs int64) (*eval.Report, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done atomic.Int64
	c.Parallel = 1
	return eval.Run(ctx, c, fake{slow: func(eval.Job) {
		if done.Add(1) == runs {
			cancel()
		}
	}}.run)
}
