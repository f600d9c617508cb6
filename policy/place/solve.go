package place

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Batch is what one run of Karpenter's scheduler is given.
type Batch struct {
	// Pods are to be placed. None of them is bound in the space.
	Pods []policy.Pod

	// Nodes are tried in this order. Karpenter tries initialized nodes first, and
	// orders by name.
	Nodes []policy.NodeID

	// Resting says, by position in Nodes, which of them take pods in phase PodPending
	// only: those within consolidateAfter of their pool, while nodes are disrupted. Nil
	// means none. Pods of nodes that go away anyhow are given as pending.
	Resting []bool

	// Without are positions in Nodes that are left out.
	Without []int

	// Offers are what new nodes can be bought of. Pools are tried in the order in which
	// the offers first name them: Karpenter's is weight and then name, both falling.
	// Their Max is not heeded. Batches for one space of one version, not 0, have the same
	// offers.
	Offers        []Offer
	OffersVersion uint64

	// Pools says what NodePools ask for besides; a pool that is not named asks for
	// nothing.
	Pools []Pool

	// Abort, where it is not nil, is asked after each pod that found a place: by position
	// in Pods, on an existing node or, with None, in one of the claims opened so far.
	// True ends the run: the solution says no more than that.
	Abort func(pod int, n policy.NodeID, claims int) bool

	// Draw chooses among domains of key in which a pod, by position, may be placed
	// alike: Karpenter takes any. Nil takes the first.
	Draw func(pod int, key string, ties []string) int
}

// A Pool is what is known of a NodePool besides its offers.
type Pool struct {
	ID policy.PoolID

	// Requirements and Taints are those of the NodePool. Taints are read where it has
	// nothing to offer.
	Requirements []policy.Requirement
	Taints       []policy.Taint

	// Domains are values of labels that its instance types have where nothing is
	// offered to it: they count for topology spread all the same.
	Domains []policy.Label

	// Limits are what the pool may hold in all, 0 is unlimited; Used is what it holds,
	// nodes that go away left out. NodesFull says that its limit of nodes is reached.
	Limits, Used policy.Resources
	NodesFull    bool

	MinValues []MinValues
}

// A MinValues is how many values of a label the instance types of a claim must have
// among them, at least.
type MinValues struct {
	Key string
	N   int
}

// A Solution is where Karpenter's scheduler would have pods run. It is valid until the
// next Solve.
type Solution struct {
	// Nodes are the existing nodes by position in Pods; None where a pod is on none.
	Nodes []policy.NodeID

	// Bins are new nodes, in the order in which they were opened. Their offers are all
	// that hold the pods, of which a provider is sent the cheapest types.
	Bins []Bin

	// Unplaced are positions in Pods, ascending.
	Unplaced []int

	// Aborted says that Batch.Abort ended the run.
	Aborted bool
}

// Solve places pods as Karpenter's scheduler does (Solve in pkg/controllers/provisioning/
// scheduling/scheduler.go of Karpenter 1.14.1): by falling CPU and memory request, each
// on the first node with room, else in the open claim with the fewest pods, else in a
// new claim of the first pool that can serve it. Preferences count as required at
// first and are given up one by one. The space is used as scratch and left as it was.
func (sp *Space) Solve(b *Batch) Solution {
	sp.Prepare(b)
	return sp.Attempt()
}

// Prepare reads b for any number of attempts. Between them these may change: the pods
// after those that b has now, Without, Abort, Draw, the limits of pools and what they
// hold, and what runs on nodes that are left out or not in Nodes.
func (sp *Space) Prepare(b *Batch) {
	sv := &sp.solver
	sv.sp, sv.b = sp, b
	sp.compileRepelled()
	sv.shelf = sp.shelveVersion(b.Offers, b.OffersVersion)
	sv.pooled = false
	sv.readNodes()
	sv.common = sv.sort(sv.common[:0], 0)
}

// Attempt solves the batch that was prepared last.
func (sp *Space) Attempt() Solution {
	sv := &sp.solver
	sv.begin()
	sv.order()
	for head := 0; head < len(sv.queue); head++ {
		p, left := sv.queue[head], int32(len(sv.queue)-head)
		if sv.pushed[p] == left {
			break // all that are left were tried since the last success
		}
		if !sv.schedule(p) {
			sv.queue = append(sv.queue, p)
			sv.pushed[p] = left
		} else if sv.b.Abort != nil && sv.b.Abort(int(p), sv.placed[p], len(sv.opened)) {
			sv.undo()
			return Solution{Aborted: true}
		}
	}
	return sv.end()
}

