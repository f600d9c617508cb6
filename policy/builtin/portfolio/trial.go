package portfolio

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A trial is an attempt to empty one node.
type trial struct {
	node   *policy.Node
	pods   []policy.Pod
	at     []policy.NodeID // by pod, the node to which it moves; None for pods in bins
	rest   []policy.Pod    // the pods that need new nodes; index is their index in pods
	index  []int
	offers []placement.Offer // for rest, at prices with their risk
	own    int               // the first own offers are for pods that fit Spot nodes; the others are on-demand
	bins   []placement.Bin
	to     []policy.MarketID // by pod, the market to which it moves
	moving float64           // cost of the pods that are missing meanwhile, dollars
	began  int               // number of tentative moves before

	// before and after are the costs of the nodes per hour, and risk is the additional expected
	// loss per hour with markets and zones.
	before, after, risk policy.Money
}

// podMove returns the move of the i-th pod of t to market to.
func (t *trial) podMove(s *policy.Snapshot, i int, to policy.MarketID) podMove {
	return podMove{s.Templates[t.pods[i].Template].Workload, t.node.ID, to}
}

// with returns t with nodes that cost the given dollars per hour more.
func (t *trial) with(more float64) *trial {
	x := *t
	x.after += policy.Dollars(more)
	return &x
}

// try plans to empty n if that pays for itself.
func (m *rebalance) try(n *policy.Node) {
	t := trial{node: n, before: policy.Dollars(m.prices.keeping(n))}
	switch {
	case m.cannotPay(&t):
	case !m.place(&t):
	case m.settle(&t):
		m.carryOut(&t)
	default:
		m.unplace(&t)
	}
}

// hopeless reports whether t does not pay for itself even if the new nodes cost no more than the
// floor. The check takes a fraction of the time of a search for the nodes.
func (m *rebalance) hopeless(t *trial) bool {
	spot := m.balance.spotFor(t.node)
	if len(t.rest) == 0 || len(t.offers) != len(m.offers.on(spot)) {
		return false // nothing is bought, or what commitments pay for
	}
	var need policy.Resources
	for i := range t.rest {
		need = need.Plus(m.s.Templates[t.rest[i].Template].Requests)
	}
	least := *t
	least.after = m.offers.least(spot, &need)
	return !m.payoff.pays(&least)
}

// cannotPay reports whether t does not pay for itself wherever the pods of its node are placed.
// Each pod that requests more CPU or memory than is free on any other node needs a new node, at
// least at the floor; the others are assumed to fit. It changes nothing in m, and takes a fraction
// of the time of a search for places.
func (m *rebalance) cannotPay(t *trial) bool {
	if t.node.Recommended != 0 {
		return false // the saving of leaving depends on more
	}
	var need policy.Resources
	rest := false
	for _, p := range m.e.pods.on(t.node.ID) {
		x := &m.s.Templates[p.template]
		if x.Workload >= 0 {
			t.moving += m.costs.each[x.Workload]
		}
		if !m.places.fitsBeside(t.node.ID, x.Requests) {
			need, rest = need.Plus(x.Requests), true
		}
	}
	least := *t
	if spot := m.balance.spotFor(t.node); rest && (!spot || len(m.offers.paidFor()) == 0) {
		if len(m.offers.on(spot)) == 0 {
			return true
		}
		least.after = m.offers.least(spot, &need)
	}
	return !m.payoff.pays(&least)
}

