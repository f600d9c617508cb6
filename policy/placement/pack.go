package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Packing is an assignment of pods to new nodes.
type Packing struct {
	Bins     []Bin
	Unplaced []int        // pods that fit no offer
	Total    policy.Money // price per hour of the first offers of all bins
}

// Quality describes how far Total is from optimal, using a lower bound of the hourly price of any
// packing of the same pods onto nodes of offers.
func (p *Packing) Quality(sp *Space, pods []policy.Pod, offers []Offer) string {
	lowest := func(need *policy.Resources) policy.Money {
		price := p.Total
		for i := range offers {
			if need.Within(offers[i].Allocatable) {
				price = min(price, offers[i].Price)
			}
		}
		return price
	}
	var demand policy.Resources
	largest := policy.Money(0) // price of a node for the pod that needs the most expensive one
	for i := range p.Bins {
		for _, k := range p.Bins[i].Pods {
			requests := &sp.table.kinds[pods[k].Template].requests
			demand = demand.Plus(*requests)
			largest = max(largest, lowest(requests))
		}
	}
	parts := policy.Money(FloorOf(offers).Cost(demand) * float64(policy.Dollar))
	bound := max(largest, parts, min(lowest(&demand), 2*lowest(&policy.Resources{}))) // one node, or at least two
	if p.Total <= bound {
		return "no packing costs less"
	}
	return fmt.Sprintf("no packing costs less than %s", bound.Short())
}

// sizesMax is the maximum number of node sizes that Pack tries.
const sizesMax = 3

// A filling is a way to fill claims. The zero filling is Karpenter's: a claim accepts pods while
// any node can run them.
type filling struct {
	// bounds limits the total requests of a claim to size, and tries claims in the order in which
	// they were opened. Pods that request more than size are placed first.
	bounds bool
	size   policy.Resources

	// claims is the number of claims that are limited; 0 means all.
	claims int

	// tight limits a claim for a pod that requests more than size to the capacity of the cheapest
	// node that can run it.
	tight bool

	// pinned restricts each claim to the topology domains of the cheapest node for its first pod,
	// so that the domains are known to pods with affinity or anti-affinity.
	pinned bool
}

// Provision returns the nodes that Karpenter's scheduler requests if pods may run only on new nodes
// and have no preferences. It modifies the space temporarily and restores it.
func Provision(sp *Space, pods []policy.Pod, offers []Offer) Packing {
	return sp.solver.pack(pods, offers, func() []filling { return []filling{{}} })
}

// Pack returns the cheapest of several packings: that of Provision, and those that result if nodes
// are limited to the sizes that suit the pods best. It modifies the space temporarily and restores
// it.
func Pack(sp *Space, pods []policy.Pod, offers []Offer) Packing {
	return sp.solver.pack(pods, offers, sp.solver.fillings)
}

// pack returns the cheapest packing of several fillings. If every filling leaves pods unplaced, it
// also tries each of them pinned.
func (sv *Solver) pack(pods []policy.Pod, offers []Offer, fillings func() []filling) (best Packing) {
	b := Batch{Pods: pods, Offers: offers, NewOnly: true, IgnorePreferences: true}
	related := sv.sp.related(pods)
	if related {
		for n := range sv.sp.occupancy.slots {
			b.Nodes = append(b.Nodes, policy.NodeID(n))
		}
	}
	sv.Prepare(&b)
	b.Draw = func(_ int, key string, ties []string) int { return sv.offerTable.cheapest(key, ties) }
	best.Unplaced = make([]int, len(pods)+1) // one more than any filling can leave
	list := fillings()
	for _, f := range list {
		sv.try(f, &best)
	}
	if len(best.Unplaced) > 0 && related {
		for _, f := range list {
			f.pinned = true
			sv.try(f, &best)
		}
	}
	return best
}

// try packs with f, and replaces best if the result leaves fewer pods unplaced, or as many at a
// lower cost.
func (sv *Solver) try(f filling, best *Packing) {
	sv.filling = f
	sv.run()
	left, cost := sv.claims.left(), sv.claims.cost()
	if cmp.Or(cmp.Compare(left, len(best.Unplaced)), cmp.Compare(cost, best.Total)) >= 0 {
		sv.undo()
		return
	}
	x := sv.end()
	*best = Packing{Bins: x.Bins, Unplaced: x.Unplaced, Total: cost}
}

// left returns the number of pods that are in no claim.
func (cs *claimSet) left() int {
	n := len(cs.sv.b.Pods)
	for _, c := range cs.opened {
		n -= len(c.pods)
	}
	return n
}

