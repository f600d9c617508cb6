package portfolio

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A prices contains the costs of nodes in the pool's markets, and the ranking of the open ones.
type prices struct {
	*poolContext
	demand *demand

	// costs are, by market, the cost of a node in dollars per hour, including fees and the cost of
	// its expected losses.
	costs []float64

	// ranked are the open markets, best first within each capacity type.
	ranked []ranked

	// values are the values of the resources for sale, on-demand and on Spot, computed when first
	// needed.
	values [2]knownValue
}

// A ranked is a market with the cost of the demand there.
type ranked struct {
	market   policy.MarketID
	capacity policy.CapacityType
	nodes    float64 // number of its nodes that the demand takes
	unit     float64 // dollars per hour for each core of the demand, with its other resources
	falling  bool    // nothing is bought in it because it is losing nodes
}

// pricesByNode returns the prices for comparing Spot with on-demand: Spot nodes are lost at least
// as often as the pool has observed, each with all pods that run on it.
func pricesByNode(d *demand, l *ledger, losses *poolLosses, r *reclaims) *prices {
	p := &prices{poolContext: d.poolContext, demand: d, costs: make([]float64, len(d.s.Markets))}
	p.price(losses.perNode, r.hazard)
	p.readOpen(l)
	p.rank()
	return p
}

// byPod returns the prices for comparing the same markets with each other: each market has its
// forecast hazard, and the cost of losing pods does not depend on where they run now.
func (p *prices) byPod() *prices {
	x := &prices{poolContext: p.poolContext, demand: p.demand, costs: make([]float64, len(p.costs)),
		ranked: slices.Clone(p.ranked)}
	x.price(x.demand.lossPerCore(), 0)
	x.rank()
	return x
}

// price computes the costs for a given loss with a node, in dollars per core, and a hazard of at
// least the given reclaims per node-hour.
func (p *prices) price(loss, hazard float64) {
	s := p.s
	for _, id := range p.pool.Markets {
		m := &s.Markets[id]
		cost := (m.Charge() + s.Fees(p.pool.ID, id)).Float()
		if m.Capacity == policy.Spot {
			cost += float64(max(m.Forecast.Hazard, hazard)*loss) * float64(s.Types[m.Type].VCPU)
		}
		p.costs[id] = cost
	}
}

// keeping returns the cost of node n in dollars per hour: only its fees if commitments pay for it
// and would cover no other node instead.
func (p *prices) keeping(n *policy.Node) float64 { return p.keepingIn(n.Market) }

// keepingIn returns the same for a node of market id.
func (p *prices) keepingIn(id policy.MarketID) float64 {
	if p.s.Markets[id].Capacity != policy.Spot && p.e.cover.Covers(id) {
		return (p.e.cover.Saving(id) + p.s.Fees(p.pool.ID, id)).Float()
	}
	return p.costs[id]
}

// buying returns the cost of one more node of market id in dollars per hour. A node that
// commitments pay for is assumed to cost a thousandth of its price plus its fees, so that the
// smaller of two such nodes is bought.
func (p *prices) buying(id policy.MarketID) float64 {
	if m := &p.s.Markets[id]; m.Capacity != policy.Spot && p.e.cover.Covers(id) {
		return max(p.e.cover.Marginal(id).Float(), m.OnDemand.Float()/1000) + p.s.Fees(p.pool.ID, id).Float()
	}
	return p.costs[id]
}

// readOpen finds the open markets with sizes that may be bought.
func (p *prices) readOpen(l *ledger) {
	s := p.s
	p.ranked = slices.Grow(p.ranked[:0], len(p.pool.Markets))
	largest, closed := p.largest(), l.closed()
	for _, id := range p.pool.Markets {
		m := &s.Markets[id]
		if !m.Offered || closed[id] {
			continue
		}
		t := &s.Types[m.Type]
		if t.VCPU > largest {
			continue
		}
		if share := p.needed().LargestShare(t.Allocatable); share < 1e9 {
			p.ranked = append(p.ranked, ranked{market: id, capacity: m.Capacity, nodes: share})
		}
	}
	p.readFalling(l)
}

