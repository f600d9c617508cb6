package oracle

import (
	"math"
	"slices"
)

// A master is the restricted master program of a packing: how the demand of a
// piece is served best with the columns at hand. It is a revised simplex method
// with upper bounds.
//
// A column is a mix if it is not negative. Below follow the rests of the rows, −1−i for row i (a
// pod that is not served, an unused part of a commitment, a node beyond the slots), and then the
// supplies.
type master struct {
	fleet   *fleet
	loads   int       // classes
	n       int       // rows: classes, then commitments, then kinds with slots
	penalty []float64 // cost of a pod not served, or of a node beyond the slots; 0 for what is unused
	rowOf   []int     // per kind: the row of its nodes, −1 for none
	demand  []float64 // per row
	price   []float64 // per kind; 0 where closed
	open    []bool    // per kind
	last    *piece    // the piece that demand and prices are of

	mixes    []mix
	basis    []int     // per row: a column
	full     []bool    // per supply: it is not in the basis, and all of its slots are used
	inv      []float64 // the inverse of the basis, by rows
	x        []float64 // how much of each basic column there is
	rowPrice []float64 // the price of each row
	steps    int       // since the basis was last rebuilt
	column   []float64 // scratch

	// work is the operations done so far.
	work int
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

	// leastPositive replaces demands, amounts and prices of 0, so that every row has a price and
	// nothing is divided by 0.
	leastPositive = 1e-6

	// stepsMax bounds the steps with the columns at hand.
	stepsMax = 4000

	// freshAfter is the number of steps per row after which the basis is rebuilt, to remove the
	// rounding errors in it.
	freshAfter = 20
)

// restart starts with nothing served.
func (p *master) restart() {
	clear(p.inv)
	clear(p.full)
	for i := range p.n {
		p.basis[i] = -1 - i
		p.inv[i*p.n+i] = 1
		p.x[i] = p.demand[i]
	}
	p.steps = 0
}

// supplyOf returns the supply that a column is, −1 if it is another.
func (p *master) supplyOf(column int) int { return max(-1, -1-p.n-column) }

// room returns how much there may be of a column.
func (p *master) upper(column int) float64 {
	if s := p.supplyOf(column); s >= 0 {
		return float64(p.last.slots[s])
	}
	return math.Inf(1)
}

// resume keeps the basis of the piece before if it serves this one.
func (p *master) resume() bool {
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
		if x < -tolerance || x > p.upper(b)+tolerance {
			return false
		}
		p.x[i] = max(0, x)
	}
	return true
}

// left returns what the basis has to serve: the demand, less the slots of the
// supplies that are used up.
func (p *master) left() []float64 {
	left := p.column[:len(p.demand)]
	copy(left, p.demand)
	for s, full := range p.full {
		if full {
			left[p.rowOf[p.fleet.supplies[s].kind]] -= float64(p.last.slots[s])
		}
	}
	return left
}

// priceRows works out the price of each row.
func (p *master) priceRows() {
	clear(p.rowPrice)
	for i, b := range p.basis {
		cost := p.cost(b)
		if cost == 0 {
			continue
		}
		for j := range p.rowPrice {
			p.rowPrice[j] += float64(cost * p.inv[i*p.n+j])
		}
	}
}

// cost returns what one of a column costs per hour. What a node costs of a kind
// that has a row, those columns cost of which it is bought.
func (p *master) cost(column int) float64 {
	switch s := p.supplyOf(column); {
	case s >= 0:
		return max(float64(p.last.supply[s]), leastPositive)
	case column < 0:
		return p.penalty[-1-column]
	case p.mixes[column].covered || p.rowOf[p.mixes[column].kind] >= 0:
		return 0
	}
	return p.price[p.mixes[column].kind]
}

// nodePrice returns what a node of kind k costs at the prices of now, and whether
// there is one.
func (p *master) nodePrice(k int) (price float64, ok bool) {
	if row := p.rowOf[k]; row >= 0 {
		return max(p.rowPrice[row], leastPositive), true
	}
	return p.price[k], p.open[k]
}

// usable reports whether a node of the mix can be had.
func (p *master) usable(m *mix) bool { return m.covered || p.open[m.kind] || p.rowOf[m.kind] >= 0 }

// optimize uses the columns at hand as well as can be.
func (p *master) optimize() {
	p.priceRows()
	for range stepsMax {
		p.work += p.n*p.n + 8*len(p.mixes)
		column, ratio := 0, 1+tolerance
		try := func(c int, a float64) {
			if a > ratio {
				column, ratio = c, a
			}
		}
		for i := range p.mixes {
			if m := &p.mixes[i]; p.usable(m) {
				try(i, p.ratio(m))
			}
		}
		for i, price := range p.rowPrice {
			if c := i - p.loads; c >= 0 && c < len(p.fleet.covers) {
				try(-1-i, 1+price/p.fleet.covers[c].list)
			} else {
				try(-1-i, price/p.penalty[i])
			}
		}
		for s := range p.fleet.supplies {
			c := -1 - p.n - s
			price, node := p.cost(c), max(p.rowPrice[p.rowOf[p.fleet.supplies[s].kind]], leastPositive)
			switch {
			case p.last.slots[s] <= 0:
			case p.full[s]:
				try(c, price/node)
			default:
				try(c, node/price)
			}
		}
		if ratio == 1+tolerance || !p.enter(column) {
			return
		}
		p.priceRows()
	}
}

// ratio returns what a mix is worth for each dollar that its node costs. Of one
// that costs nothing it is 1 and its gain in parts of what the node would cost.
func (p *master) ratio(m *mix) float64 {
	switch {
	case m.covered:
		return 1 + m.value(p.rowPrice)/p.fleet.kinds[m.kind].list
	case p.rowOf[m.kind] >= 0:
		return 1 + m.value(p.rowPrice)/max(p.rowPrice[p.rowOf[m.kind]], leastPositive)
	}
	return m.value(p.rowPrice) / p.price[m.kind]
}

// enter brings a column into the basis, or has a supply change between none and
// all of its slots. It reports false if rounding has left nothing that it could
// replace.
func (p *master) enter(column int) bool {
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
			ratio = max(0, p.upper(b)-p.x[i]) / -step
		}
		if ratio < least || ratio == least && leaves >= 0 && b < p.basis[leaves] {
			leaves, least, filled = i, ratio, fills
		}
	}
	p.steps++
	if s >= 0 && p.upper(column) <= least {
		p.move(float64(sign*p.upper(column)), -1)
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
		p.x[leaves], p.full[s] = max(0, p.upper(column)-least), false
	}
	p.pivot(leaves)
	p.basis[leaves] = column
	return true
}

// expand works out how much of each basic column one of another takes the place
// of.
func (p *master) expand(column int) {
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
func (p *master) move(amount float64, except int) {
	for i := range p.n {
		if factor := p.column[i]; i != except && factor != 0 {
			p.x[i] = max(0, p.x[i]-float64(factor*amount))
		}
	}
}

// pivot puts the entering column into row leaves of the inverse.
func (p *master) pivot(leaves int) {
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

// dropMixes drops the older half of the mixes, but for those in use.
func (p *master) dropMixes() {
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

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}
