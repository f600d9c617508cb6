package guard

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// A freeNode is the free capacity on a node that stays. Selectors, taints and the other scheduler
// filters are up to the policy: the guardrails only ensure that displaced pods do not exceed the
// free capacity.
type freeNode struct {
	pool policy.PoolID
	free policy.Resources
}

// requests returns the requests of p.
func (r *survey) requests(p policy.PodID) policy.Resources {
	return r.s.Templates[r.s.Pods[p].Template].Requests
}

// listFree lists the nodes that stay, with their free capacity. A node that the plan drains has
// none, whether its drain is allowed or held.
func (r *survey) listFree() {
	if r.listed {
		return
	}
	r.listed = true
	for i := range r.s.Nodes {
		if n := &r.s.Nodes[i]; n.Pool != policy.None && n.Usable() && r.slot[i] == 0 && n.ActedBy == policy.ActorNone {
			r.freeNodes = append(r.freeNodes, freeNode{n.Pool, n.Allocatable.Minus(r.placed.nodes[i].all)})
		}
	}
}

// placeElsewhere places the displaced pods of l on other nodes of its pool, the largest first, each
// on the node with the least free CPU on which it fits. It reports whether all of them fit; if not,
// none of them is placed.
func (r *survey) placeElsewhere(l *leavingNode) bool {
	r.listFree()
	slices.SortFunc(l.displaced, func(a, b policy.PodID) int {
		x, y := r.requests(a), r.requests(b)
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(a, b))
	})
	pool := r.s.Nodes[l.node].Pool
	at := make([]int, 0, len(l.displaced)) // by displaced pod so far, its index in freeNodes
	for _, p := range l.displaced {
		requests, best := r.requests(p), -1
		for i := range r.freeNodes {
			v := &r.freeNodes[i]
			if v.pool == pool && requests.Within(v.free) && (best < 0 || v.free.CPU < r.freeNodes[best].free.CPU) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		r.freeNodes[best].free = r.freeNodes[best].free.Minus(requests)
		at = append(at, best)
	}
	if len(at) == len(l.displaced) {
		return true
	}
	for i, best := range at {
		r.freeNodes[best].free = r.freeNodes[best].free.Plus(r.requests(l.displaced[i]))
	}
	return false
}

// leastCapacity returns a lower bound of the capacity of a node bought in any of markets.
func (r *survey) leastCapacity(markets []policy.MarketID) policy.Resources {
	var least policy.Resources
	for i, m := range markets {
		x := r.s.Types[r.s.Markets[m].Type].Allocatable
		if i == 0 {
			least = x
			continue
		}
		least = least.Min(x)
	}
	return least
}

// countDrain counts a drain that was allowed.
func (r *survey) countDrain(d *policy.Drain) {
	n := &r.s.Nodes[d.Node]
	if n.Pool == policy.None {
		return
	}
	p := &r.pools[n.Pool]
	if l := r.node(d.Node); !l.placed && (r.urgent(d) || !l.replaced && len(d.After) == 0) {
		l.placed = r.placeElsewhere(l) // the pods move now; if not all of them fit, they wait for a new node
	}
	p.drained++
	p.underutilized--
	p.empty--
	if r.urgent(d) {
		// The node already counts as leaving. Its pods do not yet count among those that the rest
		// of the pool must carry.
		p.requested, p.allocatable = r.loadAfter(d)
		r.countReplacements(d)
		return
	}
	r.movesLeft--
	p.moved = true
	p.spot, p.total = r.shareAfter(d)
	p.requested, p.allocatable = r.loadAfter(d)
	r.countReplacements(d)
}

// replacing returns the indexes of the replacements for the drain d: those for its node, and those
// that d waits for. The result is valid until the next call.
func (r *survey) replacing(d *policy.Drain) []int32 {
	r.found = r.found[:0]
	for at := r.node(d.Node).forNode; at > 0; at = r.replacements[at-1].forNode {
		r.found = append(r.found, at-1)
	}
	for _, token := range d.After {
		for at := r.byToken[token]; at > 0; at = r.replacements[at-1].forToken {
			if !slices.Contains(r.found, at-1) {
				r.found = append(r.found, at-1)
			}
		}
	}
	return r.found
}

