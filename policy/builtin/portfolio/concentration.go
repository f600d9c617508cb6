package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// A concentration is how the spot capacity of a pool is spread over the groups that are
// lost together: a market, a type in all zones, a zone. Each of the three sums to the same
// capacity, and total is that with what is on demand.
type concentration struct {
	s                  *policy.Snapshot
	cfg                *Config
	pool               policy.PoolID
	market, kind, zone []float64 // in units of the pool's share
	total              float64
}

// newConcentration returns the concentration of no nodes.
func newConcentration(x *poolContext) concentration {
	return concentration{s: x.s, cfg: &x.e.cfg, pool: x.pool.ID, market: make([]float64, len(x.s.Markets)), kind: make([]float64, len(x.s.Types)), zone: make([]float64, len(x.s.Zones))}
}

// read counts those of nodes in that are the pool's and not on their way out.
func (c *concentration) read(nodes *nodeIndex) {
	count := slices.Clone(nodes.in(c.pool))
	for _, id := range nodes.odd {
		if n := &nodes.all[id]; n.pool == c.pool && n.market >= 0 && n.phase < policy.NodeDraining && !n.reclaimed {
			count[n.market]++
		}
	}
	for m, k := range count {
		if k > 0 {
			c.add(policy.MarketID(m), float64(k))
		}
	}
}

// add counts so many nodes of m in, or out where n is below zero.
func (c *concentration) add(m policy.MarketID, n float64) {
	x := &c.s.Markets[m]
	zone := x.Zone
	if x.Capacity != policy.Spot {
		zone = policy.None
	}
	c.addTo(m, x.Type, zone, n*float64(share.Units(c.s, c.pool, m)))
}

// addTo adds so much capacity of market m and of a type in a zone, which is None where it is
// not spot.
func (c *concentration) addTo(m policy.MarketID, kind policy.TypeID, zone policy.ZoneID, size float64) {
	c.total += size
	if zone < 0 {
		return
	}
	c.market[m] += size
	c.kind[kind] += size
	c.zone[zone] += size
}

// factor returns by how much a node of m is dearer than it costs, for what would
// be lost with it.
func (c *concentration) factor(m policy.MarketID) float64 {
	x := &c.s.Markets[m]
	if x.Capacity != policy.Spot || c.total <= 0 {
		return 1
	}
	return 1 + c.risk(m)/c.total
}

// risk returns how much capacity would be lost with a node of spot market m, each
// group weighed with its risk, and 0 of other markets.
func (c *concentration) risk(m policy.MarketID) float64 {
	x := &c.s.Markets[m]
	if x.Capacity != policy.Spot {
		return 0
	}
	return c.riskIn(m, x.Type, x.Zone)
}

// riskIn returns the risk in market m of a type in a zone, which is None where it is not spot.
func (c *concentration) riskIn(m policy.MarketID, kind policy.TypeID, zone policy.ZoneID) float64 {
	if zone < 0 {
		return 0
	}
	cfg := c.cfg
	return float64(cfg.MarketRisk*c.market[m]) + float64(cfg.TypeRisk*c.kind[kind]) + float64(cfg.ZoneRisk*c.zone[zone])
}
