package portfolio

import "github.com/spotter-dev/spotter/policy"

// replace buys nodes for the pods of nodes that were just put under notice, as
// far as others have no free capacity: a provisioner would wait until the pods have been
// evicted, and budgets let these go only one after the other.
func (d *planState) replace() {
	s := d.s
	var pods []policy.Pod
	var nodes []policy.NodeID
	for _, id := range d.e.nodes.odd {
		n := &d.e.nodes.all[id]
		if n.pool == d.pool.ID && n.reclaimed && n.phase == policy.NodeInitialized && n.actedBy == policy.ActorNone {
			nodes = append(nodes, id)
		}
	}
	if len(nodes) == 0 {
		return
	}
	m := d.newRebalance()
	m.places.findAvailable()
	for _, n := range nodes {
		there, _ := m.places.unload(n)
		pods = append(pods, there...)
	}
	largestFirst(s, pods)
	t := trial{node: &s.Nodes[nodes[0]], pods: pods}
	for i := range pods {
		to := m.places.target(&pods[i], policy.None)
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
	m.offers.evaluate()
	m.offers.read()
	t.offers = m.offers.sorts[of(m.balance.spotFor(&s.Nodes[nodes[0]]))].offers
	t.own = len(t.offers)
	m.buy(&t)
	why := policy.Why{Reason: policy.ReasonNotice, Text: "the pods of nodes under notice fit on no other node", After: t.after}
	for i := range t.bins {
		if !m.offers.headroom.Has(t.offers[t.bins[i].Offers[0]].Market) {
			continue
		}
		d.out.Launches = append(d.out.Launches, m.launch(&t, i, why))
	}
}
