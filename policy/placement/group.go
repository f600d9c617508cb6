package placement

import (
	"math"
	"reflect"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A groupTable counts bound pods as Karpenter's scheduler does, and holds the requirements of pods
// as their preferences are relaxed.
type groupTable struct {
	table     *classTable
	occupancy *occupancy

	relaxations []relaxation
	groups      []group

	layout                      layout
	relaxationsLaid, groupsLaid int // how many have their requirements by topology key
	compiled                    bool
}

// A groupSort is what a topology group does.
type groupSort uint8

const (
	spreads  groupSort = iota
	attracts           // pod affinity
	repels             // pod anti-affinity
	repelled           // the anti-affinity of others, seen from the pods that it keeps away
)

// A group counts pods by the domains of a topology key as Karpenter does, which differs from
// kube-scheduler: each term of pod affinity counts alone, terminating pods do not count, and soft
// terms are like required ones until they are relaxed
// (pkg/controllers/provisioning/scheduling/topology.go and topologygroup.go of Karpenter 1.14.1).
// Groups are created at the first Solve with pods that need them, and kept.
type group struct {
	sort  groupSort
	key   int32
	owner policy.TemplateID

	constraint int // which of the owner's constraints or terms it is

	// members are the templates whose pods count; of a group of sort repelled those
	// are the owner's, and members those that are kept away.
	members bitset
	self    bool // pods of the owner count

	skewMax, domainsMin int32
	filter              *filter // of a spread; nil lets every node count

	count []int32 // by domain; of the host name by node
	total int32
	pods  int32 // bound ones, on nodes without the key too

	// run is the last attempt in which the group was in force, registered are the domains
	// known in it.
	run        int32
	registered bitset

	// What is known of domains for all attempts of a batch, as it was read at a reading:
	// those that pools offer, and how many nodes are in each.
	reading int32
	offered bitset
	nodes   []int32
}

// A filter restricts the nodes whose pods a spread counts.
type filter struct {
	owner          policy.TemplateID
	dropped        int // required terms of the owner's affinity that were given up
	lenient        bool
	ignoreAffinity bool
	honorTaints    bool

	wants   [][]*policy.Requirement // one of these lists must be met
	terms   []keysets               // wants by topology key
	byClass []int8
}

// spreadGroup returns the group of constraint i of t.
func (gt *groupTable) spreadGroup(t policy.TemplateID, i, dropped int, lenient bool) int32 {
	x := &gt.table.templates[t]
	i = slices.IndexFunc(x.Spread, func(c policy.Spread) bool { return oneGroup(c, x.Spread[i]) && !(lenient && c.Soft) })
	c := &x.Spread[i]
	key := gt.table.keyFor(c.TopologyKey)
	for id := range gt.groups {
		if g := &gt.groups[id]; g.owner == t && g.sort == spreads && g.constraint == i && g.filter.dropped == dropped &&
			g.filter.lenient == lenient {
			return int32(id)
		}
	}
	f := &filter{owner: t, lenient: lenient, dropped: dropped, ignoreAffinity: c.IgnoreAffinity,
		honorTaints: c.HonorTaints}
	for k := dropped; k < max(len(x.Affinity), dropped+1); k++ {
		list := selectorOf(x)
		if k < len(x.Affinity) {
			for i := range x.Affinity[k].Labels {
				list = append(list, &x.Affinity[k].Labels[i])
			}
		}
		for _, r := range list {
			gt.table.keyFor(r.Key)
		}
		f.wants = append(f.wants, combined(list))
	}
	return gt.addGroup(group{
		sort: spreads, key: key, owner: t, constraint: i, skewMax: c.MaxSkew, domainsMin: c.MinDomains,
		members: gt.table.membersOf(func(u *policy.Template) bool {
			return u.Namespace == x.Namespace &&
				c.Selector.Matches(u.Labels)
		}),
		filter: f,
	})
}

// oneGroup reports whether two constraints of a pod are one topology group to Karpenter:
// minDomains does not tell groups apart, so that the first one's holds for both (Hash in
// topologygroup.go). Soft ones are given up before a pod is lenient.
func oneGroup(a, b policy.Spread) bool {
	a.MinDomains, a.Soft = b.MinDomains, b.Soft
	return reflect.DeepEqual(a, b)
}

// termGroup returns the group of term i of the pod affinity or anti-affinity of t.
func (gt *groupTable) termGroup(t policy.TemplateID, sort groupSort, i int) int32 {
	for id := range gt.groups {
		if g := &gt.groups[id]; g.owner == t && g.sort == sort && g.constraint == i {
			return int32(id)
		}
	}
	x := &gt.table.templates[t]
	terms := x.PodAntiAffinity
	if sort == attracts {
		terms = x.PodAffinity
	}
	term := &terms[i]
	return gt.addGroup(group{
		sort: sort, key: gt.table.keyFor(term.TopologyKey), owner: t, constraint: i,
		members: gt.table.membersOf(func(u *policy.Template) bool { return TermMatches(x, term, u) }),
	})
}

func (gt *groupTable) addGroup(g group) int32 {
	id := int32(len(gt.groups))
	g.self = g.members.has(int32(g.owner))
	gt.groups = append(gt.groups, g)
	for t := range gt.table.kinds {
		k := &gt.table.kinds[t]
		switch {
		case g.sort == repelled:
			if g.members.has(int32(t)) {
				k.avoids = append(k.avoids, id)
			}
			if policy.TemplateID(t) == g.owner {
				k.groups = append(k.groups, id)
			}
		case g.members.has(int32(t)):
			k.groups = append(k.groups, id)
		}
	}
	added := &gt.groups[id]
	for n := range gt.occupancy.slots {
		for _, b := range gt.occupancy.nodes[n].bound {
			if slices.Contains(gt.table.kinds[b.template].groups, id) {
				gt.countIn(added, policy.NodeID(n), b.terminating, 1)
			}
		}
	}
	return id
}

// compileRepelled makes the groups of all required anti-affinity, once.
func (gt *groupTable) compileRepelled() {
	if gt.compiled {
		return
	}
	gt.compiled = true
	for t := range gt.table.templates {
		for i := range gt.table.templates[t].PodAntiAffinity {
			if gt.table.templates[t].PodAntiAffinity[i].Weight == 0 {
				gt.termGroup(policy.TemplateID(t), repelled, i)
			}
		}
	}
}

// countGroups adds delta pods of kind k on node n to the groups that count them.
func (gt *groupTable) countGroups(k *kind, n policy.NodeID, terminating bool, delta int32) {
	for _, id := range k.groups {
		gt.countIn(&gt.groups[id], n, terminating, delta)
	}
}

func (gt *groupTable) countIn(g *group, n policy.NodeID, terminating bool, delta int32) {
	if terminating && g.sort != repelled || !gt.groupCounts(g, n) {
		return
	}
	g.pods += delta
	if d := gt.occupancy.domain(g.key, n); d >= 0 {
		g.add(d, delta)
	}
}

// groupCounts reports whether g counts pods on node n.
func (gt *groupTable) groupCounts(g *group, n policy.NodeID) bool {
	f := g.filter
	if f == nil {
		return true
	}
	s := &gt.occupancy.slots[n]
	if f.honorTaints && !gt.table.kinds[f.owner].bears(s.state) {
		return false
	}
	if !f.ignoreAffinity && gt.table.kinds[f.owner].byName {
		return gt.table.filterSuits(f, s.class, gt.occupancy.nodes[n].host, gt.occupancy.nodes[n].name)
	}
	return gt.table.classSuits(f, s.class)
}

func (ct *classTable) classSuits(f *filter, c int32) bool {
	for len(f.byClass) < len(ct.classes) {
		f.byClass = append(f.byClass, 0)
	}
	if f.byClass[c] == 0 {
		f.byClass[c] = 2
		if ct.filterSuits(f, c, "", "") {
			f.byClass[c] = 1
		}
	}
	return f.byClass[c] == 1
}

func (ct *classTable) filterSuits(f *filter, c int32, host, name string) bool {
	cl := &ct.classes[c]
	if f.honorTaints && taintedFor(cl.taints, ct.kinds[f.owner].tolerations, f.lenient) {
		return false
	}
	if f.ignoreAffinity {
		return true
	}
	view := nodeView{cl.labels, host, name}
	return slices.ContainsFunc(f.wants, func(list []*policy.Requirement) bool {
		return !slices.ContainsFunc(list, func(r *policy.Requirement) bool {
			value, there := view.label(r.Key)
			return !r.MetBy(value, there)
		})
	})
}

// termsOf builds the requirements of a filter by topology key.
func (gt *groupTable) termsOf(f *filter) {
	f.terms = f.terms[:0]
	for _, list := range f.wants {
		s := gt.layout.make()
		for _, r := range list {
			gt.require(&s, r)
		}
		f.terms = append(f.terms, s)
	}
}

// in returns the count of domain d.
func (g *group) in(d int32) int32 {
	if int(d) >= len(g.count) {
		return 0
	}
	return g.count[d]
}

func (g *group) add(d, delta int32) {
	if int(d) >= len(g.count) {
		g.count = append(g.count, make([]int32, max(8, int(d)+1-len(g.count)))...)
	}
	g.count[d] += delta
	g.total += delta
}

// least returns the smallest count of the known domains that are allowed.
func (g *group) least(l *layout, allowed *keysets) int32 {
	if g.key == keyHost {
		return 0 // another node can always be had
	}
	least, domains := int32(math.MaxInt32), int32(0)
	for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
		if allowed.allows(l, g.key, d) {
			domains++
			least = min(least, g.in(d))
		}
	}
	if domains < g.domainsMin {
		return 0
	}
	return least
}

// occupied reports whether a domain that is allowed holds a pod.
func (g *group) occupied(l *layout, allowed *keysets) bool {
	if g.key == keyHost {
		return g.total > 0
	}
	for d := g.registered.next(0); d >= 0; d = g.registered.next(d + 1) {
		if g.in(d) > 0 && allowed.allows(l, g.key, d) {
			return true
		}
	}
	return false
}
