package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A podIndex holds the properties of the pods of a snapshot that are read most, by node, so that a
// query need not visit all pods. Its memory is used again for the next snapshot.
type podIndex struct {
	// nodes holds by node its pods, ascending, DaemonSets' left out.
	nodes [][]boundPod

	// needed is by node the requests of these pods, CPU, memory and accelerators, and daemons the
	// requests of DaemonSets' pods.
	needed, daemons []policy.Resources

	// groups holds by node how many of these pods are of which template, ascending, those left
	// out that are ending, and sets says what all have in common.
	groups [][]podGroup
	sets   []podSet

	// pending are the pods without a node that a scheduler would place, ascending.
	pending []policy.PodID

	// needs is by template the requests of its pods.
	needs []podNeeds

	// standing[(1+p)*templates+t] is the number of pods of t that are bound to a node of pool p or
	// are promised a place there, excluding DaemonSets' pods and pods that are ending; with None
	// for p, the number of those that have no place.
	standing []int32

	hosts []host  // by node
	ready []int32 // by template, the pods at their nodes that are ready, no DaemonSet's

	// usable is by 1 + pool the number of its usable nodes, and daemonsThere the requests of
	// DaemonSets' pods on these.
	usable       []int64
	daemonsThere []policy.Resources
}

// A host is what of a node decides how its pods count. A fixed node is not spot: pods there
// of a service that can spare none are not moved to spot, and so nothing takes them.
type host struct {
	pool          policy.PoolID
	fixed, usable bool
}

// A podGroup is n pods of a template on one node.
type podGroup struct {
	template policy.TemplateID
	n        int32
}

// A podNeeds is what of a template decides how its pods are counted.
type podNeeds struct {
	sum  policy.Resources  // CPU, memory and accelerators
	kind policy.TemplateID // the first with the same requests
}

// A podSet is what the pods of a node have in common.
type podSet struct {
	n     int32
	mates int32 // the most of them that are of one template, those left out that are ending

	// kind is that of all of them, None if they are of several, one is ending, or another
	// controller set the deletion cost of one.
	kind policy.TemplateID

	cost  int32 // the least deletion cost of them, 0 where they have none
	stale bool  // not all have it
	held  bool  // one of them is not ready, or not to be disrupted
}

// A boundPod is what is asked most of a pod that holds a place on a node.
type boundPod struct {
	id           policy.PodID
	template     policy.TemplateID
	cost         int32 // what it costs to delete it, as Pod.DeletionCost
	fixed        bool  // another controller set that
	doNotDisrupt bool
	phase        policy.PodPhase // starting, ready or terminating
}

// placeOf returns the node where p stands, else where it is promised a place, None for neither.
func placeOf(p *policy.Pod) policy.NodeID {
	if p.Node >= 0 {
		return p.Node
	}
	return p.Nominated
}

// remains reports whether p is no DaemonSet's and not ending.
func remains(s *policy.Snapshot, p *policy.Pod) bool {
	return p.Phase != policy.PodGone && p.Phase != policy.PodTerminating && !s.Templates[p.Template].DaemonSet
}

// bound reports whether p holds a place on a node.
func bound(p *policy.Pod) bool { return p.Phase >= policy.PodStarting && p.Node >= 0 }

// read reads s.
func (x *podIndex) read(s *policy.Snapshot) {
	x.readNeeds(s)
	x.nodes, x.groups = emptied(x.nodes, len(s.Nodes)), emptied(x.groups, len(s.Nodes))
	x.needed, x.daemons = scratch.Zeroed(x.needed, len(s.Nodes)), scratch.Zeroed(x.daemons, len(s.Nodes))
	x.hosts, x.sets = scratch.Zeroed(x.hosts, len(s.Nodes)), scratch.Zeroed(x.sets, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		x.hosts[i] = host{n.Pool, n.Live() && n.Market >= 0 && s.Markets[n.Market].Capacity != policy.Spot, n.Usable()}
	}
	x.pending, x.ready = x.pending[:0], scratch.Zeroed(x.ready, len(s.Templates))
	x.standing = scratch.Zeroed(x.standing, (1+len(s.Pools))*len(s.Templates))
	for i := range s.Pods {
		x.count(s, &s.Pods[i])
	}
	x.usable, x.daemonsThere = scratch.Zeroed(x.usable, 1+len(s.Pools)), scratch.Zeroed(x.daemonsThere, 1+len(s.Pools))
	for n := range x.hosts {
		x.sets[n] = x.setOf(n)
		if h := &x.hosts[n]; h.usable {
			x.usable[1+h.pool]++
			x.daemonsThere[1+h.pool] = x.daemonsThere[1+h.pool].Plus(x.daemons[n])
		}
	}
}

