package oracle

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A fleet contains the kinds of nodes that a set of markets offers.
type fleet struct {
	kinds  []nodeKind
	covers []cover

	// supplies are the markets with slots, if the bound respects slots; the price of a kind is then
	// that of its other markets. cuts are additional instants at which the window is cut.
	supplies []supply
	cuts     []policy.Time
}

// A cover is a commitment: a limited number of free nodes. Its unit is the amount that the largest
// covered node uses.
type cover struct {
	commitment policy.Commitment

	// amount is in units, rounded up. list is the on-demand cost of a unit per hour, used for
	// scaling.
	amount, list float64
}

// A nodeKind is a set of nodes that are equivalent for pods. Only the cheapest node is relevant.
type nodeKind struct {
	// takers are the classes of pods that can run on the nodes.
	takers []int

	// rows are the constraints on the pods of a node: in each row, the sum of the coefficients of
	// the pods must be at most 1. Coefficients are rounded down.
	rows [][]float64

	// free, requests and exclusive are the exact constraints for whole pods: the capacity available to
	// pods, the requests of a pod of each taker, and the sets of takers of which a node can run at
	// most one pod in total.
	free      [resources]int64
	requests  [][resources]int64
	exclusive [][]bool

	// larger are the kinds that can run every set of pods that this kind can run. This kind is not
	// needed if one of them costs at most as much.
	larger []int

	// price[i] is the lowest price in the kind's markets from at[i] on.
	at    []policy.Time
	price []policy.Money

	// takes is the minimum amount that a node of the kind uses of each commitment, in units of the
	// cover, rounded down; 0 if the commitment does not cover it. list is the on-demand price of a
	// covered node, used for scaling.
	takes []float64
	list  float64
}

// priceAt returns the price at time t.
func (k *nodeKind) priceAt(t policy.Time) policy.Money {
	i, found := slices.BinarySearch(k.at, t)
	if !found {
		i--
	}
	return k.price[i]
}

// newFleet returns the kinds of the admitted markets in a weather; nil means in any weather.
func (o *Oracle) newFleet(admitted func(*policy.Market) bool, drawn *weather.Weather) *fleet {
	f := &fleet{}
	of, kindOf := o.kindsOf(admitted)
	curves := make([][]scenarios.PriceCurve, len(of))
	for i, k := range kindOf {
		if k >= 0 {
			curves[k] = append(curves[k], o.charges(o.sites[i].market, drawn))
		}
	}
	for k, s := range of {
		f.kinds = append(f.kinds, o.newKind(s))
		f.kinds[k].at, f.kinds[k].price = o.least(curves[k])
	}
	f.order(o, of)
	f.own(o, kindOf)
	return f
}

// order sets larger of every kind.
func (f *fleet) order(o *Oracle, of []*site) {
	for k, a := range of {
		for j, b := range of {
			if j != k && within(&a.free, &b.free) && !slices.ContainsFunc(f.kinds[k].takers,
				func(c int) bool { return !b.takes[o.classes[c]] }) {
				f.kinds[k].larger = append(f.kinds[k].larger, j)
			}
		}
	}
}

// within reports whether a is at most b for each resource.
func within(a, b *[resources]int64) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// kindsOf returns the first site of each kind of node in the admitted markets, and the kind of
// every site, −1 if it is not admitted.
func (o *Oracle) kindsOf(admitted func(*policy.Market) bool) (of []*site, kindOf []int) {
	for i := range o.sites {
		s := &o.sites[i]
		k := -1
		if admitted(&o.scenario.Markets[s.market]) {
			if k = slices.IndexFunc(of, func(x *site) bool {
				return x.free == s.free &&
					slices.Equal(x.takes, s.takes)
			}); k < 0 {
				k, of = len(of), append(of, s)
			}
		}
		kindOf = append(kindOf, k)
	}
	return of, kindOf
}