// A solver is the scratch of Solve.
type solver struct {
	sp       *Space
	b        *Batch
	shelf    *shelf
	layout   layout
	compiled bool

	stagesLaid, groupsLaid int // how many have what they ask for by topology key

	run int32

	common []int32 // the pods that all attempts have, in order
	own    []int32 // those of one
	queue  []int32
	pushed []int32 // by pod: how many were in the queue after it was put back
	placed []policy.NodeID

	// free is what pods may still ask for, by position in Nodes, and out says which are
	// left out; taken are those that took pods. cursor is, by stage, the first of them
	// that may ever take such a pod.
	free    []policy.Resources
	out     []bool
	taken   []int32
	daemons bool // there are DaemonSets
	cursor  []int32

	// ports are the pods with host ports that were placed on existing nodes.
	ports []portUse

	asks  []ask
	found []*policy.Requirement // scratch of asked

	claims  []*nodeClaim // in the order in which they are tried
	opened  []*nodeClaim // in the order in which they were opened
	spare   []*nodeClaim // of former runs
	sorted  bool         // claims are in order
	pooled  bool         // pools and closed are read
	keys    int          // that were known when pools were read
	noRules Pool         // those of pools that are not named
	pools   []poolState
	closed  []poolState // with nothing to offer
	journal []addition

	// base is what is asked of a node before topology, sets what is asked after it.
	base, sets keysets
	cand       bitset
	options    bitset
	ties       []string
	tied       []int32
	drawn      bool // Draw was asked since schedule began

	hopeless []bool  // by stage: pods will find no place in this run
	failed   []int32 // by stage: version at which a pod found no place
	version  int32   // grows with every pod that is placed

	lenient bool    // a pool has a taint of effect PreferNoSchedule
	classes []int32 // how many of Nodes exist, by class
}

// A portUse is a pod with host ports on an existing node.
type portUse struct {
	node     policy.NodeID
	template policy.TemplateID
}

// An addition is one count that Solve added to a group.
type addition struct{ group, domain int32 }

// begin readies the scratch for an attempt.
func (sv *solver) begin() {
	sp, b := sv.sp, sv.b
	sv.run++
	for i := range b.Pods {
		sp.stagesOf(b.Pods[i].Template)
	}
	sv.readPools()
	sv.queue, sv.ports, sv.asks, sv.journal = sv.queue[:0], sv.ports[:0], sv.asks[:0], sv.journal[:0]
	sv.pushed = resize(sv.pushed, len(b.Pods))
	sv.placed = resize(sv.placed, len(b.Pods))
	for i := range sv.placed {
		sv.placed[i] = policy.None
	}
	sv.cursor = resize(sv.cursor, len(sp.stages))
	sv.failed = resize(sv.failed, len(sp.stages))
	sv.hopeless = resize(sv.hopeless, len(sp.stages))
	sv.version, sv.sorted = 1, true
	sv.leaveOut(true)
	for i := range b.Pods {
		sv.activate(&sp.stages[sp.stagesOf(b.Pods[i].Template)])
	}
	for id := range sp.groups {
		if g := &sp.groups[id]; g.sort == repelled && g.pods > 0 && g.run != sv.run {
			sv.register(g)
		}
	}
}

// learn adds the values of topology keys that a pool names.
func (sp *Space) learn(pool *Pool) {
	for key := 1; key < len(sp.keys); key++ {
		k := &sp.keys[key]
		for i := range pool.Requirements {
			if r := &pool.Requirements[i]; r.Key == k.name && r.Op == policy.OpIn {
				for _, value := range r.Values {
					k.valueOf(value)
				}
			}
		}
		for i := range pool.Domains {
			if pool.Domains[i].Key == k.name {
				k.valueOf(pool.Domains[i].Value)
			}
		}
	}
}

// resize returns n zeros in the place of list.
func resize[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n, n+n/4)
	}
	list = list[:n]
	clear(list)
	return list
}

// layStages makes what stages and filters ask for by topology key: all anew where keys
// or their values were added.
func (sv *solver) layStages(anew bool) {
	sp := sv.sp
	if anew {
		sv.stagesLaid, sv.groupsLaid, sv.spare = 0, 0, nil
		sv.base, sv.sets = sv.layout.make(), sv.layout.make()
	}
	for ; sv.stagesLaid < len(sp.stages); sv.stagesLaid++ {
		sp.setsOf(&sp.stages[sv.stagesLaid])
	}
	for ; sv.groupsLaid < len(sp.groups); sv.groupsLaid++ {
		if f := sp.groups[sv.groupsLaid].filter; f != nil {
			sp.termsOf(f)
		}
	}
}

