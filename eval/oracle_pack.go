package eval

import (
	"math"
	"slices"
)

// A packing finds the least cost of serving demands on fractions of nodes, piece
// after piece. Its program has a row per workload and a column per mix of pods
// that just fits a node of a kind, of which it makes those that it needs: it
// prices the workloads by the columns at hand, and asks each kind for a mix that
// is worth more at these prices than the node costs, until there is none.
//
// Below the rows of the workloads stands one per commitment: the nodes that it
// covers cost nothing and take of its amount. What is unused of it is a column
// too, and the price of its row, with the sign turned, is what it is worth.
type packing struct {
	fleet *fleet
	loads int       // workloads
	n     int       // rows: workloads, then commitments
	most  []float64 // what a pod not served costs; 0 for what is unused

	mixes []mix
	basis []int     // per row: a mix, or −1−i for workload i not served or what is unused of a commitment
	inv   []float64 // the inverse of the basis, by rows
	x     []float64 // how much of each basic column there is
	worth []float64 // the price of each workload
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

	last    *piece // that was solved last
	program program
	gain    []float64 // this and the next three are scratch
	amounts []float64
	ones    []float64
	column  []float64
}

// A mix is numbers of pods that together fill a node of a kind.
type mix struct {
	kind int
	pods []float64 // per workload, then what it takes of each commitment

	// covered says that a commitment pays for the node.
	covered bool
}

const (
	// tolerance is the part by which a mix must be worth more than its node to
	// be used. What it leaves on the table the bound lacks.
	tolerance = 1e-9

	// whiff is the demand of a workload that wants no pods, so that there is a
	// price for it.
	whiff = 1e-6

	// stepsMax and roundsMax bound the steps with the columns at hand and how
	// often new ones are made; mixesMax is how many are kept, since more of them
	// are seldom used again.
	stepsMax  = 4000
	roundsMax = 200
	mixesMax  = 600

	// freshAfter is the number of steps after which the basis is begun anew, to
	// be rid of the rounding in it.
	freshAfter = 500
)

func newPacking(f *fleet, value []float64) *packing {
	n := len(value) + len(f.covers)
	p := &packing{fleet: f, loads: len(value), n: n, most: make([]float64, n), basis: make([]int, n), inv: make([]float64, n*n), x: make([]float64, n),
		worth: make([]float64, n), demand: make([]float64, n), price: make([]float64, len(f.kinds)), open: make([]bool, len(f.kinds)),
		column: make([]float64, n), gain: make([]float64, n), amounts: make([]float64, n), whole: make([]bool, len(f.kinds))}
	for i, v := range value {
		p.most[i] = max(v, whiff)
	}
	for i := range f.covers {
		p.demand[p.loads+i] = max(whiff, f.covers[i].amount)
	}
	for i := range f.kinds {
		p.duals = append(p.duals, make([]float64, len(f.kinds[i].rows)))
		for len(p.ones) < len(f.kinds[i].rows) {
			p.ones = append(p.ones, 1)
		}
	}
	p.restart()
	return p
}

// restart begins with nothing served.
func (p *packing) restart() {
	clear(p.inv)
	for i := range p.n {
		p.basis[i] = -1 - i
		p.inv[i*p.n+i] = 1
		p.x[i] = p.demand[i]
	}
	p.steps = 0
}

// solve returns the rates of a piece. Where it is as the one before they are
// the same list.
func (p *packing) solve(c *piece) []int64 {
	samePrices := p.last != nil && slices.Equal(p.last.price, c.price)
	sameDemand := p.last != nil && slices.Equal(p.last.wanted, c.wanted) && slices.Equal(p.last.guess, c.guess)
	if samePrices && sameDemand {
		c.owned = p.last.owned
		return p.last.rates
	}
	p.last = c
	for k, price := range c.price {
		p.open[k] = price != closed
		p.price[k] = 0
		if p.open[k] {
			p.price[k] = max(float64(price), whiff)
		}
	}
	for i := range p.loads {
		p.demand[i] = max(whiff, float64(c.wanted[i])+c.guess[i])
	}
	if !p.resume() {
		p.restart()
	}
	for range roundsMax {
		p.optimize()
		if !p.enrich() {
			break
		}
	}
	c.owned = p.owned()
	return p.rates()
}

// resume keeps the basis of the piece before if it serves this one.
func (p *packing) resume() bool {
	if p.steps > freshAfter {
		return false
	}
	for _, b := range p.basis {
		if b >= 0 && !p.usable(&p.mixes[b]) {
			return false
		}
	}
	for i := range p.n {
		x := 0.0
		for j, d := range p.demand {
			x += float64(p.inv[i*p.n+j] * d)
		}
		if x < -tolerance {
			return false
		}
		p.x[i] = max(0, x)
	}
	return true
}

// appraise works out the price of each workload.
func (p *packing) appraise() {
	clear(p.worth)
	for i, b := range p.basis {
		cost := p.cost(b)
		for j := range p.worth {
			p.worth[j] += float64(cost * p.inv[i*p.n+j])
		}
	}
}

// cost returns what one of a column costs per hour.
func (p *packing) cost(column int) float64 {
	if column < 0 {
		return p.most[-1-column]
	}
	if p.mixes[column].covered {
		return 0
	}
	return p.price[p.mixes[column].kind]
}

// usable reports whether a node of the mix can be had.
func (p *packing) usable(m *mix) bool { return m.covered || p.open[m.kind] }

