package guard

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// WithinPriceMax returns p such that it respects the PriceMax of each pool: p sees only the markets
// that do not exceed it now, no bid exceeds it, and a Hold reports if no market is left. Running
// nodes stay, whatever their market costs by now.
func WithinPriceMax(p policy.Policy) policy.Policy { return &priced{p} }

// A priced is a policy that sees only the markets within each pool's PriceMax.
type priced struct{ policy policy.Policy }

// Name returns the name of the inner policy: PriceMax belongs to the pool.
func (x *priced) Name() string { return x.policy.Name() }

// Decide returns the plan of the inner policy on the markets that each pool can afford.
func (x *priced) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	if !slices.ContainsFunc(s.Pools, func(p policy.Pool) bool { return p.PriceMax > 0 }) {
		return x.policy.Decide(s, m)
	}
	view := *s
	view.Pools = slices.Clone(s.Pools)
	for i := range view.Pools {
		p := &view.Pools[i]
		p.Markets = slices.DeleteFunc(slices.Clone(p.Markets),
			func(id policy.MarketID) bool { return !p.Affords(&s.Markets[id]) })
	}
	plan, next := x.policy.Decide(&view, m)
	for i := range plan.Launches {
		if l := &plan.Launches[i]; l.Bid > 0 {
			l.Bid = s.Pools[l.Pool].Bid(l.Bid)
		}
	}
	for i := range plan.Steers {
		if st := &plan.Steers[i]; st.Bid > 0 {
			st.Bid = s.Pools[st.Pool].Bid(st.Bid)
		}
	}
	plan.Holds = slices.Clip(plan.Holds) // appending must not change the policy's own list
	for i := range s.Pools {
		if p := &s.Pools[i]; p.PriceMax > 0 && p.Mode != policy.ModeOff {
			plan.Holds = append(plan.Holds, tooDear(s, p)...)
		}
	}
	return plan, next
}

// tooDear returns a Hold for each capacity type of p whose offered markets all exceed PriceMax. If
// another type is affordable and no pod is pending, there is nothing to report.
func tooDear(s *policy.Snapshot, p *policy.Pool) []policy.Hold {
	var cheapest [policy.Reserved + 1]policy.MarketID
	var sold, left [policy.Reserved + 1]bool
	for _, id := range p.Markets {
		m := &s.Markets[id]
		if !m.Offered {
			continue
		}
		c := m.Capacity
		if !sold[c] || m.Charge() < s.Markets[cheapest[c]].Charge() {
			cheapest[c] = id
		}
		sold[c], left[c] = true, left[c] || p.Affords(m)
	}
	nothing := left == [policy.Reserved + 1]bool{}
	if !nothing && !slices.ContainsFunc(s.Pods, func(q policy.Pod) bool {
		return q.Phase == policy.PodPending &&
			!q.Gated
	}) {
		return nil
	}
	var holds []policy.Hold
	for c := range sold {
		if sold[c] && !left[c] {
			m := &s.Markets[cheapest[c]]
			holds = append(holds, policy.Hold{Pool: p.ID, Node: policy.None,
				Why: policy.Why{Reason: policy.ReasonConfigured, Text: fmt.Sprintf(
					"no %s node is bought: all cost more than maxPrice, %s an hour (the cheapest is %s in %s); pods that need one stay pending",
					policy.CapacityType(c), p.PriceMax.Short(), m.Charge().Short(), m.Name)}})
		}
	}
	return holds
}
