package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A podIndex holds what is asked most of the pods of a snapshot, in little memory and by
// node, so that not all pods are passed over for each question. It is kept from decision
// to decision, since few pods change in between, and says of any snapshot the same as one
// that is read anew.
type podIndex struct {
	mark policy.Mark // of the snapshot that was read last
	all  []podEntry  // by pod

	// nodes holds by node its pods, ascending, DaemonSets' left out.
	nodes [][]boundPod

	// needed is by node what these pods ask for, CPU, memory and accelerators, and daemons
	// what DaemonSets' do.
	needed, daemons []policy.Resources

	// sets says by node what these pods have in common.
	sets []podSet

	// pending are the pods without a node that a scheduler would place, ascending.
	pending []policy.PodID

	// needs is by template what its pods ask for, as read last.
	needs []podNeeds

	// standing[(1+p)*templates+t] is the number of pods of t, no DaemonSet's, that stand at a
	// node of pool p or are promised a place there, those left out that are ending; with None
	// for p that of those that have no place.
	standing []int32

	// together is by host and template on how many nodes so many of these stand.
	together [][]int32
	hosts    []host        // by node
	places   scratch.Lists // of pods, by podEntry.at

	// usable is by 1 + pool the number of its usable nodes, and daemonsThere what DaemonSets'
	// pods ask for on these.
	usable       []int64
	daemonsThere []policy.Resources
}

// A host is what of a node decides where its pods count. A fixed node is not spot.
type host struct {
	pool          policy.PoolID
	fixed, usable bool
}

// A podNeeds is what of a template decides how its pods are counted.
type podNeeds struct {
	daemon bool
	all    policy.Resources
	sum    policy.Resources  // CPU, memory and accelerators
	kind   policy.TemplateID // the first that asks for as much
}

// A podSet is what the pods of a node have in common.
type podSet struct {
	n     int32
	mates int32 // the most of them that are of one template, those left out that are ending

	// kind is that of all of them, None where they are of several, one is ending, or
	// somebody else set the cost of one.
	kind policy.TemplateID

	held  int32 // the least deletion cost of them, 0 where they have none
	stale bool  // not all have it
}

// setOf returns what pods have in common.
func (x *podIndex) setOf(pods []boundPod) podSet {
	set := podSet{n: int32(len(pods)), kind: policy.None}
	for i := range pods {
		p, n := &pods[i], int32(0)
		for k := range pods[:i+1] {
			if pods[k].template == p.template && pods[k].phase != policy.PodTerminating {
				n++
			}
		}
		set.mates = max(set.mates, n)
		kind := x.needs[p.template].kind
		if p.phase == policy.PodTerminating || p.fixed || i > 0 && kind != set.kind {
			kind = policy.None
		}
		if i == 0 {
			set.kind, set.held = kind, p.cost
		} else if kind < 0 {
			set.kind = kind
		}
		set.stale, set.held = set.stale || p.cost != pods[0].cost, min(set.held, p.cost)
	}
	return set
}

// A podEntry is a pod. One whose phase is PodGone is none.
type podEntry struct {
	template     policy.TemplateID
	at           policy.NodeID // where it stands, else where it is promised a place
	node         policy.NodeID
	nominated    policy.NodeID
	cost         int32 // what it costs to delete it, as Pod.DeletionCost
	phase        policy.PodPhase
	bound        bool // it stands at its node
	gated        bool
	daemon       bool
	fixed        bool // somebody else set its cost
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
	if !x.readNeeds(s) || len(s.Nodes) < len(x.nodes) || len(s.Pods) < len(x.all) || len(x.standing) != (1+len(s.Pools))*len(s.Templates) {
		x.forget(s)
	}
	for room := make([]boundPod, roomPerNode*(len(s.Nodes)-len(x.nodes))); len(room) > 0; room = room[roomPerNode:] {
		x.nodes, x.sets = append(x.nodes, room[:0:roomPerNode]), append(x.sets, podSet{kind: policy.None})
		x.needed, x.daemons = append(x.needed, policy.Resources{}), append(x.daemons, policy.Resources{})
	}
	x.readHosts(s)
	if more := len(s.Pods) - len(x.all); more > 0 {
		x.all = append(x.all, make([]podEntry, more)...)
	}
	for c := s.PodsSince(x.mark); c.Next(); {
		id := c.ID
		if p := &s.Pods[id]; !x.all[id].holds(p) {
			x.change(id, p)
		}
	}
	x.mark = s.Mark()
}

// readHosts reads the hosts anew that changed. A node that is another host than before has
// other pods, too, so that few are counted anew for it.
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
		x.standAt(id, -1)
		x.hosts[id] = now
		x.standAt(id, 1)
	}
}

// standAt counts all pods of a node in (1) with its host, or out (-1).
func (x *podIndex) standAt(n policy.NodeID, sign int32) {
	for i := x.places.First(int(n)); i >= 0; i = x.places.Next(i) {
		x.stand(&x.all[i], sign)
	}
	if h := x.hosts[n]; h.usable {
		x.usable[1+h.pool] += int64(sign)
		x.daemonsThere[1+h.pool] = x.daemonsThere[1+h.pool].Plus(x.daemons[n].Scale(int64(sign)))
	}
	list := x.nodes[n]
	for i := range list {
		if t := list[i].template; list[i].phase != policy.PodTerminating && ofTemplate(list[:i], t) == 0 {
			at := x.onHosts(x.hosts[n], t)
			*at = counted(*at, ofTemplate(list, t), sign)
		}
	}
}

