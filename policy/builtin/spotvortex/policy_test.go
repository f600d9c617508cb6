package spotvortex_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/share"
)

func TestPolicy(t *testing.T) {
	policytest.Run(t, func() policy.Policy { return spotvortex.New(spotvortex.Shipped()) })
}

// The agent does not hear notices; the rest of the suite holds.
func TestPolicyCompat(t *testing.T) {
	policytest.Run(t, func() policy.Policy {
		cfg := spotvortex.Shipped()
		cfg.Compat = true
		return spotvortex.New(cfg)
	}, policytest.Leaves)
}

// drawScores gives every Spot market a risk, with few different values.
func drawScores(t *rapid.T, s *policy.Snapshot) {
	for i := range s.Markets {
		if m := &s.Markets[i]; m.Capacity == policy.Spot {
			m.Forecast.Capacity = rapid.SampledFrom([]float64{0, 0.125, 0.625, 0.75, 0.9375}).Draw(t, "capacity")
			m.Forecast.Source = policy.SourceClosedForm
		}
	}
}

// TestBudget checks that, notices aside, no more nodes of a pool are drained
// than its budgets allow, those on the move already counted.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		drawScores(t, s)
		plan, _ := spotvortex.New(spotvortex.Shipped()).Decide(s, m)
		drains := make([]int, len(s.Pools))
		for _, d := range plan.Drains {
			if n := &s.Nodes[d.Node]; n.ReclaimAt == 0 {
				drains[n.Pool]++
			}
		}
		for i, n := range drains {
			if most := s.Disruptable(policy.PoolID(i), policy.Underutilized); n > 0 && n+placement.BalanceOf(s, policy.PoolID(i)).Moving > most {
				t.Fatalf("%d nodes of %s drained, %d may be:\n%s", n, s.Pools[i].Name, most, plan.Format(s))
			}
		}
	})
}

// TestShareStops checks that growth never ends more than one node beyond the
// share that the pool is steered to, and that no plan both raises and lowers.
func TestShareStops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		drawScores(t, s)
		plan, next := spotvortex.New(spotvortex.Shipped()).Decide(s, m)
		for i := range s.Pools {
			pool := policy.PoolID(i)
			at := placement.BalanceOf(s, pool)
			spot, total, largest, up := at.Spot, at.Total, int64(0), false
			for _, l := range plan.Launches {
				if l.Pool == pool && l.Replaces != policy.None {
					size := share.Units(s, pool, l.Markets[0])
					total, largest = total+size, max(largest, size)
					if s.Markets[l.Markets[0]].Capacity == policy.Spot {
						spot, up = spot+size, true
					}
				}
			}
			for _, d := range plan.Drains {
				n := &s.Nodes[d.Node]
				if n.Pool != pool || n.ReclaimAt != 0 || n.Market == policy.None {
					continue
				}
				size := share.Units(s, pool, n.Market)
				total, largest = total-size, max(largest, size)
				if s.Markets[n.Market].Capacity == policy.Spot {
					spot -= size
				}
			}
			target, steer := next.Pool(s.Pools[i].Name).Target, s.Pools[i].Steer.Share
			for _, x := range plan.Steers {
				if x.Pool == pool {
					steer = x.Share
				}
			}
			if want := max(target, steer); up && float64(spot) > want*float64(total)+float64(largest)+0.01*float64(total) {
				t.Fatalf("%s goes to %d of %d on spot, wanted %.3f:\n%s", s.Pools[i].Name, spot, total, want, plan.Format(s))
			}
		}
	})
}
