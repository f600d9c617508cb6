// Package spot is the policy that buys nothing but spot and has no guardrail:
// it shows what guardrails are worth.
//
// It tells every pool, once, to buy spot in all of its markets and leaves the
// choice among them to the provider (price-capacity-optimised). A refused
// launch goes to on-demand where the pool allows it. A node under notice is
// drained, as any provisioner's interruption handling does; nothing else is.
package spot

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// A Policy keeps every pool on spot.
type Policy struct{}

// New returns the policy.
func New(Config) *Policy { return &Policy{} }

// Name returns "spot".
func (*Policy) Name() string { return "spot" }

// Decide steers each pool to spot unless it already stands so.
func (*Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	var plan policy.Plan
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Mode == policy.ModeOff || p.Steer.Set && p.Steer.Share == 1 {
			continue
		}
		plan.Steers = append(plan.Steers, policy.Steer{
			Pool:     p.ID,
			Share:    1,
			Fallback: p.OnDemandFallback,
			Why:      policy.Why{Reason: policy.ReasonConfigured, Text: "the policy buys spot only"},
		})
	}
	plan.Drains = place.Notices(s)
	plan.Launches, plan.Holds = place.Shortages(s, func(policy.PoolID) float64 { return 1 })
	plan.Wake = policy.NextStep(s.Now, policy.DefaultStep)
	m.Decisions++
	return plan, m
}
