package oracle

import (
	"math"
	"slices"
)

// A packing finds the minimum cost of serving demands on fractions of nodes, one piece after the
// other, by column generation. Its master program has a row per class of pods and a column per mix
// of pods that just fits on a node of a kind. It generates columns on demand: it prices the classes
// with the current columns, and searches each kind for a mix that is worth more at these prices
// than the node costs, until no such mix exists.
//
// The rows of the classes are followed by a row per commitment: the nodes that it covers cost
// nothing and use its amount. Its unused amount is a column too, and its value is the negative
// price of its row.
//
// The last rows are those of the kinds of nodes with slots in some markets: nodes for their mixes
// are launched in these markets, each up to its slots, or at the price of the markets without
// slots. The price of the row is the price of a node.
type packing struct {
	master

	resourcePrice [][]float64 // per kind and per row of the kind: the row's fraction of the node's price
	settled       []float64   // the row prices at the end of the last piece

	// whole marks the kinds for which, at the current prices, no whole pods that fit on a node are
	// worth more than it costs.
	whole   []bool
	filling filling
	exact   []int64

	// workMax limits work. After half of it, the search for whole pods stops. After all of it,
	// further pieces use earlier results. short reports whether the last piece was stopped early.
	workMax int
	short   bool

	program program
	gain    []float64 // scratch, like amounts
	amounts []float64
}

const (
	// roundsMax is the maximum number of times that new columns are generated for one piece.
	// mixesMax is the number of mixes that are kept; more are rarely used again.
	roundsMax = 200
	mixesMax  = 600

	// limitMax is the maximum price of a node beyond its slots, in millionths of a micro-dollar: a
	// million dollars an hour.
	limitMax = 1e18

	// searchWork is the number of operations that a step of a search for whole pods counts as; a
	// core executes about 10^9 operations per second.
	searchWork = 25
)

func newPacking(f *fleet, value []float64, workMax int) *packing {
	n := len(value) + len(f.covers)
	p := &packing{
		master: master{fleet: f, loads: len(value), penalty: make([]float64, n), full: make([]bool, len(f.supplies)),
			price: make([]float64, len(f.kinds)), open: make([]bool, len(f.kinds))},
		workMax: workMax, whole: make([]bool, len(f.kinds)),
	}
	for i, v := range value {
		p.penalty[i] = max(v, leastPositive)
	}
	for k := range f.kinds {
		row := -1
		if slices.ContainsFunc(f.supplies, func(s supply) bool { return s.kind == k }) {
			row = n
			p.penalty, n = append(p.penalty, 0), n+1
		}
		p.rowOf = append(p.rowOf, row)
		p.resourcePrice = append(p.resourcePrice, make([]float64, len(f.kinds[k].rows)))
	}
	p.n = n
	p.basis, p.inv, p.x, p.rowPrice, p.demand = make([]int, n), make([]float64, n*n), make([]float64, n), make([]float64,
		n), make([]float64, n)
	p.column, p.gain, p.amounts = make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range f.covers {
		p.demand[p.loads+i] = max(leastPositive, f.covers[i].amount)
	}
	p.restart()
	return p
}

// solve computes the rates of a piece. If it equals the last piece, the rates are the same slice.
// It returns false if the remaining work was not sufficient for the best rates.
func (p *packing) solve(c *piece) bool {
	before := p.last
	if before != nil && before.like(c) {
		c.rates, c.limits, c.owned = before.rates, before.limits, before.owned
		return !p.short
	}
	if p.work > p.workMax && before != nil {
		p.rescale(c)
		return false
	}
	short := p.short
	p.last, p.short = c, false
	p.enterPiece(c)
	if !p.resume() {
		p.restart()
	}
	for range roundsMax {
		p.optimize()
		if before != nil && slices.Equal(p.rowPrice, p.settled) && slices.Equal(before.price, c.price) {
			c.rates, c.limits, c.owned = before.rates, before.limits, before.owned
			p.short = short
			return !p.short
		}
		if !p.generate() {
			break
		}
		if p.work > p.workMax {
			p.short = true
			break
		}
	}
	p.settled = append(p.settled[:0], p.rowPrice...)
	c.rates, c.limits, c.owned = p.rates(), p.limits(), p.owned()
	return !p.short
}

