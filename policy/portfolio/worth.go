package portfolio

import "github.com/spotter-dev/spotter/policy"

// A worth is what resources cost where they cost least: a price for each of them
// such that no market sells a node for less than all that it offers is worth, and
// that the demand is worth as much as can be under that. What a node costs above
// its worth is its market's premium; what it costs above the worth of what is
// used is wasted.
type worth struct {
	cpu, memory, gpu float64 // dollars an hour for a thousandth of a core, a byte, a device
}

// of returns what r is worth in dollars an hour.
func (w *worth) of(r policy.Resources) float64 {
	return float64(w.cpu*float64(r.CPU)) + float64(w.memory*float64(r.Memory)) + float64(w.gpu*float64(r.GPU))
}

// ratios are the worths of a byte that are tried, in those of a thousandth of a
// core for 2^20 bytes: from nothing to where memory alone counts.
var ratios = [...]float64{0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 4, 8, 1000}

// appraise finds the worth of what the pool's markets of a capacity type offer:
// spot or not.
func (d *desk) appraise(spot bool) worth {
	demand := d.demand
	if demand == (policy.Resources{}) {
		demand = idleDemand
	}
	best, most := worth{}, -1.0
	for _, ratio := range ratios {
		w := d.worthAt(ratio, spot)
		if v := w.of(demand); v > most {
			best, most = w, v
		}
	}
	return best
}

// worthAt returns the largest worth of a core that no market sells for less when
// 2^20 bytes are worth ratio times a thousandth of a core. Where the demand is
// for accelerators these alone count.
func (d *desk) worthAt(ratio float64, spot bool) worth {
	least := -1.0
	for _, r := range d.ranked {
		m := &d.s.Markets[r.market]
		if m.Capacity == policy.Spot != spot {
			continue
		}
		a := d.room(m.Type)
		size := float64(a.CPU) + float64(ratio*float64(a.Memory))/(1<<20)
		if d.demand.GPU > 0 {
			size = float64(a.GPU)
		}
		if size <= 0 {
			continue
		}
		if x := d.e.costs[r.market] / size; least < 0 || x < least {
			least = x
		}
	}
	least = max(least, 0)
	if d.demand.GPU > 0 {
		return worth{gpu: least}
	}
	return worth{cpu: least, memory: float64(least*ratio) / (1 << 20)}
}

// room returns what a node of type t leaves to pods besides those of DaemonSets.
func (d *desk) room(t policy.TypeID) policy.Resources {
	return d.s.Types[t].Allocatable.Minus(d.daemons)
}