// place unbinds the pods of the node, binds those that fit on other nodes there, and finds the
// offers for the rest. If other pods are planned to move to the node, it changes nothing and
// reports false.
func (m *rebalance) place(t *trial) bool {
	n := t.node
	var alone bool
	if t.pods, alone = m.places.unload(n.ID); !alone {
		return false
	}
	t.moving, t.began = m.payoff.moving(t.pods), len(m.e.moved)
	for i := range t.pods {
		to := m.places.target(&t.pods[i], n.ID)
		t.at = append(t.at, to)
		if to < 0 {
			t.rest, t.index = append(t.rest, t.pods[i]), append(t.index, i)
			continue
		}
		m.sp.Bind(&t.pods[i], to)
		m.e.move(t.podMove(m.s, i, m.places.marketOf(to)))
	}
	spot := m.balance.spotFor(n)
	t.offers = m.offers.on(spot)
	if free := m.offers.paidFor(); spot && len(free) > 0 {
		t.offers = append(free, t.offers...)
	}
	t.own = len(t.offers)
	if spot && slices.ContainsFunc(t.rest, m.fixed) {
		t.offers = slices.Concat(t.offers, m.offers.on(false))
	}
	return true
}

// fixed reports whether p fits no Spot node.
func (m *rebalance) fixed(p policy.Pod) bool { return m.demand.fixed[p.Template] }

// unplace undoes place.
func (m *rebalance) unplace(t *trial) {
	m.e.undo(t.began)
	for i := range t.pods {
		if t.at[i] >= 0 {
			m.sp.Unbind(&t.pods[i], t.at[i])
		}
		m.sp.Bind(&t.pods[i], t.node.ID)
	}
}

// groupsLeft is the maximum number of searches for nodes, each of which excludes the market or zone
// with the highest risk in the one before.
const groupsLeft = 4

// settle finds the best nodes to buy with which t pays for itself, including the added risk, and
// moves the pods there tentatively. It reports whether there are such nodes.
func (m *rebalance) settle(t *trial) bool {
	if m.hopeless(t) {
		return false
	}
	placed := len(m.e.moved)
	for range groupsLeft {
		if !m.buyFew(t) || !m.balance.keepsShare(t) || !m.payoff.pays(t) {
			return false
		}
		for _, i := range t.index {
			m.e.move(t.podMove(m.s, i, t.to[i]))
		}
		if !m.e.spread.keptBy(m.e.moved[t.began:]) {
			m.e.undo(placed)
			return false
		}
		added := m.risk.since(t.began)
		if t.risk = policy.Dollars(added.sum); m.payoff.pays(t) {
			return true
		}
		m.e.undo(placed)
		if added.workload < 0 {
			return false
		}
		m.refusals.add(t.node.ID, added.workload, added.group)
		t.leaveOut(func(o *placement.Offer) bool { return inGroup(m.s, added.group, o.Market) })
	}
	return false
}

// buyFew finds the nodes to buy for the rest of the pods. If it takes more than splitMax, it
// excludes small nodes and tries again.
func (m *rebalance) buyFew(t *trial) bool {
	found := m.buy(t)
	for parts := int64(splitMax); len(t.bins) > splitMax && parts > 0; parts /= 2 {
		m.leaveSmall(t, parts)
		found = m.buy(t)
	}
	return found
}

// leaveSmall excludes offers of which the given number of nodes is too small for the requests of
// the rest of the pods.
func (m *rebalance) leaveSmall(t *trial, parts int64) {
	var need [2]policy.Resources // for most pods, and for pods that fit only on-demand nodes
	for i := range t.rest {
		k := of(t.own < len(t.offers) && m.fixed(t.rest[i]))
		need[k] = need[k].Plus(m.s.Templates[t.rest[i].Template].Requests)
	}
	own := t.own
	at := -1
	t.leaveOut(func(o *placement.Offer) bool {
		at++
		return !need[of(at >= own)].Within(o.Allocatable.Scale(parts))
	})
}

// leaveOut removes the offers for which out returns true from t. It calls out once for each, in
// order.
func (t *trial) leaveOut(out func(*placement.Offer) bool) {
	kept := make([]placement.Offer, 0, len(t.offers))
	own := 0
	for i := range t.offers {
		if out(&t.offers[i]) {
			continue
		}
		kept = append(kept, t.offers[i])
		if i < t.own {
			own++
		}
	}
	t.offers, t.own = kept, own
}

