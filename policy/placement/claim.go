package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A claimSet contains the claims that an attempt has opened, and places pods in them.
type claimSet struct {
	sv        *Solver
	table     *classTable
	occupancy *occupancy
	groups    *groupTable

	ordered []*nodeClaim // in the order in which they are tried
	opened  []*nodeClaim // in the order in which they were opened
	spare   []*nodeClaim // reusable memory of earlier runs
	sorted  bool         // ordered is sorted
	cand    bitset
	values  []string
}

// A nodeClaim is a NodeClaim in the making: a node to be launched and the pods placed on it so far.
type nodeClaim struct {
	alive      bitset  // positions of the offers that can run its pods
	sets       keysets // requirements on the labels of the node
	impossible bitset  // relaxations whose pods the claim can never take

	pods      []int // positions in the batch
	used      policy.Resources
	gpu       int16
	volumes   int32               // number of volumes; used if the batch has NewOnly
	templates []policy.TemplateID // of pods with host ports, and shared DaemonSets
	host      int32
	pool      int32
	held      []int32 // reservations that the claim may use

	shapes []int32
	most   policy.Resources // maximum over the shapes, per resource
}

// begin prepares the set for an attempt. If rebuilt, the layout of labels has changed, and the
// claims of earlier attempts are discarded.
func (cs *claimSet) begin(rebuilt bool) {
	if rebuilt {
		cs.spare = nil
	}
	cs.cand = resize(cs.cand, len(cs.sv.offerTable.all))
	cs.sorted = true
}

// end releases the claims for reuse.
func (cs *claimSet) end() {
	cs.spare = append(cs.spare, cs.opened...)
	cs.ordered, cs.opened = cs.ordered[:0], cs.opened[:0]
}

// addToClaim adds a pod to the open claim with the fewest pods that accepts it, or to the first
// that accepts it if the size of claims is bounded. It sorts with the function of the Go library
// that Karpenter uses, so that equal claims have the same order.
func (cs *claimSet) addToClaim(p, s int32) bool {
	if !cs.sorted && !cs.sv.filling.bounds {
		slices.SortFunc(cs.ordered, func(a, b *nodeClaim) int { return cmp.Compare(len(a.pods), len(b.pods)) })
		cs.sorted = true
	}
	for i, c := range cs.ordered {
		if !c.impossible.has(s) && cs.join(c, p, s) {
			cs.sorted = i+1 == len(cs.ordered) || len(c.pods) <= len(cs.ordered[i+1].pods)
			return true
		}
	}
	return false
}

// addToNew opens a claim for a pod in the first pool that can serve it. It opens none if the pod
// must wait for capacity that is reserved for one of the pools (addToNewNodeClaim in scheduler.go).
func (cs *claimSet) addToNew(p, s int32) bool {
	cs.sv.reserved.deferred = false
	for i := range cs.sv.pools.withOffers {
		x := &cs.sv.pools.withOffers[i]
		if x.impossible.has(s) || x.rules.NodesFull {
			continue
		}
		c := cs.fresh(int32(i))
		if !cs.join(c, p, s) {
			if c.impossible.has(s) {
				x.impossible.set(s)
			}
			cs.spare = append(cs.spare, c)
			if cs.sv.reserved.deferred {
				return false
			}
			continue
		}
		if last := len(cs.ordered) - 1; last >= 0 {
			cs.sorted = cs.sorted && len(cs.ordered[last].pods) <= len(c.pods)
		}
		cs.ordered, cs.opened = append(cs.ordered, c), append(cs.opened, c)
		cs.sv.pools.take(x, c)
		return true
	}
	return false
}