// readFalling finds the ranked Spot markets that are losing nodes of the cluster: a shortage takes
// most nodes of a market within minutes, including their replacements. They keep their rank, since
// a shortage soon ends. If a zone has no other Spot market, its markets are not excluded.
func (p *prices) readFalling(l *ledger) {
	s := p.s
	lost, open := make([]bool, len(s.Markets)), make([]bool, len(s.Zones))
	for _, id := range p.e.nodes.odd {
		if n := &p.e.nodes.all[id]; n.reclaimed && n.market >= 0 {
			lost[n.market] = true
		}
	}
	for _, r := range p.ranked {
		m := &s.Markets[r.market]
		at := m.Experience.Reclaimed
		lost[r.market] = lost[r.market] || at != 0 && s.Now.Sub(at) < shockSpan
		if m.Capacity == policy.Spot && !lost[r.market] && !m.Outpriced() {
			open[m.Zone] = true
		}
	}
	for i := range p.ranked {
		r := &p.ranked[i]
		r.falling = r.capacity == policy.Spot && lost[r.market] && open[s.Markets[r.market].Zone]
	}
}

// falls reports whether nothing is bought in market id because it is losing nodes.
func (p *prices) falls(id policy.MarketID) bool {
	return slices.ContainsFunc(p.ranked, func(r ranked) bool { return r.market == id && r.falling })
}

// needed returns the demand for which the markets are ranked.
func (p *prices) needed() *policy.Resources {
	if need := &p.demand.total; need.CPU != 0 || need.Memory != 0 {
		return need
	}
	return &idleDemand
}

// rank sorts the open markets by the cost of the demand there.
func (p *prices) rank() {
	cores := max(float64(p.needed().CPU)/1000, 0.001)
	for i := range p.ranked {
		r := &p.ranked[i]
		r.unit = float64(p.costs[r.market]*r.nodes) / cores
	}
	slices.SortFunc(p.ranked, func(a, b ranked) int {
		if a.capacity != b.capacity {
			return cmp.Compare(b.capacity, a.capacity)
		}
		if a.unit != b.unit {
			return cmp.Compare(a.unit, b.unit)
		}
		return cmp.Compare(a.market, b.market)
	})
}

// The limits of what one node may take with it. A pool buys no node of more than smallCores vCPUs
// that exceeds half of its largest reach within a day, and none of more than mediumCores vCPUs that
// exceeds a quarter of it.
const (
	smallCores  = 8
	mediumCores = 16
)

// largest returns the size of the largest node that is bought, in vCPUs. It is large enough for
// every pod of the pool, and every pending pod.
func (p *prices) largest() int64 {
	cores := p.memory.Peak.CPU / 1000
	most := min(int64(p.e.cfg.Cores), max(smallCores, min(mediumCores, cores/2), cores/4))
	if !slices.Contains(p.demand.asked, true) {
		return p.largerFor(&idlePod, most)
	}
	for i, asked := range p.demand.asked {
		if asked {
			most = p.largerFor(&p.s.Templates[i], most)
		}
	}
	return most
}

// largerFor returns most, or, if no offered node of at most that many vCPUs fits a pod of like, the
// vCPUs of the smallest node that does.
func (p *prices) largerFor(like *policy.Template, most int64) int64 {
	least := int64(math.MaxInt64)
	for _, id := range p.pool.Markets {
		m := &p.s.Markets[id]
		t := &p.s.Types[m.Type]
		if !m.Offered || t.VCPU >= least || !p.demand.holds(id, like) {
			continue
		}
		if least = t.VCPU; least <= most {
			return most
		}
	}
	if least == math.MaxInt64 {
		return most // no node fits it
	}
	return least
}

// costOf returns the lowest cost of the pool's demand in dollars per hour on Spot, or on-demand,
// and 0 if nothing is for sale.
func (p *prices) costOf(spot bool) float64 {
	w := p.evaluate(spot)
	return w.of(p.demand.orIdle())
}

// A resourceValue is the price of each resource where it costs least: prices such that no market
// sells a node for less than the value of its free capacity, and that under this constraint
// maximise the value of the demand. The cost of a node above its value is the premium of its
// market; its cost above the value of what is used is waste.
type resourceValue struct {
	cpu, memory, gpu float64 // dollars per hour for a thousandth of a core, a byte, a device
}

