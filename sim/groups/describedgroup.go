package groups

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/market"
)

// keepWhole creates one group for a pool that the scenario describes as a group. The group takes
// the place of both twins of its class.
func (sg *scalingGroups) keepWhole(p *policy.Pool, own *scenarios.ScalingGroup) {
	i := int32(len(sg.all))
	sg.all = append(sg.all, scalingGroup{pool: p.ID, own: own, markets: p.Markets})
	sg.classes[p.ID] = []class{{[2]int32{i, i}}}
	sg.of[p.ID] = slices.Repeat([]int32{-1}, len(sg.Scenario.Markets))
	for _, m := range p.Markets {
		sg.of[p.ID][m] = i
	}
	// The Cluster Autoscaler uses the first type, of any capacity type, as the template for new
	// nodes.
	offers := sg.Prepared.Offers[p.ID]
	rank := sg.rankOf(own)
	sg.all[i].template = slices.MinFunc(slices.Clone(offers), func(a, b placement.Offer) int {
		return cmp.Or(cmp.Compare(rank(a.Market), rank(b.Market)), cmp.Compare(a.Market, b.Market))
	})
}

// rankOf returns a function that maps a market to the index of its type in the order of the group.
func (sg *scalingGroups) rankOf(own *scenarios.ScalingGroup) func(policy.MarketID) int {
	return func(m policy.MarketID) int {
		return slices.Index(own.Types, sg.Scenario.Types[sg.Scenario.Markets[m].Type].Name)
	}
}

// kindsOf returns the capacity types that the next instance of group i may have, in order of
// preference. Without a steer, a described group follows its own settings: AWS does not launch
// on-demand instances in place of Spot. With a steer, the policy's settings apply. A group of a
// pair has one capacity type, and callers ignore the result for it.
func (sg *scalingGroups) kindsOf(i int32) []policy.CapacityType {
	g := &sg.all[i]
	state := &sg.Pools.State[g.pool]
	switch {
	case g.own == nil:
		return []policy.CapacityType{policy.OnDemand}
	case sg.ordered != nil:
		return []policy.CapacityType{*sg.ordered}
	case !sg.Pools.All[g.pool].Steer.Set || state.Mixed:
		if sg.onDemandIn(i) < g.own.OnDemandOf(g.desired) {
			return []policy.CapacityType{policy.OnDemand}
		}
		return []policy.CapacityType{policy.Spot}
	case !sg.Pools.WantsSpot(g.pool, g.template.Market):
		return []policy.CapacityType{policy.OnDemand}
	case state.Fallback:
		return []policy.CapacityType{policy.Spot, policy.OnDemand}
	}
	return []policy.CapacityType{policy.Spot}
}

// onDemandIn returns the number of running on-demand instances of group i.
func (sg *scalingGroups) onDemandIn(i int32) (n int) {
	for k := range sg.Nodes.All {
		id := policy.NodeID(k)
		if sg.Runs(policy.NodeID(k)) && !sg.Nodes.State[k].Spot && sg.index(id) == i {
			n++
		}
	}
	return n
}

// allocate chooses among markets of one zone with the provider's allocation strategy for the group.
func (sg *scalingGroups) allocate(g *scalingGroup, markets []policy.MarketID, bid policy.Money) (policy.MarketID,
	int32, bool) {
	if len(markets) == 0 {
		return 0, 0, false
	}
	a := market.Allocation{Bid: bid, Number: sg.Launches.Number}
	if g.own != nil {
		spot := sg.Scenario.Markets[markets[0]].Capacity == policy.Spot
		a.Strategy = g.own.Spot
		if spot && g.own.Spot == scenarios.CapacityOptimizedPrioritized || !spot && g.own.Prioritized {
			a.Rank = sg.rankOf(g.own)
		}
	}
	return sg.Market.Allocate(markets, a)
}
