package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// A concentration is how the spot capacity of a pool lies on the groups that are lost
// together: a market, a type in all zones, a zone.
type concentration struct {
	market, kind, zone []float64 // in units of the pool's share
	total              float64
}

func (d *planState) readConcentration() {
	s := d.s
	c := &d.concentration
	c.market, c.kind, c.zone = make([]float64, len(s.Markets)), make([]float64, len(s.Types)), make([]float64, len(s.Zones))
	c.total = 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == d.pool.ID && n.Market >= 0 && n.Phase != policy.NodeGone && n.Phase < policy.NodeDraining && n.ReclaimAt == 0 {
			c.add(d, n.Market, 1)
		}
	}
}

// add counts a node of m in (1) or out (-1).
func (c *concentration) add(d *planState, m policy.MarketID, sign float64) {
	x := &d.s.Markets[m]
	size := sign * float64(share.Units(d.s, d.pool.ID, m))
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
func (c *concentration) factor(d *planState, m policy.MarketID) float64 {
	x := &d.s.Markets[m]
	if x.Capacity != policy.Spot || c.total <= 0 {
		return 1
	}
	return 1 + c.risk(d, m)/c.total
}

// risk returns how much capacity would be lost with a node of spot market m, each
// group weighed with its risk, and 0 of other markets.
func (c *concentration) risk(d *planState, m policy.MarketID) float64 {
	x := &d.s.Markets[m]
	if x.Capacity != policy.Spot {
		return 0
	}
	cfg := &d.e.cfg
	return float64(cfg.MarketRisk*c.market[m]) + float64(cfg.TypeRisk*c.kind[x.Type]) + float64(cfg.ZoneRisk*c.zone[x.Zone])
}
