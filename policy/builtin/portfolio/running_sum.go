package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A runningSum is a sum of floats in the order of pods or nodes, in which it is rounded. It is
// kept with what it was before each block, so that only what follows the first that changed is
// added again: whoever reads it says by cut which that is, and clears it where what each adds is
// not what it was.
type runningSum struct{ before []float64 } // by block

const sumBlock = 64

// cut forgets what depends on the item first.
func (x *runningSum) cut(first int) { x.before = x.before[:min(len(x.before), 1+first/sumBlock)] }

// resume returns the first item that is to be added, and the sum of those before it: start where
// there are none.
func (x *runningSum) resume(start float64) (int, float64) {
	if len(x.before) == 0 || x.before[0] != start {
		x.before = append(x.before[:0], start)
	}
	last := len(x.before) - 1
	return last * sumBlock, x.before[last]
}

// note notes the sum of all items before the given one.
func (x *runningSum) note(next int, sum float64) {
	if next == len(x.before)*sumBlock {
		x.before = append(x.before, sum)
	}
}

// A lossSums is what a decision adds up over all pods and nodes of a pool.
type lossSums struct {
	pods, nodes runningSum
	ofCell      []float64  // by 1 + podIndex.cells, what a pod adds, dollars
	ofNode      []nodeLoss // by template

	// The rest is memory of demand and poolLosses.
	cells     []float64
	jobs      []bool
	left      []int32
	services  []service
	serviceOf []int32
	anchors   []bool
	losses    []nodeLoss
}

// A nodeLoss is what decides what pods of a template add to the loss of their nodes.
type nodeLoss struct {
	service
	counts, anchor bool
}

// readSums says what changed since the sums of the pools were made.
func (e *Policy) readSums(s *policy.Snapshot) {
	if len(e.sums) != len(s.Pools) {
		e.sums = make([]lossSums, len(s.Pools))
	}
	for i := range e.sums {
		e.sums[i].pods.cut(e.pods.firstPod)
		e.sums[i].nodes.cut(e.pods.firstNode)
	}
}

// overPods returns the sum of what pods in these cells add, given by 1 + cell.
func (x *lossSums) overPods(cells []int32, each []float64) float64 {
	if !slices.Equal(x.ofCell, each) {
		x.ofCell, x.pods.before = append(x.ofCell[:0], each...), x.pods.before[:0]
	}
	at, sum := x.pods.resume(0)
	for at < len(cells) {
		block := cells[at:min(at+sumBlock, len(cells))]
		for _, cell := range block {
			sum += each[1+cell]
		}
		at += len(block)
		x.pods.note(at, sum)
	}
	return sum
}

// overNodes returns start and what the losses of the nodes of a pool add to it, where those
// of templates are given.
func (x *lossSums) overNodes(pods *podIndex, p policy.PoolID, losses []nodeLoss, start float64) float64 {
	if !slices.Equal(x.ofNode, losses) {
		x.ofNode, x.nodes.before = append(x.ofNode[:0], losses...), x.nodes.before[:0]
	}
	at, sum := x.nodes.resume(start)
	for at < len(pods.hosts) {
		for end := min(at+sumBlock, len(pods.hosts)); at < end; at++ {
			h := &pods.hosts[at]
			if h.pool != p {
				continue
			}
			for _, g := range pods.groups[at] {
				v := &losses[g.template]
				switch {
				case !v.counts || h.fixed && v.anchor:
				case h.fixed && g.n > 1:
					sum += v.loss(min(float64(g.n), max(1, v.slack)))
				default:
					sum += v.loss(float64(g.n))
				}
			}
		}
		x.nodes.note(at, sum)
	}
	return sum
}