// fresh returns an empty claim of a pool.
func (cs *claimSet) fresh(pool int32) *nodeClaim {
	x, ot := &cs.sv.pools.withOffers[pool], cs.sv.offerTable
	c := &nodeClaim{}
	if n := len(cs.spare); n > 0 {
		c, cs.spare = cs.spare[n-1], cs.spare[:n-1]
	}
	if c.sets.kind == nil {
		c.sets = cs.groups.layout.make()
	}
	*c = nodeClaim{
		alive: append(c.alive[:0], x.withinLimits...), sets: c.sets, impossible: resize(c.impossible, len(x.impossible)), pods: c.pods[:0],
		templates: c.templates[:0], shapes: c.shapes[:0], held: c.held[:0], pool: pool, host: int32(len(cs.occupancy.slots) + len(cs.opened)),
	}
	if ot.shares {
		c.templates = append(c.templates, ot.shared[pool]...)
	}
	c.sets.copyFrom(&x.sets)
	if x.withinLimits.equal(x.all) {
		c.shapes, c.most = append(c.shapes, x.shapes...), x.most
	} else {
		c.shapes = ot.shapesOf(c.alive, c.shapes)
		c.most = ot.most(c.shapes)
	}
	return c
}

// shapesOf appends to list the shapes of the offers at the given positions.
func (ot *offerTable) shapesOf(positions bitset, list []int32) []int32 {
	for s := range ot.shapes {
		if ot.ofShape[s].meets(positions) {
			list = append(list, int32(s))
		}
	}
	return list
}

// most returns the maximum of each resource over the given shapes.
func (ot *offerTable) most(shapes []int32) (most policy.Resources) {
	for _, s := range shapes {
		r := &ot.shapes[s].free
		most = most.Max(*r)
	}
	return most
}

// fitOf returns the positions of the offers whose labels and taints suit a relaxation.
func (cs *claimSet) fitOf(s int32) bitset {
	ot := cs.sv.offerTable
	if ot.fits[s] == nil {
		fit, st := ot.newSet(), &cs.groups.relaxations[s]
		for at, class := range ot.class {
			if cs.table.relaxationSuits(st, class, "", "") && !cs.table.daemonPort(&cs.table.kinds[st.template], class) {
				fit.set(int32(at))
			}
		}
		ot.fits[s] = fit
	}
	return ot.fits[s]
}

// join adds a pod to c if c still has an offer that can run all of its pods (CanAdd in
// nodeclaim.go).
func (cs *claimSet) join(c *nodeClaim, p, s int32) bool {
	ot, st, pod := cs.sv.offerTable, &cs.groups.relaxations[s], &cs.sv.b.Pods[p]
	k := &cs.table.kinds[pod.Template]
	if cs.portTaken(c, k) || !within(&k.requests, &c.used, &c.most) || c.gpu != 0 && k.gpu != 0 && c.gpu != k.gpu {
		c.impossible.set(s)
		return false
	}
	need, gpu, volumes := c.used.Plus(k.requests), max(c.gpu, k.gpu), int32(0)
	if cs.sv.b.NewOnly {
		volumes = c.volumes + k.volumes.own + int32(len(k.volumes.claims))
	}
	copy(cs.cand, c.alive)
	cs.keepSuited(c, s)
	for _, shape := range c.shapes {
		if !ot.shapes[shape].holds(&need, gpu, volumes) {
			cs.cand.andNot(ot.ofShape[shape])
		}
	}
	if cs.cand.empty() {
		if !st.own || len(c.pods) == 0 {
			c.impossible.set(s)
		}
		return false
	}
	cs.sv.domains.base.copyFrom(&c.sets)
	cs.sv.domains.base.narrow(&cs.groups.layout, &st.sets)
	cs.boundByVolume(k, pod)
	cs.sv.domains.sets.copyFrom(&cs.sv.domains.base)
	if !cs.sv.domains.narrow(c, st, k, p) || cs.cand.empty() {
		return false
	}
	if cs.sv.filling.pinned && len(c.pods) == 0 {
		cs.pin()
	}
	if !cs.varied(cs.sv.pools.withOffers[c.pool].rules) || !cs.sv.reserved.take(c, cs.cand) {
		return false
	}
	c.used, c.gpu, c.volumes = need, gpu, volumes
	c.sets.copyFrom(&cs.sv.domains.sets)
	if !c.alive.equal(cs.cand) {
		copy(c.alive, cs.cand)
		c.shapes = slices.DeleteFunc(c.shapes, func(s int32) bool { return !ot.ofShape[s].meets(c.alive) })
		c.most = ot.most(c.shapes)
	}
	cs.bound(c)
	c.pods = append(c.pods, int(p))
	if st.own {
		cs.sv.asks.remember(st, cs.table.classes[ot.class[c.alive.next(0)]].labels, policy.None, c)
	}
	if k.ports != nil {
		c.templates = append(c.templates, pod.Template)
	}
	cs.recordOnClaim(c, k)
	return true
}

