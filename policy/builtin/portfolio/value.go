package portfolio

import "github.com/spotter-dev/spotter/policy"

// A resourceValue is what resources cost where they cost least: a price for each of them
// such that no market sells a node for less than the value of all that it offers, and
// that the value of the demand is the largest under that. What a node costs above
// its value is its market's premium; what it costs above the value of what is
// used is wasted.
type resourceValue struct {
	cpu, memory, gpu float64 // dollars an hour for a thousandth of a core, a byte, a device
}

// of returns the value of r in dollars an hour.
func (v *resourceValue) of(r policy.Resources) float64 {
	return float64(v.cpu*float64(r.CPU)) + float64(v.memory*float64(r.Memory)) + float64(v.gpu*float64(r.GPU))
}

// ratios are the values of a byte that are tried, in those of a thousandth of a
// core for 2^20 bytes: from nothing to where memory alone counts.
var ratios = [...]float64{0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 4, 8, 1000}

// A nodeOffer is what a node of a market costs, and what it leaves to pods.
type nodeOffer struct{ cost, cpu, memory, gpu float64 }

// outdone reports whether x costs no less than y for no more of anything, so that
// it makes no resource cheaper.
func (x *nodeOffer) outdone(y *nodeOffer) bool {
	return x.cost >= y.cost && y.cost >= 0 && x.cpu <= y.cpu && x.memory <= y.memory && x.gpu <= y.gpu
}

// addUndominated returns list with x, without those that are outdone.
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

// cheapest returns the least that one of list costs for its size; 0 where none has
// any.
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

// nodeOffers returns the open markets of a capacity type, spot or not, that no other one
// outdoes: the few that set the value of resources.
func (p *prices) nodeOffers(spot bool) []nodeOffer {
	list := p.e.nodeOffers[:0]
	for _, r := range p.ranked {
		m := &p.s.Markets[r.market]
		if m.Capacity == policy.Spot != spot {
			continue
		}
		a := p.demand.freeCapacity(m.Type)
		x := nodeOffer{p.e.costs[r.market], float64(a.CPU), float64(a.Memory), float64(a.GPU)}
		list = addUndominated(list, x)
	}
	p.e.nodeOffers = list
	return list
}

// evaluate finds the value of what the pool's markets of a capacity type offer:
// spot or not. It holds until the costs change, and is asked for several times.
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

// worth returns what used, of the pods of node id, costs an hour where it costs least: on demand, or
// with spot there only the part of pods that no Spot node holds.
func (p *prices) worth(id policy.NodeID, used policy.Resources, spot bool) float64 {
	value := p.evaluate(spot)
	if fixed, _ := p.demand.fixedOn(id); spot && fixed != (policy.Resources{}) {
		onDemand := p.evaluate(false)
		return value.of(used.Minus(fixed)) + onDemand.of(fixed)
	}
	return value.of(used)
}

// A knownValue is the value of what is sold, once it is known.
type knownValue struct {
	value resourceValue
	known bool
}

// valueAt returns the largest value of a core that no market of list sells for less
// when 2^20 bytes have the value of ratio times a thousandth of a core. Where the demand is
// for accelerators these alone count.
func (p *prices) valueAt(ratio float64, list []nodeOffer) resourceValue {
	if p.demand.total.GPU > 0 {
		return resourceValue{gpu: cheapest(list, func(x *nodeOffer) float64 { return x.gpu })}
	}
	least := cheapest(list, func(x *nodeOffer) float64 { return x.cpu + float64(ratio*x.memory)/(1<<20) })
	return resourceValue{cpu: least, memory: float64(least*ratio) / (1 << 20)}
}
