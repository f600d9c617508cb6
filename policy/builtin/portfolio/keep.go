package portfolio

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// keep orders the ranked nodes by how long they are kept, the longest first. The next node is
// always the one with the lowest cost for its pods, including the risk of concentration with the
// nodes before it. If the pool states an exact share, the node must be of the capacity type that
// brings the nodes before it nearest to that share, so that the share holds however many nodes are
// removed.
func (o *deletionOrder) keep() {
	k := &o.e.ranking
	ratio, left := o.ratioBeside(k.runs), 0
	c := newConcentration(o.poolContext)
	for i := range k.runs {
		left += len(k.runs[i].nodes)
	}
	k.kept = slices.Grow(k.kept[:0], left)
	order := k.group(o.s, o.pool.ID)
	for ; left > 0; left-- {
		p := pick{rank: o.e.names.rank, inverse: 1 / max(c.total, 1)}
		for at, n := range order {
			b := &k.batches[n]
			if p.of != nil && b.floor > p.least {
				break // nor does any batch after it cost less
			}
			if ratio.wants(b.market) {
				p.look(b, &c, at)
			}
		}
		b, r := p.of, &p.of.runs[p.at]
		x := keptNode{node: r.nodes[0], yields: r.yields, held: r.held, stale: r.stale}
		if !r.own {
			set := &o.e.pods.sets[x.node]
			x.held, x.stale = set.cost, set.stale
		}
		k.kept = append(k.kept, x)
		ratio.add(b.market)
		c.addTo(b.market, b.kind, b.zone, b.size)
		if r.nodes = r.nodes[1:]; len(r.nodes) == 0 {
			b.runs = slices.Delete(b.runs, p.at, p.at+1)
			order = replaced(order, k.batches, p.place)
		}
	}
}

// A pick is the node with the lowest cost for its pods among those compared. Ties are broken by
// base, then by name.
type pick struct {
	of    *batch
	at    int // index in its runs
	place int // index of its batch in the order
	least float64

	rank    []int32 // ranks of names, by node
	inverse float64 // 1 / the capacity that is kept
}

// look compares the nodes of b with the best node so far, if the nodes of c are kept. place is the
// index of b in the order.
func (p *pick) look(b *batch, c *concentration, place int) {
	factor := 1.0
	if c.total > 0 {
		risk := c.riskIn(b.market, b.kind, b.zone)
		if b.plain && p.of != nil && float64(b.runs[0].base*(1+float64(risk*p.inverse)))*(1-leastPart) > p.least {
			return // a cheap bound of the comparison below: a division takes far longer
		}
		factor = 1 + risk/c.total
	}
	for k := range b.runs {
		r := &b.runs[k]
		switch {
		case k == 0:
		case b.plain && r.base > b.runs[0].base, b.least(r.base, factor) > p.least:
			return // the runs after it cost no less
		}
		x := (b.cost*factor - r.stays) / r.yields
		if p.of == nil || x < p.least || x == p.least && r.before(&p.of.runs[p.at], p.rank) {
			p.of, p.at, p.place, p.least = b, k, place, x
		}
	}
}

// A batch is nodes of one market that cost the same and that all have, or all lack, pods that stay.
type batch struct {
	market policy.MarketID
	kind   policy.TypeID
	zone   policy.ZoneID // None if the market is not Spot
	plain  bool          // without pods that stay
	runs   []run         // in the order of before
	size   float64       // of a node, in units of the pool's share

	cost  float64 // of a node, dollars per hour
	extra float64 // lowest ratio of the cost of a node to yields
	floor float64 // lower bound of the cost of any node for its pods, with the nodes kept so far
}

// least returns a lower bound of the cost of the nodes of b for their pods, from the node with the
// given base on, if nodes are more expensive by factor.
func (b *batch) least(base, factor float64) float64 {
	x := base + float64(b.extra*(factor-1))
	return x - float64(leastPart*(math.Abs(base)+float64(b.extra*factor)))
}

// leastPart is far more than the relative rounding error of the cost of a node.
const leastPart = 1e-9

// start sets the bounds from the first run. Without pods that stay, the first run has the lowest
// ratio of cost to yields.
func (b *batch) start() {
	if len(b.runs) == 0 {
		return
	}
	base := b.runs[0].base
	if b.plain {
		b.extra = base
	}
	b.floor = base - float64(2*leastPart*(math.Abs(base)+b.extra))
}

// replaced returns order after the first run of the batch at the given index was used up: the batch
// moves back, or is removed if it has no more runs.
func replaced(order []int32, batches []batch, at int) []int32 {
	b := &batches[order[at]]
	if len(b.runs) == 0 {
		return slices.Delete(order, at, at+1)
	}
	b.start()
	for ; at+1 < len(order) && batches[order[at+1]].floor < b.floor; at++ {
		order[at], order[at+1] = order[at+1], order[at]
	}
	return order
}

