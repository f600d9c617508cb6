package eval

import (
	"context"
	"errors"
	"slices"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/sim"
)

// cases returns windows of scenarios.
func cases(windows int, names ...string) []Case {
	var out []Case
	for _, n := range names {
		for w := range windows {
			out = append(out, Case{Scenario: n, Window: w, Bound: evaltest.Scenario(n, w)})
		}
	}
	return out
}

// errCloud is what the fake's failing runs fail with.
var errCloud = errors.New("the cloud fell down")

// A fake makes up results, see [evaltest.Result].
type fake struct {
	fail func(Job) bool
	slow func(Job)
}

func (f fake) run(_ context.Context, j Job) (*sim.Result, error) {
	if f.slow != nil {
		f.slow(j)
	}
	if f.fail != nil && f.fail(j) {
		return nil, errCloud
	}
	return evaltest.Result(evaltest.Run{Scenario: j.Scenario, Window: j.Window, Bound: j.Bound, Policy: j.Policy, Seed: j.Seed}), nil
}

// shown is a configuration with gates.
func shown() Config {
	c := DefaultConfig()
	c.Policies, c.Baseline = []string{OnDemand, "spot", "static", "spotvortex"}, "spotvortex"
	c.Cases = cases(2, "web-week")
	c.Seeds = DefaultSeeds(5)
	c.Gates = []Gate{
		{Metric: "net_profit_improvement_pct", Statistic: Median, Op: ">=", Value: 2},
		{Metric: "outage_delta", Statistic: Max, Op: "<=", Value: 0},
	}
	return c
}

// policyReport returns the report on a policy in the first scenario.
func policyReport(r *Report, name string) *PolicyReport {
	i := slices.IndexFunc(r.Groups[0].Policies, func(p PolicyReport) bool { return p.Policy == name })
	return &r.Groups[0].Policies[i]
}
