package eval

import (
	"math"
	"slices"
)

// A packing finds the least cost of serving demands on fractions of nodes, piece
// after piece. Its program has a row per class of pods and a column per mix of pods
// that just fits a node of a kind, of which it makes those that it needs: it
// prices the classes by the columns at hand, and asks each kind for a mix that
// is worth more at these prices than the node costs, until there is none.
//
// Below the rows of the classes stands one per commitment: the nodes that it
// covers cost nothing and take of its amount. What is unused of it is a column
// too, and the price of its row, with the sign turned, is what it is worth.
//
// Last there is a row for every kind of node of which some markets have slots:
// what its mixes use is bought from these markets, each up to its slots, or at
// the price of the markets without. The price of the row is that of the node.
type packing struct {
	fleet *fleet
	loads int       // classes
	n     int       // rows: classes, then commitments, then kinds with slots
	most  []float64 // what a pod not served costs, or a node beyond the slots; 0 for what is unused
	rowOf []int     // per kind: the row of its nodes, −1 for none

	mixes []mix
	basis []int     // per row: a column, see columnOf
	full  []bool    // per supply: it is not in the basis, and all of its slots are used
	inv   []float64 // the inverse of the basis, by rows
	x     []float64 // how much of each basic column there is
	worth []float64 // the price of each row
	steps int       // since the basis was last begun anew

	demand []float64
	price  []float64   // per kind; 0 where closed
	open   []bool      // per kind
	duals  [][]float64 // per kind and row: the part of the price that it carries

	// whole marks the kinds of which no node holds whole pods that are worth more
	// than it costs, at the prices of now.
	whole   []bool
	filling filling
	exact   []int64

	last    *piece    // that was solved last
	settled []float64 // the prices at which it was left

	// work is the operations done so far. When half of workMax is done, whole pods
	// are no more searched for; when all of it is, further pieces take what was
	// found before. short says that the piece solved last was cut short.
	work, workMax int
	short         bool

	program program
	gain    []float64 // this and the next three are scratch
	amounts []float64
	ones    []float64
	column  []float64
}

// A mix is numbers of pods that together fill a node of a kind.
type mix struct {
	kind int

	// rows and counts are the column: the pods of each class, what the node
	// takes of a commitment, and −1 in the row of its kind, where it has one.
	rows   []int
	counts []float64

	// covered says that a commitment pays for the node.
	covered bool
}

// value returns what the column of m is worth at prices per row.
func (m *mix) value(prices []float64) float64 {
	sum := 0.0
	for i, r := range m.rows {
		sum += float64(prices[r] * m.counts[i])
	}
	return sum
}

const (
	// tolerance is the part by which a mix must be worth more than its node to
	// be used. What it leaves on the table the bound lacks.
	tolerance = 1e-9

	// leastPositive stands for demands, amounts and prices of 0, so that every row has
	// a price and nothing is divided by 0.
	leastPositive = 1e-6

	// stepsMax and roundsMax bound the steps with the columns at hand and how
	// often new ones are made; mixesMax is how many are kept, since more of them
	// are seldom used again.
	stepsMax  = 4000
	roundsMax = 200
	mixesMax  = 600

	// freshAfter is the number of steps per row after which the basis is begun
	// anew, to be rid of the rounding in it.
	freshAfter = 20

	// limitMax is the greatest price of a node beyond its slots, in millionths of a
	// micro-dollar: a million dollars an hour.
	limitMax = 1e18

	// searchWork is how many operations a step of a search for whole pods counts
	// as, of which a core does some 10^9 a second.
	searchWork = 25
)

func newPacking(f *fleet, value []float64, workMax int) *packing {
	n := len(value) + len(f.covers)
	p := &packing{fleet: f, loads: len(value), workMax: workMax, most: make([]float64, n), full: make([]bool, len(f.supplies)),
		price: make([]float64, len(f.kinds)), open: make([]bool, len(f.kinds)), whole: make([]bool, len(f.kinds))}
	for i, v := range value {
		p.most[i] = max(v, leastPositive)
	}
	for k := range f.kinds {
		row := -1
		if slices.ContainsFunc(f.supplies, func(s supply) bool { return s.kind == k }) {
			row = n
			p.most, n = append(p.most, 0), n+1
		}
		p.rowOf = append(p.rowOf, row)
		rows := len(f.kinds[k].rows)
		p.duals = append(p.duals, make([]float64, rows))
		for len(p.ones) < rows {
			p.ones = append(p.ones, 1)
		}
	}
	p.n = n
	p.basis, p.inv, p.x, p.worth, p.demand = make([]int, n), make([]float64, n*n), make([]float64, n), make([]float64, n), make([]float64, n)
	p.column, p.gain, p.amounts = make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range f.covers {
		p.demand[p.loads+i] = max(leastPositive, f.covers[i].amount)
	}
	p.restart()
	return p
}

