package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A mixture is what is bought for loose lots: equal nodes, candidate by candidate.
type mixture struct {
	tr      *trial
	weights weights
}

// A candidate is an offer that may be worth buying for loose lots: of those
// with one shape that suit the same lots, the cheapest.
type candidate struct {
	at    int32
	shape *shape
	lots  bitset
	price float64

	// counts is how many pods of each lot a node takes, first the largest;
	// stale says that it must be computed again.
	counts []int32
	stale  bool

	// score is how good such a node is.
	score float64
}

// extend adds the loose pods to p: first into the room that its bins leave,
// then onto the cheapest of several mixtures of new nodes.
func (tr *trial) extend(p *packing, allowed bitset, loose []int32) {
	want := slices.Clone(loose)
	p.loads = slices.Clone(p.loads)
	for i := range p.loads {
		tr.topUp(&p.loads[i], want)
	}
	candidates := tr.candidates(allowed, want)
	var best packing
	found := false
	try := func(loads []load, rest []int32) {
		q := packing{loads: loads, rest: rest}
		for i := range q.loads {
			tr.widen(&q.loads[i], allowed)
			q.cost += tr.price(&q.loads[i])
		}
		for _, n := range rest {
			q.left += n
		}
		if !found || q.better(&best) {
			best, found = q, true
		}
	}
	mx := mixture{tr: tr, weights: tr.weights(candidates, want)}
	for _, m := range [...]scoring{byPodsPerPrice, byUse, byDemand, byPrices} {
		rest := slices.Clone(want)
		try(mx.greedy(nil, candidates, rest, m), rest)
	}
	for i := range candidates {
		rest := slices.Clone(want)
		loads := mx.greedy(nil, candidates[i:i+1], rest, byPodsPerPrice)
		try(mx.greedy(loads, candidates, rest, byDemand), rest)
	}
	p.loads = append(p.loads, best.loads...)
	p.cost += best.cost
	p.left += best.left
	p.rest = slices.Clone(p.rest)
	for i, n := range best.rest {
		p.rest[i] += n
	}
}

// topUp adds pods of want to l without making it dearer.
func (tr *trial) topUp(l *load, want []int32) {
	at := l.bin.claim
	need, gpu, _ := tr.needs(l.parts)
	left := *tr.offerTable.shapeAt(at)
	left.free = left.free.Minus(need)
	volumes := l.bin.volumes
	cloned := false
	for i := range want {
		k := tr.lots[i].kind
		if want[i] == 0 || !tr.lots[i].fit.has(at) || gpu != 0 && k.gpu != 0 && gpu != k.gpu {
			continue
		}
		n := left.most(k, want[i], volumes)
		if n == 0 {
			continue
		}
		if !cloned {
			l.parts, cloned = slices.Clone(l.parts), true
		}
		l.parts = append(l.parts, part{int32(i), n})
		left.free = left.free.Minus(k.requests.Scale(int64(n)))
		volumes += n * k.volumes.own
		want[i] -= n
	}
	if !cloned {
		return
	}
	tr.keepHolding(l, volumes)
}

// keepHolding takes those offers off l that its parts have outgrown.
func (tr *trial) keepHolding(l *load, volumes int32) {
	need, gpu, _ := tr.needs(l.parts)
	l.alive = slices.Clone(l.alive)
	for _, p := range l.parts {
		l.alive.and(tr.lots[p.lot].fit)
	}
	for s := range tr.offerTable.shapes {
		if !tr.offerTable.shapes[s].holds(&need, gpu, volumes) {
			l.alive.andNot(tr.offerTable.ofShape[s])
		}
	}
}

func (ot *offerTable) shapeAt(at int32) *shape { return &ot.shapes[ot.shape[at]] }

// most returns how many pods of k, at most n, a node of this shape takes that
// has volumes attached already.
func (s *shape) most(k *kind, n, volumes int32) int32 {
	if k.gpu != 0 && k.gpu != s.gpu {
		return 0
	}
	m := int64(n)
	r := &k.requests
	for _, c := range [...][2]int64{
		{r.Pods, s.free.Pods}, {r.CPU, s.free.CPU}, {r.Memory, s.free.Memory}, {r.Storage, s.free.Storage}, {r.GPU, s.free.GPU},
	} {
		if c[0] > 0 {
			m = min(m, max(0, c[1])/c[0])
		}
	}
	if k.volumes.own > 0 && s.volumesMax > 0 {
		m = min(m, int64(max(0, s.volumesMax-volumes)/k.volumes.own))
	}
	return int32(m)
}

// candidates returns the offers worth buying for the wanted lots, cheapest
// first. One that an earlier offer outdoes in every way is left out.
func (tr *trial) candidates(allowed bitset, want []int32) []candidate {
	var list []candidate
	for at := allowed.next(0); at >= 0; at = allowed.next(at + 1) {
		c := candidate{at: at, shape: tr.offerTable.shapeAt(at), lots: newBitset(len(tr.lots)), price: tr.priceAt(at).Float()}
		for i := range tr.lots {
			if want[i] > 0 && tr.lots[i].fit.has(at) {
				c.lots.set(int32(i))
			}
		}
		if c.lots.empty() || slices.ContainsFunc(list, func(x candidate) bool { return x.outdoes(&c) }) {
			continue
		}
		c.counts = make([]int32, len(tr.lots))
		list = append(list, c)
	}
	return list
}

