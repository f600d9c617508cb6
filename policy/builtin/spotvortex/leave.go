package spotvortex

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// recommendedFor is how long a rebalance recommendation says something of a node,
// and comesTrue the part of recommendations that a reclaim follows in that time:
// users report many more than reclaims, and no measurement is known.
const (
	recommendedFor = time.Hour
	comesTrue      = 0.25
)

// leaveRecommended moves the nodes that the provider recommends to leave, if that pays: it compares
// the probable cost of a loss with the cost of the move and of the more expensive market for as
// long as the recommendation holds. Their own market is not a target.
func (t *turn) leaveRecommended(c *course) {
	most := t.s.Disruptable(c.pool.ID, policy.Underutilized) - placement.BalanceOf(t.s, c.pool.ID).Moving
	for i := range t.s.Nodes {
		n := &t.s.Nodes[i]
		if n.Pool != c.pool.ID || n.Market < 0 || !n.Usable() || n.ActedBy != policy.ActorNone || !recommended(t.s, n) ||
			c.memory.BackedOff(n.Name, t.s.Now) {
			continue
		}
		if most <= 0 {
			t.hold(c, policy.ReasonGuardrail, "the pool's disruption budget allows no disruption now")
			return
		}
		if t.leave(c, n) {
			most--
		}
	}
}

// recommended reports whether the provider recommends to leave n, and did so lately. EC2 says
// that of Spot instances only, and another node is not to become one for it.
func recommended(s *policy.Snapshot, n *policy.Node) bool {
	return s.Markets[n.Market].Capacity == policy.Spot && n.Recommended != 0 && s.Now.Sub(n.Recommended) <= recommendedFor
}

// leave moves n, or says once why it stays. It reports whether it moves.
func (t *turn) leave(c *course, n *policy.Node) bool {
	s, price := t.s, t.s.Markets[n.Market].Charge()
	edge := c.h.leaveEdge(n)
	var markets []policy.MarketID
	for _, id := range c.pool.Markets {
		m := &s.Markets[id]
		moves := m.Capacity != policy.Spot && c.pool.Share.Exact // it would miss the ratio
		if id != n.Market && m.Offered && !moves && (m.Charge()-price).Float()*recommendedFor.Hours() < edge {
			markets = append(markets, id)
		}
	}
	launches, drains, holds := replan.ReplaceNode(s, t.space, n.ID, markets, policy.ReasonRebalance,
		"the provider recommends leaving the node")
	if len(drains) > 0 {
		t.planned(launches, drains, holds)
		return true
	}
	if s.Now.Sub(n.Recommended) < t.cfg.Step {
		most := price + policy.Dollars(max(edge, 0)/recommendedFor.Hours())
		t.plan.Holds = append(t.plan.Holds, policy.Hold{Pool: n.Pool, Node: n.ID, Why: policy.Why{
			Reason: policy.ReasonNoEdge, Before: price, After: price, RunnerUp: "drain it now",
			Text: fmt.Sprintf("the provider recommends leaving the node; moving its pods would pay in a market of up to %s an hour, and no open market that fits them is that cheap", most.Short()),
		}})
	}
	return false
}

// leaveEdge returns the dollars that it saves to leave a node which the provider
// recommends to leave, at one price in both markets: what a loss costs without
// another node that is ready, as likely as it is, less what a move costs.
func (h *holdings) leaveEdge(n *policy.Node) float64 {
	t := h.tariff()
	loss := float64(h.value(t) * (float64(undoneCost*(h.boot()+h.restart())) +
		float64(h.features.Single*h.features.Penalty)))
	size := 1.0 // of n in nodes of the pool's mean size
	if h.carried > 0 {
		size = h.needs.part(&n.Allocatable) * float64(h.balance.Nodes) / h.carried
	}
	return float64(size * (float64(comesTrue*loss) - h.migrationCost(t)))
}
