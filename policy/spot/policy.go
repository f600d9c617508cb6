// Package spot is the policy that buys nothing but spot and has no guardrail:
// it shows what guardrails are worth.
//
// It tells every pool, once, to buy spot in all of its markets and leaves the
// choice among them to the provider (price-capacity-optimised). A refused
// launch goes to on-demand where the pool allows it. A node under notice is
// drained, as any provisioner's interruption handling does.
//
// Where no provisioner serves a pool it does what one would that may buy spot
// only: it launches, replaces on-demand nodes by spot, and gives back nodes that
// are not needed.
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
			Bid:      place.Bid(s, p.ID),
			Why:      policy.Why{Reason: policy.ReasonConfigured, Text: "the policy buys spot only"},
		})
	}
	plan.Drains = place.Notices(s)
	share := func(policy.PoolID) float64 { return 1 }
	plan.Launches, plan.Holds = place.Shortages(s, share)
	plan.Wake = policy.NextStep(s.Now, policy.DefaultStep)
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Provisioner == policy.ProvisionerNone && p.Mode != policy.ModeOff {
			shift(s, p, m, &plan)
		}
	}
	m.Decisions++
	return place.Consolidate(s, plan, m, share)
}

// shift replaces on-demand nodes of p by spot.
func shift(s *policy.Snapshot, p *policy.Pool, m policy.Memory, plan *policy.Plan) {
	if !place.Balance(s, p.ID).Off(1) {
		return
	}
	memory := m.Pool(p.Name)
	launches, drains, holds := place.Shift(s, nil, place.ShiftOptions{
		Pool: p.ID, Share: 1, DrainsMax: s.Disruptable(p.ID, policy.Underutilized),
		Reason: policy.ReasonShare, Text: "the policy buys spot only",
		Backoff: func(node string) bool { return memory.BackedOff(node, s.Now) },
	})
	plan.Launches = append(plan.Launches, launches...)
	plan.Drains = append(plan.Drains, drains...)
	plan.Holds = append(plan.Holds, holds...)
}
