package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// pack groups the pods of t that have no place onto nodes to be bought, and reports
// whether there are nodes for all of them. Where they are to go apart, each round
// takes no more pods of a workload than may stand in one market, and the next buys in
// other markets. A small pool, on each node of which stands more than a service can
// lose, would else stay on demand for ever; where any other move pays, that comes
// first, and pods spread by themselves.
func (m *rebalance) pack(t *trial) bool {
	t.bins = t.bins[:0]
	left := make([]int, len(t.rest))
	for i := range left {
		left[i] = i
	}
	for offers := m.offers; len(left) > 0; {
		now := left
		if left = nil; t.apart {
			now, left = m.divide(t, now)
		}
		pods := make([]policy.Pod, len(now))
		for k, i := range now {
			pods[k] = t.rest[i]
		}
		bins, unplaced, _ := placement.Pack(m.sp, pods, offers)
		if len(unplaced) > 0 {
			return false
		}
		var used []policy.MarketID
		for _, b := range bins {
			used = append(used, offers[b.Offers[0]].Market)
			for k := range b.Pods {
				b.Pods[k] = now[b.Pods[k]]
			}
			if len(offers) < len(m.offers) {
				for k := range b.Offers {
					b.Offers[k] = slices.IndexFunc(m.offers, func(o placement.Offer) bool { return o.Market == offers[b.Offers[k]].Market })
				}
			}
			t.bins = append(t.bins, b)
		}
		if len(left) == 0 {
			break
		}
		offers = slices.DeleteFunc(slices.Clone(offers), func(o placement.Offer) bool { return slices.Contains(used, o.Market) })
	}
	return true
}

// divide splits pods, indices into what of t has no place, into those that may stand in
// one market together and those above a limit.
func (m *rebalance) divide(t *trial, pods []int) (together, rest []int) {
	counts := make([]int32, len(t.limits))
	for _, i := range pods {
		w := m.s.Templates[t.rest[i].Template].Workload
		k := slices.IndexFunc(t.limits, func(l limit) bool { return l.workload == w })
		if k >= 0 {
			if counts[k] >= max(1, t.limits[k].market) {
				rest = append(rest, i)
				continue
			}
			counts[k]++
		}
		together = append(together, i)
	}
	return together, rest
}

// surplus reports whether more pods of w have no place than one market may take.
func (m *rebalance) surplus(t *trial, w policy.WorkloadID) bool {
	n := int32(0)
	for i := range t.rest {
		if m.s.Templates[t.rest[i].Template].Workload == w {
			n++
		}
	}
	l := limitOf(t.limits, w)
	return l != nil && n > max(1, l.market)
}
