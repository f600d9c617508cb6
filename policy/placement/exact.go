package placement

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// The sizes up to which the best packing is searched for, and the steps after
// which a search is given up: a step costs about a microsecond.
const (
	searchLots  = 16
	searchPods  = 64
	searchSteps = 4000
)

// A Packing is what PackProven found.
type Packing struct {
	Bins     []Bin
	Unplaced []int        // pods that no offer holds
	Total    policy.Money // price per hour of the first offer of every bin

	// Bound is a price per hour below which no packing of the same pods goes.
	// Proven says that Total is the least: it was reached, or all others were
	// looked through.
	Bound  policy.Money
	Proven bool
}

// Quality says how good the packing is known to be.
func (p *Packing) Quality() string {
	switch {
	case p.Proven:
		return "no packing costs less"
	case p.Bound <= 0 || p.Total <= 0:
		return "the distance from the best packing is unknown"
	}
	return fmt.Sprintf("no packing costs less than %s", p.Bound.Short())
}

// PackProven is Pack with a search for the best packing after it, where few
// pods are bound by nothing but room and labels, and with a lower bound. The
// search ends after a fixed number of steps, so that equal arguments give equal
// packings.
func PackProven(sp *Space, pods []policy.Pod, offers []Offer) Packing {
	return newTrial(sp, pods, offers).packProven()
}

// PackWithin is PackProven where no packing that costs more than most per hour, or
// leaves a pod out, is of use. It reports false where it is known before any
// packing that there is no other.
func PackWithin(sp *Space, pods []policy.Pod, offers []Offer, most policy.Money) (Packing, bool) {
	tr := newTrial(sp, pods, offers)
	if tr.dearerThan(most) {
		tr.added.end()
		return Packing{}, false
	}
	return tr.packProven(), true
}

// dearerThan reports whether every packing of all pods is known to cost more than
// most. It looks at room and labels alone: without topology, ports, shared claims
// and bounds on offers there are all the packings that there are with them, and more.
func (tr *trial) dearerThan(most policy.Money) bool {
	want := tr.wanted()
	pods := int32(0)
	for _, n := range want {
		pods += n
	}
	s := newSearch(tr, tr.offerTable.all, want, most+1)
	if s.rest() > most {
		return true
	}
	if len(s.lots) > searchLots || pods > searchPods {
		return false
	}
	s.seen = make(map[[searchLots]uint8]policy.Money)
	s.run(0)
	return s.found == nil && s.steps <= searchSteps
}

// packProven packs the wanted pods and ends the trial.
func (tr *trial) packProven() Packing {
	x := prover{tr: tr}
	var p Packing
	p.Bins, p.Unplaced, p.Total = tr.buy(x.pack)
	if x.rounds == 1 {
		p.Bound, p.Proven = min(x.bound, p.Total), x.proven || x.bound >= p.Total
	}
	return p
}

// A prover packs, and finds out how good that is.
type prover struct {
	tr     *trial
	rounds int // of packing: more than one where offers were exhausted
	bound  policy.Money
	proven bool
}

// pack is trial.pack with a search after it.
func (x *prover) pack(allowed bitset, want []int32) []load {
	x.rounds++
	tr, base := x.tr, x.tr.bins
	placed := slices.Clone(want)
	loads := tr.pack(allowed, want)
	total, pods, free := policy.Money(0), int32(0), true
	for i := range placed {
		placed[i] -= want[i]
		pods += placed[i]
		free = free && (placed[i] == 0 || tr.lots[i].loose)
	}
	if x.rounds > 1 || pods == 0 {
		return loads
	}
	for i := range loads {
		total += tr.price(&loads[i])
	}
	s := newSearch(tr, allowed, placed, total)
	x.bound = s.rest()
	for i := range tr.offerTable.offers {
		free = free && tr.offerTable.offers[i].Max == 0
	}
	if x.bound >= total || !free || len(s.lots) > searchLots || pods > searchPods {
		return loads
	}
	s.seen = make(map[[searchLots]uint8]policy.Money)
	s.run(0)
	x.proven = s.steps <= searchSteps
	if s.found == nil {
		return loads
	}
	tr.withdraw(loads)
	tr.bins = base
	for i := range s.found {
		tr.widen(&s.found[i], allowed)
	}
	return s.found
}

