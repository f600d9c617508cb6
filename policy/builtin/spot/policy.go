// Package spot is the policy that buys only Spot and has no guardrails: it shows the value of
// guardrails.
//
// It steers every pool once to buy Spot in all of its markets and leaves the choice among them to
// the provider (price-capacity-optimised). A refused launch falls back to on-demand if the pool
// allows it. A node under notice is drained, as by the interruption handling of any provisioner.
//
// If no provisioner serves a pool, it does what a provisioner that may buy only Spot would do: it
// launches nodes, replaces on-demand nodes with Spot, and drains nodes that are not needed.
package spot

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A Policy keeps every pool on Spot.
type Policy struct{}

// New returns the policy.
func New() *Policy { return &Policy{} }

// Name returns "spot".
func (*Policy) Name() string { return "spot" }

// Decide steers each pool to Spot, unless it already is steered so, and moves its nodes there.
func (*Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	var plan policy.Plan
	for i := range s.Pools {
		p := &s.Pools[i]
		x := policy.Steer{
			Pool:     p.ID,
			Share:    1,
			Fallback: p.OnDemandFallback,
			Why:      policy.Why{Reason: policy.ReasonConfigured, Text: "the policy buys Spot only"},
		}
		if p.Mode != policy.ModeOff && !p.Steer.Follows(&x) {
			x.Bid = placement.Bid(s, p.ID)
			plan.Steers = append(plan.Steers, x)
		}
	}
	plan.Drains = placement.Notices(s)
	share := func(policy.PoolID) float64 { return 1 }
	plan.Launches, plan.Holds = placement.Shortages(s, share)
	plan.Wake = policy.NextStep(s.Now, policy.DefaultStep)
	for i := range s.Pools {
		if p := &s.Pools[i]; p.SelfProvisioned() {
			replan.Towards(s, p, 1, m, "the policy buys Spot only", &plan)
		}
	}
	m.Decisions++
	return replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: share})
}
