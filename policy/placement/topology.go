package placement

import "github.com/spotter-dev/spotter/policy"

// activate puts the groups of a relaxation in force, and those of the anti-affinity of its
// pods.
func (sv *Solver) activate(st *relaxation) {
	sp := sv.sp
	for _, id := range st.groups {
		if g := &sp.groups.groups[id]; g.run != sv.run {
			sv.register(g)
		}
	}
	for _, id := range sp.table.kinds[st.template].groups {
		if g := &sp.groups.groups[id]; g.sort == repelled && g.owner == st.template && g.run != sv.run {
			sv.register(g)
		}
	}
}

// register puts a group in force with the domains that are known for it: those in which
// pools can buy, of pools whose taints are tolerated where that counts, those of
// existing nodes, and those that hold pods (buildDomainGroups and countDomains in
// topology.go).
func (sv *Solver) register(g *group) {
	g.run = sv.run
	if g.key == keyHost {
		return
	}
	l := &sv.sp.groups.layout
	g.registered = resize(g.registered, int(l.from[g.key+1]-l.from[g.key]))
	lenient := g.filter != nil && g.filter.lenient
	serves := func(x *poolState) bool {
		return g.sort == spreads && !g.filter.honorTaints || !taintedFor(x.taints, sv.sp.table.kinds[g.owner].tolerations, lenient)
	}
	for i := range sv.pools {
		if x := &sv.pools[i]; serves(x) {
			for d, of := range sv.offerTable.ofDomain[g.key] {
				if d > 0 && of.meets(sv.offerTable.ofPool[i]) {
					g.registered.set(int32(d - 1))
				}
			}
			sv.registerPool(g, x)
		}
	}
	for i := range sv.closed {
		if x := &sv.closed[i]; serves(x) {
			sv.registerPool(g, x)
		}
	}
	if g.sort != repelled {
		sv.registerNodes(g)
	}
	for d, n := range g.count {
		if n > 0 {
			g.registered.set(int32(d))
		}
	}
}

// registerPool adds the domains that a pool names.
func (sv *Solver) registerPool(g *group, x *poolState) {
	l := &sv.sp.groups.layout
	if x.sets.kind[g.key] == oneOf {
		for w, bits := range x.sets.of(l, g.key) {
			g.registered[w] |= bits
		}
	}
	name := sv.sp.table.keys[g.key].name
	for i := range x.rules.Domains {
		if x.rules.Domains[i].Key != name {
			continue
		}
		for d, value := range sv.sp.table.keys[g.key].values {
			if value == x.rules.Domains[i].Value && x.sets.allows(l, g.key, int32(d)) {
				g.registered.set(int32(d))
			}
		}
	}
}

// registerNodes adds the domains of nodes that exist, class by class where the filter
// of the group does not tell nodes apart.
func (sv *Solver) registerNodes(g *group) {
	sp := sv.sp
	if g.filter != nil && (g.filter.honorTaints || sp.table.kinds[g.owner].byName) {
		for at, n := range sv.b.Nodes {
			if d := sp.occupancy.domain(g.key, n); d >= 0 && !sv.out[at] && sp.occupancy.slots[n].state.exists() && sp.groups.groupCounts(g, n) {
				g.registered.set(d)
			}
		}
		return
	}
	for c, nodes := range sv.classes {
		if d := sp.table.classes[c].domain[g.key]; nodes > 0 && d >= 0 && (g.filter == nil || sp.table.classSuits(g.filter, int32(c))) {
			g.registered.set(d)
		}
	}
}

// narrow bounds the labels of a claim by what topology asks of it with a pod more
// (AddRequirements in topology.go). Each group judges by what is asked without the
// others.
func (sv *Solver) narrow(c *nodeClaim, st *relaxation, k *kind, p int32) bool {
	bounded := false
	for _, id := range st.groups {
		g := &sv.sp.groups.groups[id]
		if !sv.claimMeets(c, st, g, p) {
			return false
		}
		bounded = bounded || g.key != keyHost
	}
	for _, id := range k.avoids {
		g := &sv.sp.groups.groups[id]
		if g.run != sv.run {
			continue
		}
		if !sv.claimMeets(c, st, g, p) {
			return false
		}
		bounded = bounded || g.key != keyHost
	}
	if !bounded {
		return true
	}
	sv.keepDomains()
	return sv.satisfiable(c)
}

