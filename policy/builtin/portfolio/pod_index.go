package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A podIndex is a compact index by node of the properties of pods that are read most, so that a
// query need not visit all pods. It is kept from decision to decision, since few pods change in
// between. For any snapshot its content equals that of an index that is rebuilt.
type podIndex struct {
	mark policy.Mark // of the snapshot that was read last
	all  []podEntry  // by pod

	// nodes are, by node, its pods in ascending order, without DaemonSet pods.
	nodes [][]boundPod

	// needed is, by node, the total requests of these pods for CPU, memory and accelerators, and
	// daemons the total requests of DaemonSet pods.
	needed, daemons []policy.Resources

	// groups are, by node, the numbers of these pods by template in ascending order, without
	// terminating pods. sets summarises these pods.
	groups [][]podGroup
	sets   []podSet

	// touched are the nodes whose pods changed with the snapshot that was read last. dirty reports,
	// by node, whether it is in touched, during a read. `anew` reports that all pods were read;
	// touched is then incomplete.
	touched []policy.NodeID
	dirty   []bool
	anew    bool

	// pending are the pods without a node that a scheduler would place, in ascending order.
	pending []policy.PodID

	// needs are, by template, the requests of its pods as of the last read.
	needs []podNeeds

	// standing[(1+p)*templates+t] is the number of pods of t that are bound to, or nominated for, a
	// node of pool p, without DaemonSet pods and terminating pods. For p = None it is the number of
	// such pods without a node.
	standing []int32
	cells    []int32       // by pod, its index in standing; negative if it does not count
	hosts    []host        // by node
	places   scratch.Lists // pods by podEntry.at

	// ready is the number of ready pods on their nodes by template, without DaemonSet pods. usable
	// is the number of usable nodes of a pool, and daemonsThere the total requests of DaemonSet
	// pods on them, both by 1 + pool.
	ready        []int32 // by template
	usable       []int64
	daemonsThere []policy.Resources
}

// A host contains the properties of a node that determine how its pods count. A fixed node is not
// Spot: pods there that belong to a service that can spare none are not moved to Spot, and so
// cannot be reclaimed.
type host struct {
	pool          policy.PoolID
	fixed, usable bool
}

// A podGroup is n pods of a template on one node.
type podGroup struct {
	template policy.TemplateID
	n        int32
}

// A podNeeds contains the properties of a template that determine how its pods are counted.
type podNeeds struct {
	daemon bool
	all    policy.Resources
	sum    policy.Resources  // CPU, memory and accelerators
	kind   policy.TemplateID // first template with the same CPU, memory and accelerators
}

// A podSet summarises the pods of a node.
type podSet struct {
	n     int32
	mates int32 // maximum number of pods of one template, without terminating pods

	// kind is the kind of all pods. It is None if their kinds differ, one is terminating, or
	// another controller set the deletion cost of one.
	kind policy.TemplateID

	cost  int32 // lowest deletion cost of the pods; 0 without pods
	stale bool  // some pods have another deletion cost
	held  bool  // some pod is not ready, or must not be disrupted
}

// setOf returns the summary of the pods of a node.
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

// A podEntry is the state of a pod. An entry with the phase PodGone has no pod.
type podEntry struct {
	template     policy.TemplateID
	at           policy.NodeID // its node, or else the node for which it is nominated
	node         policy.NodeID
	nominated    policy.NodeID
	cost         int32 // as Pod.DeletionCost
	phase        policy.PodPhase
	bound        bool // bound to its node
	gated        bool
	daemon       bool
	fixed        bool // another controller set its deletion cost
	doNotDisrupt bool
}

// A boundPod contains the properties of a pod on a node that are read most.
type boundPod struct {
	id       policy.PodID
	template policy.TemplateID
	cost     int32
	fixed    bool
	phase    policy.PodPhase // starting, ready or terminating
}

// read updates the index to s: it recounts the pods that changed.
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

// touch records that the pods of n changed.
func (x *podIndex) touch(n policy.NodeID) {
	if !x.dirty[n] {
		x.dirty[n], x.touched = true, append(x.touched, n)
	}
}

// readHosts reads the hosts that changed again and recounts their pods. That affects few pods.
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

// countHost adds (sign 1) or removes (sign -1) a node in the counts of its pool.
func (x *podIndex) countHost(n policy.NodeID, sign int64) {
	if h := x.hosts[n]; h.usable {
		x.usable[1+h.pool] += sign
		x.daemonsThere[1+h.pool] = x.daemonsThere[1+h.pool].Plus(x.daemons[n].Scale(sign))
	}
}

// stand moves a pod to its present cell of standing.
func (x *podIndex) stand(id policy.PodID) {
	if was := x.cells[id]; was >= 0 {
		x.standing[was]--
	}
	now := x.cellOf(&x.all[id])
	if x.cells[id] = now; now >= 0 {
		x.standing[now]++
	}
}

// cellOf returns the index of a pod in standing, or None if it does not count.
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

// standingIn returns the part of list, which is indexed like standing, for pool p.
func standingIn[T any](x *podIndex, list []T, p policy.PoolID) []T {
	return list[int(1+p)*len(x.needs) : int(2+p)*len(x.needs)]
}

// regrouped returns the groups of a node with one pod of t added (sign 1) or removed (sign -1).
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

// roomPerNode is the number of pods of a node that are stored contiguously before the pods of the
// next node.
const roomPerNode = 8

// holds reports whether e is up to date with p.
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

// forget clears the index.
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

// change updates the index to p.
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

// countReady adds (sign 1) or removes (sign -1) a pod if it is ready.
func (x *podIndex) countReady(e *podEntry, sign int32) {
	if e.bound && !e.daemon && e.phase == policy.PodReady {
		x.ready[e.template] += sign
	}
}

// remains reports whether p occupies the same place on a node as e, and both are neither pending
// nor terminating.
func (e *podEntry) remains(p *policy.Pod) bool {
	return e.bound && e.phase != policy.PodTerminating && p.Phase >= policy.PodStarting &&
		p.Phase != policy.PodTerminating &&
		e.template == p.Template && e.node == p.Node && e.nominated == p.Nominated
}

// find returns the index of pod id among the pods of node n, or where it would be inserted, and
// whether it was found.
func (x *podIndex) find(id policy.PodID, n policy.NodeID) (int, bool) {
	return slices.BinarySearchFunc(x.nodes[n], id, func(p boundPod, id policy.PodID) int { return int(p.id - id) })
}

// count adds (sign 1) or removes (sign -1) a pod at the place in its entry.
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

// on returns the pods of node n in ascending order.
func (x *podIndex) on(n policy.NodeID) []boundPod { return x.nodes[n] }

// used returns the total requests of the pods of node n for CPU, memory and accelerators.
func (x *podIndex) used(n policy.NodeID) policy.Resources { return x.needed[n] }

// free returns the CPU and memory of node n that no pod requests.
func (x *podIndex) free(s *policy.Snapshot, n policy.NodeID) policy.Resources {
	a, used, daemons := &s.Nodes[n].Allocatable, &x.needed[n], &x.daemons[n]
	return policy.Resources{CPU: a.CPU - used.CPU - daemons.CPU, Memory: a.Memory - used.Memory - daemons.Memory}
}
