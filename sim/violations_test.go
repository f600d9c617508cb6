package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestViolations: runs say what they did not keep: spot all, where four fifths may be;
// and nodes that were there from the start, above the limits of their pool.
func TestViolations(t *testing.T) {
	for _, x := range []struct{ spec, says string }{
		{"spot", "pool p holds more on Spot than the 80% that spotShare.max allows"}, {"karpenter", "spotShare.max"},
		{"on-demand", ""}, {"static", ""}, {"static:share=1", ""}, {"spotvortex", ""}, {"portfolio", ""},
	} {
		b := one(20)
		b.w.Pools[0].Share.Max = 0.8
		res, _ := runScenario(t, b.scenario(), x.spec)
		if got := fmt.Sprint(res.Violations); (got != "[]") != (x.says != "") || !strings.Contains(got, x.says) {
			t.Errorf("%s: %q, want what says %q", x.spec, res.Violations, x.says)
		}
	}
	b := one(10)
	b.w.Pools[0].Limits.CPU, b.w.Pools[0].Consolidation = 16_000, policy.ConsolidateNever
	if res, _ := runScenario(t, b.scenario(), "on-demand"); len(res.Violations) > 0 {
		t.Errorf("a pool that is never above its limits: %q", res.Violations)
	}
	b = one(10)
	b.w.Pools[0].Limits.CPU, b.w.Pools[0].Consolidation = 16_000, policy.ConsolidateNever
	for i := range b.w.Markets {
		if b.w.Markets[i].Capacity == policy.OnDemand {
			b.w.StartCluster = scenarios.StartNodes
			b.w.Seeds = []scenarios.NodeSeed{{Market: policy.MarketID(i), Count: 5}}
			break
		}
	}
	if res, _ := runScenario(t, b.scenario(), "on-demand"); !slices.Equal(res.Violations,
		[]string{"pool p holds more than its limits allow"}) {
		t.Errorf("a pool of 20 vCPUs that may have 16: %q", res.Violations)
	}
}
