package spotvortex

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// recommendedFor is how long a rebalance recommendation for a node is relevant, and comesTrue the
// fraction of recommendations that a reclaim follows in that time: users report many more
// recommendations than reclaims, and no measurement is known.
const (
	recommendedFor = time.Hour
	comesTrue      = 0.25
)

// leaveRecommended moves the nodes that the provider recommends leaving, if that pays for itself:
// it compares the expected cost of a loss with the cost of the move and of the more expensive
// market for as long as the recommendation is relevant. Their own market is not a target.
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

// recommended reports whether the provider recently recommended leaving n. EC2 makes such
// recommendations only for Spot instances; a node that is not Spot is never considered recommended.
func recommended(s *policy.Snapshot, n *policy.Node) bool {
	return s.Markets[n.Market].Capacity == policy.Spot && n.Recommended != 0 && s.Now.Sub(n.Recommended) <= recommendedFor
}

// leave moves n, or reports once in a hold why it stays. It reports whether n moves.
func (t *turn) leave(c *course, n *policy.Node) bool {
	s, price := t.s, t.s.Markets[n.Market].Charge()
	edge := c.h.leaveEdge(n)
	var markets []policy.MarketID
	for _, id := range c.pool.Markets {
		m := &s.Markets[id]
		moves := m.Capacity != policy.Spot && c.pool.Share.Exact // it would violate the exact ratio
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

// leaveEdge returns the saving in dollars of leaving a node that the provider recommends leaving,
// at equal prices in both markets: the cost of a loss without a ready replacement times its
// probability, less the cost of a move.
func (h *holdings) leaveEdge(n *policy.Node) float64 {
	t := h.tariff()
	loss := float64(h.value(t) * (float64(undoneCost*(h.boot()+h.restart())) +
		float64(h.features.Single*h.features.Penalty)))
	size := 1.0 // size of n relative to a node of the pool's mean size
	if h.carried > 0 {
		size = h.needs.part(&n.Allocatable) * float64(h.balance.Nodes) / h.carried
	}
	return float64(size * (float64(comesTrue*loss) - h.migrationCost(t)))
}