// within reports whether requests fit into most in addition to used. Resources that are not
// requested are not compared.
func within(requests, used, most *policy.Resources) bool {
	return used.Pods+requests.Pods <= most.Pods &&
		(requests.CPU == 0 || used.CPU+requests.CPU <= most.CPU) &&
		(requests.Memory == 0 || used.Memory+requests.Memory <= most.Memory) &&
		(requests.Storage == 0 || used.Storage+requests.Storage <= most.Storage) &&
		(requests.GPU == 0 || used.GPU+requests.GPU <= most.GPU)
}

// portTaken reports whether a host port that k requests is used by a pod of c, or by a pod of a
// claim that shares its ports with c.
func (cs *claimSet) portTaken(c *nodeClaim, k *kind) bool {
	if k.ports == nil {
		return false
	}
	wanted := func(t policy.TemplateID) bool { return slices.Contains(k.ports, t) }
	return slices.ContainsFunc(c.templates, wanted) ||
		cs.sv.b.SharedPorts && slices.ContainsFunc(cs.opened, func(o *nodeClaim) bool {
			return o.pool == c.pool && slices.ContainsFunc(o.templates, wanted)
		})
}

// keepSuited removes the candidates whose labels or taints do not suit a relaxation.
func (cs *claimSet) keepSuited(c *nodeClaim, s int32) {
	st := &cs.groups.relaxations[s]
	if !st.own || len(cs.sv.asks.list) == 0 || len(c.pods) == 0 {
		cs.cand.and(cs.fitOf(s))
		return
	}
	for at := cs.cand.next(0); at >= 0; at = cs.cand.next(at + 1) {
		if class := cs.sv.offerTable.class[at]; !cs.sv.asks.suitsWithAsks(st, class, policy.None, c) ||
			cs.table.daemonPort(&cs.table.kinds[st.template], class) {
			cs.cand.clear(at)
		}
	}
}

// boundByVolume removes the candidates outside the zone of a pod's volumes.
func (cs *claimSet) boundByVolume(k *kind, pod *policy.Pod) {
	if !k.volumes.zonal || pod.VolumeZone < 0 {
		return
	}
	for at := cs.cand.next(0); at >= 0; at = cs.cand.next(at + 1) {
		if cs.table.classes[cs.sv.offerTable.class[at]].zone != pod.VolumeZone {
			cs.cand.clear(at)
		}
	}
	cs.groups.require(&cs.sv.domains.base, &policy.Requirement{Key: labelZone, Op: policy.OpIn,
		Values: cs.table.zones[pod.VolumeZone : pod.VolumeZone+1]})
}

// varied reports whether the remaining offers have as many distinct label values as the pool
// requires (SatisfiesMinValues in pkg/cloudprovider/types.go).
func (cs *claimSet) varied(rules *Pool) bool {
	for i := range rules.MinValues {
		m := &rules.MinValues[i]
		cs.values = cs.values[:0]
		for at := cs.cand.next(0); at >= 0 && len(cs.values) < m.N; at = cs.cand.next(at + 1) {
			value, there := policy.FindLabel(cs.sv.b.Offers[cs.sv.offerTable.rank[at]].Labels, m.Key)
			if there && !slices.Contains(cs.values, value) {
				cs.values = append(cs.values, value)
			}
		}
		if len(cs.values) < m.N {
			return false
		}
	}
	return true
}

// binOf converts a claim to a bin.
func (cs *claimSet) binOf(c *nodeClaim) Bin {
	b := Bin{Pods: slices.Clone(c.pods)}
	for at := c.alive.next(0); at >= 0; at = c.alive.next(at + 1) {
		if cs.sv.reserved.sold(c, at) {
			b.Offers = append(b.Offers, cs.sv.offerTable.rank[at])
		}
	}
	return b
}