// restart begins with nothing served.
func (p *packing) restart() {
	clear(p.inv)
	clear(p.full)
	for i := range p.n {
		p.basis[i] = -1 - i
		p.inv[i*p.n+i] = 1
		p.x[i] = p.demand[i]
	}
	p.steps = 0
}

// A column is a mix if it is not negative. Below stand what is left of each row,
// −1−i for row i (a pod that is not served, what is unused of a commitment, a
// node beyond the slots), and then the supplies.

// supplyOf returns the supply that a column is, −1 if it is another.
func (p *packing) supplyOf(column int) int { return max(-1, -1-p.n-column) }

// room returns how much there may be of a column.
func (p *packing) room(column int) float64 {
	if s := p.supplyOf(column); s >= 0 {
		return float64(p.last.slots[s])
	}
	return math.Inf(1)
}

// solve finds the rates of a piece. Where it is as the one before they are the
// same list. It reports false where the work left did not allow for the best.
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
		if before != nil && slices.Equal(p.worth, p.settled) && slices.Equal(before.price, c.price) {
			c.rates, c.limits, c.owned = before.rates, before.limits, before.owned
			p.short = short
			return !p.short
		}
		if !p.enrich() {
			break
		}
		if p.work > p.workMax {
			p.short = true
			break
		}
	}
	p.settled = append(p.settled[:0], p.worth...)
	c.rates, c.limits, c.owned = p.rates(), p.limits(), p.owned()
	return !p.short
}

// enterPiece takes prices and demand from a piece.
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
		p.demand[row], p.most[row] = leastPositive, p.price[k]
		if !p.open[k] {
			p.most[row] = p.dear(k)
		}
	}
}

// dear returns a price above all that the pods on a node of kind k save.
func (p *packing) dear(k int) float64 {
	kind := &p.fleet.kinds[k]
	sum := 1.0
	for i, w := range kind.takers {
		fits := float64(math.MaxInt32)
		for r, q := range kind.asked[i] {
			if q > 0 {
				fits = min(fits, float64(kind.room[r]/q))
			}
		}
		sum += float64(fits * p.most[w])
	}
	return sum
}

// resume keeps the basis of the piece before if it serves this one.
func (p *packing) resume() bool {
	if p.steps > freshAfter*p.n {
		return false
	}
	for _, b := range p.basis {
		if b >= 0 && !p.usable(&p.mixes[b]) {
			return false
		}
	}
	left := p.left()
	for i, b := range p.basis {
		if s := p.supplyOf(b); s >= 0 && p.last.supply[s] == closed {
			return false
		}
		x := dot(p.inv[i*p.n:(i+1)*p.n], left)
		if x < -tolerance || x > p.room(b)+tolerance {
			return false
		}
		p.x[i] = max(0, x)
	}
	return true
}

// left returns what the basis has to serve: the demand, less the slots of the
// supplies that are used up.
func (p *packing) left() []float64 {
	left := p.column[:len(p.demand)]
	copy(left, p.demand)
	for s, full := range p.full {
		if full {
			left[p.rowOf[p.fleet.supplies[s].kind]] -= float64(p.last.slots[s])
		}
	}
	return left
}

// appraise works out the price of each row.
func (p *packing) appraise() {
	clear(p.worth)
	for i, b := range p.basis {
		cost := p.cost(b)
		if cost == 0 {
			continue
		}
		for j := range p.worth {
			p.worth[j] += float64(cost * p.inv[i*p.n+j])
		}
	}
}

// cost returns what one of a column costs per hour. What a node costs of a kind
// that has a row, those columns cost of which it is bought.
func (p *packing) cost(column int) float64 {
	switch s := p.supplyOf(column); {
	case s >= 0:
		return max(float64(p.last.supply[s]), leastPositive)
	case column < 0:
		return p.most[-1-column]
	case p.mixes[column].covered || p.rowOf[p.mixes[column].kind] >= 0:
		return 0
	}
	return p.price[p.mixes[column].kind]
}

