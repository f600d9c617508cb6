package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeClaim is a node to be bought while it is being filled: a NodeClaim.
type nodeClaim struct {
	alive bitset  // positions of the offers that hold its pods
	sets  keysets // what is asked of its labels
	never bitset  // relaxations of which no pod will ever be taken

	pods      []int // positions in the batch
	used      policy.Resources
	gpu       int16
	templates []policy.TemplateID // of pods with host ports
	host      int32
	pool      int32

	shapes []int32
	most   policy.Resources // largest of the shapes
}

// A poolState is a pool while claims are opened in it.
type poolState struct {
	id     policy.PoolID
	rules  *Pool
	open   bitset  // positions of its offers within what is left of its limits
	all    bitset  // positions of its offers
	sets   keysets // what it asks of labels
	taints []policy.Taint
	left   policy.Resources // of its limits
	never  bitset           // relaxations of which no pod gets a claim
}

// readPools reads the pools of the batch where that was not done, or other labels matter
// since, and opens them for an attempt.
func (sv *Solver) readPools() {
	sp, ot := sv.sp, sv.offerTable
	if !sv.pooled || sv.keys != len(sp.table.keys) {
		for i := range sv.b.Pools {
			sp.table.learn(&sv.b.Pools[i])
		}
		sv.keys = len(sp.table.keys)
	}
	anew := sp.groups.layRelaxations()
	if anew {
		sv.spare = nil
		sv.base, sv.sets = sp.groups.layout.make(), sp.groups.layout.make()
	}
	for key := 1; key < len(sp.table.keys); key++ {
		ot.divide(&sp.table, int32(key))
	}
	for len(ot.fits) < len(sp.groups.relaxations) {
		ot.fits = append(ot.fits, nil)
	}
	sv.cand = resize(sv.cand, len(ot.all))
	if anew || !sv.pooled {
		sv.makePools()
		sv.pooled = true
	}
	for i := range sv.pools {
		sv.open(&sv.pools[i])
	}
}

// makePools reads what does not change from attempt to attempt.
func (sv *Solver) makePools() {
	sv.pools, sv.closed = sv.pools[:0], sv.closed[:0]
	sv.lenient = false
	for _, positions := range sv.offerTable.ofPool {
		o := &sv.b.Offers[sv.offerTable.rank[positions.next(0)]]
		x := poolState{id: o.Pool, all: positions, open: slices.Clone(positions), taints: o.Taints, sets: sv.sp.groups.layout.make()}
		x.rules = sv.rulesOf(o.Pool)
		sv.readRules(&x)
		sv.ownLabels(&x, positions)
		sv.pools = append(sv.pools, x)
	}
	sv.closePools()
}

// rulesOf returns what a pool asks for.
func (sv *Solver) rulesOf(id policy.PoolID) *Pool {
	rules := &sv.noRules
	for i := range sv.b.Pools {
		if sv.b.Pools[i].ID == id {
			rules = &sv.b.Pools[i]
		}
	}
	return rules
}

// open opens a pool for an attempt.
func (sv *Solver) open(x *poolState) {
	x.rules = sv.rulesOf(x.id)
	x.never = resize(x.never, (len(sv.sp.groups.relaxations)+63)/64)
	x.left = x.rules.Limits.Minus(x.rules.Used)
	copy(x.open, x.all)
	sv.keepWithin(x)
}

// readRules reads what a pool asks of labels, and its taints where it says them.
func (sv *Solver) readRules(x *poolState) {
	for i := range x.rules.Requirements {
		sv.sp.groups.require(&x.sets, &x.rules.Requirements[i])
	}
	if x.taints == nil {
		x.taints = x.rules.Taints
	}
	sv.lenient = sv.lenient || slices.ContainsFunc(x.taints, func(t policy.Taint) bool { return t.Effect == policy.PreferNoSchedule })
}

// closePools reads the pools that have nothing to offer: their domains count for
// topology spread all the same.
func (sv *Solver) closePools() {
	for i := range sv.b.Pools {
		rules := &sv.b.Pools[i]
		if slices.ContainsFunc(sv.pools, func(x poolState) bool { return x.rules == rules }) {
			continue
		}
		x := poolState{rules: rules, sets: sv.sp.groups.layout.make()}
		sv.readRules(&x)
		sv.closed = append(sv.closed, x)
	}
}

// instanceLabels are labels that Karpenter knows of every instance type, so that a pool
// need not name them.
var instanceLabels = []string{
	labelZone, "topology.kubernetes.io/region", "node.kubernetes.io/instance-type", "kubernetes.io/arch",
	"kubernetes.io/os", "karpenter.sh/capacity-type",
}

// ownLabels adds to what a pool asks for the labels that it gives its nodes: those that
// all of its offers have alike.
func (sv *Solver) ownLabels(x *poolState, positions bitset) {
	for key := 1; key < len(sv.sp.table.keys); key++ {
		if x.sets.kind[key] != unbounded || slices.Contains(instanceLabels, sv.sp.table.keys[key].name) {
			continue
		}
		for d, of := range sv.offerTable.ofDomain[key] {
			if d > 0 && positions.within(of) {
				x.sets.kind[key] = oneOf
				x.sets.of(&sv.sp.groups.layout, int32(key)).set(int32(d - 1))
			}
		}
	}
}

