package sim

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
)

// start puts up the nodes that all policies find when warm-up begins: the
// scenario's, else the cheapest on-demand packing. Pods are ready on them.
func (ns *nodes) start() {
	if len(ns.scenario.Seeds) > 0 {
		for _, s := range ns.scenario.Seeds {
			for k := range s.Count {
				slot, ok := ns.market.Slot(s.Market)
				if !ok {
					ns.result.Warnings = append(ns.result.Warnings, fmt.Sprintf("%d of %d nodes of %s are left out: the market has no more slots",
						s.Count-k, s.Count, ns.scenario.Markets[s.Market].Name))
					break
				}
				_ = ns.addReady(s.Pool, s.Market, slot)
			}
		}
	} else {
		ns.startPacked()
	}
	for i := range len(ns.pods.all) {
		if id := policy.PodID(i); ns.pods.all[id].Phase == policy.PodPending {
			if n, ok := ns.sched.Pick(&ns.pods.all[id]); ok {
				ns.pods.bind(id, n)
				ns.pods.ready(id)
			} else {
				ns.queue.enqueue(id)
			}
		}
	}
}

// addReady puts up a node that is initialized at once.
func (ns *nodes) addReady(pool policy.PoolID, m policy.MarketID, slot int32) policy.NodeID {
	id := ns.add(pool, m, slot)
	n := &ns.all[id]
	n.Phase, n.Registered, n.Initialized = policy.NodeInitialized, ns.q.Now, ns.q.Now
	if ns.scenario.Markets[m].Auction() {
		n.Bid = ns.pools.standingBid(pool, []policy.MarketID{m})
	}
	ns.log.Add(ns.q.Now, engine.RecordLaunch, n.Name, ns.scenario.Markets[m].Name, 0)
	ns.planEnd(id)
	ns.open(id)
	return id
}

// startPacked buys the cheapest on-demand nodes that hold the first pods, as far
// as the pools' limits go, and puts each pod where it was packed.
func (ns *nodes) startPacked() {
	var pods []policy.Pod
	for i := range ns.pods.all {
		if ns.pods.all[i].Phase == policy.PodPending {
			pods = append(pods, ns.pods.all[i])
		}
	}
	if len(pods) == 0 {
		return
	}
	offers := ns.prepared.onDemand(ns.q.Now)
	bins, _, _ := placement.Pack(ns.space, pods, offers)
	for _, b := range bins {
		for _, o := range b.Offers {
			m := offers[o].Market
			pool := &ns.pools.all[offers[o].Pool]
			if !allowed(pool.Limits, pool.Used, ns.scenario.Types[ns.scenario.Markets[m].Type].Capacity) {
				continue
			}
			slot, ok := ns.market.Slot(m)
			if !ok {
				continue
			}
			n := ns.addReady(offers[o].Pool, m, slot)
			for _, i := range b.Pods {
				if id := pods[i].ID; ns.space.Check(&ns.pods.all[id], n) == placement.OK {
					ns.pods.bind(id, n)
					ns.pods.ready(id)
				}
			}
			break
		}
	}
}
