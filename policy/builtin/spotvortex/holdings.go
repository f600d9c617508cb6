package spotvortex

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/workload"
)

// holdings are what a pool holds and could buy, in the terms of the rules.
type holdings struct {
	features *workload.Features
	needs    needs

	// balance counts moves under way as done.
	balance placement.Balance

	// carried is how much of the pool's needs the initialized nodes carry that no controller
	// drains. Of those not on Spot, fixedCarried is the same, fixedCost what they cost, and
	// fixedSaved what removing them saves: less if they were paid for in advance.
	carried, fixedCarried float64
	fixedCost, fixedSaved policy.Money

	// scores are sums of the risk scores of the Spot nodes held, weighted by their units.
	capacity, runtime float64
	spotUnits         int64

	// boots is the number of nodes whose time from launch to initialized is
	// known and bootTime the sum of these times in milliseconds.
	boots, bootTime int64

	// recommended says that the provider recommends to leave one of the nodes.
	recommended bool

	// spot and fixed are the cheapest markets that could be bought in now, and
	// beyond those on demand at what they cost more than was paid in advance.
	spot, fixed, beyond bargains
}

// bargainsMax is how many markets represent what would be bought: enough that one unusual price
// does not decide, and few enough that they are those that a provider with a lowest-price strategy
// would choose from.
const bargainsMax = 5

// bargains are the markets that carry a pool's needs for least, cheapest first.
type bargains struct {
	market [bargainsMax]policy.MarketID
	price  [bargainsMax]float64 // dollars per hour for all of the needs
	n      int
}

// add puts market in its place, ties after those already there.
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

// mean returns the mean price of b, 0 without any.
func (b *bargains) mean() float64 {
	sum := 0.0
	for i := range b.n {
		sum += b.price[i]
	}
	return sum / float64(max(b.n, 1))
}

// needs are what all pods of a pool request, so that markets of different
// shapes can be compared by what they charge for carrying them.
type needs struct{ cpu, memory, gpu float64 }

func needsOf(f *workload.Features) needs {
	n := needs{float64(f.Requested.CPU), float64(f.Requested.Memory), float64(f.Requested.GPU)}
	if n == (needs{}) {
		n.cpu = 1000
	}
	return n
}

// part returns how much of n one node with r carries.
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

// survey fills the holdings of every pool.
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
				continue // no such node is bid for
			}
			h.spot.add(id, (m.Charge()+s.Fees(pool.ID, id)).Float()/part)
		case policy.OnDemand:
			h.fixed.add(id, (m.Price+s.Fees(pool.ID, id)).Float()/part)
			h.beyond.add(id, placement.Added(cover, s, pool.ID, id).Float()/part)
		}
	}
}

// hold counts a node of the pool.
func (h *holdings) hold(s *policy.Snapshot, cover *billing.Coverage, n *policy.Node) {
	m := &s.Markets[n.Market]
	part, units := h.needs.part(&n.Allocatable), share.Units(s, n.Pool, n.Market)
	price := m.Charge()
	if !m.Offered {
		price = m.OnDemand // what it would cost if it were bought elsewhere
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

// scores returns the risk scores of the pool: of its Spot nodes, each weighted by its units, and if
// it has none, of the markets in which it would buy.
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

// share returns the Spot share with moves under way counted as done.
func (h *holdings) share() float64 {
	if h.balance.Total == 0 {
		return 0
	}
	return float64(h.balance.Spot) / float64(h.balance.Total)
}

// grain returns the part of the pool that one node of mean size is.
func (h *holdings) grain() float64 {
	if h.balance.Nodes == 0 {
		return 0
	}
	return 1 / float64(h.balance.Nodes)
}

// A tariff is the dollars per hour of one node of a pool's mean size.
type tariff struct {
	// spot is the price in the Spot market in which it would be bought now. If no Spot market is
	// offered, it equals the on-demand price, so that nothing can be saved.
	spot float64

	// fixed is the saving of one on-demand node fewer, or the cost of one more if there are no
	// on-demand nodes, and value is the price of the node itself: they differ if nodes were paid
	// for in advance.
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

// bootDefault is how long a node is taken to need from its launch until it
// takes pods, in seconds, while no node of the pool has shown it.
const bootDefault = 120

// undoneCost is what an hour of work that is not served costs, as a multiple of
// what it is worth.
const undoneCost = 2

// migrationCost returns the dollars that moving one node of the pool to spot
// costs once: the replacement runs at the same time as the old node while it boots and the
// old one while the pods restart on the replacement; meanwhile their work is
// not done; and pods whose workload has no second replica suffer an outage.
func (h *holdings) migrationCost(t tariff) float64 {
	f, restart := h.features, h.restart()
	double := float64(h.boot()*t.spot) + float64(restart*t.fixed)
	lost := float64(undoneCost*restart) + float64(f.Single*f.Penalty)
	return double + float64(h.value(t)*lost)
}

// boot returns how many hours a node of the pool needs from its launch until it takes
// pods, restart how many its pods need to start, and value what an hour of the work on
// a node is worth in dollars.
func (h *holdings) boot() float64 {
	if h.boots == 0 {
		return float64(bootDefault) / 3600
	}
	return float64(h.bootTime) / 1000 / float64(h.boots) / 3600
}

func (h *holdings) restart() float64 { return h.features.Startup / 3600 }

func (h *holdings) value(t tariff) float64 { return float64(h.features.Utilization * t.value) }

// costAt returns the dollars per hour of carrying the pool's needs with
// that share on spot, where every on-demand node costs what the next one saves.
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
		carried = 1 // nothing is held yet: what the needs will take
	}
	return policy.Dollars(float64(carried * (float64(share*spot) + float64((1-share)*fixed))))
}
