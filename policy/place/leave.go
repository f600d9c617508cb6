package place

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Leave plans to buy one node for the pods of n in one of the given markets, the
// cheapest that holds them, and to drain n once it is there. Markets that are not
// open are passed over, so that there may be no such node: it then plans nothing, or
// says in a hold why n stays. Reason and text stand in every entry.
//
// It changes sp by what it plans, as [Shift] does.
func Leave(s *policy.Snapshot, sp *Space, n policy.NodeID, markets []policy.MarketID, reason policy.Reason, text string) ([]policy.Launch, []policy.Drain, []policy.Hold) {
	node := &s.Nodes[n]
	at := Balance(s, node.Pool)
	m := mover{s: s, sp: sp, o: ShiftOptions{Pool: node.Pool, Reason: reason, Text: text}, pool: &s.Pools[node.Pool], at: at}
	m.from, m.to = s.Markets[node.Market].Capacity, s.Markets[node.Market].Capacity
	m.o.Share = float64(at.Spot) / float64(max(at.Total, 1))
	m.room, m.cover = RoomOf(s, node.Pool), s.Coverage()
	m.markets = slices.DeleteFunc(slices.Clone(markets), func(id policy.MarketID) bool { return !open(s, id) })
	byPrice(m.cover, m.markets)
	m.markets = m.markets[:min(len(m.markets), offersMax)]
	if len(m.markets) == 0 {
		return nil, nil, nil
	}
	pods, _, ok := m.movable(node)
	if !ok {
		return nil, nil, []policy.Hold{m.hold(n, policy.ReasonGuardrail, "a pod of the node must not be evicted")}
	}
	for i := range pods {
		sp.Unbind(&pods[i], n)
	}
	after := at
	after.Total -= m.size(node)
	if m.from == policy.Spot {
		after.Spot -= m.size(node)
	}
	m.replace(node, pods, after)
	for i := range pods {
		sp.Bind(&pods[i], n)
	}
	return m.launches, m.drains, m.holds
}
