package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A ranking orders nodes by what they cost for their pods, those that cost the same by
// name. Most nodes of a market cost the same for the same pods, so that only sets of these
// are compared. It works in the memory that it has.
type ranking struct {
	nodes  []rankedNode // by name
	next   []int32      // by place in nodes: the next of its set, or -1
	sets   []rankedSet
	latest []int32 // by market: its latest set, or -1
	equal  []int32 // places in nodes
	out    []rankedNode
	kept   []rankedNode // in the order in which they are kept
}

// A rankedSet is nodes of one market that cost the same for the same pods, ascending by
// name.
type rankedSet struct {
	base, yields, stays float64
	first, last, n      int32
	before              int32 // the set of the market that was begun before, or -1
}

// setsMax is how many sets of a market are compared with a node. One that is like none of
// these begins another.
const setsMax = 8

func (k *ranking) begin(markets int) {
	k.nodes, k.next, k.sets = k.nodes[:0], k.next[:0], k.sets[:0]
	k.latest = slices.Grow(k.latest[:0], markets)[:markets]
	for i := range k.latest {
		k.latest[i] = -1
	}
}

// add counts in a node of a market. Nodes are added in the order of their names.
func (k *ranking) add(r *rankedNode, m policy.MarketID) {
	place := int32(len(k.nodes))
	k.nodes, k.next = append(k.nodes, *r), append(k.next, -1)
	at := k.latest[m]
	for range setsMax {
		if at < 0 {
			break
		}
		x := &k.sets[at]
		if x.base == r.base && x.yields == r.yields && x.stays == r.stays {
			k.next[x.last] = place
			x.last, x.n = place, x.n+1
			return
		}
		at = x.before
	}
	k.sets = append(k.sets, rankedSet{r.base, r.yields, r.stays, place, place, 1, k.latest[m]})
	k.latest[m] = int32(len(k.sets) - 1)
}

// last returns the given number of nodes that cost most, ascending, or all if there are
// fewer. The list is valid until the next call of begin.
func (k *ranking) last(most int) []rankedNode {
	slices.SortFunc(k.sets, func(a, b rankedSet) int { return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.first, b.first)) })
	k.out = k.out[:0]
	skip := max(0, len(k.nodes)-most)
	for i := 0; i < len(k.sets); {
		k.equal = k.equal[:0]
		began := i
		for base := k.sets[i].base; i < len(k.sets) && k.sets[i].base == base; i++ {
			for at := k.sets[i].first; at >= 0; at = k.next[at] {
				k.equal = append(k.equal, at)
			}
		}
		if i-began > 1 {
			slices.Sort(k.equal)
		}
		out := k.equal[min(skip, len(k.equal)):]
		skip -= len(k.equal) - len(out)
		for _, at := range out {
			k.out = append(k.out, k.nodes[at])
		}
	}
	return k.out
}
