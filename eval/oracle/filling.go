package oracle

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy/scratch"
)

// A filling searches for whole pods that fit on one node and are worth more than the node costs.
// The rows of a kind answer this question for fractions of pods. If they find nothing, there is
// nothing to find; if they do, this search finds out whether it is also true for whole pods. It is
// exact: values and limit are integers.
type filling struct {
	requests  [][resources]int64 // per taker
	exclusive [][]bool           // per set and taker: a node can run one pod of the set
	value     []int64            // value of a pod, per taker
	limit     int64              // cost of the node, in the unit of value
	left      [resources]int64
	used      []bool // per set

	// order lists the takers in descending order of value per weighted request. weight is the
	// weight of a unit of each resource, taken the weighted request of a pod of each taker, and
	// best[i] the highest value per unit of weight of the takers from order[i] on.
	order  []int
	weight [resources]float64
	taken  []float64
	best   []float64

	count, found []int32 // per taker
	most         int64
	steps        int

	program  program
	plain    [][]float64
	gain     []float64
	amounts  []float64
	duals    []float64
	resource []int
}

// fillingSteps is the maximum number of steps of a search. A search that takes longer proves
// nothing. Ten times as many steps increase the bound by less than 1%, and take five times as long.
const fillingSteps = 20_000

// search looks for a set of whole pods on a node of kind k that is worth more than limit, and
// returns the number of pods of each taker in the best one, nil if there is no such set. It returns
// false if it stopped early, in which case such a set may exist.
func (f *filling) search(k *nodeKind, value []int64, limit int64) (pods []int32, ok bool) {
	n := len(k.takers)
	f.requests, f.exclusive, f.value, f.limit, f.left = k.requests, k.exclusive, value, limit, k.free
	f.used = scratch.Zeroed(f.used, len(k.exclusive))
	f.count, f.found, f.taken = scratch.Zeroed(f.count, n), scratch.Zeroed(f.found, n), scratch.Zeroed(f.taken, n)
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

// weigh computes the weights for which a node is worth least, with the linear program over plain
// resources, and sorts the takers by them. Any weights are valid; they only affect the speed of the
// search.
func (f *filling) weigh(n int) {
	f.plain, f.resource = f.plain[:0], f.resource[:0]
	for r, free := range f.left {
		if free <= 0 {
			continue
		}
		row := make([]float64, n)
		for i := range row {
			row[i] = float64(f.requests[i][r]) / float64(free)
		}
		f.plain, f.resource = append(f.plain, row), append(f.resource, r)
	}
	f.gain, f.amounts, f.duals = scratch.Zeroed(f.gain, n), scratch.Zeroed(f.amounts, n), scratch.Zeroed(f.duals,
		len(f.plain))
	for i := range f.gain {
		f.gain[i] = float64(f.value[i]) / float64(f.limit)
	}
	f.program.maximize(f.plain, f.gain, f.amounts, f.duals)
	f.weight = [resources]float64{}
	for i, r := range f.resource {
		f.weight[r] = f.duals[i] / float64(f.left[r])
	}
	f.order = f.order[:0]
	for i := range n {
		for r, q := range f.requests[i] {
			f.taken[i] += float64(f.weight[r] * float64(q))
		}
		if f.value[i] > 0 {
			f.order = append(f.order, i)
		}
	}
	ratio := func(i int) float64 {
		if f.taken[i] <= 0 {
			return math.Inf(1)
		}
		return float64(f.value[i]) / f.taken[i]
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
	f.best = scratch.Zeroed(f.best, len(f.order)+1)
	for i := len(f.order) - 1; i >= 0; i-- {
		f.best[i] = max(f.best[i+1], ratio(f.order[i]))
	}
}

// fill tries all numbers of pods for the takers from order[place] on. total is the value of the
// pods that are already on the node.
func (f *filling) fill(place int, total int64) {
	if f.steps++; f.steps > fillingSteps {
		return
	}
	if total > f.most {
		f.most = total
		copy(f.found, f.count)
	}
	if place == len(f.order) {
		return
	}
	left := 0.0
	for r, free := range f.left {
		left += float64(f.weight[r] * float64(max(0, free)))
	}
	// The sum has a relative error of a few times 2^-52; a relative margin of 1e-9 is safe.
	if f.best[place] < math.Inf(1) && float64(total)+float64(left*f.best[place])*(1+1e-9)+1 <= float64(f.most) {
		return
	}
	i := f.order[place]
	fits := f.fits(i)
	f.mark(i, fits > 0, true)
	f.take(i, fits)
	for n := fits; ; n-- {
		f.count[i] = int32(n)
		f.fill(place+1, total+n*f.value[i])
		if n == 0 {
			return
		}
		f.take(i, -1)
		if n == 1 {
			f.mark(i, true, false)
		}
	}
}

// fits returns how many more pods of taker i fit.
func (f *filling) fits(i int) int64 {
	n := int64(math.MaxInt32)
	for r, q := range f.requests[i] {
		if q > 0 {
			n = min(n, max(0, f.left[r])/q)
		}
	}
	for s, set := range f.exclusive {
		if set[i] {
			n = min(n, 1)
			if f.used[s] {
				return 0
			}
		}
	}
	return n
}

// mark sets whether the sets of taker i have their pod, if any is true.
func (f *filling) mark(i int, any, used bool) {
	for s, set := range f.exclusive {
		if any && set[i] {
			f.used[s] = used
		}
	}
}

// take places n pods of taker i on the node.
func (f *filling) take(i int, n int64) {
	for r, q := range f.requests[i] {
		f.left[r] -= n * max(0, q)
	}
}
