package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/share"
)

// ReplaceNode plans to buy one node for the pods of n in the cheapest of the given
// markets that holds them, and to drain n once it is ready. Markets that are not open
// are skipped. Where no node can be bought it plans nothing, or says in a hold why n
// stays. Reason and text are those of every entry.
//
// It asks for the space where markets are open, and changes it by what it plans, as
// [Rebalance] does.
func ReplaceNode(s *policy.Snapshot, space func() *Space, n policy.NodeID, markets []policy.MarketID, reason policy.Reason, text string) ([]policy.Launch, []policy.Drain, []policy.Hold) {
	node := &s.Nodes[n]
	at := BalanceOf(s, node.Pool)
	m := rebalancer{s: s, o: RebalanceOptions{Pool: node.Pool, Reason: reason, Text: text}, pool: &s.Pools[node.Pool], at: at}
	m.from, m.to = s.Markets[node.Market].Capacity, s.Markets[node.Market].Capacity
	m.o.Share = float64(at.Spot) / float64(max(at.Total, 1))
	m.headroom, m.cover = HeadroomOf(s, node.Pool), billing.CoverageOf(s)
	m.markets = slices.DeleteFunc(slices.Clone(markets), func(id policy.MarketID) bool { return !open(s, id) })
	byPrice(m.cover, m.markets)
	m.markets = m.markets[:min(len(m.markets), offersMax)]
	if len(m.markets) == 0 {
		return nil, nil, nil
	}
	sp := space()
	m.sp = sp
	pods, _, ok := m.movable(node)
	if !ok {
		return nil, nil, []policy.Hold{m.hold(n, policy.ReasonGuardrail, "a pod on the node must not be evicted")}
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

// replace plans to buy nodes for pods, which are bound nowhere, and to drain n once
// they are ready. Where only the provisioner can buy, n is drained at once.
func (m *rebalancer) replace(n *policy.Node, pods []policy.Pod, after Balance) bool {
	launches := m.pool.Levers.Launch || m.pool.Provisioner == policy.ProvisionerNone
	if len(pods) == 0 {
		if m.overshoots(after, n) {
			return false
		}
		m.drain(n, nil, policy.None)
		m.at = after
		return true
	}
	bought := m.replacements(pods, launches)
	if len(bought) == 0 {
		m.holds = append(m.holds, m.hold(n.ID, policy.ReasonInfeasible, "no offered node of the other capacity type fits its pods"))
		return false
	}
	for _, markets := range bought {
		size := share.Units(m.s, m.o.Pool, markets[0])
		after.Total += size
		if m.to == policy.Spot {
			after.Spot += size
		}
	}
	if m.overshoots(after, n) {
		return false
	}
	m.at = after
	if !launches {
		m.drain(n, nil, bought[0][0])
		return true
	}
	m.launch(n, bought)
	return true
}

// splitMax is the most nodes that replace one.
const splitMax = 4

// replacements returns, for each node to be bought for pods, the markets in which
// it may be, cheapest first. It is one node; in a pool without a provisioner also
// several, where they cost less together, as in an auction in which small machines
// are far cheaper than large ones.
func (m *rebalancer) replacements(pods []policy.Pod, launches bool) [][]policy.MarketID {
	single := m.holding(pods, launches)
	if !m.pool.SelfProvisioned() {
		if len(single) == 0 {
			return nil
		}
		return [][]policy.MarketID{single}
	}
	offers := make([]Offer, 0, offersAtOnce)
	for i := 0; i < len(m.markets) && len(offers) < offersAtOnce; i++ {
		if m.headroom.Has(m.markets[i]) {
			offers = append(offers, m.offer(i))
		}
	}
	packing := Pack(m.sp, pods, offers)
	bins := packing.Bins
	several := len(bins) > 0 && len(bins) <= splitMax && len(packing.Unplaced) == 0
	switch {
	case several && (len(single) == 0 || packing.Total < offered(m.cover, m.s, m.o.Pool, single[0])):
	case len(single) == 0:
		return nil
	default:
		return [][]policy.MarketID{single}
	}
	all := make([][]policy.MarketID, len(bins))
	left := m.headroom.Clone()
	for i := range bins {
		for _, o := range bins[i].Offers {
			if len(all[i]) < marketsMax && left.Has(offers[o].Market) {
				all[i] = append(all[i], offers[o].Market)
			}
		}
		if len(all[i]) == 0 {
			return nil // limits or quotas do not allow all of them
		}
		left.Take(all[i])
	}
	return all
}

// holding returns up to marketsMax markets of the other type, cheapest first,
// in which one node holds all of pods; with several nodes allowed, the
// cheapest market of the first of them.
func (m *rebalancer) holding(pods []policy.Pod, oneNode bool) []policy.MarketID {
	var need policy.Resources
	for i := range pods {
		need = need.Plus(m.s.Templates[pods[i].Template].Requests)
	}
	for next := 0; next < len(m.markets); {
		offers := m.tried[:0]
		for ; next < len(m.markets) && len(offers) < offersAtOnce; next++ {
			id := m.markets[next]
			fits := !oneNode || need.Within(m.s.Types[m.s.Markets[id].Type].Allocatable)
			if fits && m.headroom.Has(id) {
				offers = append(offers, m.offer(next))
			}
		}
		m.tried = offers
		if len(offers) == 0 {
			continue
		}
		x := Provision(m.sp, pods, offers)
		if len(x.Unplaced) > 0 || len(x.Bins) == 0 || oneNode && len(x.Bins) > 1 {
			continue
		}
		markets := make([]policy.MarketID, 0, marketsMax)
		for _, i := range x.Bins[0].Offers {
			if len(markets) < marketsMax {
				markets = append(markets, offers[i].Market)
			}
		}
		return markets
	}
	return nil
}

// offer returns the offer of the i-th market, made once.
func (m *rebalancer) offer(i int) Offer {
	if m.offers == nil {
		m.offers = make([]Offer, len(m.markets))
	}
	if m.offers[i].Labels == nil {
		m.offers[i] = offerOf(m.s, m.cover, m.o.Pool, m.markets[i])
	}
	return m.offers[i]
}
