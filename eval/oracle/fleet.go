package oracle

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A fleet is the kinds of node that a set of markets offers.
type fleet struct {
	kinds  []nodeKind
	covers []cover

	// supplies are the markets that have slots, where these are looked at; the
	// price of a kind is then that of the others. cuts are more instants at which
	// the window is cut.
	supplies []supply
	cuts     []policy.Time
}

// A cover is a commitment: free nodes with a bound. Its unit is what the node
// that takes most of it takes.
type cover struct {
	commitment policy.Commitment

	// amount is in units, rounded up, and list what a unit costs per hour on
	// demand, for scale.
	amount, list float64
}

// A nodeKind is nodes that are alike to pods: only the cheapest is of use.
type nodeKind struct {
	// takers are the classes of pods that may run there.
	takers []int

	// rows say what fits: of every set of pods on a node, the coefficients of
	// its takers sum to at most 1 in each row. They are rounded down.
	rows [][]float64

	// free, requests and apart say the same of whole pods, exactly: what a node leaves to pods,
	// what a pod of each taker requests, and sets of takers of which a node holds
	// one pod in all.
	free     [resources]int64
	requests [][resources]int64
	apart    [][]bool

	// larger are the kinds of which a node holds whatever one of this kind does.
	// Where one of them costs no more this kind is of no use.
	larger []int

	// price is the least price of the kind's markets from at on.
	at    []policy.Time
	price []policy.Money

	// takes is what a node of the kind takes at least of each commitment, in its
	// units and rounded down; 0 for one that does not cover it. list is the price
	// on demand of one that is covered, for scale.
	takes []float64
	list  float64
}

// priceAt returns the price at t.
func (k *nodeKind) priceAt(t policy.Time) policy.Money {
	i, found := slices.BinarySearch(k.at, t)
	if !found {
		i--
	}
	return k.price[i]
}

// newFleet makes the kinds of the admitted markets under a weather; nil means under any weather.
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

// order fills larger of every kind.
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

// kindsOf returns the first site of each kind of node in the markets admitted,
// and the kind of every site; −1 where it is not admitted.
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

// own adds to the fleet what commitments cover of its kinds. A covered node can be
// had at all times, on demand also where no slot of the market could hold it:
// that only lowers the bound.
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
	for _, apart := range o.apart {
		row, set := make([]float64, len(k.takers)), make([]bool, len(k.takers))
		for i, class := range k.takers {
			if set[i] = slices.Contains(apart, o.classes[class]); set[i] {
				row[i] = 1
			}
		}
		if slices.Contains(set, true) && !slices.ContainsFunc(k.rows, func(x []float64) bool {
			return slices.Equal(x,
				row)
		}) {
			k.rows, k.apart = append(k.rows, row), append(k.apart, set)
		}
	}
	k.requests = requests
	return k
}

// sharpMax is the most pods of a workload on a node up to which it matters that
// they are whole. Beyond it the loss is under a tenth.
const sharpMax = 10

// appendRows appends what a resource says of the pods on a node: that their
// requests sum to at most what is free and, sharper, what follows from it because
// pods are whole. A pod that takes a little more than a fifth of it leaves
// place for four, and costs a fourth of a node and not a fifth.
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

// sharpened returns u(x) for x = asked ÷ free, rounded down; share is x rounded
// down. u(x) is x where (n+1)·x is whole, and else the whole part of (n+1)·x
// divided by n (Fekete and Schepers, 2001).
//
// Numbers that sum to at most 1 still do so after u. If all of them are of the
// first sort they stay what they are. If not, let a/(n+1) be the sum of those
// that are, and b the sum of the whole parts of the others. Something was cut
// off, so a + b is below n+1; it is whole, so at most n; and a/(n+1) + b/n is at
// most (a+b)/n.
func sharpened(asked, free, n int64, share float64) float64 {
	whole, rest := (n+1)*asked/free, (n+1)*asked%free
	if rest == 0 {
		return share
	}
	return max(0, below(float64(whole)/float64(n)))
}

// below and above return the floats next to x, so that what was rounded to the
// nearest is a bound.
func below(x float64) float64 { return math.Nextafter(x, math.Inf(-1)) }

func above(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