// pack finds nodes for the rest of the pods of t. If the others are offered Spot, the pods that fit
// no Spot node get nodes of their own.
func (m *rebalance) pack(t *trial) placement.Packing {
	if t.own == len(t.offers) {
		return placement.Pack(m.sp, t.rest, t.offers)
	}
	var pods [2][]policy.Pod
	var index [2][]int // indexes in rest
	for i := range t.rest {
		k := of(m.fixed(t.rest[i]))
		pods[k], index[k] = append(pods[k], t.rest[i]), append(index[k], i)
	}
	var all placement.Packing
	for k, offers := range [...][]placement.Offer{t.offers[:t.own], t.offers[t.own:]} {
		if len(pods[k]) == 0 {
			continue
		}
		x := placement.Pack(m.sp, pods[k], offers)
		for _, i := range x.Unplaced {
			all.Unplaced = append(all.Unplaced, index[k][i])
		}
		for _, b := range x.Bins {
			for i := range b.Pods {
				b.Pods[i] = index[k][b.Pods[i]]
			}
			for i := range b.Offers {
				b.Offers[i] += k * t.own
			}
			all.Bins = append(all.Bins, b)
		}
	}
	return all
}

// buy finds the nodes to buy for the rest of the pods. It reports whether all pods fit on at most
// splitMax nodes that limits and quotas allow.
func (m *rebalance) buy(t *trial) bool {
	t.to, t.after, t.risk = t.to[:0], 0, 0
	packing := m.pack(t)
	t.bins = packing.Bins
	for i := range t.at {
		to := policy.MarketID(policy.None)
		if t.at[i] >= 0 {
			to = m.places.marketOf(t.at[i])
		}
		t.to = append(t.to, to)
	}
	for i := range t.bins {
		for _, k := range t.bins[i].Pods {
			t.to[t.index[k]] = t.offers[t.bins[i].Offers[0]].Market
		}
		t.after += policy.Dollars(m.prices.buying(t.offers[t.bins[i].Offers[0]].Market))
	}
	_, suffices := m.offers.beside(t, t.bins)
	return len(packing.Unplaced) == 0 && len(t.bins) <= splitMax && suffices
}

// A candidates finds the nodes that may be emptied.
type candidates struct {
	*poolContext
	prices  *prices
	demand  *demand
	balance *poolBalance

	// stay and alone are, by template, the results of stays.
	stay, alone []bool
	backedOff   []policy.NodeID // nodes whose drain must not be tried again yet
}

// A wasting is nodes that cost more than their pods need, or that the provider recommends leaving,
// in ascending order of name. perPod is the waste of each node in dollars per hour, divided by one
// more than the number of its pods.
type wasting struct {
	nodes  []policy.NodeID
	perPod float64
}

// readCandidates determines which pods may be moved.
func readCandidates(p *prices, d *demand, b *poolBalance) *candidates {
	s := p.s
	c := &candidates{poolContext: p.poolContext, prices: p, demand: d, balance: b}
	c.stay, c.alone = make([]bool, len(s.Templates)), make([]bool, len(s.Templates))
	for i := range s.Templates {
		c.stay[i], c.alone[i] = c.stays(&s.Templates[i])
	}
	for _, x := range c.memory.Backoff {
		if s.Now < x.Until {
			c.backedOff = append(c.backedOff, c.e.names.named(x.Node)...)
		}
	}
	return c
}

// pinned reports whether a pod of node id must stay there.
func (c *candidates) pinned(id policy.NodeID) bool {
	return c.e.pods.sets[id].held || slices.ContainsFunc(c.e.pods.on(id), func(p boundPod) bool {
		return c.stay[p.template] || c.alone[p.template] && !c.brief(&c.s.Pods[p.id])
	})
}

