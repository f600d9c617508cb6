package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A domainChooser restricts the labels of a claim by the requirements of topology groups. Its
// journal lists the counts that it added to groups, which are subtracted when the attempt ends.
type domainChooser struct {
	sv        *Solver
	table     *classTable
	occupancy *occupancy
	groups    *groupTable

	run     int32
	reading int32 // changes when the domains of groups must be read again
	journal []addition

	// base contains the requirements on a node before topology is considered, sets those after.
	base, sets keysets
	options    bitset
	ties       []string
	tied       []int32
	drawn      bool // Draw was called since schedule started
}

// An addition is one count that Solve added to a group.
type addition struct{ group, domain int32 }

// begin prepares the chooser for an attempt without active groups.
func (dc *domainChooser) begin(rebuilt bool) {
	if l := &dc.groups.layout; rebuilt {
		dc.base, dc.sets = l.make(), l.make()
		dc.forget()
	}
	dc.run++
}

// forget makes groups read the domains of pools and nodes again.
func (dc *domainChooser) forget() { dc.reading++ }

// end subtracts the counts of the attempt.
func (dc *domainChooser) end() {
	for _, a := range dc.journal {
		dc.groups.groups[a.group].add(a.domain, -1)
	}
	dc.journal = dc.journal[:0]
}

// activate activates the groups of a relaxation and those of the anti-affinity of its pods.
func (dc *domainChooser) activate(st *relaxation) {
	for _, id := range st.groups {
		if g := &dc.groups.groups[id]; g.run != dc.run {
			dc.register(g)
		}
	}
	for _, id := range dc.table.kinds[st.template].groups {
		if g := &dc.groups.groups[id]; g.sort == repelled && g.owner == st.template && g.run != dc.run {
			dc.register(g)
		}
	}
}

// register activates a group with its known domains: those in which pools can launch nodes,
// restricted to pools with tolerated taints where that applies, those of existing nodes, and those
// that contain pods (buildDomainGroups and countDomains in topology.go).
func (dc *domainChooser) register(g *group) {
	g.run = dc.run
	if g.key == keyHost {
		return
	}
	if g.reading != dc.reading {
		dc.readDomains(g)
	}
	g.registered = append(g.registered[:0], g.offered...)
	if g.sort != repelled {
		dc.leaveOut(g, -1)
		for d, n := range g.nodes {
			if n > 0 {
				g.registered.set(int32(d))
			}
		}
		dc.leaveOut(g, 1)
	}
	for d, n := range g.count {
		if n > 0 {
			g.registered.set(int32(d))
		}
	}
}

// readDomains reads the domains of a group that do not depend on bound pods or nodes left out.
func (dc *domainChooser) readDomains(g *group) {
	l := &dc.groups.layout
	g.reading = dc.reading
	g.offered = resize(g.offered, int(l.from[g.key+1]-l.from[g.key]))
	lenient := g.filter != nil && g.filter.lenient
	serves := func(x *poolState) bool {
		return g.sort == spreads && !g.filter.honorTaints || !taintedFor(x.taints, dc.table.kinds[g.owner].tolerations,
			lenient)
	}
	for i := range dc.sv.pools.withOffers {
		if x := &dc.sv.pools.withOffers[i]; serves(x) {
			for d, of := range dc.sv.offerTable.ofDomain[g.key] {
				if d > 0 && of.meets(dc.sv.offerTable.ofPool[i]) && !slices.Contains(x.rules.Open, dc.table.keys[g.key].name) {
					g.offered.set(int32(d - 1))
				}
			}
			dc.registerPool(g, x)
		}
	}
	for i := range dc.sv.pools.withoutOffers {
		if x := &dc.sv.pools.withoutOffers[i]; serves(x) {
			dc.registerPool(g, x)
		}
	}
	if g.sort != repelled {
		dc.countNodes(g)
	}
}

// registerPool adds the domains that a pool names.
func (dc *domainChooser) registerPool(g *group, x *poolState) {
	l := &dc.groups.layout
	if x.sets.kind[g.key] == oneOf {
		for w, bits := range x.sets.of(l, g.key) {
			g.offered[w] |= bits
		}
	}
	name := dc.table.keys[g.key].name
	for i := range x.rules.Domains {
		if x.rules.Domains[i].Key != name {
			continue
		}
		for d, value := range dc.table.keys[g.key].values {
			if value == x.rules.Domains[i].Value && x.sets.allows(l, g.key, int32(d)) {
				g.offered.set(int32(d))
			}
		}
	}
}

// countNodes counts the existing nodes by domain. It counts by class if the filter of the group
// does not distinguish nodes of a class.
func (dc *domainChooser) countNodes(g *group) {
	g.nodes = resize(g.nodes, len(dc.table.keys[g.key].values))
	if g.filter != nil && (g.filter.honorTaints || dc.table.kinds[g.owner].byName) {
		for _, n := range dc.sv.b.Nodes {
			if d := dc.domainOf(g, n); d >= 0 {
				g.nodes[d]++
			}
		}
		return
	}
	for c, nodes := range dc.sv.nodes.existing() {
		if d := dc.table.classes[c].domain[g.key]; nodes > 0 && d >= 0 &&
			(g.filter == nil || dc.table.classSuits(g.filter, int32(c))) {
			g.nodes[d] += nodes
		}
	}
}

