package spotvortex

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/workload"
)

// holdings are the nodes of a pool and what it could buy, in the terms of the rules.
type holdings struct {
	features *workload.Features
	needs    needs

	// balance counts moves in progress as done.
	balance placement.Balance

	// carried is the multiple of the pool's needs that its initialized nodes carry, without nodes
	// that a controller drains. fixedCarried is the same for nodes that are not Spot, fixedCost the
	// cost of these per hour, and fixedSaved what removing them saves per hour: less if commitments
	// pay for them.
	carried, fixedCarried float64
	fixedCost, fixedSaved policy.Money

	// capacity and runtime are the sums of the risk scores of the pool's Spot nodes, weighted by
	// their units.
	capacity, runtime float64
	spotUnits         int64

	// boots is the number of nodes whose time from launch to initialized is known, and bootTime the
	// sum of these times in milliseconds.
	boots, bootTime int64

	// recommended reports whether the provider recommends leaving one of the nodes.
	recommended bool

	// spot and fixed are the cheapest markets in which nodes could be bought now. beyond are the
	// on-demand markets by the cost that commitments do not pay.
	spot, fixed, beyond bargains
}

// bargainsMax is the number of markets that represent what would be bought: enough that one unusual
// price does not decide, and few enough to be those that a provider with a lowest-price strategy
// would choose from.
const bargainsMax = 5

// bargains are the markets that carry a pool's needs at the lowest price, cheapest first.
type bargains struct {
	market [bargainsMax]policy.MarketID
	price  [bargainsMax]float64 // dollars per hour for all of the needs
	n      int
}

// add inserts market in order of price; ties come after those already in b.
func (b *bargains) add(market policy.MarketID, price float64) {
	at := b.n
	for at > 0 && price < b.price[at-1] {
		at--
	}
	if at == bargainsMax {
		return
	}
	b.n = min(b.n+1, bargainsMax)
	copy(b.market[at+1:b.n], b.market[at:b.n-1])
	copy(b.price[at+1:b.n], b.price[at:b.n-1])
	b.market[at], b.price[at] = market, price
}

// mean returns the mean price of b, or 0 if b is empty.
func (b *bargains) mean() float64 {
	sum := 0.0
	for i := range b.n {
		sum += b.price[i]
	}
	return sum / float64(max(b.n, 1))
}

// needs are the total requests of all pods of a pool. They make markets of different shapes
// comparable by the price of carrying them.
type needs struct{ cpu, memory, gpu float64 }

func needsOf(f *workload.Features) needs {
	n := needs{float64(f.Requested.CPU), float64(f.Requested.Memory), float64(f.Requested.GPU)}
	if n == (needs{}) {
		n.cpu = 1000
	}
	return n
}

// part returns the multiple of n that one node with r carries.
func (n *needs) part(r *policy.Resources) float64 {
	part := noLimit
	if n.cpu > 0 {
		part = min(part, float64(r.CPU)/n.cpu)
	}
	if n.memory > 0 {
		part = min(part, float64(r.Memory)/n.memory)
	}
	if n.gpu > 0 {
		part = min(part, float64(r.GPU)/n.gpu)
	}
	return part
}

// survey returns the holdings of every pool.
func (sc *buffers) survey(s *policy.Snapshot, features []workload.Features) []holdings {
	if cap(sc.pools) < len(s.Pools) {
		sc.pools = make([]holdings, len(s.Pools))
	}
	sc.pools = sc.pools[:len(s.Pools)]
	cover := billing.CoverageOf(s)
	for i := range sc.pools {
		h := &sc.pools[i]
		*h = holdings{features: &features[i], needs: needsOf(&features[i]), balance: placement.BalanceOf(s, policy.PoolID(i))}
		h.look(s, cover, &s.Pools[i])
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool >= 0 && n.Market >= 0 && n.Usable() && n.ActedBy == policy.ActorNone {
			sc.pools[n.Pool].hold(s, cover, n)
		}
	}
	return sc.pools
}

// look finds the bargains among the pool's markets.
func (h *holdings) look(s *policy.Snapshot, cover *billing.Coverage, pool *policy.Pool) {
	for _, id := range pool.Markets {
		m := &s.Markets[id]
		if !m.Offered {
			continue
		}
		part := h.needs.part(&s.Types[m.Type].Allocatable)
		if part <= 0 {
			continue
		}
		switch m.Capacity {
		case policy.Spot:
			if m.Auction() && m.Charge() > m.OnDemand {
				continue // no bid is made for such a node
			}
			h.spot.add(id, (m.Charge()+s.Fees(pool.ID, id)).Float()/part)
		case policy.OnDemand:
			h.fixed.add(id, (m.Price+s.Fees(pool.ID, id)).Float()/part)
			h.beyond.add(id, placement.Added(cover, s, pool.ID, id).Float()/part)
		}
	}
}

