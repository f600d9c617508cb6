// Package ondemand is the policy that never buys Spot: its cost is the reference for the savings of
// all other policies.
//
// It steers every pool once to buy only on-demand. It drains no node voluntarily; packing and
// consolidation are left to the provisioner, as with every other policy. If no provisioner serves a
// pool, it buys what pending pods need and drains what they do not need, with the same code as the
// other policies.
package ondemand

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A Policy keeps every pool on-demand.
type Policy struct{}

// New returns the policy.
func New() *Policy { return &Policy{} }

// Name returns "on-demand".
func (*Policy) Name() string { return "on-demand" }

// Decide steers each pool to on-demand markets, unless it already is steered so.
func (*Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	var plan policy.Plan
	for i := range s.Pools {
		p := &s.Pools[i]
		x := policy.Steer{
			Pool:     p.ID,
			Markets:  placement.MarketsOf(s, p.ID, policy.OnDemand),
			Fallback: true,
			Why:      policy.Why{Reason: policy.ReasonConfigured, Text: "the policy buys on-demand only"},
		}
		if p.Mode != policy.ModeOff && !p.Steer.Follows(&x) {
			plan.Steers = append(plan.Steers, x)
		}
	}
	plan.Drains = placement.Notices(s)
	share := func(policy.PoolID) float64 { return 0 }
	plan.Launches, plan.Holds = placement.Shortages(s, share)
	plan.Wake = policy.NextStep(s.Now, policy.DefaultStep)
	m.Decisions++
	return replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: share, Tight: true})
}
