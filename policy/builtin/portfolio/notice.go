package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// replace buys nodes for the pods of nodes that were just put under notice, as
// far as others have no room: a provisioner would wait until the pods have been
// evicted, and budgets let these go only one after the other.
func (d *planState) replace() {
	s := d.s
	var pods []policy.Pod
	var nodes []policy.NodeID
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == d.pool.ID && n.ReclaimAt != 0 && n.Phase == policy.NodeInitialized && n.ActedBy == policy.ActorNone {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return
	}
	m := rebalance{planState: d, at: placement.BalanceOf(s, d.pool.ID)}
	m.survey()
	m.findRoom()
	for _, n := range nodes {
		left := trial{node: &s.Nodes[n]}
		m.unload(&left)
		pods = append(pods, left.pods...)
	}
	largestFirst(s, pods)
	t := trial{node: &s.Nodes[nodes[0]], pods: pods}
	for i := range pods {
		to := m.target(&pods[i], policy.None)
		t.at = append(t.at, to)
		if to >= 0 {
			m.sp.Bind(&pods[i], to)
		} else {
			t.rest, t.index = append(t.rest, pods[i]), append(t.index, i)
		}
	}
	defer func() { d.sp = nil }() // what was placed on paper stands in it
	if len(t.rest) == 0 {
		return
	}
	m.evaluate()
	m.offers = m.sorts[of(m.spotFor(&s.Nodes[nodes[0]]))].offers
	m.buy(&t)
	why := policy.Why{Reason: policy.ReasonNotice, Text: "the pods of nodes under notice fit on no other node", After: t.after}
	for i := range t.bins {
		d.out.Launches = append(d.out.Launches, m.launch(&t, i, why))
	}
}
