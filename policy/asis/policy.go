// Package asis is the policy that changes nothing: what runs in a cluster by itself.
//
// Each pool goes on with the capacity types that its own NodePools or groups allow, which
// a capture writes into the pool's manifest. Of a pool of which that is not known, the
// manifest says it: only on-demand where its greatest spot share is 0, only spot where
// its least one is 1 and it does not fall back to on-demand, else both. Its provisioner
// then does what it does by itself, with the pool's own consolidation: see package
// karpenter for what that is with both capacity types. A pool that was steered before
// goes on as it was told last.
//
// Where nobody provisions, nodes are bought for pods that are pending and given back as
// package karpenter does, but nothing is moved from on-demand to spot.
package asis

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// A Policy leaves every pool as it is.
type Policy struct{}

// New returns the policy.
func New(Config) *Policy { return &Policy{} }

// Name returns "as-is".
func (*Policy) Name() string { return "as-is" }

// Decide lets each pool that nobody steered buy what it buys by itself.
func (*Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: place.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	share := func(id policy.PoolID) float64 {
		p := &s.Pools[id]
		if spot, _ := allows(p); spot && !p.Steer.Set {
			return 1
		}
		return p.Steer.Share
	}
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff && !p.Steer.Set {
			plan.Steers = append(plan.Steers, steer(s, p))
		}
	}
	plan.Launches, plan.Holds = place.Shortages(s, share)
	m.Decisions++
	return place.Tidy(s, plan, m, place.TidyOptions{Share: share, UsedBelow: usedBelow, Keep: true, Tight: true})
}

// usedBelow is the part of a node that is requested below which it is given back: the
// default of the Cluster Autoscaler (scale-down-utilization-threshold).
const usedBelow = 0.5

// allows returns the capacity types that p buys by itself.
func allows(p *policy.Pool) (spot, onDemand bool) {
	if len(p.CapacityTypes) > 0 {
		return slices.Contains(p.CapacityTypes, policy.Spot), slices.Contains(p.CapacityTypes, policy.OnDemand)
	}
	return p.Share.Max > 0, p.Share.Min < 1 || p.OnDemandFallback
}

// steer lets p buy the capacity types that it buys by itself.
func steer(s *policy.Snapshot, p *policy.Pool) policy.Steer {
	x := policy.Steer{Pool: p.ID, Bid: place.Bid(s, p.ID), Why: policy.Why{Reason: policy.ReasonConfigured}}
	switch spot, onDemand := allows(p); {
	case spot && onDemand:
		x.Share, x.Mixed, x.Fallback, x.Why.Text = 1, true, true, "the pool allows spot and on demand"
	case spot:
		x.Share, x.Why.Text = 1, "the pool allows spot only"
	default:
		x.Markets, x.Fallback, x.Why.Text = place.MarketsOf(s, p.ID, policy.OnDemand), true, "the pool allows on demand only"
	}
	return x
}
