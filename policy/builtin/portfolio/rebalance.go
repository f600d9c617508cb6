package portfolio

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
)

// The limits of a search for moves: the number of nodes tried, the number of markets offered for
// replacements, and the number of nodes bought to replace one.
const (
	triesMax  = 40
	offersMax = 64
	splitMax  = 4
)

// A round is the set of moves made together in one pool.
type round struct {
	launches []policy.Launch
	drains   []policy.Drain
}

// A rebalance plans the moves of one pool. Between two trials, the tentative moves, the space and
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

// repack moves pods off the nodes with the largest waste.
func (d *planState) repack() {
	s := d.s
	interval := d.pool.Cooldown
	if interval == 0 {
		interval = d.e.cfg.Interval
		if d.jobs.dueOnly {
			interval = 0 // each move is checked for whether the job can afford it
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

// plan collects a round of moves off nodes, each of which pays for itself.
func (m *rebalance) plan(nodes []policy.NodeID) {
	for _, id := range nodes {
		if m.drainsLeft == 0 {
			break
		}
		m.try(&m.s.Nodes[id])
	}
}

// busy reports whether the pool has nodes that are starting or leaving, or pods that wait, or the
// plan changes anything.
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

// stuck is how long a pod must wait before it is checked whether the pool could run it.
const stuck = 10 * time.Minute

// awaits reports whether a pod waits for a node that may belong to this pool. A pod that fits no
// node that the pool may buy, even in a market that is closed now, waits for something else and
// must not block all moves forever.
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

// carryOut adds the launches and the drain of t to the round.
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

// weigh adds a hold for every node that the provider recommends leaving and that the plan keeps,
// with the costs of staying and of moving.
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

// reportFor is how long after a recommendation the plan reports that the node is kept.
const reportFor = 10 * time.Minute

// launch returns the launch of the i-th node of t, and adds the node with its pods to the space.
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

// alike is the maximum cost of a node as a multiple of the best one if no refusal is expected:
// on-demand, and on Spot until a market of the pool has refused. The provider may choose any market
// of a launch, and with many markets it avoids those that it reclaims most, so that it may take the
// most expensive one.
const alike = 1.05

// paysIn reports whether at least half of the saving of t remains if each node that it buys costs
// as much more as a node of market id costs more than one of the first market of b, and b has the
// risk that it would have there. A refusal loses all of the saving, and the provider may choose any
// market of a launch. The replacement of a node under notice is bought wherever it is available.
func (m *rebalance) paysIn(t *trial, b *placement.Bin, id policy.MarketID) bool {
	first := t.offers[b.Offers[0]].Market
	more := m.prices.buying(id) - m.prices.buying(first)
	alikeOnly := m.s.Markets[first].Capacity != policy.Spot || len(m.memory.Depths) == 0
	switch {
	case t.node.Recommended != 0 && id == t.node.Market:
		return false // the provider recommends leaving this market
	case alikeOnly && more > m.prices.buying(first)*(alike-1):
		return false
	case t.before == 0:
		return true
	case alikeOnly:
		more = 0
	}
	return m.payoff.pays(t.with(float64(2*more*float64(len(t.bins))) + m.riskThere(t, b, id)))
}

// riskThere returns the additional risk in dollars per hour if b is in market id.
func (m *rebalance) riskThere(t *trial, b *placement.Bin, id policy.MarketID) float64 {
	if t.began == len(m.e.moved) {
		return 0 // nothing has moved: the pods are those of nodes under notice
	}
	there := make([]podMove, 0, len(b.Pods))
	for _, k := range b.Pods {
		there = append(there, t.podMove(m.s, t.index[k], t.to[t.index[k]]))
	}
	return m.risk.instead(there, id)
}

// replace buys nodes for the pods of endangered nodes if other nodes have no free capacity: a
// provisioner would wait until the pods have been evicted, and disruption budgets allow that only
// one pod after another.
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
	defer func() { d.sp = nil }() // the space contains the tentative placements
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

// A storm takes most nodes of a market within minutes. It is detected by notices for the fraction
// stormPart of the nodes of a market at once, and for at least stormNodes of them: independent
// losses hardly ever coincide.
const (
	stormNodes = 2
	stormPart  = 0.05
)

// endangered returns the nodes of the pool that were just put under notice and, if a storm is
// detected in a market, the other nodes there: a new node takes about as long to start as a notice
// warns. For those no node is bought again when their own notice arrives.
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
