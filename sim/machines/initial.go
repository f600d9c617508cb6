package machines

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
)

// Start creates the nodes that exist when the warm-up starts, with their pods. An empty cluster has
// no nodes.
func (la *Launches) Start(onDemand bool) {
	switch la.Scenario.StartCluster {
	case scenarios.StartNodes:
		la.startStated(onDemand)
	case scenarios.StartOnDemand:
		la.startPacked()
	}
}

// startStated adds the nodes that the scenario lists. If onDemand is true, Spot nodes are replaced
// by on-demand nodes.
func (la *Launches) startStated(onDemand bool) {
	for _, s := range la.Scenario.Seeds {
		if onDemand {
			s.Market = onDemandMarket(la.Scenario, s.Market)
		}
		if s.Market == policy.None {
			continue // no such node is sold on demand; its pods wait for another
		}
		for k := range s.Count {
			slot, ok := la.Market.Slot(s.Market)
			if !ok {
				la.Result.Warnings = append(la.Result.Warnings,
					fmt.Sprintf("%d of %d nodes of %s are not started: the market has no more slots",
						s.Count-k, s.Count, la.Scenario.Markets[s.Market].Name))
				break
			}
			la.Queue.State(la.AddReady(Order{s.Pool, s.Market, slot, la.choiceFor(s)}), s.Pods)
		}
	}
}

// choiceFor returns the label choice that suits most of the pods that a node has at the start.
func (la *Launches) choiceFor(s scenarios.NodeSeed) (best int) {
	most := int32(-1)
	for _, o := range la.Prepared.Offers[s.Pool] {
		if o.Market != s.Market {
			continue
		}
		suited := int32(0)
		for _, x := range s.Pods {
			if la.Space.Suits(policy.TemplateID(x.Workload), o.Labels, o.Taints) == placement.OK {
				suited += x.Count
			}
		}
		if suited > most {
			best, most = o.Choice, suited
		}
	}
	return best
}

// onDemandMarket returns the on-demand market of the type and zone of m, m itself if it is not a
// Spot market, and policy.None if there is no such market.
func onDemandMarket(w *scenarios.BoundScenario, m policy.MarketID) policy.MarketID {
	x := &w.Markets[m]
	if x.Capacity != policy.Spot {
		return m
	}
	i := slices.IndexFunc(w.Markets, func(y policy.Market) bool {
		return y.Capacity == policy.OnDemand && y.Type == x.Type && y.Zone == x.Zone && y.Region == x.Region &&
			y.Provider == x.Provider
	})
	return policy.MarketID(i)
}

// startPacked adds the cheapest on-demand nodes that fit the first pods, within the pools' limits,
// and places each pod where it was packed.
func (la *Launches) startPacked() {
	var pods []policy.Pod
	for i := range la.Pods.All {
		if la.Pods.All[i].Phase == policy.PodPending {
			pods = append(pods, la.Pods.All[i])
		}
	}
	if len(pods) == 0 {
		return
	}
	offers := la.Prepared.WithoutStatic(la.Prepared.OnDemand(la.Clock.Now))
	for _, b := range placement.Pack(la.Space, pods, offers).Bins {
		for _, o := range b.Offers {
			m := offers[o].Market
			pool := &la.Pools.All[offers[o].Pool]
			if !Allowed(pool.Limits, pool.Used, la.Scenario.Types[la.Scenario.Markets[m].Type].Capacity) {
				continue
			}
			slot, ok := la.Market.Slot(m)
			if !ok {
				continue
			}
			n := la.AddReady(Order{offers[o].Pool, m, slot, offers[o].Choice})
			for _, i := range b.Pods {
				if id := pods[i].ID; la.Space.Check(&la.Pods.All[id], n) == placement.OK {
					la.Pods.Place(id, n)
				}
			}
			break
		}
	}
}