// leaveOut subtracts the nodes in Batch.Without from the nodes of their domains (delta -1), or adds
// them again (delta 1).
func (dc *domainChooser) leaveOut(g *group, delta int32) {
	for _, at := range dc.sv.b.Without {
		if d := dc.domainOf(g, dc.sv.b.Nodes[at]); d >= 0 {
			g.nodes[d] += delta
		}
	}
}

// domainOf returns the domain of node n in a group, or -1 if n does not count for the group.
func (dc *domainChooser) domainOf(g *group, n policy.NodeID) int32 {
	if !dc.occupancy.slots[n].state.exists() || !dc.groups.groupCounts(g, n) {
		return policy.None
	}
	return dc.occupancy.domain(g.key, n)
}

// narrow restricts the labels of a claim to what topology requires with one more pod
// (AddRequirements in topology.go). It reports whether the pod is allowed. Each group considers the
// requirements before any other group was applied.
func (dc *domainChooser) narrow(c *nodeClaim, st *relaxation, k *kind, p int32) bool {
	bounded := false
	for _, id := range st.groups {
		g := &dc.groups.groups[id]
		if !dc.claimMeets(c, st, g, p) {
			return false
		}
		bounded = bounded || g.key != keyHost
	}
	for _, id := range k.avoids {
		g := &dc.groups.groups[id]
		if g.run != dc.run {
			continue
		}
		if !dc.claimMeets(c, st, g, p) {
			return false
		}
		bounded = bounded || g.key != keyHost
	}
	if !bounded {
		return true
	}
	dc.keepDomains()
	return dc.satisfiable(c)
}

// keepDomains removes the offers outside the domains that groups require. The requirements of the
// pods themselves are checked before, because a label that offers lack may come from pods alone.
func (dc *domainChooser) keepDomains() {
	for key := 1; key < len(dc.sets.kind); key++ {
		set, before := dc.sets.of(&dc.groups.layout, int32(key)), dc.base.of(&dc.groups.layout, int32(key))
		if dc.sets.kind[key] != oneOf || dc.base.kind[key] == oneOf && set.equal(before) {
			continue
		}
		for d, of := range dc.sv.offerTable.ofDomain[key] {
			if d == 0 && !set.empty() || d > 0 && !set.has(int32(d-1)) {
				dc.sv.claims.cand.andNot(of)
			}
		}
	}
}

// claimMeets reports whether a group allows a pod in a claim, and restricts the claim's labels.
func (dc *domainChooser) claimMeets(c *nodeClaim, st *relaxation, g *group, p int32) bool {
	if g.key == keyHost {
		return dc.hostMeets(c, g)
	}
	l := &dc.groups.layout
	dc.options = resize(dc.options, int(l.from[g.key+1]-l.from[g.key]))
	switch g.sort {
	case spreads:
		dc.spreadOptions(st, g, p)
	case attracts:
		dc.attractOptions(st, g, p)
	default:
		for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
			if g.in(d) == 0 && dc.base.allows(l, g.key, d) && st.firmSets.allows(l, g.key, d) {
				dc.options.set(d)
			}
		}
	}
	if dc.options.empty() {
		return false
	}
	dc.sets.narrowKey(l, g.key, oneOf, dc.options)
	return true
}

// satisfiable reports whether the requirements of all groups can be satisfied together. If no
// domain satisfies them, the label may be absent (Compatible in pkg/scheduling/requirements.go). A
// label that neither the pool nor its instance types have cannot be required.
func (dc *domainChooser) satisfiable(c *nodeClaim) bool {
	for key := 1; key < len(dc.sets.kind); key++ {
		if dc.sets.kind[key] != oneOf {
			continue
		}
		base, set := dc.base.kind[key], dc.sets.of(&dc.groups.layout, int32(key))
		switch {
		case base == unbounded && !set.empty():
			if !dc.known(c, int32(key)) {
				return false
			}
		case base == present || base == oneOf && !dc.base.of(&dc.groups.layout, int32(key)).empty():
			if set.empty() {
				return false
			}
		}
	}
	return true
}

func (dc *domainChooser) hostMeets(c *nodeClaim, g *group) bool {
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

// known reports whether a claim may be restricted by a label that its pool does not name. This is
// the case for labels of its instance types.
func (dc *domainChooser) known(c *nodeClaim, key int32) bool {
	for d, of := range dc.sv.offerTable.ofDomain[key] {
		if d > 0 && of.meets(dc.sv.offerTable.ofPool[c.pool]) {
			return true
		}
	}
	return false
}

// spreadOptions chooses the domain with the fewest pods among those that the skew allows.
func (dc *domainChooser) spreadOptions(st *relaxation, g *group, p int32) {
	l, self, best := &dc.groups.layout, int32(0), int32(-1)
	if g.self {
		self = 1
	}
	least := g.least(l, &st.firmSets)
	dc.tied = dc.tied[:0]
	for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
		count := g.in(d) + self
		if !dc.base.allows(l, g.key, d) || count-least > g.skewMax {
			continue
		}
		if best < 0 || count < best {
			best, dc.tied = count, dc.tied[:0]
		}
		if count == best {
			dc.tied = append(dc.tied, d)
		}
	}
	dc.draw(g, p)
}