// readNodes reads what is free on the nodes, less what DaemonSet pods that are not there
// yet will request.
func (sv *solver) readNodes() {
	sv.free = resize(sv.free, len(sv.b.Nodes))
	sv.out = resize(sv.out, len(sv.b.Nodes))
	sv.classes = resize(sv.classes, len(sv.sp.classes))
	sv.daemons = sv.sp.hasDaemons()
	for at, n := range sv.b.Nodes {
		sv.readFree(at)
		if s := &sv.sp.slots[n]; s.state.exists() {
			sv.classes[s.class]++
		}
	}
}

func (sv *solver) readFree(at int) {
	n := sv.b.Nodes[at]
	sv.free[at] = sv.sp.slots[n].free
	if sv.daemons {
		sv.free[at] = sv.free[at].Minus(sv.sp.daemonsMissing(n))
	}
}

// leaveOut takes the nodes that are left out from the others, or puts them back.
func (sv *solver) leaveOut(out bool) {
	for _, at := range sv.b.Without {
		sv.out[at] = out
		s := &sv.sp.slots[sv.b.Nodes[at]]
		switch {
		case !s.state.exists():
		case out:
			sv.classes[s.class]--
		default:
			sv.classes[s.class]++
		}
	}
}

func (sp *Space) hasDaemons() bool {
	return slices.ContainsFunc(sp.kinds, func(k kind) bool { return k.daemon })
}

// order fills the queue: the pods of this attempt are put among those of all.
func (sv *solver) order() {
	sv.queue = sv.sort(append(sv.queue, sv.common...), len(sv.common))
	at := len(sv.common)
	if at == 0 || at == len(sv.queue) {
		return
	}
	sv.own = append(sv.own[:0], sv.queue[at:]...)
	own := sv.own
	for to := len(sv.queue) - 1; len(own) > 0; to-- {
		last := own[len(own)-1]
		if at > 0 && sv.before(last, sv.queue[at-1]) < 0 {
			at--
			sv.queue[to] = sv.queue[at]
			continue
		}
		sv.queue[to], own = last, own[:len(own)-1]
	}
}

// sort adds the pods from a position on to list, in order.
func (sv *solver) sort(list []int32, from int) []int32 {
	for i := from; i < len(sv.b.Pods); i++ {
		list = append(list, int32(i))
	}
	slices.SortFunc(list[from:], sv.before)
	return list
}

// before compares two pods as Karpenter's queue does (byCPUAndMemoryDescending in
// queue.go). Creation times have whole seconds there.
func (sv *solver) before(x, y int32) int {
	p, q := &sv.b.Pods[x], &sv.b.Pods[y]
	a, b := &sv.sp.kinds[p.Template].requests, &sv.sp.kinds[q.Template].requests
	return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory),
		cmp.Compare(p.Created/1000, q.Created/1000), cmp.Compare(p.ID, q.ID))
}

// schedule places one pod, giving up preferences where it must.
func (sv *solver) schedule(p int32) bool {
	sp := sv.sp
	pod := &sv.b.Pods[p]
	first := sp.stagesOf(pod.Template)
	same := pod.VolumeZone == policy.None && sv.b.Resting == nil
	if same && (sv.hopeless[first] || sv.failed[first] == sv.version) {
		return false
	}
	sv.drawn = false
	bound := len(sp.kinds[pod.Template].avoids) > 0
	for s := first; s >= 0; s = sp.stages[s].next {
		st := &sp.stages[s]
		if st.lenient && !sv.lenient {
			break
		}
		if s != first {
			sv.activate(st)
		}
		bound = bound || len(st.groups) > 0 || st.own
		if sv.addToNode(p, s) || sv.addToClaim(p, s) || sv.addToNew(p, s) {
			sv.version++
			return true
		}
	}
	if same {
		sv.hopeless[first] = !bound
		if !sv.drawn {
			sv.failed[first] = sv.version
		}
	}
	return false
}

// addToNode places a pod on the first existing node that takes it.
func (sv *solver) addToNode(p, s int32) bool {
	st := &sv.sp.stages[s]
	prefix := true // all nodes so far will never take such a pod
	for at := sv.cursor[s]; int(at) < len(sv.b.Nodes); at++ {
		switch sv.fitsNode(st, p, at) {
		case never:
			if prefix {
				sv.cursor[s] = at + 1
			}
			continue
		case later:
			prefix = false
			continue
		}
		n, k := sv.b.Nodes[at], &sv.sp.kinds[st.template]
		sv.placed[p] = n
		sv.free[at] = sv.free[at].Minus(k.requests)
		sv.taken = append(sv.taken, at)
		if k.ports != nil {
			sv.ports = append(sv.ports, portUse{n, st.template})
		}
		if st.own {
			sv.remember(st, sv.sp.classes[sv.sp.slots[n].class].labels, n, nil)
		}
		sv.rememberBare(st, k, n)
		sv.recordOnNode(k, n)
		return true
	}
	return false
}