// hold adds a node of the pool.
func (h *holdings) hold(s *policy.Snapshot, cover *billing.Coverage, n *policy.Node) {
	m := &s.Markets[n.Market]
	part, units := h.needs.part(&n.Allocatable), share.Units(s, n.Pool, n.Market)
	price := m.Charge()
	if !m.Offered {
		price = m.OnDemand // the price of buying it elsewhere
	}
	h.carried += part
	if n.Launched > 0 && n.Initialized > n.Launched {
		h.boots++
		h.bootTime += int64(n.Initialized - n.Launched)
	}
	if m.Capacity != policy.Spot {
		h.fixedCarried += part
		h.fixedCost += price + s.Fees(n.Pool, n.Market)
		if cover.Covers(n.Market) {
			price = min(price, cover.Saving(n.Market))
		}
		h.fixedSaved += price + s.Fees(n.Pool, n.Market)
		return
	}
	h.spotUnits += units
	h.capacity += float64(float64(units) * m.Forecast.Capacity)
	h.runtime += float64(float64(units) * m.Forecast.Runtime)
	h.recommended = h.recommended || recommended(s, n)
}

// scores returns the risk scores of the pool, each in [0, 1]: the means over its Spot nodes,
// weighted by their units, or without Spot nodes, over the markets in which it would buy.
func (h *holdings) scores(s *policy.Snapshot) (capacity, runtime float64) {
	if h.spotUnits > 0 {
		return h.capacity / float64(h.spotUnits), h.runtime / float64(h.spotUnits)
	}
	for _, id := range h.spot.market[:h.spot.n] {
		capacity += s.Markets[id].Forecast.Capacity
		runtime += s.Markets[id].Forecast.Runtime
	}
	n := float64(max(h.spot.n, 1))
	return capacity / n, runtime / n
}

// share returns the Spot share, in [0, 1], with moves in progress counted as done.
func (h *holdings) share() float64 {
	if h.balance.Total == 0 {
		return 0
	}
	return float64(h.balance.Spot) / float64(h.balance.Total)
}

// grain returns the fraction of the pool that one node of mean size is.
func (h *holdings) grain() float64 {
	if h.balance.Nodes == 0 {
		return 0
	}
	return 1 / float64(h.balance.Nodes)
}

// A tariff contains the prices of one node of a pool's mean size, in dollars per hour.
type tariff struct {
	// spot is the price in the Spot market in which it would be bought now. If no Spot market is
	// offered, it equals the on-demand price, so that nothing can be saved.
	spot float64

	// fixed is the saving of one on-demand node fewer, or the cost of one more if there are no
	// on-demand nodes. value is the price of the node itself, which differs if commitments pay for
	// nodes.
	fixed, value float64
}

// tariff returns the prices of a node of the pool's mean size.
func (h *holdings) tariff() tariff {
	node := 1.0
	if h.balance.Nodes > 0 && h.carried > 0 {
		node = h.carried / float64(h.balance.Nodes)
	}
	t := tariff{fixed: float64(h.beyond.mean() * node), value: float64(h.fixed.mean() * node)}
	if h.fixedCarried > 0 {
		t.fixed = float64(h.fixedSaved.Float()/h.fixedCarried) * node
		t.value = float64(h.fixedCost.Float()/h.fixedCarried) * node
	}
	t.spot = t.fixed
	if h.spot.n > 0 {
		t.spot = float64(h.spot.mean() * node)
	}
	return t
}

// bootDefault is the time in seconds that a node is assumed to take from its launch until it
// accepts pods, before any node of the pool was observed.
const bootDefault = 120

// undoneCost is the cost of an hour of work that is not done, as a multiple of its value.
const undoneCost = 2

// migrationCost returns the cost in dollars of moving one node of the pool to Spot. The replacement
// runs alongside the old node while it boots, and the old node runs on while the pods restart on
// the replacement. Meanwhile their work is not done, and pods whose workload has no second replica
// have an outage.
func (h *holdings) migrationCost(t tariff) float64 {
	f, restart := h.features, h.restart()
	double := float64(h.boot()*t.spot) + float64(restart*t.fixed)
	lost := float64(undoneCost*restart) + float64(f.Single*f.Penalty)
	return double + float64(h.value(t)*lost)
}

// boot returns the hours from the launch of a node of the pool until it accepts pods, restart the
// hours that its pods take to start, and value the value in dollars of an hour of the work on a
// node.
func (h *holdings) boot() float64 {
	if h.boots == 0 {
		return float64(bootDefault) / 3600
	}
	return float64(h.bootTime) / 1000 / float64(h.boots) / 3600
}

func (h *holdings) restart() float64 { return h.features.Startup / 3600 }

func (h *holdings) value(t tariff) float64 { return float64(h.features.Utilization * t.value) }

// costAt returns the cost per hour of carrying the pool's needs at the given Spot share, if every
// on-demand node costs what removing the next one saves.
func (h *holdings) costAt(share float64) policy.Money {
	fixed := h.beyond.mean()
	if h.fixedCarried > 0 {
		fixed = h.fixedSaved.Float() / h.fixedCarried
	}
	spot := fixed
	if h.spot.n > 0 {
		spot = h.spot.mean()
	}
	carried := h.carried
	if carried == 0 {
		carried = 1 // the pool has no nodes yet: what the needs will take
	}
	return policy.Dollars(float64(carried * (float64(share*spot) + float64((1-share)*fixed))))
}
