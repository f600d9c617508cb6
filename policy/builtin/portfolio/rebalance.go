package portfolio

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
)

// The counts that bound a look for moves: nodes tried, markets offered for what
// is bought in their place, and nodes bought for one.
const (
	triesMax  = 40
	offersMax = 64
	splitMax  = 4
)

// A round is what moves together in one pool.
type round struct {
	launches []policy.Launch
	drains   []policy.Drain
}

// A rebalance plans the moves of one pool. Between two trials the tentative moves, the space and
// all parts are as if the moves of the round were made.
type rebalance struct {
	*poolContext
	round
	demand     *demand
	prices     *prices
	refusals   *refusals
	places     places
	balance    poolBalance
	offers     marketOffers
	payoff     payoff
	costs      moveCosts
	risk       moveRisk
	drainsLeft int
}

// newRebalance returns a rebalance without moves, which may start at most drainsMax drains.
func (d *planState) newRebalance(drainsMax int) *rebalance {
	x := d.poolContext
	m := &rebalance{
		poolContext: x, demand: d.demand, prices: d.prices, refusals: d.refusals, costs: moveCostsOf(d.s, d.e,
			d.perPod), drainsLeft: drainsMax,
	}
	m.places = findPlaces(x)
	m.balance = poolBalance{x, d.demand, d.choice.share, placement.BalanceOf(d.s, d.pool.ID)}
	m.offers = marketOffers{poolContext: x, prices: m.prices, ledger: d.ledger, concentration: d.concentration,
		headroom: placement.HeadroomOf(d.s, d.pool.ID)}
	m.payoff = payoff{x, m.prices, d.demand, d.jobs, d.perPod, &m.offers, &m.balance, &m.costs}
	m.risk = moveRisk{x, d.reclaims, &m.costs}
	return m
}

// repack moves pods off the nodes that waste most of what they cost.
func (d *planState) repack() {
	s := d.s
	interval := d.pool.Cooldown
	if interval == 0 {
		interval = d.e.cfg.Interval
		if d.jobs.dueOnly {
			interval = 0 // whether a job can afford it is checked for each move
		}
	}
	if d.memory.Moved != 0 && s.Now.Sub(d.memory.Moved) < interval || d.busy() {
		return
	}
	most := s.Disruptable(d.pool.ID, policy.Underutilized)
	if most <= 0 {
		return
	}
	m := d.newRebalance(most)
	m.plan(readCandidates(d.prices, d.demand, &m.balance).first())
	d.out.Launches = append(d.out.Launches, m.launches...)
	d.out.Drains = append(d.out.Drains, m.drains...)
	m.weigh()
}

// plan collects a round with moves off nodes: every one in it pays for itself.
func (m *rebalance) plan(nodes []policy.NodeID) {
	for _, id := range nodes {
		if m.drainsLeft == 0 {
			break
		}
		m.try(&m.s.Nodes[id])
	}
}

// busy reports whether nodes or pods are on their way.
func (d *planState) busy() bool {
	for _, id := range d.e.nodes.odd {
		n := &d.e.nodes.all[id]
		if n.pool != d.pool.ID {
			continue
		}
		if n.phase < policy.NodeInitialized || n.actedBy != policy.ActorNone || n.reclaimed {
			return true
		}
	}
	return d.awaits() || len(d.out.Drains)+len(d.out.Launches) > 0
}

// stuck is how long a pod waits until it is asked whether the pool could serve it.
const stuck = 10 * time.Minute

// awaits reports whether a pod waits for a node that may be of this pool. One that no
// node which the pool may buy would hold, even of a market that is closed now, waits
// for something else and would keep all nodes where they are for ever.
func (d *planState) awaits() bool {
	var offers []placement.Offer
	hopeless := make(map[policy.TemplateID]bool)
	for _, id := range d.e.pods.pending {
		p := &d.s.Pods[id]
		if hopeless[p.Template] && p.VolumeZone < 0 {
			continue
		}
		if d.s.Now.Sub(p.Created) < stuck {
			return true
		}
		if offers == nil {
			offers = d.e.offersIn(d.s, d.pool.ID, d.pool.Markets)
		}
		if x := placement.Provision(d.space(), []policy.Pod{*p}, offers); len(x.Unplaced) == 0 {
			return true
		}
		hopeless[p.Template] = hopeless[p.Template] || p.VolumeZone < 0
	}
	return false
}