// keepDomains leaves the offers that have the domains that groups ask for. What pods ask for
// themselves was seen to before: a label that offers lack may come of pods alone.
func (sv *Solver) keepDomains() {
	for key := 1; key < len(sv.sets.kind); key++ {
		set, before := sv.sets.of(&sv.sp.groups.layout, int32(key)), sv.base.of(&sv.sp.groups.layout, int32(key))
		if sv.sets.kind[key] != oneOf || sv.base.kind[key] == oneOf && set.equal(before) {
			continue
		}
		for d, of := range sv.offerTable.ofDomain[key] {
			if d == 0 && !set.empty() || d > 0 && !set.has(int32(d-1)) {
				sv.cand.andNot(of)
			}
		}
	}
}

// claimMeets reports whether a group lets a pod into a claim, and bounds its labels.
func (sv *Solver) claimMeets(c *nodeClaim, st *relaxation, g *group, p int32) bool {
	if g.key == keyHost {
		return sv.hostMeets(c, g)
	}
	l := &sv.sp.groups.layout
	sv.options = resize(sv.options, int(l.from[g.key+1]-l.from[g.key]))
	switch g.sort {
	case spreads:
		sv.spreadOptions(st, g, p)
	case attracts:
		sv.attractOptions(st, g, p)
	default:
		for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
			if g.in(d) == 0 && sv.base.allows(l, g.key, d) && st.firmSets.allows(l, g.key, d) {
				sv.options.set(d)
			}
		}
	}
	if sv.options.empty() {
		return false
	}
	sv.sets.narrowKey(l, g.key, oneOf, sv.options)
	return true
}

// satisfiable reports whether what groups ask for together can be had. Where no domain meets
// all of them, the label may be missing (Compatible in pkg/scheduling/requirements.go);
// a label that neither the pool nor its instance types have cannot be asked for.
func (sv *Solver) satisfiable(c *nodeClaim) bool {
	for key := 1; key < len(sv.sets.kind); key++ {
		if sv.sets.kind[key] != oneOf {
			continue
		}
		base, set := sv.base.kind[key], sv.sets.of(&sv.sp.groups.layout, int32(key))
		switch {
		case base == unbounded && !set.empty():
			if !sv.known(c, int32(key)) {
				return false
			}
		case base == present || base == oneOf && !sv.base.of(&sv.sp.groups.layout, int32(key)).empty():
			if set.empty() {
				return false
			}
		}
	}
	return true
}

func (sv *Solver) hostMeets(c *nodeClaim, g *group) bool {
	switch g.sort {
	case spreads:
		if g.self {
			return g.in(c.host) < g.skewMax
		}
		return g.in(c.host) <= g.skewMax
	case attracts:
		return g.in(c.host) > 0 || g.self && g.total == 0
	}
	return g.in(c.host) == 0
}

// known reports whether a claim may be bounded by a label that its pool does not name:
// by those that instance types differ in.
func (sv *Solver) known(c *nodeClaim, key int32) bool {
	for d, of := range sv.offerTable.ofDomain[key] {
		if d > 0 && of.meets(sv.offerTable.ofPool[c.pool]) {
			return true
		}
	}
	return false
}

// spreadOptions chooses the domain with the fewest pods that the skew allows.
func (sv *Solver) spreadOptions(st *relaxation, g *group, p int32) {
	l, self, best := &sv.sp.groups.layout, int32(0), int32(-1)
	if g.self {
		self = 1
	}
	least := g.least(l, &st.firmSets)
	sv.tied = sv.tied[:0]
	for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
		count := g.in(d) + self
		if !sv.base.allows(l, g.key, d) || count-least > g.skewMax {
			continue
		}
		if best < 0 || count < best {
			best, sv.tied = count, sv.tied[:0]
		}
		if count == best {
			sv.tied = append(sv.tied, d)
		}
	}
	sv.draw(g, p)
}

