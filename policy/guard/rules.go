package guard

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// whyHeld returns why the drain d is held; the reason is empty if it is allowed. Conditions of the
// node are checked first, then conditions that may change by the next step.
func (r *review) whyHeld(d *policy.Drain, l *leavingNode) (policy.Reason, string) {
	n := &r.s.Nodes[d.Node]
	switch {
	case n.Phase == policy.NodeGone || n.Phase >= policy.NodeDraining:
		return policy.ReasonInProgress, "in progress: the node is already being removed"
	case n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs:
		return policy.ReasonInProgress, "in progress: another controller is draining the node"
	case n.ReclaimAt != 0:
		return "", ""
	case n.Pool == policy.None:
		return policy.ReasonGuardrail, "scope: the node belongs to no pool"
	}
	p := &r.pools[n.Pool]
	p.planned = true
	if n.ActedBy == policy.ActorUs {
		return policy.ReasonInProgress, "in progress: the node's drain is already ordered"
	}
	if text := r.s.Pools[n.Pool].Closed(); text != "" {
		return policy.ReasonGuardrail, text
	}
	if r.stale != "" {
		return policy.ReasonStale, r.stale
	}
	if reason, text := r.tooSoon(d, n); reason != "" {
		return reason, text
	}
	if text := r.disturbs(d, l, n); text != "" {
		return policy.ReasonGuardrail, text
	}
	if text := r.pastLimit(d, n, l); text != "" {
		return policy.ReasonGuardrail, text
	}
	if text := r.tooFull(d, l, n); text != "" {
		return policy.ReasonGuardrail, text
	}
	if change := r.s.DrainChange(d.Node); !r.s.Pools[n.Pool].Approves(change) {
		return policy.ReasonApproval, policy.Proposal + change
	}
	return "", ""
}

// tooSoon holds nodes that were moved or tried recently, except for drains that follow a rebalance
// recommendation of the provider.
func (r *review) tooSoon(d *policy.Drain, n *policy.Node) (policy.Reason, string) {
	pool := &r.s.Pools[n.Pool]
	m := r.before.Pool(pool.Name)
	if m.BackedOff(n.Name, r.s.Now) {
		return policy.ReasonCooldown, "back-off: the node's last drain did not complete"
	}
	cooldown := pool.Cooldown
	if cooldown == 0 {
		cooldown = r.cfg.Cooldown
	}
	if d.Why.Reason == policy.ReasonRisk {
		// The pool's own cooldown is for changes that save money; nodes leave a market that is
		// becoming unsafe earlier.
		cooldown = min(cooldown, r.cfg.Cooldown)
	}
	if d.Why.Reason != policy.ReasonRebalance && m.Moved != 0 && r.s.Now.Sub(m.Moved) < cooldown {
		return policy.ReasonCooldown, "cooldown: nodes of the pool were moved recently"
	}
	return "", ""
}

// disturbs holds drains that the node or its pods forbid.
func (r *review) disturbs(d *policy.Drain, l *leavingNode, n *policy.Node) string {
	switch {
	case n.DoNotDisrupt:
		return "do-not-disrupt: the node is annotated"
	case n.AtGroupMin:
		return "minimum size: the node's group would launch a replacement"
	case l.pinned:
		return "do-not-disrupt: a pod on the node must not be evicted"
	case l.unevictable:
		return "PDB slack: a disruption budget allows no eviction"
	case l.replacementHeld && !l.replaced:
		return "low confidence: its replacement is held"
	case l.critical && l.pods > 0 && len(d.After) == 0:
		return "critical workload: it moves only after its replacement is ready"
	}
	return ""
}

// tooFull holds drains that leave too little free capacity for the displaced pods. Drains allowed
// before count as done.
func (r *review) tooFull(d *policy.Drain, l *leavingNode, n *policy.Node) string {
	if l.pods == 0 {
		return ""
	}
	p, pool := &r.pools[n.Pool], &r.s.Pools[n.Pool]
	used := utilization(p.requested, p.allocatable)
	if !pool.Levers.Launch && pool.Provisioner != policy.ProvisionerNone {
		// Only pending pods make the provisioner buy here, so no replacement can be ready first:
		// one node moves at a time.
		if used > r.cfg.UtilizationTight && p.ours+p.drained > 0 {
			return "high utilization: only the provisioner can buy here, so one node moves at a time"
		}
		return ""
	}
	switch {
	case used > r.cfg.UtilizationFull && len(d.After) == 0:
		return "high utilization: the replacement must be ready first"
	case used > r.cfg.UtilizationTight && len(d.After) == 0 && !l.replaced && !r.fitsElsewhere(d, l):
		return "high utilization: the pool has no room without a replacement"
	}
	if (l.replaced || len(d.After) > 0) && !r.enoughCapacity(d) {
		return "replacements: they have less capacity than what they replace, and there is no room for the rest"
	}
	return ""
}

// pastLimit holds drains that exceed a limit of the pool or of the cluster.
func (r *review) pastLimit(d *policy.Drain, n *policy.Node, l *leavingNode) string {
	p, pool := &r.pools[n.Pool], &r.s.Pools[n.Pool]
	left := p.underutilized
	if d.Why.Reason == policy.ReasonEmpty && l.pods == 0 {
		left = p.empty
	}
	spot, total := r.shareAfter(d)
	switch {
	case left <= 0:
		return "drain budget: the pool's disruption budget is used up"
	case r.movesLeft <= 0:
		return "cluster fraction: the limit of nodes being removed is reached"
	case r.trust.buysUntrusted(d, n, l):
		return "low confidence: no forecast for its Spot markets is reliable"
	case total == 0 || p.total == 0:
		return ""
	}
	grain := 0.0
	if pool.Share.Exact && n.Market != policy.None {
		grain = float64(share.Units(r.s, n.Pool, n.Market)) / 2 / float64(total)
	}
	return leavesRange(&pool.Share, float64(p.spot)/float64(p.total), float64(spot)/float64(total), grain)
}

// leavesRange returns why a move from share before to share after leads out of x; it is empty if
// the move does not. Whole nodes may not be able to meet a narrow range: a distance below grain
// counts as within, and a move that starts outside may end on the other side if it ends nearer.
func leavesRange(x *policy.ShareRange, before, after, grain float64) string {
	off := func(share float64) float64 { return max(0, x.Min-share, share-x.Max) }
	switch {
	case after == before || off(after) == 0 || off(after) < max(grain, off(before)):
		return ""
	case after < before:
		return "Spot share: it would fall below the pool's minimum"
	}
	return "Spot share: it would rise above the pool's maximum"
}
