package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A podIndex holds the properties of the pods of a snapshot that are read most, in little memory
// and by node, so that a query need not visit all pods. It is kept from decision to decision, since
// few pods change in between. For any snapshot its content equals that of an index that is rebuilt.
type podIndex struct {
	mark policy.Mark // of the snapshot that was read last
	all  []podEntry  // by pod

	// nodes holds by node its pods, ascending, DaemonSets' left out.
	nodes [][]boundPod

	// needed is by node the requests of these pods, CPU, memory and accelerators, and daemons the
	// requests of DaemonSets' pods.
	needed, daemons []policy.Resources

	// groups holds by node how many of these pods are of which template, ascending, those left
	// out that are ending, and sets says what all have in common.
	groups [][]podGroup
	sets   []podSet

	// touched are the nodes whose pods changed with the snapshot that was read last, and dirty says
	// so by node while it is read; `anew` says that all were read, and these are not listed.
	touched []policy.NodeID
	dirty   []bool
	anew    bool

	// pending are the pods without a node that a scheduler would place, ascending.
	pending []policy.PodID

	// needs is by template the requests of its pods, as read last.
	needs []podNeeds

	// standing[(1+p)*templates+t] is the number of pods of t that are bound to a node of pool p or
	// are promised a place there, excluding DaemonSets' pods and pods that are ending; with None
	// for p, the number of those that have no place.
	standing []int32
	cells    []int32       // by pod, its place in standing, below zero of one that does not count
	hosts    []host        // by node
	places   scratch.Lists // of pods, by podEntry.at

	// usable is by 1 + pool the number of its usable nodes, and daemonsThere the requests of
	// DaemonSets' pods on these.
	ready        []int32 // by template, the pods at their nodes that are ready, no DaemonSet's
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
	daemon bool
	all    policy.Resources
	sum    policy.Resources  // CPU, memory and accelerators
	kind   policy.TemplateID // the first with the same requests
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

// setOf returns what the pods of a node have in common.
func (x *podIndex) setOf(node policy.NodeID) podSet {
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
		set.held = set.held || p.phase != policy.PodReady || x.all[p.id].doNotDisrupt
	}
	return set
}

// A podEntry is a pod. An entry whose phase is PodGone holds no pod.
type podEntry struct {
	template     policy.TemplateID
	at           policy.NodeID // where it stands, else where it is promised a place
	node         policy.NodeID
	nominated    policy.NodeID
	cost         int32 // what it costs to delete it, as Pod.DeletionCost
	phase        policy.PodPhase
	bound        bool // it is bound to its node
	gated        bool
	daemon       bool
	fixed        bool // another controller set its deletion cost
	doNotDisrupt bool
}

// A boundPod is what is asked most of a pod that holds a place on a node.
type boundPod struct {
	id       policy.PodID
	template policy.TemplateID
	cost     int32
	fixed    bool
	phase    policy.PodPhase // starting, ready or terminating
}

// read counts the pods of s that are not as they were read last.
func (x *podIndex) read(s *policy.Snapshot) {
	x.touched, x.anew = x.touched[:0], false
	if !x.readNeeds(s) || len(s.Nodes) < len(x.nodes) || len(s.Pods) < len(x.all) || len(x.usable) != 1+len(s.Pools) {
		x.forget(s)
	}
	more := max(0, len(s.Nodes)-len(x.nodes))
	pods, groups := make([]boundPod, roomPerNode*more), make([]podGroup, roomPerNode*more)
	for ; more > 0; more-- {
		x.nodes, pods = append(x.nodes, pods[:0:roomPerNode]), pods[roomPerNode:]
		x.groups, groups = append(x.groups, groups[:0:roomPerNode]), groups[roomPerNode:]
		x.needed, x.daemons, x.sets = append(x.needed, policy.Resources{}), append(x.daemons,
			policy.Resources{}), append(x.sets, podSet{kind: policy.None})
		x.dirty = append(x.dirty, false)
	}
	x.readHosts(s)
	if more := len(s.Pods) - len(x.all); more > 0 {
		x.all = append(x.all, make([]podEntry, more)...)
	}
	for len(x.cells) < len(x.all) {
		x.cells = append(x.cells, policy.None)
	}
	for c := s.PodsSince(x.mark); c.Next(); {
		id := c.ID
		if p := &s.Pods[id]; !x.all[id].holds(p) {
			x.change(id, p)
		}
	}
	for _, n := range x.touched {
		x.sets[n], x.dirty[n] = x.setOf(n), false
	}
	x.mark = s.Mark()
}

// touch notes that the pods of n changed.
func (x *podIndex) touch(n policy.NodeID) {
	if !x.dirty[n] {
		x.dirty[n], x.touched = true, append(x.touched, n)
	}
}

