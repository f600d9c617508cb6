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

// A rebalance plans the moves of one pool. Between two trials the pods on paper, the space
// and all parts stand as if the moves of the round were made.
type rebalance struct {
	*poolContext
	round
	demand     *demand
	prices     *prices
	refusals   *refusals
	places     places
	balance    poolBalance
	offers     marketOffers
	candidates candidates
	payoff     payoff
	costs      moveCosts
	risk       moveRisk
	drainsLeft int
}

// newRebalance returns a rebalance without moves.
func (d *planState) newRebalance() *rebalance {
	x := &d.poolContext
	m := &rebalance{
		poolContext: x, demand: &d.demand, prices: &d.prices, refusals: &d.refusals,
		places: places{poolContext: x}, costs: moveCostsOf(d.s, d.e),
	}
	m.balance = poolBalance{x, &d.demand, d.choice.share, placement.BalanceOf(d.s, d.pool.ID)}
	m.offers = marketOffers{poolContext: x, prices: m.prices, ledger: &d.ledger, concentration: &d.concentration, headroom: placement.HeadroomOf(d.s, d.pool.ID)}
	m.candidates = candidates{poolContext: x, prices: m.prices, demand: &d.demand, balance: &m.balance}
	m.payoff = payoff{x, m.prices, &d.demand, &d.jobs, &m.offers, &m.balance, &m.costs}
	m.risk = moveRisk{x, &d.reclaims, &m.costs}
	return m
}

// repack moves pods off the nodes that waste most of what they cost.
func (d *planState) repack() {
	s := d.s
	interval := d.pool.Cooldown
	if interval == 0 {
		interval = d.e.cfg.Interval
		if d.jobs.dueOnly {
			interval = 0 // what a job can afford is asked of each move
		}
	}
	if d.memory.Moved != 0 && s.Now.Sub(d.memory.Moved) < interval || d.busy() {
		return
	}
	most := s.Disruptable(d.pool.ID, policy.Underutilized)
	if most <= 0 {
		return
	}
	m := d.newRebalance()
	m.begin(most)
	m.plan()
	d.out.Launches = append(d.out.Launches, m.launches...)
	d.out.Drains = append(d.out.Drains, m.drains...)
	m.weigh()
}

// begin reads which pods may be moved, and where to. It is called once, before the first trial.
func (m *rebalance) begin(drainsMax int) {
	m.drainsLeft = drainsMax
	m.candidates.begin()
	m.offers.evaluate()
	m.places.findAvailable()
}

// plan collects a round: every move in it pays for itself.
func (m *rebalance) plan() {
	first := m.candidates.first()
	if len(first) > 0 {
		m.offers.read()
	}
	for _, id := range first {
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
	why := policy.Why{Reason: policy.ReasonCheaper, Text: "lower cost elsewhere for its " + figures.Count(len(t.pods), "pod"), Before: t.before, After: t.after}
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
			Text: fmt.Sprintf("the provider recommends leaving: staying is expected to cost %s, moving %s", policy.Dollars(stay).Short(), policy.Dollars(move).Short()),
		}})
	}
}

// reportFor is how long after a recommendation it is reported that the node is kept.
const reportFor = 10 * time.Minute