// emptied returns n empty lists in the memory of lists.
func emptied[T any](lists [][]T, n int) [][]T {
	lists = slices.Grow(lists, max(0, n-len(lists)))[:n]
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	return lists
}

// readNeeds reads the requests of templates.
func (x *podIndex) readNeeds(s *policy.Snapshot) {
	x.needs = scratch.Zeroed(x.needs, len(s.Templates))
	first := make(map[policy.Resources]policy.TemplateID, len(s.Templates))
	for i := range s.Templates {
		r := &s.Templates[i].Requests
		sum := policy.Resources{CPU: r.CPU, Memory: r.Memory, GPU: r.GPU}
		kind, known := first[sum]
		if !known {
			kind = policy.TemplateID(i)
			first[sum] = kind
		}
		x.needs[i] = podNeeds{sum, kind}
	}
}

// count counts a pod; those before it were counted.
func (x *podIndex) count(s *policy.Snapshot, p *policy.Pod) {
	if p.Phase == policy.PodGone {
		return
	}
	t := &s.Templates[p.Template]
	if remains(s, p) {
		pool, at := policy.PoolID(policy.None), placeOf(p)
		if at >= 0 {
			pool = x.hosts[at].pool
		}
		if pool >= 0 || at < 0 {
			x.standing[int(1+pool)*len(x.needs)+int(p.Template)]++
		}
	}
	switch {
	case bound(p) && t.DaemonSet:
		x.daemons[p.Node] = x.daemons[p.Node].Plus(t.Requests)
	case bound(p):
		x.nodes[p.Node] = append(x.nodes[p.Node], boundPod{p.ID, p.Template, p.DeletionCost, p.DeletionCostFixed,
			p.DoNotDisrupt, p.Phase})
		x.needed[p.Node] = x.needed[p.Node].Plus(x.needs[p.Template].sum)
		if p.Phase != policy.PodTerminating {
			x.groups[p.Node] = withOne(x.groups[p.Node], p.Template)
		}
		if p.Phase == policy.PodReady {
			x.ready[p.Template]++
		}
	case p.Phase == policy.PodPending && !p.Gated:
		x.pending = append(x.pending, p.ID)
	}
}

// withOne returns the groups of a node with one pod of t more.
func withOne(groups []podGroup, t policy.TemplateID) []podGroup {
	at, there := slices.BinarySearchFunc(groups, t, func(g podGroup, t policy.TemplateID) int { return int(g.template - t) })
	if !there {
		return slices.Insert(groups, at, podGroup{t, 1})
	}
	groups[at].n++
	return groups
}

// setOf returns what the pods of a node have in common.
func (x *podIndex) setOf(node int) podSet {
	pods := x.nodes[node]
	set := podSet{n: int32(len(pods)), kind: policy.None}
	for _, g := range x.groups[node] {
		set.mates = max(set.mates, g.n)
	}
	for i := range pods {
		p := &pods[i]
		kind := x.needs[p.template].kind
		if p.phase == policy.PodTerminating || p.fixed || i > 0 && kind != set.kind {
			kind = policy.None
		}
		if i == 0 {
			set.kind, set.cost = kind, p.cost
		} else if kind < 0 {
			set.kind = kind
		}
		set.stale, set.cost = set.stale || p.cost != pods[0].cost, min(set.cost, p.cost)
		set.held = set.held || p.phase != policy.PodReady || p.doNotDisrupt
	}
	return set
}

// standingIn returns the part of standing that is of pool p.
func (x *podIndex) standingIn(p policy.PoolID) []int32 {
	return x.standing[int(1+p)*len(x.needs) : int(2+p)*len(x.needs)]
}

// on returns the pods of node n, ascending.
func (x *podIndex) on(n policy.NodeID) []boundPod { return x.nodes[n] }

// used returns the requests of the pods of node n, CPU, memory and accelerators.
func (x *podIndex) used(n policy.NodeID) policy.Resources { return x.needed[n] }

// free returns the CPU and memory that no pod requests on node n.
func (x *podIndex) free(s *policy.Snapshot, n policy.NodeID) policy.Resources {
	a, used, daemons := &s.Nodes[n].Allocatable, &x.needed[n], &x.daemons[n]
	return policy.Resources{CPU: a.CPU - used.CPU - daemons.CPU, Memory: a.Memory - used.Memory - daemons.Memory}
}
