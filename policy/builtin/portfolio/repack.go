package portfolio

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/share"
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

// A rebalance plans the moves of one pool.
type rebalance struct {
	*planState
	round
	risk    moveRisk
	offers  []placement.Offer // those that trial takes: priced at what they cost with their risk
	sorts   [2]sort           // on demand, and spot
	floors  [2]floor          // of their offers, as far as they were asked for
	at      placement.Balance
	targets []policy.NodeID
	tokens  []string          // of the nodes bought so far, whose ids follow the snapshot's
	bought  []policy.MarketID // of them
	left    int
	roomy   []policy.NodeID // of targets those that may have room for a pod
	pinned  []bool
	costs   moveCosts
	wasting []wasting // the nodes that may be emptied
}

// A sort is what the pool can buy on demand, or on spot.
type sort struct {
	offers []placement.Offer
	value  resourceValue
}

// of returns the place of spot and of everything else in rebalance.sorts.
func of(spot bool) int {
	if spot {
		return 1
	}
	return 0
}

// repack moves pods off the nodes that are worth least for what they cost.
func (d *planState) repack() {
	s := d.s
	interval := d.pool.Cooldown
	if interval == 0 {
		interval = d.e.cfg.Interval
	}
	if d.memory.Moved != 0 && s.Now.Sub(d.memory.Moved) < interval || d.busy() {
		return
	}
	left := s.Disruptable(d.pool.ID, policy.Underutilized)
	if left <= 0 {
		return
	}
	m := rebalance{planState: d}
	m.begin(left)
	m.plan()
	d.out.Launches = append(d.out.Launches, m.launches...)
	d.out.Drains = append(d.out.Drains, m.drains...)
	m.weigh()
}

// begin reads what moves are planned on.
func (m *rebalance) begin(left int) {
	m.left, m.at = left, placement.BalanceOf(m.s, m.pool.ID)
	m.survey()
	m.evaluate()
	m.findRoom()
	m.wasting = m.wastingNodes()
}

// plan collects a round: every move in it pays for itself.
func (m *rebalance) plan() {
	for _, x := range m.first() {
		if m.left == 0 {
			break
		}
		m.try(&m.s.Nodes[x.node])
	}
}

// busy reports whether nodes or pods are on their way.
func (d *planState) busy() bool {
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		if n.Pool != d.pool.ID || n.Phase == policy.NodeGone {
			continue
		}
		if n.Phase < policy.NodeInitialized || n.ActedBy != policy.ActorNone || n.ReclaimAt != 0 {
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
		if _, unplaced, _ := placement.Pack(d.space(), []policy.Pod{*p}, offers); len(unplaced) == 0 {
			return true
		}
		hopeless[p.Template] = hopeless[p.Template] || p.VolumeZone < 0
	}
	return false
}