// enterPiece sets prices and demand from a piece.
func (p *packing) enterPiece(c *piece) {
	for k, price := range c.price {
		p.open[k] = price != closed
		p.price[k] = 0
		if p.open[k] {
			p.price[k] = max(float64(price), leastPositive)
		}
	}
	for i := range p.loads {
		p.demand[i] = max(leastPositive, float64(c.wanted[i])+c.guess[i])
	}
	for k, row := range p.rowOf {
		if row < 0 {
			continue
		}
		p.demand[row], p.penalty[row] = leastPositive, p.price[k]
		if !p.open[k] {
			p.penalty[row] = p.nodePenalty(k)
		}
	}
}

// nodePenalty returns a price that is higher than everything that the pods on a node of kind k can
// save.
func (p *packing) nodePenalty(k int) float64 {
	kind := &p.fleet.kinds[k]
	sum := 1.0
	for i, w := range kind.takers {
		fits := float64(math.MaxInt32)
		for r, q := range kind.requests[i] {
			if q > 0 {
				fits = min(fits, float64(kind.free[r]/q))
			}
		}
		sum += float64(fits * p.penalty[w])
	}
	return sum
}

// generate adds mixes that are worth more than their nodes cost, and reports whether there are any.
func (p *packing) generate() bool {
	if len(p.mixes) > mixesMax {
		p.dropMixes()
	}
	found := false
	clear(p.whole)
	for k := range p.fleet.kinds {
		price, by := p.cheapest(k)
		if price == 0 || p.dominated(k) || p.stillHold(k, price) {
			continue
		}
		kind := &p.fleet.kinds[k]
		gain, amounts := p.gain[:len(kind.takers)], p.amounts[:len(kind.takers)]
		for i, w := range kind.takers {
			gain[i] = p.rowPrice[w] / price
		}
		p.work += len(kind.rows) * len(kind.takers) * len(kind.rows)
		p.program.maximize(kind.rows, gain, amounts, p.resourcePrice[k])
		if dot(gain, amounts) <= 1+2*tolerance {
			continue
		}
		if pods, ok := p.searchWhole(k); ok {
			p.whole[k] = pods == nil
			if pods == nil {
				continue
			}
			for i, n := range pods {
				amounts[i] = float64(n)
			}
		}
		p.mixes = append(p.mixes, p.newMix(k, amounts, by))
		found = true
	}
	return found
}

// newMix returns the column of a node of kind k with amounts of its takers. by is the commitment
// that pays for the node, −1 if no commitment does.
func (p *packing) newMix(k int, amounts []float64, by int) mix {
	m, kind := mix{kind: k, covered: by >= 0}, &p.fleet.kinds[k]
	add := func(row int, count float64) {
		if count != 0 {
			m.rows, m.counts = append(m.rows, row), append(m.counts, count)
		}
	}
	for i, w := range kind.takers {
		add(w, amounts[i])
	}
	switch {
	case m.covered:
		add(p.loads+by, kind.takes[by])
	case p.rowOf[k] >= 0:
		add(p.rowOf[k], -1)
	}
	return m
}

// searchWhole searches for whole pods on a node of kind k that are worth more than the node costs.
// It returns false if the answer is unknown.
func (p *packing) searchWhole(k int) (pods []int32, ok bool) {
	limit := p.limit(k)
	if limit < perMicroDollar || limit == math.MaxInt64 {
		return nil, false
	}
	if p.short = p.short || p.work > p.workMax/2; p.short {
		return nil, false
	}
	kind := &p.fleet.kinds[k]
	p.exact = p.exact[:0]
	for _, w := range kind.takers {
		p.exact = append(p.exact, p.rate(w))
	}
	pods, ok = p.filling.search(kind, p.exact, limit)
	p.work += searchWork * p.filling.steps
	return pods, ok
}

