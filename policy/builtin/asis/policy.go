// Package asis is the policy that changes nothing: it shows what a cluster does by itself.
//
// Each pool keeps the capacity types that its own NodePools or groups allow, which a capture writes
// into the pool's manifest. If a pool consists of NodePools of one capacity type each, nodes are
// bought such that its Spot share does not change. If the capture does not know the capacity types
// of a pool, they follow from its manifest: only on-demand if its maximum Spot share is 0, only
// Spot if its minimum is 1 and it does not fall back to on-demand, and otherwise both. The
// provisioner then does what it does by itself, with the pool's own consolidation; package
// karpenter describes the behaviour with both capacity types. A pool that was steered before keeps
// its last steer.
//
// If a pool has no provisioner, nodes are bought for pending pods and released as in package
// karpenter, but nothing is moved from on-demand to Spot.
package asis

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A Policy leaves every pool as it is.
type Policy struct{}

// New returns the policy.
func New() *Policy { return &Policy{} }

// Name returns "as-is".
func (*Policy) Name() string { return "as-is" }

// Decide steers each pool without a steer to what it buys by itself.
func (*Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	s = s.WithoutFees() // provisioners compare the prices of instances only
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	share := func(id policy.PoolID) float64 {
		p := &s.Pools[id]
		if p.Steer.Set {
			return p.Steer.Share
		}
		return own(p)
	}
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff && !p.Steer.Set {
			plan.Steers = append(plan.Steers, steer(s, p))
		}
	}
	plan.Launches, plan.Holds = placement.Shortages(s, share)
	m.Decisions++
	return replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: share, UsedBelow: replan.ScaleDownUtilization,
		Keep: true, Tight: true})
}

// allows reports which capacity types p buys by itself.
func allows(p *policy.Pool) (spot, onDemand bool) {
	if len(p.CapacityTypes) > 0 {
		return slices.Contains(p.CapacityTypes, policy.Spot), slices.Contains(p.CapacityTypes, policy.OnDemand)
	}
	return p.Share.Max > 0, p.Share.Min < 1 || p.OnDemandFallback
}

// own returns the Spot share that p has by itself, in [0, 1].
func own(p *policy.Pool) float64 {
	switch spot, onDemand := allows(p); {
	case !spot:
		return 0
	case onDemand && p.OwnShare > 0:
		return p.OwnShare
	}
	return 1
}

// steer returns a steer that lets p buy the capacity types that it buys by itself.
func steer(s *policy.Snapshot, p *policy.Pool) policy.Steer {
	x := policy.Steer{Pool: p.ID, Share: own(p), Bid: placement.Bid(s, p.ID),
		Why: policy.Why{Reason: policy.ReasonConfigured}}
	switch spot, onDemand := allows(p); {
	case slices.Contains(p.CapacityTypes, policy.Reserved):
		x.Mixed, x.Fallback, x.Why.Text = true, true, "the pool allows reserved capacity first"
		switch {
		case spot && !onDemand:
			x.Markets = placement.MarketsOf(s, p.ID, policy.Spot)
		case onDemand && !spot:
			x.Markets = placement.MarketsOf(s, p.ID, policy.OnDemand)
		}
	case spot && onDemand && x.Share < 1:
		x.Fallback, x.Why.Text = true, "the pool runs Spot and on-demand nodes side by side"
	case spot && onDemand:
		x.Mixed, x.Fallback, x.Why.Text = true, true, "the pool allows Spot and on-demand"
	case spot:
		// Its own NodePool or group handles interruptions, as one of both capacity types does.
		if x.Why.Text = "the pool allows Spot only"; len(p.CapacityTypes) > 0 {
			x.Mixed, x.Markets = true, placement.MarketsOf(s, p.ID, policy.Spot)
		}
	default:
		x.Markets, x.Fallback, x.Why.Text = placement.MarketsOf(s, p.ID,
			policy.OnDemand), true, "the pool allows on-demand only"
	}
	return x
}