// nodePrice returns what a node of kind k costs at the prices of now, and whether
// there is one.
func (p *packing) nodePrice(k int) (price float64, ok bool) {
	if row := p.rowOf[k]; row >= 0 {
		return max(p.worth[row], leastPositive), true
	}
	return p.price[k], p.open[k]
}

// usable reports whether a node of the mix can be had.
func (p *packing) usable(m *mix) bool { return m.covered || p.open[m.kind] || p.rowOf[m.kind] >= 0 }

// optimize uses the columns at hand as well as can be.
func (p *packing) optimize() {
	p.appraise()
	for range stepsMax {
		p.work += p.n*p.n + 8*len(p.mixes)
		column, appeal := 0, 1+tolerance
		try := func(c int, a float64) {
			if a > appeal {
				column, appeal = c, a
			}
		}
		for i := range p.mixes {
			if m := &p.mixes[i]; p.usable(m) {
				try(i, p.appeal(m))
			}
		}
		for i, worth := range p.worth {
			if c := i - p.loads; c >= 0 && c < len(p.fleet.covers) {
				try(-1-i, 1+worth/p.fleet.covers[c].list)
			} else {
				try(-1-i, worth/p.most[i])
			}
		}
		for s := range p.fleet.supplies {
			c := -1 - p.n - s
			price, node := p.cost(c), max(p.worth[p.rowOf[p.fleet.supplies[s].kind]], leastPositive)
			switch {
			case p.last.slots[s] <= 0:
			case p.full[s]:
				try(c, price/node)
			default:
				try(c, node/price)
			}
		}
		if appeal == 1+tolerance || !p.enter(column) {
			return
		}
		p.appraise()
	}
}

// appeal returns what a mix is worth for each dollar that its node costs. Of one
// that costs nothing it is 1 and its gain in parts of what the node would cost.
func (p *packing) appeal(m *mix) float64 {
	switch {
	case m.covered:
		return 1 + m.value(p.worth)/p.fleet.kinds[m.kind].list
	case p.rowOf[m.kind] >= 0:
		return 1 + m.value(p.worth)/max(p.worth[p.rowOf[m.kind]], leastPositive)
	}
	return m.value(p.worth) / p.price[m.kind]
}

// enter brings a column into the basis, or has a supply change between none and
// all of its slots. It reports false if rounding has left nothing that it could
// replace.
func (p *packing) enter(column int) bool {
	p.expand(column)
	s, sign := p.supplyOf(column), 1.0
	if s >= 0 && p.full[s] {
		sign = -1 // less of it
	}
	leaves, least, filled := -1, math.Inf(1), false
	for i, b := range p.basis {
		step := float64(sign * p.column[i])
		ratio, fills := math.Inf(1), step < 0
		switch {
		case step > 1e-9:
			ratio = p.x[i] / step
		case step < -1e-9:
			ratio = max(0, p.room(b)-p.x[i]) / -step
		}
		if ratio < least || ratio == least && leaves >= 0 && b < p.basis[leaves] {
			leaves, least, filled = i, ratio, fills
		}
	}
	p.steps++
	if s >= 0 && p.room(column) <= least {
		p.move(float64(sign*p.room(column)), -1)
		p.full[s] = !p.full[s]
		return true
	}
	if leaves < 0 || math.IsInf(least, 1) {
		return false
	}
	p.move(float64(sign*least), leaves)
	if out := p.supplyOf(p.basis[leaves]); out >= 0 {
		p.full[out] = filled
	}
	p.x[leaves] = least
	if sign < 0 {
		p.x[leaves], p.full[s] = max(0, p.room(column)-least), false
	}
	p.pivot(leaves)
	p.basis[leaves] = column
	return true
}

// expand works out how much of each basic column one of another takes the place
// of.
func (p *packing) expand(column int) {
	switch s := p.supplyOf(column); {
	case s >= 0:
		for i, row := 0, p.rowOf[p.fleet.supplies[s].kind]; i < p.n; i++ {
			p.column[i] = p.inv[i*p.n+row]
		}
	case column < 0:
		for i := range p.n {
			p.column[i] = p.inv[i*p.n-1-column]
		}
	default:
		for i := range p.n {
			p.column[i] = p.mixes[column].value(p.inv[i*p.n : (i+1)*p.n])
		}
	}
}

// move takes amount of the entering column into use, but for row except.
func (p *packing) move(amount float64, except int) {
	for i := range p.n {
		if factor := p.column[i]; i != except && factor != 0 {
			p.x[i] = max(0, p.x[i]-float64(factor*amount))
		}
	}
}

