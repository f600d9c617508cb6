// Package karpenter is the policy that leaves everything to the provisioner: the behaviour of a
// cluster whose NodePools allow Spot and on-demand, without Spotter.
//
// If Karpenter serves a pool, the pool becomes one NodePool of both capacity types in the pool's
// markets, with the pool's own consolidation. Karpenter then buys Spot while a Spot market is open
// and costs no more than on-demand. It replaces on-demand nodes with cheaper Spot nodes but does
// not replace Spot nodes with cheaper ones (the feature gate SpotToSpotConsolidation is off by
// default), and it drains a node whose interruption its queue reports. It has no Spot share, so
// spotShare, exactRatio and onDemandFallback have no effect.
//
// If the Cluster Autoscaler serves a pool, its Spot groups are grown first, and its on-demand
// groups when no Spot group can grow, as with its expander "priority". It replaces no running
// nodes.
//
// If a pool has no provisioner, the policy does what self-scaling node pools do: it bids the
// on-demand price of a node, buys on-demand where Spot is refused and the pool allows it, moves
// from on-demand to Spot, and drains nodes that are used by less than half and whose pods fit on
// others.
package karpenter

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A Policy leaves every pool to its provisioner.
type Policy struct{}

// New returns the policy.
func New() *Policy { return &Policy{} }

// Name returns "karpenter".
func (*Policy) Name() string { return "karpenter" }

// text explains what the policy does.
const text = "the provisioner chooses between Spot and on-demand"

// Decide lets each pool buy both capacity types, unless its steer already allows that.
func (*Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	s = s.WithoutFees() // provisioners compare the prices of instances only
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	for i := range s.Pools {
		p := &s.Pools[i]
		x := policy.Steer{
			Pool: p.ID, Share: 1, Mixed: true, Fallback: true,
			Why: policy.Why{Reason: policy.ReasonConfigured, Text: text},
		}
		if p.Mode != policy.ModeOff && !p.Steer.Follows(&x) {
			x.Bid = placement.Bid(s, p.ID)
			plan.Steers = append(plan.Steers, x)
		}
	}
	share := func(policy.PoolID) float64 { return 1 }
	plan.Launches, plan.Holds = placement.Shortages(s, share)
	for i := range s.Pools {
		if p := &s.Pools[i]; p.SelfProvisioned() {
			replan.Towards(s, p, 1, m, text, &plan)
		}
	}
	m.Decisions++
	return replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: share, UsedBelow: replan.ScaleDownUtilization,
		Keep: true, Tight: true})
}