// keepWithin closes the offers whose capacity exceeds what is left of the pool's limits
// (filterByRemainingResources in scheduler.go).
func (sv *Solver) keepWithin(x *poolState) {
	limits := &x.rules.Limits
	if *limits == (policy.Resources{}) {
		return
	}
	for at := x.open.next(0); at >= 0; at = x.open.next(at + 1) {
		c := &sv.b.Offers[sv.offerTable.rank[at]].Capacity
		if limits.CPU > 0 && c.CPU > x.left.CPU || limits.Memory > 0 && c.Memory > x.left.Memory ||
			limits.Storage > 0 && c.Storage > x.left.Storage || limits.GPU > 0 && c.GPU > x.left.GPU ||
			limits.Pods > 0 && c.Pods > x.left.Pods {
			x.open.clear(at)
		}
	}
}

// take lowers what is left of the pool's limits by the largest that c may become
// (subtractMax in scheduler.go).
func (sv *Solver) take(x *poolState, c *nodeClaim) {
	if x.rules.Limits == (policy.Resources{}) {
		return
	}
	var most policy.Resources
	for at := c.alive.next(0); at >= 0; at = c.alive.next(at + 1) {
		r := &sv.b.Offers[sv.offerTable.rank[at]].Capacity
		most = policy.Resources{
			CPU: max(most.CPU, r.CPU), Memory: max(most.Memory, r.Memory), Storage: max(most.Storage, r.Storage),
			GPU: max(most.GPU, r.GPU), Pods: max(most.Pods, r.Pods),
		}
	}
	x.left = x.left.Minus(most)
	sv.keepWithin(x)
}

// addToClaim puts a pod into the open claim with the fewest pods that takes it. The sort
// is the one of Go's library that Karpenter uses, which orders equal claims alike.
func (sv *Solver) addToClaim(p, s int32) bool {
	if !sv.sorted {
		slices.SortFunc(sv.claims, func(a, b *nodeClaim) int { return cmp.Compare(len(a.pods), len(b.pods)) })
		sv.sorted = true
	}
	for _, c := range sv.claims {
		if !c.never.has(s) && sv.join(c, p, s) {
			sv.sorted = false
			return true
		}
	}
	return false
}

// addToNew opens a claim for a pod in the first pool that can serve it.
func (sv *Solver) addToNew(p, s int32) bool {
	for i := range sv.pools {
		x := &sv.pools[i]
		if x.never.has(s) || x.rules.NodesFull {
			continue
		}
		c := sv.fresh(int32(i))
		if !sv.join(c, p, s) {
			if c.never.has(s) {
				x.never.set(s)
			}
			sv.spare = append(sv.spare, c)
			continue
		}
		sv.claims, sv.opened = append(sv.claims, c), append(sv.opened, c)
		sv.sorted = false
		sv.take(x, c)
		return true
	}
	return false
}

// fresh returns an empty claim of a pool.
func (sv *Solver) fresh(pool int32) *nodeClaim {
	x, ot := &sv.pools[pool], sv.offerTable
	c := &nodeClaim{}
	if n := len(sv.spare); n > 0 {
		c, sv.spare = sv.spare[n-1], sv.spare[:n-1]
	}
	if c.sets.kind == nil {
		c.sets = sv.sp.groups.layout.make()
	}
	*c = nodeClaim{
		alive: append(c.alive[:0], x.open...), sets: c.sets, never: resize(c.never, len(x.never)), pods: c.pods[:0],
		templates: c.templates[:0], shapes: c.shapes[:0], pool: pool, host: int32(len(sv.sp.occupancy.slots) + len(sv.opened)),
	}
	c.sets.copyFrom(&x.sets)
	for s := range ot.shapes {
		if ot.ofShape[s].meets(c.alive) {
			c.shapes = append(c.shapes, int32(s))
		}
	}
	sv.measure(c)
	return c
}

// measure computes the most that one of the claim's shapes has of each resource.
func (sv *Solver) measure(c *nodeClaim) {
	c.most = policy.Resources{}
	for _, s := range c.shapes {
		r := &sv.offerTable.shapes[s].free
		c.most = policy.Resources{
			CPU: max(c.most.CPU, r.CPU), Memory: max(c.most.Memory, r.Memory), Storage: max(c.most.Storage, r.Storage),
			GPU: max(c.most.GPU, r.GPU), Pods: max(c.most.Pods, r.Pods),
		}
	}
}

// fitOf returns the positions of the offers whose labels and taints suit a relaxation.
func (sv *Solver) fitOf(s int32) bitset {
	sp, ot := sv.sp, sv.offerTable
	if ot.fits[s] == nil {
		fit, st := newBitset(len(ot.rank)), &sp.groups.relaxations[s]
		for at, class := range ot.class {
			if sp.table.relaxationSuits(st, class, "", "") && !sp.table.daemonPort(&sp.table.kinds[st.template], class) {
				fit.set(int32(at))
			}
		}
		ot.fits[s] = fit
	}
	return ot.fits[s]
}