// ofTemplate returns how many of the pods are of template t and not ending.
func ofTemplate(pods []boundPod, t policy.TemplateID) int32 {
	n := int32(0)
	for i := range pods {
		if pods[i].template == t && pods[i].phase != policy.PodTerminating {
			n++
		}
	}
	return n
}

// counted adds so many to the n-th of counts, which grow to it.
func counted(counts []int32, n, add int32) []int32 {
	for len(counts) <= int(n) {
		counts = append(counts, 0)
	}
	counts[n] += add
	return counts
}

// onHosts returns on how many such hosts one, two … pods of t stand, that are not ending.
func (x *podIndex) onHosts(h host, t policy.TemplateID) *[]int32 {
	return &x.together[(2*int(1+h.pool)+of(h.fixed))*len(x.needs)+int(t)]
}

// standingIn returns by template the part of standing that is of pool p.
func (x *podIndex) standingIn(p policy.PoolID) []int32 {
	return x.standing[int(1+p)*len(x.needs) : int(2+p)*len(x.needs)]
}

// stand counts a pod in (1) among those that stand with its pool, or out (-1).
func (x *podIndex) stand(e *podEntry, sign int32) {
	if e.daemon || e.phase == policy.PodGone || e.phase == policy.PodTerminating {
		return
	}
	pool := policy.PoolID(policy.None)
	if e.at >= 0 {
		if pool = x.hosts[e.at].pool; pool < 0 {
			return
		}
	}
	x.standing[int(1+pool)*len(x.needs)+int(e.template)] += sign
}

// roomPerNode is how many pods of a node lie beside those of the next one.
const roomPerNode = 8

// holds reports whether e says what p is.
func (e *podEntry) holds(p *policy.Pod) bool {
	return e.phase == p.Phase && (p.Phase == policy.PodGone || e.template == p.Template && e.node == p.Node && e.nominated == p.Nominated &&
		e.cost == p.DeletionCost && e.fixed == p.DeletionCostFixed && e.gated == p.Gated && e.doNotDisrupt == p.DoNotDisrupt)
}

// readNeeds reads what templates ask for, and reports whether that is as it was.
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
	x.all, x.pending = x.all[:0], x.pending[:0]
	x.nodes = x.nodes[:min(len(x.nodes), len(s.Nodes))]
	x.needed, x.daemons = scratch.Zeroed(x.needed, len(x.nodes)), scratch.Zeroed(x.daemons, len(x.nodes))
	x.sets = x.sets[:len(x.nodes)]
	x.mark, x.hosts = policy.Mark{}, x.hosts[:0]
	x.standing = scratch.Zeroed(x.standing, (1+len(s.Pools))*len(s.Templates))
	x.together = make([][]int32, 2*(1+len(s.Pools))*len(s.Templates))
	x.places.Clear()
	x.usable, x.daemonsThere = scratch.Zeroed(x.usable, 1+len(s.Pools)), scratch.Zeroed(x.daemonsThere, 1+len(s.Pools))
	for n := range x.nodes {
		x.nodes[n], x.sets[n] = x.nodes[n][:0], podSet{kind: policy.None}
	}
}

// change reads p anew.
func (x *podIndex) change(id policy.PodID, p *policy.Pod) {
	e := &x.all[id]
	x.count(id, e, -1)
	if *e = (podEntry{}); p.Phase == policy.PodGone {
		x.places.Put(int(id), policy.None)
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
	x.count(id, e, 1)
}

// count takes a pod in (1) where its entry says, or out (-1).
func (x *podIndex) count(id policy.PodID, e *podEntry, sign int64) {
	x.stand(e, int32(sign))
	switch {
	case e.bound && e.daemon:
		asked := x.needs[e.template].all.Scale(sign)
		x.daemons[e.at] = x.daemons[e.at].Plus(asked)
		if h := x.hosts[e.at]; h.usable {
			x.daemonsThere[1+h.pool] = x.daemonsThere[1+h.pool].Plus(asked)
		}
	case e.bound:
		list := &x.nodes[e.at]
		was := ofTemplate(*list, e.template)
		at, _ := slices.BinarySearchFunc(*list, id, func(p boundPod, id policy.PodID) int { return int(p.id - id) })
		if sign < 0 {
			*list = slices.Delete(*list, at, at+1)
		} else {
			*list = slices.Insert(*list, at, boundPod{id, e.template, e.cost, e.fixed, e.phase})
		}
		if now := ofTemplate(*list, e.template); now != was {
			at := x.onHosts(x.hosts[e.at], e.template)
			*at = counted(counted(*at, was, -1), now, 1)
		}
		x.needed[e.at] = x.needed[e.at].Plus(x.needs[e.template].sum.Scale(sign))
		x.sets[e.at] = x.setOf(*list)
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

// used returns what the pods of node n ask for, CPU, memory and accelerators.
func (x *podIndex) used(n policy.NodeID) policy.Resources { return x.needed[n] }

// free returns what no pod asks for on node n, CPU and memory.
func (x *podIndex) free(s *policy.Snapshot, n policy.NodeID) policy.Resources {
	a, used, daemons := &s.Nodes[n].Allocatable, &x.needed[n], &x.daemons[n]
	return policy.Resources{CPU: a.CPU - used.CPU - daemons.CPU, Memory: a.Memory - used.Memory - daemons.Memory}
}
