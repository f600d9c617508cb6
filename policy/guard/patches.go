package guard

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// patches allows deletion costs for at most PatchesMax pods, in the order of the plan, and holds
// the others, which the policy plans again in the next step. Pods of nodes in no managed pool are
// left unchanged.
func (r *review) patches(costs []policy.DeletionCost) {
	s := r.s
	r.wanted = scratch.Zeroed(r.wanted, len(s.Nodes))
	for i := range costs {
		r.wanted[costs[i].Node] = int32(i + 1)
	}
	pods := make([]int, len(costs))
	r.placed.read(s)
	for i := range costs {
		if r.wanted[costs[i].Node] != int32(i+1) {
			continue // planned twice: the last entry counts
		}
		for _, id := range r.placed.on(costs[i].Node) {
			if costs[i].Ranks(s, &s.Pods[id]) {
				pods[i]++
			}
		}
	}
	r.plan.DeletionCosts = make([]policy.DeletionCost, 0, len(costs))
	left, held, first := r.cfg.PatchesMax, 0, -1
	for i := range costs {
		n := &s.Nodes[costs[i].Node]
		if n.Pool == policy.None || s.Pools[n.Pool].Mode == policy.ModeOff {
			r.hold(n.Pool, n.ID, &costs[i].Why, policy.ReasonGuardrail, "scope: the node is in no pool managed by Spotter")
			continue
		}
		if pods[i] > left && left < r.cfg.PatchesMax || held > 0 {
			held += pods[i]
			if first < 0 {
				first = i
			}
			continue
		}
		left -= pods[i]
		r.plan.DeletionCosts = append(r.plan.DeletionCosts, costs[i])
	}
	if held > 0 {
		x := &costs[first]
		r.hold(s.Nodes[x.Node].Pool, policy.None, &x.Why, policy.ReasonGuardrail,
			fmt.Sprintf("patches: deletion cost postponed for %s, at most %d are written per step", figures.Count(held, "pod"),
				r.cfg.PatchesMax))
	}
}