// attractOptions finds the domains with pods that attract this one. The first pod of
// those that attract each other may go anywhere: Karpenter takes one domain that the
// claim allows and one that the pod allows (nextDomainAffinity in topologygroup.go).
func (sv *Solver) attractOptions(st *relaxation, g *group, p int32) {
	l := &sv.sp.groups.layout
	for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
		if g.in(d) > 0 && sv.base.allows(l, g.key, d) && st.firmSets.allows(l, g.key, d) {
			sv.options.set(d)
		}
	}
	if !sv.options.empty() || !g.self || g.total > 0 && g.occupied(l, &st.firmSets) {
		return
	}
	for _, inClaim := range [...]bool{true, false} {
		sv.tied = sv.tied[:0]
		for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
			if st.firmSets.allows(l, g.key, d) && (!inClaim || sv.base.allows(l, g.key, d)) {
				sv.tied = append(sv.tied, d)
			}
		}
		sv.draw(g, p)
	}
}

// draw adds one of the tied domains to the options.
func (sv *Solver) draw(g *group, p int32) {
	switch {
	case len(sv.tied) == 0:
		return
	case len(sv.tied) == 1 || sv.b.Draw == nil:
		sv.options.set(sv.tied[0])
		return
	}
	sv.drawn = true
	key := &sv.sp.table.keys[g.key]
	sv.ties = sv.ties[:0]
	for _, d := range sv.tied {
		sv.ties = append(sv.ties, key.values[d])
	}
	sv.options.set(sv.tied[sv.b.Draw(int(p), key.name, sv.ties)])
}

// count adds a pod to a domain of a group until the end of the run.
func (sv *Solver) count(id, d int32) {
	g := &sv.sp.groups.groups[id]
	g.add(d, 1)
	if g.key != keyHost {
		g.registered.set(d)
	}
	sv.journal = append(sv.journal, addition{id, d})
}

// recordOnNode counts a pod that was placed on an existing node.
func (sv *Solver) recordOnNode(k *kind, n policy.NodeID) {
	for _, id := range k.groups {
		g := &sv.sp.groups.groups[id]
		if g.run != sv.run || g.filter != nil && !sv.expected(g.filter, n) {
			continue
		}
		if d := sv.sp.occupancy.domain(g.key, n); d >= 0 {
			sv.count(id, d)
		}
	}
}

// expected reports whether a filter lets node n count once it is ready: taints of nodes
// on their way are not heeded.
func (sv *Solver) expected(f *filter, n policy.NodeID) bool {
	sp, s := sv.sp, &sv.sp.occupancy.slots[n]
	if !f.ignoreAffinity && sp.table.kinds[f.owner].byName {
		return sp.table.filterSuits(f, s.class, sp.occupancy.nodes[n].host, sp.occupancy.nodes[n].name)
	}
	return sp.table.classSuits(f, s.class)
}

// recordOnClaim counts a pod that was put into a claim: in its domain where but one is
// left, and for anti-affinity in all in which it may come to run (Record in topology.go).
func (sv *Solver) recordOnClaim(c *nodeClaim, k *kind) {
	l := &sv.sp.groups.layout
	for _, id := range k.groups {
		g := &sv.sp.groups.groups[id]
		switch {
		case g.run != sv.run || !sv.claimCounts(c, g):
		case g.key == keyHost:
			sv.count(id, c.host)
		case g.sort == repels || g.sort == repelled:
			kind, set := c.sets.kind[g.key], c.sets.of(l, g.key)
			for d := range sv.sp.table.keys[g.key].values {
				// Of a label that may not have some values Karpenter counts these.
				if kind == oneOf && set.has(int32(d)) || kind == noneOf && !set.has(int32(d)) {
					sv.count(id, int32(d))
				}
			}
		default:
			if d := c.sets.single(l, g.key); d >= 0 {
				sv.count(id, d)
			}
		}
	}
}

// claimCounts reports whether g counts pods of a claim.
func (sv *Solver) claimCounts(c *nodeClaim, g *group) bool {
	f := g.filter
	if f == nil {
		return true
	}
	if f.honorTaints && taintedFor(sv.pools[c.pool].taints, sv.sp.table.kinds[f.owner].tolerations, f.lenient) {
		return false
	}
	if f.ignoreAffinity {
		return true
	}
	for i := range f.terms {
		if c.sets.meets(&sv.sp.groups.layout, &f.terms[i]) {
			return true
		}
	}
	return false
}