// survey reads which nodes may take pods, and which must keep theirs.
func (m *rebalance) survey() {
	s := m.s
	stays := make([]bool, len(s.Templates))
	for i := range s.Templates {
		stays[i] = m.stays(&s.Templates[i])
	}
	m.pinned = make([]bool, len(s.Nodes))
	m.costs = moveCostsOf(m.s, m.e)
	m.risk = moveRisk{&m.poolContext, &m.reclaims, &m.costs}
	for i := range m.e.pods.all {
		p := &m.e.pods.all[i]
		if p.bound && !p.daemon && (p.phase != policy.PodReady || p.doNotDisrupt || stays[p.template]) {
			m.pinned[p.at] = true
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == m.pool.ID && n.Usable() && n.ActedBy == policy.ActorNone && len(m.e.pods.on(n.ID)) > 0 {
			m.targets = append(m.targets, n.ID)
		}
	}
}

// stays reports whether pods of t may not be moved by choice.
func (m *rebalance) stays(t *policy.Template) bool {
	s := m.s
	if t.Workload < 0 || t.NotSafeToEvict || len(t.PDBs) > 1 || len(t.PDBs) == 1 && s.PDBs[t.PDBs[0]].Allowed == 0 {
		return true
	}
	w := &s.Workloads[t.Workload]
	return w.Kind == policy.KindBare || w.Replicas <= 1 && !m.brief(t)
}

// brief reports whether the only pod of a service is back within a minute when it
// is moved: outages are told in minutes, and so short a one is weighed like any
// other cost of a move.
func (m *rebalance) brief(t *policy.Template) bool {
	return t.Startup > 0 && t.Startup+restartDelay < time.Minute
}

// valueFor returns what the resources of n are worth to the pool: on spot where a
// node in its place would be that.
func (m *rebalance) valueFor(n *policy.Node) *resourceValue {
	return &m.sorts[of(m.spotFor(n))].value
}

// spotFor reports whether a node in place of n is to be spot: whether the pool is
// then nearer to its share.
func (m *rebalance) spotFor(n *policy.Node) bool {
	size := m.size(n)
	spot, total := float64(m.at.Spot), float64(m.at.Total)
	if m.isSpot(n) {
		spot -= size
	}
	return spot+size/2 <= float64(m.choice.share*total) && m.choice.share > 0
}

func (m *rebalance) isSpot(n *policy.Node) bool { return m.s.Markets[n.Market].Capacity == policy.Spot }

func (m *rebalance) size(n *policy.Node) float64 {
	return float64(share.Units(m.s, m.pool.ID, n.Market))
}

// evaluate finds what can be bought.
func (m *rebalance) evaluate() {
	for _, spot := range [...]bool{false, true} {
		capacity := policy.OnDemand
		if spot {
			capacity = policy.Spot
		}
		m.sorts[of(spot)] = sort{offers: m.offersOf(capacity), value: m.prices.evaluate(spot)}
	}
	m.reprice()
}

// offersOf returns the best offers of a capacity type, of which the pool's limits
// and the provider's quotas leave room for one node more.
func (m *rebalance) offersOf(capacity policy.CapacityType) []placement.Offer {
	s := m.s
	unit := make([]float64, len(s.Markets))
	for _, r := range m.prices.ranked {
		unit[r.market] = r.unit
	}
	markets := slices.DeleteFunc(placement.MarketsOf(s, m.pool.ID, capacity), func(id policy.MarketID) bool {
		return unit[id] == 0 || m.ledger.outpriced(id) || m.ledger.depthLeft(id) <= 0 || !m.allows(id)
	})
	slices.SortStableFunc(markets, func(a, b policy.MarketID) int { return cmp.Compare(unit[a], unit[b]) })
	return m.e.offersIn(s, m.pool.ID, markets[:min(len(markets), offersMax)])
}

// allows reports whether limits and quotas leave room for a node of id besides what
// the round buys already.
func (m *rebalance) allows(id policy.MarketID) bool {
	s, x := m.s, &m.s.Markets[id]
	t := &s.Types[x.Type]
	used, cores := m.pool.Used.Plus(t.Capacity), t.VCPU
	for i := range m.launches {
		more := &s.Types[s.Markets[m.launches[i].Markets[0]].Type]
		used, cores = used.Plus(more.Capacity), cores+more.VCPU
	}
	limits := &m.pool.Limits
	if limits.CPU > 0 && used.CPU > limits.CPU || limits.Memory > 0 && used.Memory > limits.Memory || limits.GPU > 0 && used.GPU > limits.GPU {
		return false
	}
	for i := range s.Quotas {
		q := &s.Quotas[i]
		if q.Region == x.Region && q.Capacity == x.Capacity && q.VCPU < cores && (len(q.Families) == 0 || slices.Contains(q.Families, t.Family)) {
			return false
		}
	}
	return true
}

// reprice gives the offers the prices that they have as the pool stands now: what
// they cost and the risk of concentration.
func (m *rebalance) reprice() {
	for k := range m.sorts {
		offers := slices.DeleteFunc(m.sorts[k].offers, func(o placement.Offer) bool { return m.ledger.depthLeft(o.Market) <= 0 })
		m.sorts[k].offers = offers
		for i := range offers {
			o := &offers[i]
			o.Price = policy.Dollars(m.prices.buying(o.Market) * m.concentration.factor(o.Market))
		}
		slices.SortStableFunc(offers, func(a, b placement.Offer) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Market, b.Market))
		})
	}
}

// carryOut plans what was found.
func (m *rebalance) carryOut(t *trial) {
	s, n := m.s, t.node
	why := policy.Why{Reason: policy.ReasonCheaper, Text: fmt.Sprintf("its %d pods cost less elsewhere", len(t.pods)), Before: t.before, After: t.after}
	if t.after >= t.before {
		why.Reason, why.Text = policy.ReasonRebalance, fmt.Sprintf("the provider recommends to leave, and the loss of its %d pods would cost more than to move them", len(t.pods))
	}
	d := policy.Drain{Node: n.ID, Gentle: true, Why: why}
	for _, at := range t.at {
		if k := int(at) - len(s.Nodes); k >= 0 && !slices.Contains(d.After, m.tokens[k]) {
			d.After = append(d.After, m.tokens[k])
		}
	}
	for i := range t.bins {
		l := m.launch(t, i, why)
		d.After = append(d.After, l.Token)
		m.launches = append(m.launches, l)
	}
	m.targets = slices.DeleteFunc(m.targets, func(t policy.NodeID) bool { return t == n.ID })
	m.roomy = slices.DeleteFunc(m.roomy, func(t policy.NodeID) bool { return t == n.ID })
	m.drains = append(m.drains, d)
	m.left--
	m.at = m.balanceAfter(t)
	m.count(n.Market, -1)
	for i := range t.bins {
		m.count(m.offers[t.bins[i].Offers[0]].Market, 1)
	}
	if len(t.bins) > 0 {
		m.reprice()
	}
}

// count adds nodes of a market to what the pool holds.
func (m *rebalance) count(id policy.MarketID, n int) {
	m.concentration.add(id, float64(n))
	m.e.cover.Add(id, n)
	if n > 0 {
		m.ledger.held[id] += n
	}
	m.floors = [2]floor{}
}
