package portfolio

import (
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

// read counts the nodes of the pool in that are not on their way out.
func (c *concentration) read() {
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		if n.Pool == c.pool && n.Market >= 0 && n.Phase != policy.NodeGone && n.Phase < policy.NodeDraining && n.ReclaimAt == 0 {
			c.add(n.Market, 1)
		}
	}
}

// add counts a node of m in (1) or out (-1).
func (c *concentration) add(m policy.MarketID, sign float64) {
	x := &c.s.Markets[m]
	size := sign * float64(share.Units(c.s, c.pool, m))
	c.total += size
	if x.Capacity != policy.Spot {
		return
	}
	c.market[m] += size
	c.kind[x.Type] += size
	c.zone[x.Zone] += size
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
	cfg := c.cfg
	return float64(cfg.MarketRisk*c.market[m]) + float64(cfg.TypeRisk*c.kind[x.Type]) + float64(cfg.ZoneRisk*c.zone[x.Zone])
}
