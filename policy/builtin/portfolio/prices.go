package portfolio

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A prices holds what nodes of the pool's markets cost, and the order of those that are
// open. ranked and values follow from the costs: whoever changes these clears values, and
// ranks the markets again before the order is used. The costs by market are shared by
// all pools, so that they are read again before a pool is decided.
type prices struct {
	*poolContext
	demand *demand
	ledger *ledger

	// ranked are the markets that are open, best first within each capacity type.
	ranked []ranked

	// values are those of the resources sold at the present costs, on demand and on spot,
	// as far as they were asked for.
	values [2]knownValue
}

// A ranked is a market and what the demand costs there.
type ranked struct {
	market   policy.MarketID
	capacity policy.CapacityType
	nodes    float64 // how many of them the demand takes
	unit     float64 // dollars an hour for each core of the demand, and what comes with it
}

// read computes what a node of each market of the pool costs an hour, with its fees and what
// its loss would cost counted in.
func (p *prices) read() {
	p.readAt(p.demand.lossPerCore(), 0)
}

// readAt does the same where the loss of a node costs so much for each core, and
// at least so many nodes are reclaimed in an hour.
func (p *prices) readAt(loss, hazard float64) {
	e, s := p.e, p.s
	p.values = [2]knownValue{}
	if len(e.costs) < len(s.Markets) {
		e.costs = make([]float64, len(s.Markets))
	}
	for _, id := range p.pool.Markets {
		m := &s.Markets[id]
		cost := (m.Charge() + s.Fees(p.pool.ID, id)).Float()
		if m.Capacity == policy.Spot {
			cost += float64(max(m.Forecast.Hazard, hazard)*loss) * float64(s.Types[m.Type].VCPU)
		}
		e.costs[id] = cost
	}
}

// keeping returns what node n costs an hour: nothing but its fees where what was paid for in
// advance covers it and no other node instead.
func (p *prices) keeping(n *policy.Node) float64 { return p.keepingIn(n.Market) }

// keepingIn returns the same of a node of market id.
func (p *prices) keepingIn(id policy.MarketID) float64 {
	if p.s.Markets[id].Capacity != policy.Spot && p.e.cover.Covers(id) {
		return (p.e.cover.Saving(id) + p.s.Fees(p.pool.ID, id)).Float()
	}
	return p.e.costs[id]
}

// buying returns what one more node of market id costs an hour. One that was paid
// for in advance is taken to cost a thousandth and its fees, so that the smaller of two such is
// bought.
func (p *prices) buying(id policy.MarketID) float64 {
	if m := &p.s.Markets[id]; m.Capacity != policy.Spot && p.e.cover.Covers(id) {
		return max(p.e.cover.Marginal(id).Float(), m.OnDemand.Float()/1000) + p.s.Fees(p.pool.ID, id).Float()
	}
	return p.e.costs[id]
}

// rank orders the open markets of the pool by what the demand would cost there.
func (p *prices) rank() {
	s := p.s
	p.ranked = slices.Grow(p.ranked[:0], len(p.pool.Markets))
	largest, closed := p.largest(), p.ledger.closed()
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
	p.rankAgain()
}

// needed returns what the markets are ranked for.
func (p *prices) needed() *policy.Resources {
	if need := &p.demand.total; need.CPU != 0 || need.Memory != 0 {
		return need
	}
	return &idleDemand
}

// rankAgain orders the same markets by the present costs.
func (p *prices) rankAgain() {
	cores := max(float64(p.needed().CPU)/1000, 0.001)
	for i := range p.ranked {
		r := &p.ranked[i]
		r.unit = float64(p.e.costs[r.market]*r.nodes) / cores
	}
	p.values = [2]knownValue{}
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

// What one node may take with it: a pool is bought no node of more than smallCores vCPUs
// that is more than half of its largest reach within a day, and none of more than mediumCores
// that is more than a quarter of it.
const (
	smallCores  = 8
	mediumCores = 16
)

// largest returns the largest node that is bought, in vCPUs: no pod of the pool, and none
// that waits, is left without a node that holds it.
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

// largerFor returns the vCPUs of the smallest node that is offered to the pool and holds a pod
// of like where none of at most so many does, else these.
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
		return most // nothing holds it
	}
	return least
}

// costOf returns what the pool's demand costs an hour on spot, or on demand, at
// the least, and 0 where nothing is for sale.
func (p *prices) costOf(spot bool) float64 {
	w := p.evaluate(spot)
	return w.of(p.demand.orIdle())
}