// optimize uses the columns at hand as well as can be.
func (p *packing) optimize() {
	p.appraise()
	for range stepsMax {
		enters, most := 0, 1+tolerance
		found := false
		for i := range p.mixes {
			m := &p.mixes[i]
			if !p.usable(m) {
				continue
			}
			if worth := p.appeal(m); worth > most {
				enters, most, found = i, worth, true
			}
		}
		for i, worth := range p.worth {
			appeal := worth / p.most[i]
			if i >= p.loads {
				appeal = 1 + worth/p.fleet.covers[i-p.loads].list
			}
			if appeal > most {
				enters, most, found = -1-i, appeal, true
			}
		}
		if !found || !p.enter(enters) {
			return
		}
		p.appraise()
	}
}

// appeal returns what a mix is worth for each dollar that its node costs. Of one
// that costs nothing it is 1 and its gain in parts of what the node would cost.
func (p *packing) appeal(m *mix) float64 {
	if m.covered {
		return 1 + dot(p.worth, m.pods)/p.fleet.kinds[m.kind].list
	}
	return dot(p.worth, m.pods) / p.price[m.kind]
}

// enter brings a column into the basis. It reports false if rounding has left
// nothing that it could replace.
func (p *packing) enter(column int) bool {
	leaves, least := -1, math.Inf(1)
	for i := range p.n {
		row := p.inv[i*p.n : (i+1)*p.n]
		if column >= 0 {
			p.column[i] = dot(row, p.mixes[column].pods)
		} else {
			p.column[i] = row[-1-column]
		}
		if p.column[i] <= 1e-9 {
			continue
		}
		if ratio := p.x[i] / p.column[i]; ratio < least || ratio == least && p.basis[i] < p.basis[leaves] {
			leaves, least = i, ratio
		}
	}
	if leaves < 0 {
		return false
	}
	p.steps++
	pivot := p.inv[leaves*p.n : (leaves+1)*p.n]
	inverse := 1 / p.column[leaves]
	for j := range pivot {
		pivot[j] *= inverse
	}
	p.x[leaves] = least
	for i := range p.n {
		factor := p.column[i]
		if i == leaves || factor == 0 {
			continue
		}
		row := p.inv[i*p.n : (i+1)*p.n]
		for j, v := range pivot {
			row[j] -= float64(factor * v)
		}
		p.x[i] = max(0, p.x[i]-float64(factor*least))
	}
	p.basis[leaves] = column
	return true
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
		if price == 0 || p.carries(k, price) {
			continue
		}
		kind := &p.fleet.kinds[k]
		gain, amounts := p.gain[:len(kind.takers)], p.amounts[:len(kind.takers)]
		for i, w := range kind.takers {
			gain[i] = p.worth[w] / price
		}
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
		m := mix{kind: k, pods: make([]float64, p.n), covered: by >= 0}
		if m.covered {
			m.pods[p.loads+by] = kind.takes[by]
		}
		for i, w := range kind.takers {
			m.pods[w] = amounts[i]
		}
		p.mixes = append(p.mixes, m)
		found = true
	}
	return found
}

// fillWhole looks for whole pods on a node of kind k that are worth more than
// the node costs; false where that is not known.
func (p *packing) fillWhole(k int) (pods []int32, ok bool) {
	limit := p.limit(k)
	if limit < perMicroDollar || limit == math.MaxInt64 {
		return nil, false
	}
	kind := &p.fleet.kinds[k]
	p.exact = p.exact[:0]
	for _, w := range kind.takers {
		p.exact = append(p.exact, p.rate(w))
	}
	return p.filling.search(kind, p.exact, limit)
}

// limit returns what a node of kind k costs per hour at least, in millionths of a
// micro-dollar and rounded down: its price, or its part of what a commitment is
// worth; math.MaxInt64 where there can be none.
func (p *packing) limit(k int) int64 {
	limit := int64(math.MaxInt64)
	if p.last.price[k] != closed {
		limit = int64(p.last.price[k]) * perMicroDollar
	}
	for i, takes := range p.fleet.kinds[k].takes {
		if takes > 0 {
			limit = min(limit, int64(math.Floor(max(0, below(below(p.value(i)*takes)*perMicroDollar)))))
		}
	}
	return limit
}

// rate returns the price of workload w as a rate, in millionths of a micro-dollar
// and rounded down, with some to spare for the rounding in the prices.
func (p *packing) rate(w int) int64 {
	most := math.Floor(p.most[w]) * perMicroDollar
	return int64(math.Floor(max(0, min(most, p.worth[w]*perMicroDollar*(1-10*tolerance)))))
}

// cheapest returns the least that a node of kind k costs, and the commitment by
// which it does, −1 for none: one that commitment covers takes what the part of
// its amount is worth. It is 0 where there can be no node.
func (p *packing) cheapest(k int) (price float64, by int) {
	price, by = p.price[k], -1
	for i, takes := range p.fleet.kinds[k].takes {
		if takes == 0 {
			continue
		}
		if c := max(whiff, -p.worth[p.loads+i]*takes); !p.open[k] && by < 0 || c < price {
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
// of each workload costs at least, in millionths of a micro-dollar per hour. For
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
		if limit == math.MaxInt64 || p.whole[k] {
			continue
		}
		fit(p.duals[k])
		for i, w := range kind.takers {
			out[w] = min(out[w], leastRate(limit, kind.rows, i, p.duals[k]))
		}
	}
	return out
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