// carryOut plans what was found.
func (m *rebalance) carryOut(t *trial) {
	s, n := m.s, t.node
	why := policy.Why{Reason: policy.ReasonCheaper, Text: "lower cost elsewhere for its " +
		figures.Count(len(t.pods), "pod"), Before: t.before, After: t.after}
	if t.after >= t.before {
		why.Reason, why.Text = policy.ReasonRebalance, fmt.Sprintf("the provider recommends leaving, and losing its %s would cost more than moving", figures.Count(len(t.pods), "pod"))
	}
	d := policy.Drain{Node: n.ID, Gentle: true, Why: why}
	for _, at := range t.at {
		if k := int(at) - len(s.Nodes); k >= 0 && !slices.Contains(d.After, m.places.tokens[k]) {
			d.After = append(d.After, m.places.tokens[k])
		}
	}
	for i := range t.bins {
		l := m.launch(t, i, why)
		d.After = append(d.After, l.Token)
		m.launches = append(m.launches, l)
	}
	m.places.remove(n.ID)
	m.drains = append(m.drains, d)
	m.drainsLeft--
	m.balance.at = m.balance.after(t)
	m.offers.count(n.Market, -1)
	for i := range t.bins {
		m.offers.count(t.offers[t.bins[i].Offers[0]].Market, 1)
	}
	if len(t.bins) > 0 {
		m.offers.reprice()
	}
}

// weigh adds a hold for every node that the provider recommends to leave and that
// the plan keeps, with the dollars on both sides.
func (m *rebalance) weigh() {
	s := m.s
	for _, id := range m.e.nodes.recommended {
		x := &m.e.nodes.all[id]
		if x.pool != m.pool.ID || s.Now.Sub(x.recommended) > reportFor || !x.stays() || m.leaves(id) {
			continue
		}
		n := &s.Nodes[id]
		var pods []policy.Pod
		for k := range s.Pods {
			if p := &s.Pods[k]; p.Node == n.ID && !s.Templates[p.Template].DaemonSet {
				pods = append(pods, *p)
			}
		}
		stay, move := m.payoff.recommended(n, pods), m.payoff.moving(pods)
		if stay > move {
			continue
		}
		m.out.Holds = append(m.out.Holds, policy.Hold{Pool: n.Pool, Node: n.ID, Why: policy.Why{
			Reason: policy.ReasonNoEdge, Before: policy.Dollars(stay), After: policy.Dollars(move), RunnerUp: "drain it now",
			Text: fmt.Sprintf("the provider recommends leaving: staying is expected to cost %s, moving %s",
				policy.Dollars(stay).Short(), policy.Dollars(move).Short()),
		}})
	}
}

// reportFor is how long after a recommendation it is reported that the node is kept.
const reportFor = 10 * time.Minute

// launch plans the i-th node of t, and adds it with its pods to the space.
func (m *rebalance) launch(t *trial, i int, why policy.Why) policy.Launch {
	s, b := m.s, &t.bins[i]
	l := policy.Launch{Pool: m.pool.ID, Replaces: t.node.ID, Why: why,
		Token: policy.Token(s.Now, m.pool.Name, t.node.Name, i)}
	first := &t.offers[b.Offers[0]]
	left, _ := m.offers.beside(t, t.bins[i+1:])
	for _, o := range b.Offers {
		x := &t.offers[o]
		if s.Markets[x.Market].Capacity != s.Markets[first.Market].Capacity {
			continue
		}
		if o == b.Offers[0] || left.Has(x.Market) && m.paysIn(t, b, x.Market) {
			l.Markets = append(l.Markets, x.Market)
		} else if l.Why.RunnerUp == "" {
			l.Why.RunnerUp = s.Markets[x.Market].Name
		}
	}
	m.offers.headroom.Take(l.Markets)
	id := m.places.addNode(first, l.Token)
	for _, k := range b.Pods {
		m.sp.Bind(&t.rest[k], id)
	}
	return l
}

// alike is how many times as much as the best a node may cost if no refusal is expected: on demand,
// and on Spot until a market of the pool has refused. The provider may choose any market that is
// named, and of many leaves out those that it reclaims most, so that it may take the most expensive
// one.
const alike = 1.05