// readHosts re-reads the hosts that changed. A node that is another host than before also has other
// pods, so that few are recounted for it.
func (x *podIndex) readHosts(s *policy.Snapshot) {
	for len(x.hosts) < len(s.Nodes) {
		x.hosts = append(x.hosts, host{pool: policy.None})
	}
	for c := s.NodesSince(x.mark); c.Next(); {
		id := c.ID
		n := &s.Nodes[id]
		now := host{n.Pool, n.Live() && n.Market >= 0 && s.Markets[n.Market].Capacity != policy.Spot, n.Usable()}
		if now == x.hosts[id] {
			continue
		}
		x.countHost(id, -1)
		x.hosts[id] = now
		x.countHost(id, 1)
		for p := x.places.First(int(id)); p >= 0; p = x.places.Next(p) {
			x.stand(policy.PodID(p))
		}
	}
}

// countHost counts a node in (1) with its host, or out (-1).
func (x *podIndex) countHost(n policy.NodeID, sign int64) {
	if h := x.hosts[n]; h.usable {
		x.usable[1+h.pool] += sign
		x.daemonsThere[1+h.pool] = x.daemonsThere[1+h.pool].Plus(x.daemons[n].Scale(sign))
	}
}

// stand counts a pod where it stands now.
func (x *podIndex) stand(id policy.PodID) {
	if was := x.cells[id]; was >= 0 {
		x.standing[was]--
	}
	now := x.cellOf(&x.all[id])
	if x.cells[id] = now; now >= 0 {
		x.standing[now]++
	}
}

// cellOf returns the place of a pod in standing, below zero of one that does not count.
func (x *podIndex) cellOf(e *podEntry) int32 {
	if e.daemon || e.phase == policy.PodGone || e.phase == policy.PodTerminating {
		return policy.None
	}
	pool := policy.PoolID(policy.None)
	if e.at >= 0 {
		if pool = x.hosts[e.at].pool; pool < 0 {
			return policy.None
		}
	}
	return int32(int(1+pool)*len(x.needs)) + int32(e.template)
}

// standingIn returns the part of list, which is as standing is, that is of pool p.
func standingIn[T any](x *podIndex, list []T, p policy.PoolID) []T {
	return list[int(1+p)*len(x.needs) : int(2+p)*len(x.needs)]
}

// regrouped returns the groups of a node with one pod of t more (1) or less (-1).
func regrouped(groups []podGroup, t policy.TemplateID, sign int32) []podGroup {
	at, there := slices.BinarySearchFunc(groups, t, func(g podGroup,
		t policy.TemplateID) int {
		return int(g.template - t)
	})
	if !there {
		return slices.Insert(groups, at, podGroup{t, sign})
	}
	if groups[at].n += sign; groups[at].n == 0 {
		return slices.Delete(groups, at, at+1)
	}
	return groups
}

// roomPerNode is how many pods of a node are stored before those of the next one.
const roomPerNode = 8

// holds reports whether e says what p is.
func (e *podEntry) holds(p *policy.Pod) bool {
	return e.phase == p.Phase && (p.Phase == policy.PodGone ||
		e.template == p.Template && e.node == p.Node && e.nominated == p.Nominated &&
			e.cost == p.DeletionCost && e.fixed == p.DeletionCostFixed && e.gated == p.Gated && e.doNotDisrupt == p.DoNotDisrupt)
}

// readNeeds reads the requests of templates, and reports whether they are unchanged.
func (x *podIndex) readNeeds(s *policy.Snapshot) bool {
	same := len(x.needs) == len(s.Templates)
	x.needs = slices.Grow(x.needs[:0], len(s.Templates))[:len(s.Templates)]
	for i := range s.Templates {
		t, was := &s.Templates[i], &x.needs[i]
		same = same && was.daemon == t.DaemonSet && was.all == t.Requests
	}
	if same {
		return true
	}
	first := make(map[policy.Resources]policy.TemplateID)
	for i := range s.Templates {
		t := &s.Templates[i]
		kind, known := first[sumOf(t)]
		if !known {
			kind = policy.TemplateID(i)
			first[sumOf(t)] = kind
		}
		x.needs[i] = podNeeds{t.DaemonSet, t.Requests, sumOf(t), kind}
	}
	return false
}

func sumOf(t *policy.Template) policy.Resources {
	return policy.Resources{CPU: t.Requests.CPU, Memory: t.Requests.Memory, GPU: t.Requests.GPU}
}