// join puts a pod into c where some offer is left that holds it too (CanAdd in
// nodeclaim.go).
func (sv *Solver) join(c *nodeClaim, p, s int32) bool {
	sp, ot, st, pod := sv.sp, sv.offerTable, &sv.sp.groups.relaxations[s], &sv.b.Pods[p]
	k := &sp.table.kinds[pod.Template]
	taken := k.ports != nil && slices.ContainsFunc(k.ports, func(t policy.TemplateID) bool { return slices.Contains(c.templates, t) })
	if taken || !within(&k.requests, &c.used, &c.most) || c.gpu != 0 && k.gpu != 0 && c.gpu != k.gpu {
		c.never.set(s)
		return false
	}
	need, gpu := c.used.Plus(k.requests), max(c.gpu, k.gpu)
	copy(sv.cand, c.alive)
	sv.keepSuited(c, s)
	for _, shape := range c.shapes {
		if !ot.shapes[shape].holds(&need, gpu, 0) {
			sv.cand.andNot(ot.ofShape[shape])
		}
	}
	if sv.cand.empty() {
		if !st.own || len(c.pods) == 0 {
			c.never.set(s)
		}
		return false
	}
	sv.base.copyFrom(&c.sets)
	sv.base.narrow(&sv.sp.groups.layout, &st.sets)
	sv.boundByVolume(k, pod)
	sv.sets.copyFrom(&sv.base)
	if !sv.narrow(c, st, k, p) || sv.cand.empty() || !sv.varied(sv.pools[c.pool].rules) {
		return false
	}
	c.used, c.gpu = need, gpu
	c.sets.copyFrom(&sv.sets)
	if !c.alive.equal(sv.cand) {
		copy(c.alive, sv.cand)
		c.shapes = slices.DeleteFunc(c.shapes, func(s int32) bool { return !ot.ofShape[s].meets(c.alive) })
		sv.measure(c)
	}
	c.pods = append(c.pods, int(p))
	if st.own {
		sv.remember(st, sv.sp.table.classes[ot.class[c.alive.next(0)]].labels, policy.None, c)
	}
	if k.ports != nil {
		c.templates = append(c.templates, pod.Template)
	}
	sv.recordOnClaim(c, k)
	return true
}

// keepSuited leaves the candidates whose labels and taints suit a relaxation.
func (sv *Solver) keepSuited(c *nodeClaim, s int32) {
	st := &sv.sp.groups.relaxations[s]
	if !st.own || len(sv.asks) == 0 || len(c.pods) == 0 {
		sv.cand.and(sv.fitOf(s))
		return
	}
	for at := sv.cand.next(0); at >= 0; at = sv.cand.next(at + 1) {
		if class := sv.offerTable.class[at]; !sv.suitsWithAsks(st, class, policy.None, c) || sv.sp.table.daemonPort(&sv.sp.table.kinds[st.template], class) {
			sv.cand.clear(at)
		}
	}
}

// boundByVolume keeps the offers of the zone of a pod's volumes.
func (sv *Solver) boundByVolume(k *kind, pod *policy.Pod) {
	if !k.zonal || pod.VolumeZone < 0 {
		return
	}
	for at := sv.cand.next(0); at >= 0; at = sv.cand.next(at + 1) {
		if sv.sp.table.classes[sv.offerTable.class[at]].zone != pod.VolumeZone {
			sv.cand.clear(at)
		}
	}
	sv.sp.groups.require(&sv.base, &policy.Requirement{Key: labelZone, Op: policy.OpIn, Values: sv.sp.table.zones[pod.VolumeZone : pod.VolumeZone+1]})
}

// varied reports whether the offers left have as many values of labels as the pool asks
// for (SatisfiesMinValues in pkg/cloudprovider/types.go).
func (sv *Solver) varied(rules *Pool) bool {
	for i := range rules.MinValues {
		m := &rules.MinValues[i]
		sv.ties = sv.ties[:0]
		for at := sv.cand.next(0); at >= 0 && len(sv.ties) < m.N; at = sv.cand.next(at + 1) {
			value, there := policy.FindLabel(sv.b.Offers[sv.offerTable.rank[at]].Labels, m.Key)
			if there && !slices.Contains(sv.ties, value) {
				sv.ties = append(sv.ties, value)
			}
		}
		if len(sv.ties) < m.N {
			return false
		}
	}
	return true
}

// binOf returns a claim as a bin.
func (sv *Solver) binOf(c *nodeClaim) Bin {
	b := Bin{Pods: slices.Clone(c.pods)}
	for at := c.alive.next(0); at >= 0; at = c.alive.next(at + 1) {
		b.Offers = append(b.Offers, sv.offerTable.rank[at])
	}
	return b
}
