package placement

import (
	"math"
	"reflect"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A groupTable counts bound pods as Karpenter's scheduler does, and contains the requirements of
// pods as their preferences are relaxed.
type groupTable struct {
	table     *classTable
	occupancy *occupancy

	relaxations []relaxation
	groups      []group

	layout                      layout
	relaxationsLaid, groupsLaid int // number whose requirements by topology key were built
	compiled                    bool
}

// A groupSort is the type of a topology group.
type groupSort uint8

const (
	spreads  groupSort = iota
	attracts           // pod affinity
	repels             // pod anti-affinity
	repelled           // anti-affinity of other pods, from the view of the pods that it keeps away
)

// A group counts pods by the domains of a topology key as Karpenter does. This differs from
// kube-scheduler: each term of pod affinity counts separately, terminating pods do not count, and
// soft terms are treated as required until they are relaxed
// (pkg/controllers/provisioning/scheduling/topology.go and topologygroup.go of Karpenter 1.14.1).
// Groups are created at the first Solve with pods that need them, and are then kept.
type group struct {
	sort  groupSort
	key   int32
	owner policy.TemplateID

	constraint int // index among the owner's constraints or terms

	// members are the templates whose pods count. For a group of sort repelled, pods of the owner
	// count instead, and members are the templates that are kept away.
	members bitset
	self    bool // the owner is a member

	skewMax, domainsMin int32
	filter              *filter // for sort spreads only; nil means that all nodes count

	count []int32 // by domain; by node if the key is the host name
	total int32
	pods  int32 // bound pods, including those on nodes without the key

	// run is the last attempt in which the group was active. registered contains the domains known
	// in it.
	run        int32
	registered bitset

	// State of the domains that all attempts of a batch share, read at the given reading: offered
	// contains the domains that pools offer, and nodes the number of existing nodes in each domain.
	reading int32
	offered bitset
	nodes   []int32
}

// A filter restricts the nodes on which a spread counts pods.
type filter struct {
	owner          policy.TemplateID
	dropped        int // number of required terms of the owner's affinity that were dropped
	lenient        bool
	ignoreAffinity bool
	honorTaints    bool

	wants   [][]*policy.Requirement // requirements; the node must satisfy all of at least one list
	terms   []keysets               // wants by topology key
	byClass []int8
}

// spreadGroup returns the group of topology spread constraint i of t. It creates the group if
// necessary.
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

// oneGroup reports whether Karpenter treats two constraints of a pod as one topology group. It
// ignores minDomains, so that the first constraint's value applies to both (Hash in
// topologygroup.go). Soft constraints are dropped before a pod is lenient.
func oneGroup(a, b policy.Spread) bool {
	a.MinDomains, a.Soft = b.MinDomains, b.Soft
	return reflect.DeepEqual(a, b)
}

// termGroup returns the group of term i of the pod affinity or anti-affinity of t. It creates the
// group if necessary.
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

// compileRepelled creates the groups of all required anti-affinity terms at the first call.
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

// in returns the number of pods in domain d.
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

// least returns the smallest count of any known domain that is allowed.
func (g *group) least(l *layout, allowed *keysets) int32 {
	if g.key == keyHost {
		return 0 // a new node is always possible
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

// occupied reports whether an allowed domain contains a pod.
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
