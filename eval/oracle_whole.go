package eval

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A filling looks for the whole pods on one node that are worth more than the
// node costs. The rows of a kind say of pods in fractions what is worth as much;
// where they find nothing there is nothing, and where they do this search says
// whether whole pods do too. It is exact: worths and limit are whole numbers.
type filling struct {
	asked [][resources]int64 // per taker
	apart [][]bool           // per set and taker: a node holds one pod of the set
	worth []int64            // per taker
	limit int64              // what the node costs, in the unit of worth
	left  [resources]int64
	used  []bool // per set

	// order lists the takers by worth for what they take, the best first. What
	// they take is weighed by resource: weight is per unit of it, taken per pod,
	// and best[i] is the most that the takers from order[i] on are worth for one
	// unit of weight.
	order  []int
	weight [resources]float64
	taken  []float64
	best   []float64

	count, found []int32 // per taker
	most         int64
	steps        int

	program  program
	plain    [][]float64
	ones     []float64
	gain     []float64
	amounts  []float64
	duals    []float64
	resource []int
}

// fillingSteps bounds a search. One that takes longer proves nothing. Ten times as
// many raise the bound by less than 1 %, and take five times as long.
const fillingSteps = 20_000

// search looks for a set of whole pods on a node of kind k that is worth more
// than limit, and returns the best one, nil if there is none; false when it gave
// up, and there may be one.
func (f *filling) search(k *nodeKind, worth []int64, limit int64) (pods []int32, ok bool) {
	n := len(k.takers)
	f.asked, f.apart, f.worth, f.limit, f.left = k.asked, k.apart, worth, limit, k.room
	f.used = policy.Zeroed(f.used, len(k.apart))
	f.count, f.found, f.taken = policy.Zeroed(f.count, n), policy.Zeroed(f.found, n), policy.Zeroed(f.taken, n)
	f.most, f.steps = limit, 0
	f.weigh(n)
	f.fill(0, 0)
	switch {
	case f.steps > fillingSteps:
		return nil, false
	case f.most == limit:
		return nil, true
	}
	return f.found, true
}

// weigh finds the weights under which a node is worth least, by the linear
// program over plain resources, and orders the takers by them. Any weights would
// do: they decide how fast the search is.
func (f *filling) weigh(n int) {
	f.plain, f.resource = f.plain[:0], f.resource[:0]
	for r, room := range f.left {
		if room <= 0 {
			continue
		}
		row := make([]float64, n)
		for i := range row {
			row[i] = float64(f.asked[i][r]) / float64(room)
		}
		f.plain, f.resource = append(f.plain, row), append(f.resource, r)
	}
	f.gain, f.amounts, f.duals = policy.Zeroed(f.gain, n), policy.Zeroed(f.amounts, n), policy.Zeroed(f.duals, len(f.plain))
	f.ones = policy.Zeroed(f.ones, len(f.plain))
	for i := range f.ones {
		f.ones[i] = 1
	}
	for i := range f.gain {
		f.gain[i] = float64(f.worth[i]) / float64(f.limit)
	}
	f.program.maximize(f.plain, f.ones, f.gain, f.amounts, f.duals)
	f.weight = [resources]float64{}
	for i, r := range f.resource {
		f.weight[r] = f.duals[i] / float64(f.left[r])
	}
	f.order = f.order[:0]
	for i := range n {
		for r, q := range f.asked[i] {
			f.taken[i] += float64(f.weight[r] * float64(q))
		}
		if f.worth[i] > 0 {
			f.order = append(f.order, i)
		}
	}
	ratio := func(i int) float64 {
		if f.taken[i] <= 0 {
			return math.Inf(1)
		}
		return float64(f.worth[i]) / f.taken[i]
	}
	slices.SortFunc(f.order, func(a, b int) int {
		switch x, y := ratio(a), ratio(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return a - b
	})
	f.best = policy.Zeroed(f.best, len(f.order)+1)
	for i := len(f.order) - 1; i >= 0; i-- {
		f.best[i] = max(f.best[i+1], ratio(f.order[i]))
	}
}

// fill decides on the takers from the one at place in the order on, with pods on
// the node that are worth so much.
func (f *filling) fill(place int, worth int64) {
	if f.steps++; f.steps > fillingSteps {
		return
	}
	if worth > f.most {
		f.most = worth
		copy(f.found, f.count)
	}
	if place == len(f.order) {
		return
	}
	left := 0.0
	for r, room := range f.left {
		left += float64(f.weight[r] * float64(max(0, room)))
	}
	// The sum is off by a few parts in 2^52; a part in a billion more is safe.
	if f.best[place] < math.Inf(1) && float64(worth)+float64(left*f.best[place])*(1+1e-9)+1 <= float64(f.most) {
		return
	}
	i := f.order[place]
	fits := f.fits(i)
	f.mark(i, fits > 0, true)
	f.take(i, fits)
	for n := fits; ; n-- {
		f.count[i] = int32(n)
		f.fill(place+1, worth+n*f.worth[i])
		if n == 0 {
			return
		}
		f.take(i, -1)
		if n == 1 {
			f.mark(i, true, false)
		}
	}
}

// fits returns how many pods of taker i still fit.
func (f *filling) fits(i int) int64 {
	n := int64(math.MaxInt32)
	for r, q := range f.asked[i] {
		if q > 0 {
			n = min(n, max(0, f.left[r])/q)
		}
	}
	for s, set := range f.apart {
		if set[i] {
			n = min(n, 1)
			if f.used[s] {
				return 0
			}
		}
	}
	return n
}

// mark notes whether the sets of taker i have their pod.
func (f *filling) mark(i int, any, used bool) {
	for s, set := range f.apart {
		if any && set[i] {
			f.used[s] = used
		}
	}
}

// take puts n pods of taker i on the node.
func (f *filling) take(i int, n int64) {
	for r, q := range f.asked[i] {
		f.left[r] -= n * max(0, q)
	}
}
