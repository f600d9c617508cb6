package portfolio

import (
	"math"
	"slices"
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

// numbered returns the deletion costs of nodes in the order in which they are
// kept, below 0, which is what pods have whose cost nobody set. With these
// costs it would return the same, so that what is written once stays.
func numbered(list []rankedNode) []int32 {
	held := make([]int32, len(list))
	for i := range list {
		held[i] = list[i].held
	}
	for range settleMax {
		costs := renumbered(held)
		if slices.Equal(costs, held) {
			return costs
		}
		held = costs
	}
	for i := range held {
		held[i] = int32(-(i + 1) * orderStep)
	}
	return held
}

// renumbered returns costs in place of held: a node that stands about where it
// should keeps what it has, and the others are put between.
func renumbered(held []int32) []int32 {
	var given []int // those that have a cost
	for i := range held {
		if held[i] < 0 && held[i] > leavingCost {
			given = append(given, i)
		}
	}
	highest := make([]int64, len(given)) // places in given, those with the highest costs first
	for k, i := range given {
		highest[k] = -int64(held[i])<<32 | int64(k)
	}
	slices.Sort(highest)
	away := max(2, int(misplaced*float64(len(held))))
	stays := make([]int, 0, len(given))
	for k, x := range highest {
		if place := int(int32(x)); k-place <= away && place-k <= away {
			stays = append(stays, given[place])
		}
	}
	costs := make([]int32, len(held))
	if !between(held, stays, costs) {
		for i := range costs {
			costs[i] = int32(-(i + 1) * orderStep)
		}
	}
	return costs
}

// between fills in costs: those of stays are what they are, and each other node
// comes behind as many of these as are to be kept longer than it. It reports
// whether there were enough costs between.
func between(held []int32, stays []int, costs []int32) bool {
	staying := make([]bool, len(held))
	for _, i := range stays {
		staying[i] = true
	}
	next, upper := 0, int64(0)
	for k := range len(stays) + 1 {
		began, n := next, int64(0) // the others that as many of stays are before as were put so far
		for ; next < len(held) && !staying[next]; next++ {
			n++
		}
		lower := upper - (n+1)*orderStep
		if k < len(stays) {
			lower = int64(held[stays[k]])
			costs[stays[k]] = held[stays[k]]
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
