// Package replan contains functions that policies share to change running pools: the target Spot
// share of a pool, the steers and moves towards it, and the removal of pods from nodes. [Moves]
// provides the steps of every such move; [Rebalance] and [Consolidate] combine them for pools that
// several policies manage in the same way. The package depends on placement, but not on any policy.
package replan

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// Wanted returns the target Spot share of p: its stated target, or else the maximum that it allows.
func Wanted(p *policy.Pool) float64 {
	if p.Share.HasTarget || p.Share.Exact {
		return min(max(p.Share.Target, p.Share.Min), p.Share.Max)
	}
	return p.Share.Max
}

// Steers returns a steer to its target share for each managed pool that does not follow it yet.
func Steers(s *policy.Snapshot, target func(policy.PoolID) float64, text string) []policy.Steer {
	var steers []policy.Steer
	for i := range s.Pools {
		p := &s.Pools[i]
		x := policy.Steer{
			Pool: p.ID, Share: target(p.ID), Exact: p.Share.Exact, Fallback: p.OnDemandFallback,
			Why: policy.Why{Reason: policy.ReasonConfigured, Text: text},
		}
		if p.Mode == policy.ModeOff || p.Steer.Follows(&x) {
			continue
		}
		x.Bid = placement.Bid(s, p.ID)
		steers = append(steers, x)
	}
	return steers
}

// Towards adds moves of p towards a Spot share to plan, up to the limit of its disruption budgets.
// It does nothing if the pool is within a node of the share.
func Towards(s *policy.Snapshot, p *policy.Pool, share float64, m policy.Memory, text string, plan *policy.Plan) {
	if !placement.BalanceOf(s, p.ID).Off(share) {
		return
	}
	memory := m.Pool(p.Name)
	plan.Add(Rebalance(s, nil, RebalanceOptions{
		Pool: p.ID, Share: share, DrainsMax: s.Disruptable(p.ID, policy.Underutilized),
		Reason: policy.ReasonShare, Text: text,
		Backoff: func(node string) bool { return memory.BackedOff(node, s.Now) },
	}))
}

// Rotate returns at most n elements of list. It starts at a different element in each round, so
// that every element is returned in some round.
func Rotate[T any](list []T, n int, round uint64) []T {
	if len(list) <= n {
		return list
	}
	from := int(round * uint64(n) % uint64(len(list)))
	return slices.Concat(list[from:], list[:from])[:n]
}