// fitsNode reports whether the node at a position takes a pod (CanAdd in
// existingnode.go).
func (sv *solver) fitsNode(st *stage, p, at int32) outcome {
	sp, free, n := sv.sp, &sv.free[at], sv.b.Nodes[at]
	k, s, pod := &sp.kinds[st.template], &sp.slots[n], &sv.b.Pods[p]
	r := &k.requests
	if sv.out[at] || r.CPU > free.CPU || r.Memory > free.Memory || r.Pods > free.Pods || r.Storage > free.Storage ||
		free.CPU < 0 || free.Memory < 0 || free.Storage < 0 || free.GPU < 0 ||
		r.GPU > 0 && (r.GPU > free.GPU || k.gpu != s.gpu) || s.state == absent || s.state == closed && !k.cordoned || s.state == leaving {
		return never
	}
	switch v := st.suits(s.class); {
	case st.own && len(sv.asks) > 0:
		if !sv.suitsWithAsks(st, s.class, n, nil) {
			return later
		}
	case v == 2 || v == 0 && !sp.stageSuits(st, s.class, sp.nodes[n].host, sp.nodes[n].name):
		if st.own {
			return later // what pods ask that come before may let it in
		}
		return never
	}
	if k.ports != nil && sv.portTaken(k, n) {
		return never
	}
	if sv.b.Resting != nil && sv.b.Resting[at] && pod.Phase != policy.PodPending {
		return later
	}
	if (k.volumes > 0 || len(k.claims) > 0 || k.zonal) && sp.checkVolumes(k, pod, n) != OK {
		return later
	}
	if len(st.groups)+len(k.avoids) > 0 && !sv.groupsLet(st, k, n, p) {
		return later
	}
	return joinedBin
}

// groupsLet reports whether topology lets a pod onto an existing node.
func (sv *solver) groupsLet(st *stage, k *kind, n policy.NodeID, p int32) bool {
	bare := false
	for _, list := range [...][]int32{st.groups, k.avoids} {
		for _, id := range list {
			g := &sv.sp.groups[id]
			if g.run != sv.run {
				continue
			}
			d := sv.sp.domain(g.key, n)
			bare = bare || d < 0
			if d >= 0 && !sv.nodeMeets(st, g, d) {
				return false
			}
		}
	}
	return !bare || sv.bareMeets(st, k, n, p)
}

// suits returns what is known of nodes of class c: 0 nothing, 1 yes, 2 no.
func (s *stage) suits(c int32) int8 {
	if int(c) < len(s.byClass) {
		return s.byClass[c]
	}
	return 0
}

func (sv *solver) portTaken(k *kind, n policy.NodeID) bool {
	return sv.sp.portTaken(k, n) || slices.ContainsFunc(sv.ports, func(u portUse) bool {
		return u.node == n && slices.Contains(k.ports, u.template)
	})
}

// nodeMeets reports whether a group lets a pod onto an existing node of domain d.
func (sv *solver) nodeMeets(st *stage, g *group, d int32) bool {
	l, host := &sv.layout, g.key == keyHost
	switch g.sort {
	case spreads:
		self := int32(0)
		if g.self {
			self = 1
		}
		return (host || g.registered.has(d)) && g.in(d)+self-g.least(l, &st.firmSets) <= g.skewMax
	case attracts:
		if !host && !(st.firmSets.allows(l, g.key, d) && g.registered.has(d)) {
			return false
		}
		return g.in(d) > 0 || g.self && (g.total == 0 || !g.occupied(l, &st.firmSets))
	}
	return g.in(d) == 0 && (host || g.registered.has(d) && st.firmSets.allows(l, g.key, d))
}

// inClaim stands in solver.pushed for a pod that is in a claim.
const inClaim = -1

// end returns the solution and undoes what was counted.
func (sv *solver) end() Solution {
	out := Solution{Nodes: sv.placed}
	for _, c := range sv.opened {
		out.Bins = append(out.Bins, sv.binOf(c))
		for _, p := range c.pods {
			sv.pushed[p] = inClaim
		}
	}
	for p, n := range sv.placed {
		if n == policy.None && sv.pushed[p] != inClaim {
			out.Unplaced = append(out.Unplaced, p)
		}
	}
	sv.undo()
	return out
}

// undo takes off what the run counted, and readies the scratch for the next.
func (sv *solver) undo() {
	for _, a := range sv.journal {
		sv.sp.groups[a.group].add(a.domain, -1)
	}
	sv.spare = append(sv.spare, sv.opened...)
	sv.claims, sv.opened = sv.claims[:0], sv.opened[:0]
	for _, at := range sv.taken {
		sv.readFree(int(at))
	}
	sv.taken = sv.taken[:0]
	sv.leaveOut(false)
}