// attractOptions finds the domains with pods that attract this one. If no such pod exists, the
// first pod of a group that attracts itself may run in any domain: Karpenter chooses one that the
// claim allows and one that the pod allows (nextDomainAffinity in topologygroup.go).
func (dc *domainChooser) attractOptions(st *relaxation, g *group, p int32) {
	l := &dc.groups.layout
	for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
		if g.in(d) > 0 && dc.base.allows(l, g.key, d) && st.firmSets.allows(l, g.key, d) {
			dc.options.set(d)
		}
	}
	if !dc.options.empty() || !g.self || g.total > 0 && g.occupied(l, &st.firmSets) {
		return
	}
	for _, inClaim := range [...]bool{true, false} {
		dc.tied = dc.tied[:0]
		for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
			if st.firmSets.allows(l, g.key, d) && (!inClaim || dc.base.allows(l, g.key, d)) {
				dc.tied = append(dc.tied, d)
			}
		}
		dc.draw(g, p)
	}
}

// draw adds one of the tied domains to the options.
func (dc *domainChooser) draw(g *group, p int32) {
	switch {
	case len(dc.tied) == 0:
		return
	case len(dc.tied) == 1 || dc.sv.b.Draw == nil:
		dc.options.set(dc.tied[0])
		return
	}
	dc.drawn = true
	key := &dc.table.keys[g.key]
	dc.ties = dc.ties[:0]
	for _, d := range dc.tied {
		dc.ties = append(dc.ties, key.values[d])
	}
	dc.options.set(dc.tied[dc.sv.b.Draw(int(p), key.name, dc.ties)])
}

// count adds a pod to a domain of a group until the end of the attempt.
func (dc *domainChooser) count(id, d int32) {
	g := &dc.groups.groups[id]
	g.add(d, 1)
	if g.key != keyHost {
		g.registered.set(d)
	}
	dc.journal = append(dc.journal, addition{id, d})
}

// recordOnNode counts a pod that was placed on an existing node.
func (en *existingNodes) recordOnNode(k *kind, n policy.NodeID) {
	for _, id := range k.groups {
		g := &en.groups.groups[id]
		if g.run != en.sv.domains.run || g.filter != nil && !en.expected(g.filter, n) {
			continue
		}
		if d := en.occupancy.domain(g.key, n); d >= 0 {
			en.sv.domains.count(id, d)
		}
	}
}

// expected reports whether a filter counts node n once it is ready: taints of nodes that are not
// ready are ignored.
func (en *existingNodes) expected(f *filter, n policy.NodeID) bool {
	s := &en.occupancy.slots[n]
	if !f.ignoreAffinity && en.table.kinds[f.owner].byName {
		return en.table.filterSuits(f, s.class, en.occupancy.nodes[n].host, en.occupancy.nodes[n].name)
	}
	return en.table.classSuits(f, s.class)
}

// recordOnClaim counts a pod that was added to a claim: in its domain if only one is left, and for
// anti-affinity in every domain in which it may run (Record in topology.go).
func (cs *claimSet) recordOnClaim(c *nodeClaim, k *kind) {
	l := &cs.groups.layout
	for _, id := range k.groups {
		g := &cs.groups.groups[id]
		switch {
		case g.run != cs.sv.domains.run || !cs.claimCounts(c, g):
		case g.key == keyHost:
			cs.sv.domains.count(id, c.host)
		case g.sort == repels || g.sort == repelled:
			kind, set := c.sets.kind[g.key], c.sets.of(l, g.key)
			for d := range cs.table.keys[g.key].values {
				// If some values of a label are excluded, Karpenter counts the excluded ones.
				if kind == oneOf && set.has(int32(d)) || kind == noneOf && !set.has(int32(d)) {
					cs.sv.domains.count(id, int32(d))
				}
			}
		default:
			if d := c.sets.single(l, g.key); d >= 0 {
				cs.sv.domains.count(id, d)
			}
		}
	}
}

// claimCounts reports whether g counts pods of a claim.
func (cs *claimSet) claimCounts(c *nodeClaim, g *group) bool {
	f := g.filter
	if f == nil {
		return true
	}
	if f.honorTaints && taintedFor(cs.sv.pools.withOffers[c.pool].taints, cs.table.kinds[f.owner].tolerations, f.lenient) {
		return false
	}
	if f.ignoreAffinity {
		return true
	}
	for i := range f.terms {
		if c.sets.meets(&cs.groups.layout, &f.terms[i]) {
			return true
		}
	}
	return false
}