// pivot puts the entering column into row leaves of the inverse.
func (p *packing) pivot(leaves int) {
	pivot := p.inv[leaves*p.n : (leaves+1)*p.n]
	inverse := 1 / p.column[leaves]
	for j := range pivot {
		pivot[j] *= inverse
	}
	for i := range p.n {
		factor := p.column[i]
		if i == leaves || factor == 0 {
			continue
		}
		row := p.inv[i*p.n : (i+1)*p.n]
		for j, v := range pivot {
			row[j] -= float64(factor * v)
		}
	}
}

// enrich adds the mixes that are worth more than their nodes cost, and reports
// whether there are any.
func (p *packing) enrich() bool {
	if len(p.mixes) > mixesMax {
		p.forget()
	}
	found := false
	clear(p.whole)
	for k := range p.fleet.kinds {
		price, by := p.cheapest(k)
		if price == 0 || p.useless(k) || p.carries(k, price) {
			continue
		}
		kind := &p.fleet.kinds[k]
		gain, amounts := p.gain[:len(kind.takers)], p.amounts[:len(kind.takers)]
		for i, w := range kind.takers {
			gain[i] = p.worth[w] / price
		}
		p.work += len(kind.rows) * len(kind.takers) * len(kind.rows)
		p.program.maximize(kind.rows, p.ones[:len(kind.rows)], gain, amounts, p.duals[k])
		if dot(gain, amounts) <= 1+2*tolerance {
			continue
		}
		if pods, ok := p.fillWhole(k); ok {
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

// newMix returns the column of a node of kind k with amounts of its takers, that
// commitment by pays for; −1 for none.
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

// fillWhole looks for whole pods on a node of kind k that are worth more than
// the node costs; false where that is not known.
func (p *packing) fillWhole(k int) (pods []int32, ok bool) {
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

// limits returns the limit of every kind.
func (p *packing) limits() []int64 {
	out := make([]int64, len(p.fleet.kinds))
	for k := range out {
		out[k] = p.limit(k)
	}
	return out
}

// limit returns what a node of kind k is taken to cost per hour, in millionths of
// a micro-dollar and rounded down: its price, or its part of what a commitment is
// worth; math.MaxInt64 where there can be none. A kind that has a row has the price
// of the row, and what the nodes in a market cost less is given back for its slots.
func (p *packing) limit(k int) int64 {
	limit := int64(math.MaxInt64)
	if row := p.rowOf[k]; row >= 0 {
		limit = int64(math.Floor(min(limitMax, max(0, p.worth[row])*perMicroDollar)))
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

// rate returns the price of class w as a rate, in millionths of a micro-dollar
// and rounded down, with some to spare for the rounding in the prices.
func (p *packing) rate(w int) int64 {
	most := math.Floor(p.most[w]) * perMicroDollar
	return int64(math.Floor(max(0, min(most, p.worth[w]*perMicroDollar*(1-10*tolerance)))))
}

// useless reports whether another kind costs no more than kind k and a node of it
// holds whatever one of k does. Rates that hold for the other hold for k.
func (p *packing) useless(k int) bool {
	limit := p.limit(k)
	return slices.ContainsFunc(p.fleet.kinds[k].larger, func(j int) bool { return p.limit(j) <= limit })
}

// cheapest returns the least that a node of kind k costs, and the commitment by
// which it does, −1 for none: one that commitment covers takes what the part of
// its amount is worth. It is 0 where there can be no node.
func (p *packing) cheapest(k int) (price float64, by int) {
	price, open := p.nodePrice(k)
	by = -1
	for i, takes := range p.fleet.kinds[k].takes {
		if takes == 0 {
			continue
		}
		if c := max(leastPositive, -p.worth[p.loads+i]*takes); !open && by < 0 || c < price {
			price, by = c, i
		}
	}
	return price, by
}

// carries reports whether the prices of resources found last for kind k still
// cover what its takers are worth.
func (p *packing) carries(k int, price float64) bool {
	kind := &p.fleet.kinds[k]
	sum := 0.0
	for _, y := range p.duals[k] {
		sum += y
	}
	if sum > 1+2*tolerance {
		return false
	}
	for i, w := range kind.takers {
		covered := 0.0
		for r, row := range kind.rows {
			covered += float64(row[i] * p.duals[k][r])
		}
		if p.worth[w] > float64(price*covered)*(1+tolerance) {
			return false
		}
	}
	return true
}

// forget drops the older half of the mixes, but for those in use.
func (p *packing) forget() {
	kept := make([]mix, 0, len(p.mixes))
	place := make([]int, len(p.mixes))
	for i := range p.mixes {
		if i >= len(p.mixes)/2 || slices.Contains(p.basis, i) {
			place[i] = len(kept)
			kept = append(kept, p.mixes[i])
		}
	}
	for i, b := range p.basis {
		if b >= 0 {
			p.basis[i] = place[b]
		}
	}
	p.mixes = kept
}

// rates works out from the prices alone, with every rounding downward, what a pod
// of each class costs at least, in millionths of a micro-dollar per hour. For
// the kinds that were searched for whole pods at these prices the prices
// themselves hold; for the others those of resources do.
func (p *packing) rates() []int64 {
	out := make([]int64, p.loads)
	for i := range out {
		out[i] = int64(math.Floor(p.most[i])) * perMicroDollar
	}
	if slices.Contains(p.whole, true) {
		for i := range out {
			out[i] = p.rate(i)
		}
	}
	for k := range p.fleet.kinds {
		kind, limit := &p.fleet.kinds[k], p.limit(k)
		if limit == math.MaxInt64 || p.whole[k] || p.useless(k) {
			continue
		}
		fit(p.duals[k])
		for i, w := range kind.takers {
			out[w] = min(out[w], leastRate(limit, kind.rows, i, p.duals[k]))
		}
	}
	return out
}

// rescale gives c what was found for the piece solved last, with all prices times
// the greatest number at which no node without slots costs less in c. Kinds that
// could not be had then have prices of resources, as good as any.
func (p *packing) rescale(c *piece) {
	scale := math.Inf(1)
	for k, limit := range p.last.limits {
		if p.rowOf[k] < 0 && limit != math.MaxInt64 && c.price[k] != closed {
			scale = min(scale, float64(c.price[k])*perMicroDollar/float64(max(1, limit)))
		}
	}
	if math.IsInf(scale, 1) || len(p.fleet.covers) > 0 {
		scale = min(1, scale) // a commitment is worth what it was
	}
	for k, limit := range p.last.limits {
		if p.rowOf[k] >= 0 {
			scale = min(scale, limitMax/float64(max(1, limit)))
		}
	}
	scale *= 1 - 1e-12 // for the rounding of what follows
	c.owned = p.last.owned
	c.rates, c.limits = make([]int64, p.loads), make([]int64, len(p.last.limits))
	for w, rate := range p.last.rates {
		c.rates[w] = int64(math.Floor(min(float64(rate)*scale, math.Floor(p.most[w])*perMicroDollar)))
	}
	for k, limit := range p.last.limits {
		switch {
		case p.rowOf[k] >= 0:
			c.limits[k] = int64(math.Ceil(float64(limit)*scale)) + 1
		case limit == math.MaxInt64 && c.price[k] != closed:
			kind := &p.fleet.kinds[k]
			for r := range p.duals[k] {
				p.duals[k][r] = 1 / float64(len(kind.rows))
			}
			fit(p.duals[k])
			for i, w := range kind.takers {
				c.rates[w] = min(c.rates[w], leastRate(int64(c.price[k])*perMicroDollar, kind.rows, i, p.duals[k]))
			}
		}
	}
}

// value returns what commitment i is worth per unit and hour.
func (p *packing) value(i int) float64 { return max(0, -p.worth[p.loads+i]) }

// owned returns what all of the commitments are worth per hour at their values,
// rounded up, in millionths of a micro-dollar. What nodes of a kind cost is taken
// to be no more than their part of that, so it must be given back: a bound for
// any values, and with the best ones the best.
func (p *packing) owned() int64 {
	sum := 0.0
	for i := range p.fleet.covers {
		sum = above(sum + above(p.value(i)*p.fleet.covers[i].amount))
	}
	return int64(math.Ceil(above(sum * perMicroDollar)))
}

// fit lowers duals until they are parts of at most the whole.
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

// leastRate returns price, in millionths of a micro-dollar, × what a pod of taker
// i takes of each row, weighed by what of the price the row carries, rounded
// down.
func leastRate(price int64, rows [][]float64, i int, duals []float64) int64 {
	sum := 0.0
	for r, row := range rows {
		if row[i] > 0 && duals[r] > 0 {
			sum = below(sum + below(float64(row[i]*duals[r])))
		}
	}
	return int64(math.Floor(max(0, below(max(0, sum)*float64(price)))))
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}