// A search looks through the packings of loose lots, each time filling one more
// node that holds a pod of the first lot left, with as much as it takes: what is
// taken from later nodes makes none of them dearer.
type search struct {
	tr         *trial
	candidates []candidate
	lots       []int32 // the wanted ones, largest first
	left       []int32 // pods, by index in lots
	unitValue  [5]float64

	best  policy.Money // of the packings known, the one at hand left out
	found []load       // what costs best; nil while that is what was known before
	path  []load
	steps int
	seen  map[[searchLots]uint8]policy.Money
}

func newSearch(tr *trial, allowed bitset, want []int32, best policy.Money) *search {
	s := &search{tr: tr, candidates: tr.candidates(allowed, want), best: best}
	for i, n := range want {
		if n > 0 {
			s.lots, s.left = append(s.lots, int32(i)), append(s.left, n)
		}
	}
	s.value()
	return s
}

// amounts returns r as numbers, pods among them.
func amounts(r *policy.Resources) [5]float64 {
	return [...]float64{float64(r.CPU), float64(r.Memory), float64(r.Storage), float64(r.GPU), float64(r.Pods)}
}

// demand returns what is left to be packed.
func (s *search) demand() (total policy.Resources) {
	for k, i := range s.lots {
		total = total.Plus(s.tr.lots[i].kind.requests.Scale(int64(s.left[k])))
	}
	return total
}

// value finds what a unit of each resource is worth at most such that no node is
// worth more than its price: what the rest is worth is then a bound on what it
// costs. It is the dual of buying parts of nodes.
func (s *search) value() {
	total := s.demand()
	demand := amounts(&total)
	rows := make([][5]float64, len(s.candidates))
	prices := make([]float64, len(s.candidates))
	for c := range s.candidates {
		free := amounts(&s.candidates[c].shape.free)
		prices[c] = s.candidates[c].price
		for r, d := range demand {
			if d > 0 {
				rows[c][r] = max(free[r], 0) / d
			}
		}
	}
	y := largestValue(rows, prices)
	// Whatever the rounding was, no node may be worth more than its price.
	over := 1.0
	for c := range rows {
		worth := 0.0
		for r := range y {
			worth += float64(rows[c][r] * y[r])
		}
		if prices[c] <= 0 {
			y = [5]float64{}
			break
		}
		over = max(over, worth/prices[c])
	}
	for r, d := range demand {
		if d > 0 {
			s.unitValue[r] = y[r] / (d * over) * (1 - 1e-9)
		}
	}
}

// rest returns a bound below which what is left cannot be packed.
func (s *search) rest() policy.Money {
	total := s.demand()
	worth := 0.0
	for r, d := range amounts(&total) {
		worth += float64(d * s.unitValue[r])
	}
	// A sum of prices is a whole number of millionths.
	return policy.Money(worth * float64(policy.Dollar))
}

// run packs what is left beside nodes that cost spent.
func (s *search) run(spent policy.Money) {
	if s.steps++; s.steps > searchSteps {
		return
	}
	first := slices.IndexFunc(s.left, func(n int32) bool { return n > 0 })
	if first < 0 {
		if spent < s.best {
			s.best = spent
			s.found = slices.Clone(s.path)
		}
		return
	}
	if spent+s.rest() >= s.best {
		return
	}
	var key [searchLots]uint8
	for k, n := range s.left {
		key[k] = uint8(n)
	}
	if before, ok := s.seen[key]; ok && before <= spent {
		return
	}
	s.seen[key] = spent
	for c := range s.candidates {
		x := &s.candidates[c]
		price := s.tr.priceAt(x.at)
		if spent+price >= s.best {
			return // the others cost no less
		}
		if x.lots.has(s.lots[first]) {
			s.fill(x, spent+price, first, *x.shape, 0, nil)
		}
	}
}