// forget empties the index.
func (x *podIndex) forget(s *policy.Snapshot) {
	x.anew, x.all, x.pending = true, x.all[:0], x.pending[:0]
	x.nodes = x.nodes[:min(len(x.nodes), len(s.Nodes))]
	x.needed, x.daemons = scratch.Zeroed(x.needed, len(x.nodes)), scratch.Zeroed(x.daemons, len(x.nodes))
	x.groups, x.sets, x.dirty = x.groups[:len(x.nodes)], x.sets[:len(x.nodes)], x.dirty[:len(x.nodes)]
	x.mark, x.hosts = policy.Mark{}, x.hosts[:0]
	x.standing, x.cells = scratch.Zeroed(x.standing, (1+len(s.Pools))*len(s.Templates)), x.cells[:0]
	x.places.Clear()
	x.ready = scratch.Zeroed(x.ready, len(s.Templates))
	x.usable, x.daemonsThere = scratch.Zeroed(x.usable, 1+len(s.Pools)), scratch.Zeroed(x.daemonsThere, 1+len(s.Pools))
	for n := range x.nodes {
		x.nodes[n], x.groups[n], x.sets[n] = x.nodes[n][:0], x.groups[n][:0], podSet{kind: policy.None}
	}
}

// change re-reads p.
func (x *podIndex) change(id policy.PodID, p *policy.Pod) {
	e := &x.all[id]
	x.countReady(e, -1)
	defer x.countReady(e, 1)
	if e.remains(p) {
		e.cost, e.phase, e.fixed, e.gated, e.doNotDisrupt = p.DeletionCost, p.Phase, p.DeletionCostFixed, p.Gated, p.DoNotDisrupt
		if !e.daemon {
			at, _ := x.find(id, e.at)
			x.nodes[e.at][at] = boundPod{id, e.template, e.cost, e.fixed, e.phase}
			x.touch(e.at)
		}
		return
	}
	x.count(id, e, -1)
	if *e = (podEntry{}); p.Phase == policy.PodGone {
		x.places.Put(int(id), policy.None)
		x.stand(id)
		return
	}
	*e = podEntry{
		template: p.Template, at: p.Node, node: p.Node, nominated: p.Nominated, cost: p.DeletionCost, phase: p.Phase, gated: p.Gated,
		bound:  p.Phase >= policy.PodStarting && p.Node >= 0,
		daemon: x.needs[p.Template].daemon, fixed: p.DeletionCostFixed, doNotDisrupt: p.DoNotDisrupt,
	}
	if e.at < 0 {
		e.at = p.Nominated
	}
	x.places.Put(int(id), int(e.at))
	x.stand(id)
	x.count(id, e, 1)
}

// countReady counts a pod in (1) if it is ready, or out (-1).
func (x *podIndex) countReady(e *podEntry, sign int32) {
	if e.bound && !e.daemon && e.phase == policy.PodReady {
		x.ready[e.template] += sign
	}
}

// remains reports whether e, which holds a place on a node, holds it as p, too.
func (e *podEntry) remains(p *policy.Pod) bool {
	return e.bound && e.phase != policy.PodTerminating && p.Phase >= policy.PodStarting &&
		p.Phase != policy.PodTerminating &&
		e.template == p.Template && e.node == p.Node && e.nominated == p.Nominated
}

// find returns where pod id is among those of node n, or belongs, and whether it is there.
func (x *podIndex) find(id policy.PodID, n policy.NodeID) (int, bool) {
	return slices.BinarySearchFunc(x.nodes[n], id, func(p boundPod, id policy.PodID) int { return int(p.id - id) })
}

// count takes a pod in (1) where its entry says, or out (-1).
func (x *podIndex) count(id policy.PodID, e *podEntry, sign int64) {
	switch {
	case e.bound && e.daemon:
		asked := x.needs[e.template].all.Scale(sign)
		x.daemons[e.at] = x.daemons[e.at].Plus(asked)
		if h := x.hosts[e.at]; h.usable {
			x.daemonsThere[1+h.pool] = x.daemonsThere[1+h.pool].Plus(asked)
		}
		x.touch(e.at)
	case e.bound:
		list := &x.nodes[e.at]
		at, _ := x.find(id, e.at)
		if sign < 0 {
			*list = slices.Delete(*list, at, at+1)
		} else {
			*list = slices.Insert(*list, at, boundPod{id, e.template, e.cost, e.fixed, e.phase})
		}
		if e.phase != policy.PodTerminating {
			x.groups[e.at] = regrouped(x.groups[e.at], e.template, int32(sign))
		}
		x.needed[e.at] = x.needed[e.at].Plus(x.needs[e.template].sum.Scale(sign))
		x.touch(e.at)
	case e.phase == policy.PodPending && !e.gated && !e.bound:
		at, _ := slices.BinarySearch(x.pending, id)
		if sign < 0 {
			x.pending = slices.Delete(x.pending, at, at+1)
		} else {
			x.pending = slices.Insert(x.pending, at, id)
		}
	}
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