// of returns the value of r in dollars per hour.
func (v *resourceValue) of(r policy.Resources) float64 {
	return float64(v.cpu*float64(r.CPU)) + float64(v.memory*float64(r.Memory)) + float64(v.gpu*float64(r.GPU))
}

// ratios are the values of 2^20 bytes of memory that are tried, relative to a thousandth of a core:
// from 0 to where only memory counts.
var ratios = [...]float64{0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6,
	0.8, 1, 1.5, 2, 4, 8, 1000}

// A nodeOffer is the cost of a node of a market, and its free capacity for pods.
type nodeOffer struct{ cost, cpu, memory, gpu float64 }

// outdone reports whether x costs at least as much as y and has no more of any resource, so that it
// makes no resource cheaper.
func (x *nodeOffer) outdone(y *nodeOffer) bool {
	return x.cost >= y.cost && y.cost >= 0 && x.cpu <= y.cpu && x.memory <= y.memory && x.gpu <= y.gpu
}

// addUndominated returns list with x added, without offers that are outdone.
func addUndominated(list []nodeOffer, x nodeOffer) []nodeOffer {
	for i := range list {
		if x.outdone(&list[i]) {
			return list
		}
	}
	kept := list[:0]
	for i := range list {
		if !list[i].outdone(&x) {
			kept = append(kept, list[i])
		}
	}
	return append(kept, x)
}

// cheapest returns the lowest ratio of cost to size in list; 0 if no offer has a positive size.
func cheapest(list []nodeOffer, size func(*nodeOffer) float64) float64 {
	least := -1.0
	for i := range list {
		if n := size(&list[i]); n > 0 {
			if x := list[i].cost / n; least < 0 || x < least {
				least = x
			}
		}
	}
	return max(least, 0)
}

// nodeOffers returns the open markets of a capacity type that are not outdone: the few that
// determine the value of resources.
func (p *prices) nodeOffers(spot bool) []nodeOffer {
	list := p.e.nodeOffers[:0]
	for _, r := range p.ranked {
		m := &p.s.Markets[r.market]
		if m.Capacity == policy.Spot != spot {
			continue
		}
		a := p.demand.freeCapacity(m.Type)
		x := nodeOffer{p.costs[r.market], float64(a.CPU), float64(a.Memory), float64(a.GPU)}
		list = addUndominated(list, x)
	}
	p.e.nodeOffers = list
	return list
}

// evaluate returns the value of the resources in the pool's Spot markets, or its other markets. The
// result is cached.
func (p *prices) evaluate(spot bool) resourceValue {
	if v := &p.values[of(spot)]; v.known {
		return v.value
	}
	demand, list := p.demand.orIdle(), p.nodeOffers(spot)
	best, most := resourceValue{}, -1.0
	for _, ratio := range ratios {
		w := p.valueAt(ratio, list)
		if v := w.of(demand); v > most {
			best, most = w, v
		}
	}
	p.values[of(spot)] = knownValue{best, true}
	return best
}

// worth returns the lowest cost of used, requests of the pods of node id, in dollars per hour:
// on-demand, or if spot is set, on Spot except for pods that fit no Spot node.
func (p *prices) worth(id policy.NodeID, used policy.Resources, spot bool) float64 {
	value := p.evaluate(spot)
	if fixed, _ := p.demand.fixedOn(id); spot && fixed != (policy.Resources{}) {
		onDemand := p.evaluate(false)
		return value.of(used.Minus(fixed)) + onDemand.of(fixed)
	}
	return value.of(used)
}

// A knownValue is a cached resourceValue.
type knownValue struct {
	value resourceValue
	known bool
}

// valueAt returns the highest value of a core, if 2^20 bytes have the value of ratio times a
// thousandth of a core, such that no market in list sells for less. If the demand includes
// accelerators, only these count.
func (p *prices) valueAt(ratio float64, list []nodeOffer) resourceValue {
	if p.demand.total.GPU > 0 {
		return resourceValue{gpu: cheapest(list, func(x *nodeOffer) float64 { return x.gpu })}
	}
	least := cheapest(list, func(x *nodeOffer) float64 { return x.cpu + float64(ratio*x.memory)/(1<<20) })
	return resourceValue{cpu: least, memory: float64(least*ratio) / (1 << 20)}
}
