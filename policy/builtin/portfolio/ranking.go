package portfolio

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A ranking orders nodes by what they cost for their pods, those that cost the same by
// name. It is the memory in which a deletionOrder works.
type ranking struct {
	values    []float64 // by template, what its pods are worth, dollars an hour
	goes, all []bool    // by template: its pods go; by kind: the pods of all its templates do

	runs    []run
	batches []batch
	order   []int32 // of batches
	equal   []int32 // ranks of nodes

	kept      []keptNode // the longest first
	held      []int32    // their deletion costs
	numbering numbering
	asked     []int32 // places in kept

	texts map[float64]string // of what nodes cost and pods are worth: few differ
	buf   []byte
	ends  []int // of texts in buf
}

// A run is nodes of one market that cost the same for pods that are worth the same, ascending
// by name: the first is kept before the others.
type run struct {
	nodes  []policy.NodeID
	market policy.MarketID
	place  int32   // among the runs that were ranked
	cost   float64 // of a node, dollars an hour
	yields float64 // what those of its pods are worth that a workload gives up as it shrinks, dollars an hour
	stays  float64 // what its other pods add to what it costs to empty it, dollars an hour
	base   float64 // (cost - stays) / yields

	// own says that it is one node, not all of whose pods go: those that do have held as their
	// least deletion cost, and stale says that not all have that.
	own   bool
	held  int32
	stale bool
}

// before reports whether the first node of r comes before that of q, by the ranks of names.
func (r *run) before(q *run, rank []int32) bool {
	return r.base < q.base || r.base == q.base && rank[r.nodes[0]] < rank[q.nodes[0]]
}

// add adds r, unless nothing of it goes.
func (k *ranking) add(r *run) {
	if r.yields > 0 && len(r.nodes) > 0 {
		r.base = (r.cost - r.stays) / r.yields
		k.runs = append(k.runs, *r)
	}
}

// last ranks the runs, and leaves the given number of nodes that cost most, or all if there are
// fewer. It returns their number.
func (k *ranking) last(most int, rank []int32) int {
	slices.SortFunc(k.runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(rank[a.nodes[0]], rank[b.nodes[0]]))
	})
	all := 0
	for i := range k.runs {
		k.runs[i].place = int32(i)
		all += len(k.runs[i].nodes)
	}
	skip := max(0, all-most)
	for i := 0; skip > 0; {
		began, n := i, 0
		for ; i < len(k.runs) && k.runs[i].base == k.runs[began].base; i++ {
			n += len(k.runs[i].nodes)
		}
		k.skip(k.runs[began:i], min(skip, n), rank)
		skip -= min(skip, n)
	}
	k.runs = slices.DeleteFunc(k.runs, func(r run) bool { return len(r.nodes) == 0 })
	return min(all, most)
}

// skip takes the first n nodes, by name, out of runs that cost the same.
func (k *ranking) skip(runs []run, n int, rank []int32) {
	if len(runs) == 1 {
		runs[0].nodes = runs[0].nodes[n:]
		return
	}
	k.equal = k.equal[:0]
	for i := range runs {
		for _, id := range runs[i].nodes {
			k.equal = append(k.equal, rank[id])
		}
	}
	slices.Sort(k.equal)
	for i := range runs {
		r := &runs[i]
		for len(r.nodes) > 0 && rank[r.nodes[0]] <= k.equal[n-1] {
			r.nodes = r.nodes[1:]
		}
	}
}

// textOf returns how dollars an hour are written.
func (k *ranking) textOf(dollars float64) string {
	x, known := k.texts[dollars]
	if !known {
		x = policy.Dollars(dollars).Short()
		k.texts[dollars] = x
	}
	return x
}
