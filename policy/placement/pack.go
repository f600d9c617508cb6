package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Pack groups pods onto new nodes at the least total price that it finds. It
// compares what Provision does with nodes of one type only and with several
// greedy mixtures, and gives every bin the cheapest offer that holds it. Total
// is the price per hour of the first offer of every bin.
//
// It returns the bins, and the indices of the pods that no offer holds. The
// space is used as scratch and left as it was.
func Pack(sp *Space, pods []policy.Pod, offers []Offer) (bins []Bin, unplaced []int, total policy.Money) {
	tr := newTrial(sp, pods, offers)
	return tr.buy(tr.pack)
}

// A packing is one way to buy nodes for what is wanted.
type packing struct {
	loads []load
	rest  []int32 // pods that found no place, by lot
	left  int32   // their number
	cost  policy.Money
}

func (p *packing) better(q *packing) bool {
	return p.left < q.left || p.left == q.left && p.cost < q.cost
}

// pack finds the cheapest packing of the wanted pods. Lots bound by topology,
// ports or shared claims are packed pod by pod; for the loose ones counting is
// enough, which makes many more attempts affordable.
func (tr *trial) pack(allowed bitset, want []int32) []load {
	base := tr.bins
	loose, bound := slices.Clone(want), slices.Clone(want)
	anyLoose, anyBound := false, false
	for i := range tr.lots {
		if tr.lots[i].loose {
			bound[i] = 0
			anyLoose = anyLoose || want[i] > 0
		} else {
			loose[i] = 0
			anyBound = anyBound || want[i] > 0
		}
	}
	best := tr.attempt(allowed, allowed, want, base)
	starts := []packing{{rest: make([]int32, len(want))}}
	if anyBound {
		starts = starts[:0]
		for _, mask := range tr.restrictions(allowed, bound) {
			starts = append(starts, tr.attempt(mask, allowed, bound, base))
		}
	}
	// The loose pods are added to the best start only: the mixtures that are
	// tried there cost more than a start does.
	start := -1
	for i := range starts {
		if start < 0 || starts[i].better(&starts[start]) {
			start = i
		}
	}
	if start >= 0 {
		p := starts[start]
		if anyLoose {
			tr.extend(&p, allowed, loose)
		}
		if p.better(&best) {
			best = p
		}
	}
	for i := range best.loads {
		if b := best.loads[i].bin; b != nil {
			tr.countBin(b, 1)
			tr.bins = max(tr.bins, b.host-int32(len(tr.sp.occupancy.slots))+1)
		}
	}
	copy(want, best.rest)
	return best.loads
}

// attempt provisions the wanted pods on offers of mask (of allowed where none
// of those will do), gives each bin all of the allowed offers that hold it, and
// takes the bins out of the counters again.
func (tr *trial) attempt(mask, allowed bitset, want []int32, base int32) packing {
	p := packing{rest: slices.Clone(want)}
	tr.bins, tr.filler.fallback = base, allowed
	p.loads = tr.filler.provision(mask, p.rest)
	tr.filler.fallback = nil
	for i := range p.loads {
		tr.widen(&p.loads[i], allowed)
		if b := p.loads[i].bin; b != nil {
			tr.lay(b, tr.spare(b, p.loads[i].alive))
		}
		p.cost += tr.price(&p.loads[i])
	}
	for _, n := range p.rest {
		p.left += n
	}
	tr.withdraw(p.loads)
	tr.bins = base
	return p
}

// widen sets the offers of l to all of the allowed ones that hold its parts
// and have the domains that its bin was given.
func (tr *trial) widen(l *load, allowed bitset) {
	ot := tr.offerTable
	l.alive = slices.Clone(allowed)
	need, gpu, volumes := tr.needs(l.parts)
	for _, p := range l.parts {
		l.alive.and(tr.lots[p.lot].fit)
	}
	if l.bin != nil {
		volumes = l.bin.volumes
		for key, d := range l.bin.domain {
			if d != unpinned {
				l.alive.and(ot.ofDomain[key][d+1])
			}
		}
	}
	for s := range ot.shapes {
		if !ot.shapes[s].holds(&need, gpu, volumes) {
			l.alive.andNot(ot.ofShape[s])
		}
	}
	if l.bin != nil {
		for _, p := range l.parts {
			tr.added.agree(l.alive, &tr.lots[p.lot], l.bin.claim)
		}
	}
}

// needs returns what parts request together; shared claims are left out.
func (tr *trial) needs(parts []part) (need policy.Resources, gpu int16, volumes int32) {
	for _, p := range parts {
		k := tr.lots[p.lot].kind
		need = need.Plus(k.requests.Scale(int64(p.n)))
		gpu = max(gpu, k.gpu)
		volumes += k.volumes.own * p.n
	}
	return need, gpu, volumes
}

// price returns what the bins of l cost at their cheapest offer.
func (tr *trial) price(l *load) policy.Money {
	if l.bin != nil {
		return tr.priceAt(l.bin.claim)
	}
	return tr.priceAt(l.alive.next(0)) * policy.Money(l.times)
}

func (tr *trial) priceAt(at int32) policy.Money {
	return tr.offerTable.offers[tr.offerTable.rank[at]].Price
}

// The most shapes on which bound lots are provisioned alone, with few and with
// many pods.
const (
	restrictionsMax     = 8
	restrictionsManyMax = 3
	manyPods            = 1000
)

// restrictions returns sets of offers to provision the wanted pods on: all of
// them, and for the shapes that would hold all pods at the least price, if
// pods could be cut in pieces, the offers of each.
func (tr *trial) restrictions(allowed bitset, want []int32) []bitset {
	ot, demand, pods := tr.offerTable, policy.Resources{}, int32(0)
	for i, n := range want {
		demand = demand.Plus(tr.lots[i].kind.requests.Scale(int64(n)))
		pods += n
	}
	type ranked struct {
		shape int32
		cost  float64
	}
	var order []ranked
	for s := range ot.shapes {
		positions := slices.Clone(ot.ofShape[s])
		positions.and(allowed)
		at := positions.next(0)
		if share := sharesOf(&demand, &ot.shapes[s].free); at >= 0 && share < 1e9 {
			order = append(order, ranked{int32(s), tr.priceAt(at).Float() * share})
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
	most := restrictionsMax
	if pods > manyPods {
		most = restrictionsManyMax
	}
	masks := []bitset{allowed}
	for _, r := range order[:min(most, len(order))] {
		mask := slices.Clone(ot.ofShape[r.shape])
		mask.and(allowed)
		masks = append(masks, mask)
	}
	return masks
}

// sharesOf returns how many times demand fills free, pods counted too.
func sharesOf(demand, free *policy.Resources) float64 {
	share := demand.LargestShare(*free)
	if free.Pods <= 0 {
		return 1e9
	}
	return max(share, float64(demand.Pods)/float64(free.Pods))
}