// countReplacements marks the replacements of d as counted.
func (r *survey) countReplacements(d *policy.Drain) {
	for _, at := range r.replacing(d) {
		r.replacements[at].counted = true
	}
}

// loadAfter returns the requests and the capacity of the pool of d's node after d is done and its
// replacements have joined.
func (r *survey) loadAfter(d *policy.Drain) (requested, allocatable policy.Resources) {
	n, l := &r.s.Nodes[d.Node], r.node(d.Node)
	p := &r.pools[n.Pool]
	requested, allocatable = p.requested, p.allocatable
	if n.Usable() {
		requested, allocatable = requested.Minus(l.ending), allocatable.Minus(n.Allocatable)
	} else {
		requested = requested.Plus(l.requests)
	}
	for _, at := range r.replacing(d) {
		if x := &r.replacements[at]; !x.counted {
			allocatable = allocatable.Plus(x.capacity)
		}
	}
	return requested, allocatable
}

// fitsElsewhere reports whether the pods of d's node fit on other nodes without raising the
// utilization of the pool above UtilizationFull. If so, they are placed there.
func (r *survey) fitsElsewhere(d *policy.Drain, l *leavingNode) bool {
	requested, allocatable := r.loadAfter(d)
	l.placed = utilization(requested, allocatable) <= r.cfg.UtilizationFull && r.placeElsewhere(l)
	return l.placed
}

// enoughCapacity reports whether the nodes of all pools together can carry the requests once d is
// done and its replacements have joined, or are at least no worse off than without it. A single
// node that replaces several passes only while it is large enough.
func (r *survey) enoughCapacity(d *policy.Drain) bool {
	before, after := policy.Resources{}, policy.Resources{}
	for i := range r.pools {
		p := &r.pools[i]
		spare := p.allocatable.Minus(p.requested)
		before = before.Plus(spare)
		if policy.PoolID(i) == r.s.Nodes[d.Node].Pool {
			requested, allocatable := r.loadAfter(d)
			spare = allocatable.Minus(requested)
		}
		after = after.Plus(spare)
	}
	return after.CPU >= min(0, before.CPU) && after.Memory >= min(0, before.Memory) && after.GPU >= min(0, before.GPU)
}

// utilization returns the largest share of CPU, memory and GPUs that is requested; 0 without
// capacity.
func utilization(requested, allocatable policy.Resources) float64 {
	used := 0.0
	for _, c := range [...][2]int64{
		{requested.CPU, allocatable.CPU}, {requested.Memory, allocatable.Memory}, {requested.GPU, allocatable.GPU},
	} {
		if c[1] > 0 {
			used = max(used, float64(c[0])/float64(c[1]))
		}
	}
	return used
}

// shareAfter returns the Spot capacity and the total capacity of the pool, in units of its share,
// once d is done and its replacements have joined.
func (r *survey) shareAfter(d *policy.Drain) (spot, total int64) {
	n := &r.s.Nodes[d.Node]
	p := &r.pools[n.Pool]
	spot, total = p.spot, p.total
	if n.Market != policy.None {
		size := share.Units(r.s, n.Pool, n.Market)
		total -= size
		if r.s.Markets[n.Market].Capacity == policy.Spot {
			spot -= size
		}
	}
	for _, at := range r.replacing(d) {
		x := &r.replacements[at]
		l := x.launch
		if len(l.Markets) == 0 || x.counted {
			continue
		}
		size := share.Units(r.s, n.Pool, l.Markets[0])
		total += size
		if r.s.Markets[l.Markets[0]].Capacity == policy.Spot {
			spot += size
		}
	}
	return spot, total
}
