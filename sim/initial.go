package sim

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
)

// start makes the cluster in which the warm-up starts. Pods that have a node are ready on it;
// all others are pending, in an empty cluster all of them.
func (la *launches) start() {
	switch la.scenario.StartCluster {
	case scenarios.StartNodes:
		la.startStated()
	case scenarios.StartOnDemand:
		la.startPacked()
	}
	for p := range la.pools.all {
		la.karpenter.wantReplicas(policy.PoolID(p))
	}
	for i := range len(la.pods.all) {
		if id := policy.PodID(i); la.pods.all[id].Phase == policy.PodPending && !la.queue.putStated(id) {
			if n, ok := la.sched.Pick(&la.pods.all[id]); ok {
				la.pods.bind(id, n)
				la.pods.ready(id)
			} else {
				la.queue.enqueue(id)
			}
		}
	}
}

// startStated adds the nodes that the scenario lists.
func (la *launches) startStated() {
	for _, s := range la.scenario.Seeds {
		if la.cfg.OnDemandStart {
			s.Market = onDemandMarket(la.scenario, s.Market)
		}
		if s.Market == policy.None {
			continue // no such node is sold on demand: its pods wait for another
		}
		for k := range s.Count {
			slot, ok := la.market.Slot(s.Market)
			if !ok {
				la.result.Warnings = append(la.result.Warnings, fmt.Sprintf("%d of %d nodes of %s are not started: the market has no more slots",
					s.Count-k, s.Count, la.scenario.Markets[s.Market].Name))
				break
			}
			la.queue.state(la.addReady(order{s.Pool, s.Market, slot, la.choiceFor(s)}), s.Pods)
		}
	}
}

// choiceFor returns the choice of labels that suits most of the pods which a node has from the
// start.
func (la *launches) choiceFor(s scenarios.NodeSeed) (best int) {
	most := int32(-1)
	for _, o := range la.prepared.offers[s.Pool] {
		if o.Market != s.Market {
			continue
		}
		suited := int32(0)
		for _, x := range s.Pods {
			if la.space.Suits(policy.TemplateID(x.Workload), o.Labels, o.Taints) == placement.OK {
				suited += x.Count
			}
		}
		if suited > most {
			best, most = o.Choice, suited
		}
	}
	return best
}

// onDemandMarket returns the market on demand of the type and zone of m, m where it is not of
// Spot nodes, and policy.None where there is none.
func onDemandMarket(w *scenarios.BoundScenario, m policy.MarketID) policy.MarketID {
	x := &w.Markets[m]
	if x.Capacity != policy.Spot {
		return m
	}
	i := slices.IndexFunc(w.Markets, func(y policy.Market) bool {
		return y.Capacity == policy.OnDemand && y.Type == x.Type && y.Zone == x.Zone && y.Region == x.Region && y.Provider == x.Provider
	})
	return policy.MarketID(i)
}

// startPacked buys the cheapest on-demand nodes that hold the first pods, as far
// as the pools' limits go, and puts each pod where it was packed.
func (la *launches) startPacked() {
	var pods []policy.Pod
	for i := range la.pods.all {
		if la.pods.all[i].Phase == policy.PodPending {
			pods = append(pods, la.pods.all[i])
		}
	}
	if len(pods) == 0 {
		return
	}
	offers := la.prepared.withoutStatic(la.prepared.onDemand(la.q.Now))
	bins, _, _ := placement.Pack(la.space, pods, offers)
	for _, b := range bins {
		for _, o := range b.Offers {
			m := offers[o].Market
			pool := &la.pools.all[offers[o].Pool]
			if !allowed(pool.Limits, pool.Used, la.scenario.Types[la.scenario.Markets[m].Type].Capacity) {
				continue
			}
			slot, ok := la.market.Slot(m)
			if !ok {
				continue
			}
			n := la.addReady(order{offers[o].Pool, m, slot, offers[o].Choice})
			for _, i := range b.Pods {
				if id := pods[i].ID; la.space.Check(&la.pods.all[id], n) == placement.OK {
					la.pods.bind(id, n)
					la.pods.ready(id)
				}
			}
			break
		}
	}
}

// state notes which pods the scenario has on node n from the start.
func (sq *schedulingQueue) state(n policy.NodeID, pods []scenarios.PodsOnNode) {
	for _, x := range pods {
		if sq.stated == nil {
			sq.stated = make([][]policy.NodeID, len(sq.scenario.Templates))
		}
		for range x.Count {
			sq.stated[x.Workload] = append(sq.stated[x.Workload], n)
		}
	}
}

// putStated puts a pending pod onto the next node that the scenario states for its
// workload, on which it is ready. It reports false where there is none. A node that lacks
// what the pod needs is passed over; where only rules of spread and affinity speak against
// it the pod is there nevertheless, as they bind when a pod is placed and not later.
func (sq *schedulingQueue) putStated(id policy.PodID) bool {
	if sq.stated == nil {
		return false
	}
	p := &sq.pods.all[id]
	for left := &sq.stated[p.Template]; len(*left) > 0; {
		n := (*left)[0]
		*left = (*left)[1:]
		switch why := sq.space.Check(p, n); why {
		case placement.OK, placement.Skewed, placement.Lonely, placement.Repelled, placement.RepelledByPod:
			sq.pods.bind(id, n)
			sq.pods.ready(id)
			return true
		default:
			x := &sq.nodes.all[n]
			warning := fmt.Sprintf("pods of %s that spec.nodes has on nodes of %s (%s) do not all fit there: %v", sq.scenario.Workloads[p.Template].Name,
				sq.scenario.Pools[x.Pool].Name, sq.scenario.Markets[x.Market].Name, why)
			if !slices.Contains(sq.result.Warnings, warning) {
				sq.result.Warnings = append(sq.result.Warnings, warning)
			}
		}
	}
	return false
}