// stays reports whether pods of t must not be moved voluntarily, and otherwise whether a pod of t
// is the only one of its service.
func (c *candidates) stays(t *policy.Template) (stays, alone bool) {
	s := c.s
	if t.Workload < 0 || t.NotSafeToEvict || len(t.PDBs) > 1 || len(t.PDBs) == 1 && s.PDBs[t.PDBs[0]].Allowed == 0 {
		return true, false
	}
	w := &s.Workloads[t.Workload]
	return w.Kind == policy.KindBare, w.Kind != policy.KindJob && w.Replicas <= 1
}

// brief reports whether p, the only pod of a service, is ready again within a minute after a move:
// outages are counted in minutes, and so short an outage is treated like any other cost of a move.
// If its start-up time is not stated, that of its last start is used.
func (c *candidates) brief(p *policy.Pod) bool {
	startup := c.s.Templates[p.Template].Startup
	if startup == 0 {
		startup = p.ReadySince.Sub(p.Bound)
	}
	return startup+restartDelay < time.Minute
}

// mayGo reports whether node id may be emptied.
func (c *candidates) mayGo(id policy.NodeID) bool {
	return !c.e.nodes.all[id].doNotDisrupt && !slices.Contains(c.backedOff, id) && !c.pinned(id)
}

// wasted returns the cost of node id above what its pods need, divided by one more than the number
// of its pods, in dollars per hour.
func (c *candidates) wasted(id policy.NodeID) float64 {
	value := c.prices.worth(id, c.e.pods.used(id), c.balance.spotFor(&c.s.Nodes[id]))
	waste := c.prices.keepingIn(c.e.nodes.all[id].market) - value
	return waste / float64(1+len(c.e.pods.on(id)))
}

// find returns the nodes of the pool that have waste or should be left, those with the most waste
// first. All nodes of a class have the same waste, except where the replacement of a node that is
// not Spot depends on the preferred spread of its pods, or on their node selectors.
func (c *candidates) find() []wasting {
	var list []wasting
	add := func(nodes []policy.NodeID) {
		if x := c.wasted(nodes[0]); x > 0 {
			list = append(list, wasting{nodes, x})
		}
	}
	for i := range c.e.classes.list {
		class := &c.e.classes.list[i]
		switch {
		case class.pool != c.pool.ID || len(class.nodes) == 0:
		case class.market >= 0 && (!c.e.spread.wished && !c.demand.some || c.s.Markets[class.market].Capacity == policy.Spot):
			add(class.nodes)
		default:
			for k := range class.nodes {
				add(class.nodes[k : k+1])
			}
		}
	}
	for i, id := range c.e.nodes.recommended {
		if at := c.e.classes.of[id]; at >= 0 && c.e.classes.list[at].pool == c.pool.ID {
			if x := c.wasted(id); x <= 0 {
				list = append(list, wasting{c.e.nodes.recommended[i : i+1], x})
			}
		}
	}
	slices.SortFunc(list, func(a, b wasting) int { return cmp.Compare(b.perPod, a.perPod) })
	return list
}

// first returns the nodes to try: those with the most waste per pod; ties are broken by name.
func (c *candidates) first() []policy.NodeID {
	rank, found := c.e.names.rank, make([]policy.NodeID, 0, triesMax)
	for list := c.find(); len(list) > 0 && len(found) < triesMax; {
		n := 1
		for n < len(list) && list[n].perPod == list[0].perPod {
			n++
		}
		began := len(found)
		for _, x := range list[:n] {
			for k, own := 0, 0; k < len(x.nodes) && began+own < triesMax; k++ {
				if c.mayGo(x.nodes[k]) {
					found = append(found, x.nodes[k])
					own++
				}
			}
		}
		if n > 1 {
			slices.SortFunc(found[began:], func(a, b policy.NodeID) int { return cmp.Compare(rank[a], rank[b]) })
		}
		list = list[n:]
	}
	return found[:min(len(found), triesMax)]
}
