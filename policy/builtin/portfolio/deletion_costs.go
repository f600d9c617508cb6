package portfolio

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy/scratch"
)

const (
	// misplaced is by how much, as a part of the nodes, one may stand elsewhere in
	// the order than it should before its pods are given another cost.
	misplaced = 0.15

	// orderStep is between the costs of two nodes that stand beside each other
	// when all are numbered anew, so that later ones find a place between them.
	orderStep = 1 << 16

	// leavingCost is that of pods on nodes which are on their way out.
	leavingCost = math.MinInt32 / 2
)

// settleMax is how often costs are looked at again until none changes.
const settleMax = 4

// A numbering finds the deletion costs of nodes in the order in which they are kept. It works
// in the memory that it has. found holds the costs of asked, which follow from it alone: most
// often the order and the costs in it are those of the last time.
type numbering struct {
	asked, found []int32

	others, given, stays []int32
	highest              []int64
	staying              []bool
}

// of returns the deletion costs of nodes in the order in which they are
// kept, below 0, which is what pods have whose cost nobody set. With these
// costs it would return the same, so that what is written once stays. held are those that
// the nodes have. The list is valid until the next call.
func (x *numbering) of(held []int32) []int32 {
	if slices.Equal(held, x.asked) {
		return x.found
	}
	x.asked, x.found = append(x.asked[:0], held...), append(x.found[:0], held...)
	for range settleMax {
		x.others = append(x.others[:0], x.found...)
		x.renumber(x.others, x.found)
		if slices.Equal(x.found, x.others) {
			return x.found
		}
	}
	evenly(x.found)
	return x.found
}

// evenly numbers all costs anew.
func evenly(costs []int32) {
	for i := range costs {
		costs[i] = int32(-(i + 1) * orderStep)
	}
}

// renumber fills in costs in place of held: a node that stands about where it
// should keeps what it has, and the others are put between.
func (x *numbering) renumber(held, costs []int32) {
	x.given, x.highest, x.stays = x.given[:0], x.highest[:0], x.stays[:0]
	for i, cost := range held {
		if cost < 0 && cost > leavingCost { // it has a cost
			x.highest = append(x.highest, -int64(cost)<<32|int64(len(x.given)))
			x.given = append(x.given, int32(i))
		}
	}
	slices.Sort(x.highest) // places in given, those with the highest costs first
	away := max(2, int(misplaced*float64(len(held))))
	x.staying = scratch.Zeroed(x.staying, len(held))
	for k, at := range x.highest {
		if place := int(int32(at)); k-place <= away && place-k <= away {
			x.stays = append(x.stays, x.given[place])
			x.staying[x.given[place]] = true
		}
	}
	if !x.between(held, costs) {
		evenly(costs)
	}
}

// between fills in costs: those of stays are what they are, and each other node
// comes behind as many of these as are to be kept longer than it. It reports
// whether there were enough costs between.
func (x *numbering) between(held, costs []int32) bool {
	next, upper := 0, int64(0)
	for k := range len(x.stays) + 1 {
		began, n := next, int64(0) // the others that as many of stays are before as were put so far
		for ; next < len(held) && !x.staying[next]; next++ {
			n++
		}
		lower := upper - (n+1)*orderStep
		if k < len(x.stays) {
			at := x.stays[k]
			lower = int64(held[at])
			costs[at] = held[at]
		}
		if upper-lower <= n || lower <= leavingCost/2 {
			return false
		}
		for j := range n {
			costs[began+int(j)] = int32(upper - (upper-lower)*(j+1)/(n+1))
		}
		next, upper = next+1, lower
	}
	return true
}