// cost returns the total price per hour of the claims at their cheapest offers.
func (cs *claimSet) cost() (total policy.Money) {
	for _, c := range cs.opened {
		total += cs.sv.offerTable.priceAt(c.alive.next(0))
	}
	return total
}

func (ot *offerTable) priceAt(position int32) policy.Money { return ot.offers[ot.rank[position]].Price }

// related reports whether topology restricts where some of pods can run.
func (sp *Space) related(pods []policy.Pod) bool {
	return slices.ContainsFunc(pods, func(p policy.Pod) bool {
		k := &sp.table.kinds[p.Template]
		return k.topology || len(k.avoids) > 0
	})
}

// fillings returns the fillings that Pack tries.
func (sv *Solver) fillings() []filling {
	list := []filling{{}}
	if len(sv.b.Pods) == 1 {
		return list
	}
	for _, size := range sv.sizes() {
		f := filling{bounds: true, size: size}
		list = append(list, f)
		if sv.exceeded(&size) {
			f.tight = true
			list = append(list, f)
		}
		f.claims = 1
		list = append(list, f)
	}
	return list
}

// sizes returns the free resources of the node shapes that would provide the demand at the lowest
// prices if pods were divisible. Shapes that can run the whole demand on one node are excluded.
// Accelerators are ignored, because most pods request none.
func (sv *Solver) sizes() (sizes []policy.Resources) {
	type ranked struct {
		free policy.Resources
		cost float64
	}
	ot, demand := sv.offerTable, policy.Resources{}
	for i := range sv.b.Pods {
		demand = demand.Plus(sv.sp.table.kinds[sv.b.Pods[i].Template].requests)
	}
	demand.GPU = 0
	var order []ranked
	for s := range ot.shapes {
		free := &ot.shapes[s].free
		if share := demand.LargestShare(*free); free.Pods > 0 && share < 1e9 && !demand.Within(*free) {
			lowest := ot.priceAt(ot.ofShape[s].next(0)).Float()
			order = append(order, ranked{*free, lowest * max(share, float64(demand.Pods)/float64(free.Pods))})
		}
	}
	slices.SortStableFunc(order, func(x, y ranked) int { return cmp.Compare(x.cost, y.cost) })
	for _, r := range order[:min(sizesMax, len(order))] {
		sizes = append(sizes, r.free)
	}
	return sizes
}

// exceeded reports whether a pod requests more than size.
func (sv *Solver) exceeded(size *policy.Resources) bool {
	return slices.ContainsFunc(sv.b.Pods, func(p policy.Pod) bool {
		return !sv.sp.table.kinds[p.Template].requests.Within(*size)
	})
}

// largeFirst moves the pods that request more than the size of claims to the front of the queue.
func (sv *Solver) largeFirst() {
	within := func(p int32) int {
		if sv.sp.table.kinds[sv.b.Pods[p].Template].requests.Within(sv.filling.size) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(sv.queue, func(x, y int32) int { return cmp.Compare(within(x), within(y)) })
}

// pin keeps the candidates that are in the same topology domains as the cheapest one.
func (cs *claimSet) pin() {
	ot, sets := cs.sv.offerTable, &cs.sv.domains.sets
	for key, d := range cs.table.classes[ot.class[cs.cand.next(0)]].domain {
		if key == keyHost || d < 0 {
			continue
		}
		one := newBitset(len(cs.table.keys[key].values))
		one.set(d)
		sets.narrowKey(&cs.groups.layout, int32(key), oneOf, one)
		cs.cand.and(ot.ofDomain[key][d+1])
	}
}

// bound limits c to the size of claims that the filling requires.
func (cs *claimSet) bound(c *nodeClaim) {
	f, ot := &cs.sv.filling, cs.sv.offerTable
	switch {
	case !f.bounds || f.claims > 0 && int(c.host)-len(cs.occupancy.slots) >= f.claims:
	case c.used.Within(f.size):
		c.most = c.most.Min(f.size)
	case f.tight:
		c.most = c.most.Min(ot.shapes[ot.shape[c.alive.next(0)]].free)
	}
}

// cheapest returns the index in values of the label value of the cheapest offer that has one of
// them. It returns 0 if there is no such offer.
func (ot *offerTable) cheapest(key string, values []string) int {
	for _, i := range ot.rank {
		if v, there := policy.FindLabel(ot.offers[i].Labels, key); there {
			if at := slices.Index(values, v); at >= 0 {
				return at
			}
		}
	}
	return 0
}