// limits returns the limits of all kinds.
func (p *packing) limits() []int64 {
	out := make([]int64, len(p.fleet.kinds))
	for k := range out {
		out[k] = p.limit(k)
	}
	return out
}

// limit returns the assumed cost of a node of kind k per hour, in millionths of a micro-dollar and
// rounded down: its price, or its part of the value of a commitment; math.MaxInt64 if no node of
// the kind is possible. A kind with a row has the price of the row. The amount by which nodes in a
// market are cheaper is subtracted from the bound for its slots.
func (p *packing) limit(k int) int64 {
	limit := int64(math.MaxInt64)
	if row := p.rowOf[k]; row >= 0 {
		limit = int64(math.Floor(min(limitMax, max(0, p.rowPrice[row])*perMicroDollar)))
	} else if p.last.price[k] != closed {
		limit = int64(p.last.price[k]) * perMicroDollar
	}
	for i, takes := range p.fleet.kinds[k].takes {
		if takes > 0 {
			limit = min(limit, int64(math.Floor(max(0, below(below(p.value(i)*takes)*perMicroDollar)))))
		}
	}
	return limit
}

// rate returns the price of class w as a rate, in millionths of a micro-dollar and rounded down,
// with a margin for rounding errors in the prices.
func (p *packing) rate(w int) int64 {
	most := math.Floor(p.penalty[w]) * perMicroDollar
	return int64(math.Floor(max(0, min(most, p.rowPrice[w]*perMicroDollar*(1-10*tolerance)))))
}

// dominated reports whether another kind is not more expensive than kind k and can run every set of
// pods that k can run. Rates that are valid for the other kind are valid for k.
func (p *packing) dominated(k int) bool {
	limit := p.limit(k)
	return slices.ContainsFunc(p.fleet.kinds[k].larger, func(j int) bool { return p.limit(j) <= limit })
}

// cheapest returns the lowest cost of a node of kind k, and the commitment that covers it at this
// cost, −1 if it is not covered. The cost of a covered node is the value of the amount that it
// uses. The price is 0 if there can be no node.
func (p *packing) cheapest(k int) (price float64, by int) {
	price, open := p.nodePrice(k)
	by = -1
	for i, takes := range p.fleet.kinds[k].takes {
		if takes == 0 {
			continue
		}
		if c := max(leastPositive, -p.rowPrice[p.loads+i]*takes); !open && by < 0 || c < price {
			price, by = c, i
		}
	}
	return price, by
}

// stillHold reports whether the last resource prices of kind k still cover the value of its takers.
func (p *packing) stillHold(k int, price float64) bool {
	kind := &p.fleet.kinds[k]
	sum := 0.0
	for _, y := range p.resourcePrice[k] {
		sum += y
	}
	if sum > 1+2*tolerance {
		return false
	}
	for i, w := range kind.takers {
		covered := 0.0
		for r, row := range kind.rows {
			covered += float64(row[i] * p.resourcePrice[k][r])
		}
		if p.rowPrice[w] > float64(price*covered)*(1+tolerance) {
			return false
		}
	}
	return true
}

// rates computes the minimum cost of a pod of each class from the prices alone, always rounded
// down, in millionths of a micro-dollar per hour. For kinds that were searched for whole pods at
// these prices, the prices themselves are valid; for other kinds the resource prices are.
func (p *packing) rates() []int64 {
	out := make([]int64, p.loads)
	for i := range out {
		out[i] = int64(math.Floor(p.penalty[i])) * perMicroDollar
	}
	if slices.Contains(p.whole, true) {
		for i := range out {
			out[i] = p.rate(i)
		}
	}
	for k := range p.fleet.kinds {
		kind, limit := &p.fleet.kinds[k], p.limit(k)
		if limit == math.MaxInt64 || p.whole[k] || p.dominated(k) {
			continue
		}
		fit(p.resourcePrice[k])
		for i, w := range kind.takers {
			out[w] = min(out[w], leastRate(limit, kind.rows, i, p.resourcePrice[k]))
		}
	}
	return out
}