// fill tries the ways to fill a node of x that holds parts, with pods of the lots
// from k on, and packs the rest for each. Only full nodes are tried.
func (s *search) fill(x *candidate, spent policy.Money, k int, left shape, volumes int32, parts []part) {
	if s.steps++; s.steps > searchSteps {
		return
	}
	if k == len(s.lots) {
		if len(parts) == 0 || !s.full(x, &left, volumes) {
			return
		}
		s.path = append(s.path, load{parts: slices.Clone(parts), times: 1})
		s.run(spent)
		s.path = s.path[:len(s.path)-1]
		return
	}
	most, i := int32(0), s.lots[k]
	kind := s.tr.lots[i].kind
	if s.left[k] > 0 && x.lots.has(i) {
		most = left.most(kind, s.left[k], volumes)
	}
	least := int32(0)
	if len(parts) == 0 {
		least = 1 // of the first lot: it has to go somewhere
		if most == 0 {
			return
		}
	}
	for n := most; n >= least; n-- {
		r, p := left, parts
		if n > 0 {
			r.free = r.free.Minus(kind.requests.Scale(int64(n)))
			p = append(slices.Clip(parts), part{i, n})
		}
		s.left[k] -= n
		s.fill(x, spent, k+1, r, volumes+n*kind.volumes.own, p)
		s.left[k] += n
		if s.steps > searchSteps {
			return
		}
	}
}

// full reports whether a node of x with this room takes none of what is left.
func (s *search) full(x *candidate, left *shape, volumes int32) bool {
	for k, i := range s.lots {
		if s.left[k] > 0 && x.lots.has(i) && left.most(s.tr.lots[i].kind, 1, volumes) > 0 {
			return false
		}
	}
	return true
}

// pivotsMax bounds the pivots of largestValue; what it has then is a bound too.
const pivotsMax = 200

// largestValue maximises the sum of y ≥ 0 such that rows · y ≤ limits, by the
// simplex method with Bland's rule. The limits are positive, so that y = 0 is a
// corner to begin at.
func largestValue(rows [][5]float64, limits []float64) [5]float64 {
	const n = 5
	m := len(rows)
	width := n + m + 1
	tableau := make([][]float64, m+1)
	basis := make([]int, m)
	for i := range tableau {
		tableau[i] = make([]float64, width)
	}
	for i := range rows {
		copy(tableau[i], rows[i][:])
		tableau[i][n+i], tableau[i][width-1] = 1, limits[i]
		basis[i] = n + i
	}
	for r := range n {
		if slices.ContainsFunc(rows, func(row [5]float64) bool { return row[r] > 0 }) {
			tableau[m][r] = -1
		}
	}
	for range pivotsMax {
		enter := slices.IndexFunc(tableau[m][:width-1], func(x float64) bool { return x < -1e-12 })
		if enter < 0 {
			break
		}
		leave := -1
		for i := range m {
			if tableau[i][enter] <= 1e-12 {
				continue
			}
			if leave < 0 {
				leave = i
				continue
			}
			a, b := tableau[i][width-1]/tableau[i][enter], tableau[leave][width-1]/tableau[leave][enter]
			if a < b || a == b && basis[i] < basis[leave] {
				leave = i
			}
		}
		if leave < 0 {
			break
		}
		pivot(tableau, leave, enter)
		basis[leave] = enter
	}
	var y [5]float64
	for i, at := range basis {
		if at < n {
			y[at] = max(0, tableau[i][width-1])
		}
	}
	return y
}

// pivot makes column enter the unit of row leave.
func pivot(tableau [][]float64, leave, enter int) {
	row := tableau[leave]
	by := row[enter]
	for j := range row {
		row[j] /= by
	}
	for i := range tableau {
		if f := tableau[i][enter]; i != leave && f != 0 {
			for j := range row {
				tableau[i][j] -= float64(f * row[j])
			}
		}
	}
}