// group sorts the runs into batches, and returns the indexes of the batches in ascending order of
// their floors.
func (k *ranking) group(s *policy.Snapshot, pool policy.PoolID) []int32 {
	slices.SortFunc(k.runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.market, b.market), cmp.Compare(of(a.stays == 0), of(b.stays == 0)),
			cmp.Compare(a.place, b.place))
	})
	k.batches, k.order = k.batches[:0], k.order[:0]
	for i := 0; i < len(k.runs); {
		r := &k.runs[i]
		m := &s.Markets[r.market]
		b := batch{market: r.market, kind: m.Type, zone: m.Zone, plain: r.stays == 0,
			size: float64(share.Units(s, pool, r.market)), cost: r.cost, extra: math.Inf(1)}
		if m.Capacity != policy.Spot {
			b.zone = policy.None
		}
		began := i
		for ; i < len(k.runs) && k.runs[i].market == b.market && (k.runs[i].stays == 0) == b.plain; i++ {
			b.extra = min(b.extra, k.runs[i].cost/k.runs[i].yields)
		}
		b.runs = k.runs[began:i:i]
		b.start()
		k.order, k.batches = append(k.order, int32(len(k.order))), append(k.batches, b)
	}
	slices.SortFunc(k.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(k.batches[a].floor, k.batches[b].floor), cmp.Compare(a, b))
	})
	return k.order
}

// A ranking orders nodes by what they cost for their pods; ties are broken by name. It is the
// reusable memory of a deletionOrder.
type ranking struct {
	values    []float64 // by template, value of a pod in dollars per hour
	goes, all []bool    // by template: its pods go; by kind: the pods of all its templates go

	runs    []run
	batches []batch
	order   []int32 // indexes of batches
	equal   []int32 // ranks of nodes

	kept      []keptNode // the nodes kept longest first
	held      []int32    // deletion costs, in the order of kept
	numbering numbering
	asked     []int32 // indexes in kept

	texts map[float64]string // formatted costs and values, since few differ
	buf   []byte
	ends  []int // ends of texts in buf
}

// A run is nodes of one market that cost the same for pods of the same value, in ascending order of
// name: the first is kept before the others.
type run struct {
	nodes  []policy.NodeID
	market policy.MarketID
	place  int32   // index among the ranked runs
	cost   float64 // of a node, dollars per hour
	yields float64 // value of its pods that workloads remove as they shrink, dollars per hour
	stays  float64 // what its other pods add to the cost of emptying it, dollars per hour
	base   float64 // (cost - stays) / yields

	// own reports whether the run is a single node of which only some pods go. held is then the
	// lowest deletion cost of these pods, and stale reports whether some of them have another
	// deletion cost.
	own   bool
	held  int32
	stale bool
}

// before reports whether the first node of r is ordered before the first node of q, by base and
// then by the ranks of names.
func (r *run) before(q *run, rank []int32) bool {
	return r.base < q.base || r.base == q.base && rank[r.nodes[0]] < rank[q.nodes[0]]
}

// add adds r, unless it has no pods that go.
func (k *ranking) add(r *run) {
	if r.yields > 0 && len(r.nodes) > 0 {
		r.base = (r.cost - r.stays) / r.yields
		k.runs = append(k.runs, *r)
	}
}

// last ranks the runs and keeps only the given number of nodes that cost most, or all if there are
// fewer. It returns the number of nodes kept.
func (k *ranking) last(most int, rank []int32) int {
	slices.SortFunc(k.runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(rank[a.nodes[0]], rank[b.nodes[0]]))
	})
	all := 0
	for i := range k.runs {
		k.runs[i].place = int32(i)
		all += len(k.runs[i].nodes)
	}
	skip := max(0, all-most)
	for i := 0; skip > 0; {
		began, n := i, 0
		for ; i < len(k.runs) && k.runs[i].base == k.runs[began].base; i++ {
			n += len(k.runs[i].nodes)
		}
		k.skip(k.runs[began:i], min(skip, n), rank)
		skip -= min(skip, n)
	}
	k.runs = slices.DeleteFunc(k.runs, func(r run) bool { return len(r.nodes) == 0 })
	return min(all, most)
}

// skip removes the first n nodes, by name, from runs that cost the same.
func (k *ranking) skip(runs []run, n int, rank []int32) {
	if len(runs) == 1 {
		runs[0].nodes = runs[0].nodes[n:]
		return
	}
	k.equal = k.equal[:0]
	for i := range runs {
		for _, id := range runs[i].nodes {
			k.equal = append(k.equal, rank[id])
		}
	}
	slices.Sort(k.equal)
	for i := range runs {
		r := &runs[i]
		for len(r.nodes) > 0 && rank[r.nodes[0]] <= k.equal[n-1] {
			r.nodes = r.nodes[1:]
		}
	}
}

// textOf returns the text of an amount in dollars per hour.
func (k *ranking) textOf(dollars float64) string {
	x, known := k.texts[dollars]
	if !known {
		x = policy.Dollars(dollars).Short()
		k.texts[dollars] = x
	}
	return x
}