// rescale sets the result of c to that of the last solved piece, with all prices multiplied by the
// largest factor for which no node without slots is cheaper in c. Kinds that were not available
// then get uniform resource prices.
func (p *packing) rescale(c *piece) {
	scale := math.Inf(1)
	for k, limit := range p.last.limits {
		if p.rowOf[k] < 0 && limit != math.MaxInt64 && c.price[k] != closed {
			scale = min(scale, float64(c.price[k])*perMicroDollar/float64(max(1, limit)))
		}
	}
	if math.IsInf(scale, 1) || len(p.fleet.covers) > 0 {
		scale = min(1, scale) // the value of a commitment must not increase
	}
	for k, limit := range p.last.limits {
		if p.rowOf[k] >= 0 {
			scale = min(scale, limitMax/float64(max(1, limit)))
		}
	}
	scale *= 1 - 1e-12 // margin for the rounding below
	c.owned = p.last.owned
	c.rates, c.limits = make([]int64, p.loads), make([]int64, len(p.last.limits))
	for w, rate := range p.last.rates {
		c.rates[w] = int64(math.Floor(min(float64(rate)*scale, math.Floor(p.penalty[w])*perMicroDollar)))
	}
	for k, limit := range p.last.limits {
		switch {
		case p.rowOf[k] >= 0:
			c.limits[k] = int64(math.Ceil(float64(limit)*scale)) + 1
		case limit == math.MaxInt64 && c.price[k] != closed:
			kind := &p.fleet.kinds[k]
			for r := range p.resourcePrice[k] {
				p.resourcePrice[k][r] = 1 / float64(len(kind.rows))
			}
			fit(p.resourcePrice[k])
			for i, w := range kind.takers {
				c.rates[w] = min(c.rates[w], leastRate(int64(c.price[k])*perMicroDollar, kind.rows, i, p.resourcePrice[k]))
			}
		}
	}
}

// value returns the value of commitment i per unit and hour.
func (p *packing) value(i int) float64 { return max(0, -p.rowPrice[p.loads+i]) }

// owned returns the value of all commitments per hour, rounded up, in millionths of a micro-dollar.
// Covered nodes are assumed to cost at most their part of it, so it must be subtracted from the
// bound. The result is a bound for any values, and the best bound for the best values.
func (p *packing) owned() int64 {
	sum := 0.0
	for i := range p.fleet.covers {
		sum = above(sum + above(p.value(i)*p.fleet.covers[i].amount))
	}
	return int64(math.Ceil(above(sum * perMicroDollar)))
}

// fit scales duals down until their sum is at most 1.
func fit(duals []float64) {
	for range 8 {
		sum := 0.0
		for _, y := range duals {
			sum = above(sum + y)
		}
		if sum <= 1 {
			return
		}
		for r := range duals {
			duals[r] = max(0, below(below(duals[r]/sum)))
		}
	}
	clear(duals)
}

// leastRate returns price, in millionths of a micro-dollar, multiplied by the weighted sum of the
// coefficients of taker i in all rows, rounded down. duals are the weights of the rows.
func leastRate(price int64, rows [][]float64, i int, duals []float64) int64 {
	sum := 0.0
	for r, row := range rows {
		if row[i] > 0 && duals[r] > 0 {
			sum = below(sum + below(float64(row[i]*duals[r])))
		}
	}
	return int64(math.Floor(max(0, below(max(0, sum)*float64(price)))))
}