// own adds the commitments that cover kinds of the fleet. It assumes that a covered node is always
// available, also when no slot of its market could have it, which can only lower the bound.
func (f *fleet) own(o *Oracle, kindOf []int) {
	w := o.scenario
	for i := range w.Commitments {
		c := &w.Commitments[i]
		least, most := make([]int64, len(f.kinds)), int64(0)
		next := cover{commitment: *c}
		for j := range o.sites {
			m, k := &w.Markets[o.sites[j].market], kindOf[j]
			takes := c.Takes(m, &w.Types[m.Type], w.Zones[m.Zone])
			if takes == 0 || m.OnDemand <= 0 || k < 0 {
				continue
			}
			if least[k] == 0 || takes < least[k] {
				least[k] = takes
			}
			f.kinds[k].list = max(f.kinds[k].list, float64(m.OnDemand))
			if takes > most {
				most, next.list = takes, float64(m.OnDemand)
			}
		}
		if most == 0 {
			continue
		}
		next.amount = above(float64(c.Amount) / float64(most))
		for k := range f.kinds {
			part := 0.0
			if least[k] > 0 {
				part = below(float64(least[k]) / float64(most))
			}
			f.kinds[k].takes = append(f.kinds[k].takes, part)
		}
		f.covers = append(f.covers, next)
	}
}

func (o *Oracle) newKind(s *site) nodeKind {
	k := nodeKind{free: s.free}
	var requests [][resources]int64
	for class, w := range o.classes {
		if s.takes[w] {
			k.takers = append(k.takers, class)
			requests = append(requests, vector(&o.scenario.Templates[w].Requests))
		}
	}
	for r, free := range s.free {
		if free <= 0 {
			continue // no taker requests it
		}
		asked := make([]int64, len(requests))
		for i := range requests {
			asked[i] = requests[i][r]
		}
		k.rows = appendRows(k.rows, asked, free)
	}
	for _, exclusive := range o.exclusive {
		row, set := make([]float64, len(k.takers)), make([]bool, len(k.takers))
		for i, class := range k.takers {
			if set[i] = slices.Contains(exclusive, o.classes[class]); set[i] {
				row[i] = 1
			}
		}
		if slices.Contains(set, true) && !slices.ContainsFunc(k.rows, func(x []float64) bool {
			return slices.Equal(x,
				row)
		}) {
			k.rows, k.exclusive = append(k.rows, row), append(k.exclusive, set)
		}
	}
	k.requests = requests
	return k
}

// sharpMax is the number of pods of a workload on a node up to which rows are sharpened. Beyond it,
// the loss is below 10%.
const sharpMax = 10

// appendRows appends the constraints of one resource on the pods of a node: their requests sum to
// at most the free capacity, and sharper constraints that follow because pods are whole. For
// example, if a pod requests slightly more than a fifth of the capacity, four fit, so it costs a
// fourth of a node rather than a fifth.
func appendRows(rows [][]float64, asked []int64, free int64) [][]float64 {
	plain := make([]float64, len(asked))
	var counts []int64
	for i, q := range asked {
		if q <= 0 {
			continue
		}
		plain[i] = max(0, below(float64(q)/float64(free)))
		if n := free / q; n <= sharpMax && free%q != 0 && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	if slices.Max(plain) == 0 {
		return rows
	}
	rows = append(rows, plain)
	slices.Sort(counts)
	for _, n := range counts {
		row := make([]float64, len(asked))
		for i, q := range asked {
			row[i] = sharpened(max(0, q), free, n, plain[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// sharpened returns u(x) for x = asked ÷ free, rounded down; share is x rounded down. u(x) = x if
// (n+1)·x is an integer, else ⌊(n+1)·x⌋ ÷ n (Fekete and Schepers, 2001).
//
// u preserves that numbers sum to at most 1. If (n+1)·x is an integer for all of them, they do not
// change. Otherwise let a/(n+1) be the sum of the numbers for which it is an integer, and b the sum
// of ⌊(n+1)·x⌋ over the others. Because ⌊⌋ removed something, a + b is less than n+1; it is an
// integer, so at most n; and a/(n+1) + b/n is at most (a+b)/n.
func sharpened(asked, free, n int64, share float64) float64 {
	whole, rest := (n+1)*asked/free, (n+1)*asked%free
	if rest == 0 {
		return share
	}
	return max(0, below(float64(whole)/float64(n)))
}

// below and above return the adjacent floats of x, which makes a value that was rounded to nearest
// a bound.
func below(x float64) float64 { return math.Nextafter(x, math.Inf(-1)) }

func above(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