// paysIn reports whether at least half of what t saves remains if each node that it buys costs as
// much more as one of market id costs more than one of the first market of b, and b puts at risk
// what it would there. A refusal loses all of the saving, and the provider may choose any market
// that is named. The replacement of a node under notice is bought wherever it is available.
func (m *rebalance) paysIn(t *trial, b *placement.Bin, id policy.MarketID) bool {
	first := t.offers[b.Offers[0]].Market
	more := m.prices.buying(id) - m.prices.buying(first)
	alikeOnly := m.s.Markets[first].Capacity != policy.Spot || len(m.memory.Depths) == 0
	switch {
	case t.node.Recommended != 0 && id == t.node.Market:
		return false // it is the market that is advised against
	case alikeOnly && more > m.prices.buying(first)*(alike-1):
		return false
	case t.before == 0:
		return true
	case alikeOnly:
		more = 0
	}
	return m.payoff.pays(t.with(float64(2*more*float64(len(t.bins))) + m.riskThere(t, b, id)))
}

// riskThere returns the additional risk if b is in market id.
func (m *rebalance) riskThere(t *trial, b *placement.Bin, id policy.MarketID) float64 {
	if t.began == len(m.e.moved) {
		return 0 // nothing has moved: the pods of nodes under notice
	}
	there := make([]podMove, 0, len(b.Pods))
	for _, k := range b.Pods {
		there = append(there, t.podMove(m.s, t.index[k], t.to[t.index[k]]))
	}
	return m.risk.instead(there, id)
}

// replace buys nodes for the pods of endangered nodes where others have no free capacity: a
// provisioner would wait until the pods have been evicted, and budgets let these go only one after
// the other.
func (d *planState) replace() {
	s := d.s
	var pods []policy.Pod
	nodes := d.endangered()
	if len(nodes) == 0 {
		return
	}
	m := d.newRebalance(0)
	for _, n := range nodes {
		there, _ := m.places.unload(n)
		pods = append(pods, there...)
	}
	placement.LargestFirst(s, pods)
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
	defer func() { d.sp = nil }() // the tentative placements are in it
	if len(t.rest) == 0 {
		return
	}
	t.offers = m.offers.on(m.balance.spotFor(&s.Nodes[nodes[0]]))
	t.own = len(t.offers)
	m.buy(&t)
	why := policy.Why{
		Reason: policy.ReasonNotice, After: t.after,
		Text: "the pods of nodes under notice, or in a market that loses most nodes, fit on no other node",
	}
	for i := range t.bins {
		if !m.offers.headroom.Has(t.offers[t.bins[i].Offers[0]].Market) {
			continue
		}
		d.out.Launches = append(d.out.Launches, m.launch(&t, i, why))
	}
}

// A storm takes most nodes of a market within minutes. Notices for stormPart of them at once, two at
// least, show one: nodes that are lost alone hardly ever meet.
const (
	stormNodes = 2
	stormPart  = 0.05
)

// endangered returns the nodes of the pool that were just put under notice and, when a storm shows
// in a market, the others there too: a new node takes about as long as a notice warns. Those are not
// bought for again when their own notice comes.
func (d *planState) endangered() []policy.NodeID {
	all := d.e.nodes.all
	before, after := make([]int, len(d.s.Markets)), make([]int, len(d.s.Markets)) // nodes under notice
	fresh := func(n *nodeEntry) bool { return n.phase == policy.NodeInitialized && n.actedBy == policy.ActorNone }
	for _, id := range d.e.nodes.odd {
		if n := &all[id]; n.reclaimed && n.market >= 0 {
			if after[n.market]++; !fresh(n) {
				before[n.market]++
			}
		}
	}
	storm := func(id policy.MarketID, noticed []int) bool {
		return noticed[id] >= max(stormNodes, int(stormPart*float64(d.ledger.held[id])))
	}
	var nodes []policy.NodeID
	for _, id := range d.e.nodes.odd {
		n := &all[id]
		if n.pool == d.pool.ID && n.reclaimed && fresh(n) && (n.market < 0 || !storm(n.market, before)) {
			nodes = append(nodes, id)
		}
	}
	if !slices.ContainsFunc(nodes, func(id policy.NodeID) bool {
		return all[id].market >= 0 && storm(all[id].market, after)
	}) {
		return nodes
	}
	for i := range all {
		if n := &all[i]; n.pool == d.pool.ID && n.plain() && storm(n.market, after) && !storm(n.market, before) {
			nodes = append(nodes, policy.NodeID(i))
		}
	}
	return nodes
}
