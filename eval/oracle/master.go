package oracle

import (
	"math"
	"slices"
)

// A master is the restricted master program of a packing: it finds the cheapest way to serve the
// demand of a piece with the available columns. It is a revised simplex method with upper bounds.
//
// A column that is not negative is an index of mixes. Column −1−i is the slack of row i (an
// unserved pod, an unused part of a commitment, or a node beyond the slots) for i < n, and supply
// i−n for i ≥ n.
type master struct {
	fleet   *fleet
	loads   int       // number of classes
	n       int       // number of rows: classes, then commitments, then kinds with slots
	penalty []float64 // cost of an unserved pod or of a node beyond the slots; 0 for an unused part of a commitment
	rowOf   []int     // per kind: the row of its nodes, −1 if it has no row
	demand  []float64 // per row
	price   []float64 // per kind; 0 if closed
	open    []bool    // per kind
	last    *piece    // the piece that demand and prices belong to

	mixes    []mix
	basis    []int     // the column of each row
	full     []bool    // per supply: whether it is not in the basis and all its slots are used
	inv      []float64 // the inverse of the basis, row by row
	x        []float64 // the amount of each basic column
	rowPrice []float64 // the dual price of each row
	steps    int       // since the basis was last rebuilt
	column   []float64 // scratch

	// work is the number of operations so far.
	work int
}

// A mix is a set of pods that together fill a node of a kind.
type mix struct {
	kind int

	// rows and counts are the entries of the column: the pods of each class, the amounts that the
	// node uses of commitments, and −1 in the row of its kind, if it has one.
	rows   []int
	counts []float64

	// covered reports whether a commitment pays for the node.
	covered bool
}

// value returns the value of the column at the given prices per row.
func (m *mix) value(prices []float64) float64 {
	sum := 0.0
	for i, r := range m.rows {
		sum += float64(prices[r] * m.counts[i])
	}
	return sum
}

const (
	// tolerance is the relative excess of a mix's value over the cost of its node that is required
	// to use it. The bound is lower by at most this part.
	tolerance = 1e-9

	// leastPositive replaces demands, amounts and prices of 0, so that every row has a price and
	// nothing is divided by 0.
	leastPositive = 1e-6

	// stepsMax is the maximum number of steps with the available columns.
	stepsMax = 4000

	// freshAfter is the number of steps per row after which the basis is rebuilt, to remove the
	// rounding errors in it.
	freshAfter = 20
)

// restart resets the basis to the slack columns, which serve no pod.
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

// supplyOf returns the supply of a column, −1 if the column is not a supply.
func (p *master) supplyOf(column int) int { return max(-1, -1-p.n-column) }

// upper returns the upper bound of the amount of a column.
func (p *master) upper(column int) float64 {
	if s := p.supplyOf(column); s >= 0 {
		return float64(p.last.slots[s])
	}
	return math.Inf(1)
}

// resume keeps the basis of the last piece and reports whether it is feasible for this piece.
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

// left returns the demand that the basis must serve: the demand minus the slots of the fully used
// supplies.
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

// priceRows computes the dual price of each row.
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

// cost returns the cost of a unit of a column per hour. It is 0 for nodes of a kind with a row,
// whose cost is that of the supplies in that row.
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

// nodePrice returns the cost of a node of kind k at the current prices, and whether such a node is
// available.
func (p *master) nodePrice(k int) (price float64, ok bool) {
	if row := p.rowOf[k]; row >= 0 {
		return max(p.rowPrice[row], leastPositive), true
	}
	return p.price[k], p.open[k]
}

// usable reports whether a node of the mix is available.
func (p *master) usable(m *mix) bool { return m.covered || p.open[m.kind] || p.rowOf[m.kind] >= 0 }

// optimize finds the best solution with the available columns.
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

// ratio returns the value of a mix per dollar of its node's cost. For a node without cost, it is 1
// plus the value as a fraction of a scale for the node's cost.
func (p *master) ratio(m *mix) float64 {
	switch {
	case m.covered:
		return 1 + m.value(p.rowPrice)/p.fleet.kinds[m.kind].list
	case p.rowOf[m.kind] >= 0:
		return 1 + m.value(p.rowPrice)/max(p.rowPrice[p.rowOf[m.kind]], leastPositive)
	}
	return m.value(p.rowPrice) / p.price[m.kind]
}

// enter moves a column into the basis, or moves a supply between none and all of its slots. It
// returns false if rounding errors leave no column that it could replace.
func (p *master) enter(column int) bool {
	p.expand(column)
	s, sign := p.supplyOf(column), 1.0
	if s >= 0 && p.full[s] {
		sign = -1 // its amount decreases
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

// expand computes the amount of each basic column that a unit of another column replaces.
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

// move increases the entering column by amount and adapts all rows except row except.
func (p *master) move(amount float64, except int) {
	for i := range p.n {
		if factor := p.column[i]; i != except && factor != 0 {
			p.x[i] = max(0, p.x[i]-float64(factor*amount))
		}
	}
}

// pivot replaces row leaves of the inverse by the entering column.
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

// dropMixes removes the older half of the mixes, except those in the basis.
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