// outdoes reports whether c, which is no dearer, is good for all that x is.
func (c *candidate) outdoes(x *candidate) bool {
	for i := range x.lots {
		if x.lots[i]&^c.lots[i] != 0 {
			return false
		}
	}
	a, b := c.shape, x.shape
	if b.free.GPU > 0 && a.gpu != b.gpu || !b.free.Within(a.free) {
		return false
	}
	return a.volumesMax == 0 || b.volumesMax != 0 && b.volumesMax <= a.volumesMax
}

// fill computes how many of the wanted pods one node of c takes.
func (mx *mixture) fill(c *candidate, want []int32) {
	clear(c.counts)
	left, volumes := *c.shape, int32(0)
	for i := c.lots.next(0); i >= 0; i = c.lots.next(i + 1) {
		if want[i] == 0 {
			continue
		}
		k := mx.tr.lots[i].kind
		n := left.most(k, want[i], volumes)
		if n > 0 {
			c.counts[i] = n
			left.free = left.free.Minus(k.requests.Scale(int64(n)))
			volumes += n * k.volumes.own
		}
	}
	c.stale = false
}

// greedy buys nodes one after the other, each time the candidate of greatest
// score filled with the largest pods that it takes, until no candidate takes
// one more. It lowers want, and appends to loads.
func (mx *mixture) greedy(loads []load, candidates []candidate, want []int32, by scoring) []load {
	for i := range candidates {
		candidates[i].stale = true
	}
	for {
		best, most := -1, 0.0
		for i := range candidates {
			c := &candidates[i]
			if c.stale || c.exceeds(want) {
				mx.fill(c, want)
				c.score = mx.score(c, by)
			}
			if c.score > most {
				best, most = i, c.score
			}
		}
		if best < 0 {
			return loads
		}
		loads = append(loads, candidates[best].buy(want))
	}
}

// exceeds reports whether fewer pods are left of a lot than c counts on.
func (c *candidate) exceeds(want []int32) bool {
	for i, n := range c.counts {
		if n > want[i] {
			return true
		}
	}
	return false
}

// buy takes as many equal nodes of c as the wanted pods fill.
func (c *candidate) buy(want []int32) load {
	l := load{times: 1 << 30}
	for i, n := range c.counts {
		if n > 0 {
			l.parts = append(l.parts, part{int32(i), n})
			l.times = min(l.times, want[i]/n)
		}
	}
	for _, p := range l.parts {
		want[p.lot] -= p.n * l.times
	}
	return l
}

// A scoring is a way to compare what nodes would hold.
type scoring uint8

const (
	byPodsPerPrice scoring = iota // most pods for the money
	byUse                         // fullest node, whatever its price
	byDemand                      // most of the whole demand for the money
	byPrices                      // most for the money, at the cheapest price of each resource
)

// weights value a unit of each resource.
type weights struct{ demand, price [4]float64 }

// weights returns the reciprocals of the demand, and the least prices at which
// a unit of each resource is to be had.
func (tr *trial) weights(candidates []candidate, want []int32) weights {
	var total policy.Resources
	for i, n := range want {
		total = total.Plus(tr.lots[i].kind.requests.Scale(int64(n)))
	}
	var w weights
	for r, d := range vector(&total) {
		if d == 0 {
			continue
		}
		w.demand[r] = 1 / d
		for i := range candidates {
			if have := vector(&candidates[i].shape.free)[r]; have > 0 {
				if p := candidates[i].price / have; w.price[r] == 0 || p < w.price[r] {
					w.price[r] = p
				}
			}
		}
	}
	return w
}

func vector(r *policy.Resources) [4]float64 {
	return [...]float64{float64(r.CPU), float64(r.Memory), float64(r.Storage), float64(r.GPU)}
}

func (mx *mixture) score(c *candidate, by scoring) float64 {
	var held policy.Resources
	for i, n := range c.counts {
		if n > 0 {
			held = held.Plus(mx.tr.lots[i].kind.requests.Scale(int64(n)))
		}
	}
	switch by {
	case byPodsPerPrice:
		return float64(held.Pods) / c.price
	case byUse:
		// A node that holds pods that ask for nothing is still of some use.
		use := float64(float64(held.Pods) * 1e-9)
		have := vector(&mx.tr.offerTable.offers[mx.tr.offerTable.rank[c.at]].Allocatable)
		for r, h := range vector(&held) {
			if have[r] > 0 {
				use += h / have[r]
			}
		}
		return use
	}
	scale := &mx.weights.demand
	if by == byPrices {
		scale = &mx.weights.price
	}
	value := float64(float64(held.Pods) * 1e-12)
	for r, h := range vector(&held) {
		value += float64(h * scale[r])
	}
	return value / c.price
}
