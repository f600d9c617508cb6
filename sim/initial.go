package sim

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// start puts up the nodes that all policies find when warm-up begins: the
// scenario's, else the cheapest on-demand packing. Pods are ready on them.
func (la *launches) start() {
	if len(la.scenario.Seeds) > 0 {
		for _, s := range la.scenario.Seeds {
			for k := range s.Count {
				slot, ok := la.market.Slot(s.Market)
				if !ok {
					la.result.Warnings = append(la.result.Warnings, fmt.Sprintf("%d of %d nodes of %s are left out: the market has no more slots",
						s.Count-k, s.Count, la.scenario.Markets[s.Market].Name))
					break
				}
				_ = la.addReady(s.Pool, s.Market, slot)
			}
		}
	} else {
		la.startPacked()
	}
	for i := range len(la.pods.all) {
		if id := policy.PodID(i); la.pods.all[id].Phase == policy.PodPending {
			if n, ok := la.sched.Pick(&la.pods.all[id]); ok {
				la.pods.bind(id, n)
				la.pods.ready(id)
			} else {
				la.queue.enqueue(id)
			}
		}
	}
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
	offers := la.prepared.onDemand(la.q.Now)
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
			n := la.addReady(offers[o].Pool, m, slot)
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
