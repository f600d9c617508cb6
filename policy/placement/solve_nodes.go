package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// existingNodes are the nodes of a batch while pods are placed on them. Their free resources
// exclude the requests of the pods placed in this attempt.
type existingNodes struct {
	sv        *Solver
	table     *classTable
	occupancy *occupancy
	groups    *groupTable

	// free is the resources available to pods, by position in Nodes, minus the requests of
	// DaemonSet pods that do not exist yet. An entry is computed when a pod first examines the
	// node, which is rare with many nodes. It is valid if its entry in read equals batch, the
	// number of batches so far.
	free  []policy.Resources
	read  []uint32
	batch uint32

	// out reports which positions are left out. taken lists the positions that accepted pods.
	// cursor is, by relaxation, the first position that may accept such a pod.
	out     []bool
	taken   []int32
	daemons bool // the templates include DaemonSets
	cursor  []int32

	// ports are the pods with host ports, and attached those with volumes, that were placed on
	// existing nodes.
	ports, attached []placedPod

	// classes is the number of Nodes with a Node object, by class, including those left out. It is
	// computed on demand.
	classes []int32
	counted bool
}

// A placedPod is a pod of a template that was placed on an existing node.
type placedPod struct {
	node     policy.NodeID
	template policy.TemplateID
}

// begin prepares the nodes for an attempt.
func (en *existingNodes) begin() {
	en.ports = en.ports[:0]
	en.cursor = resize(en.cursor, len(en.groups.relaxations))
	en.leaveOut(true)
}

// end removes the pods that were placed.
func (en *existingNodes) end() {
	for _, at := range en.taken {
		en.read[at] = 0
	}
	en.taken = en.taken[:0]
	for _, u := range en.attached {
		en.occupancy.attach(&en.table.kinds[u.template], u.node, -1)
	}
	en.attached = en.attached[:0]
	en.leaveOut(false)
}

// open prepares the nodes of a batch.
func (en *existingNodes) open() {
	if more := len(en.sv.b.Nodes) - len(en.free); more > 0 {
		en.free, en.read = append(en.free, make([]policy.Resources, more)...), append(en.read, make([]uint32, more)...)
	}
	en.batch++
	en.out = resize(en.out, len(en.sv.b.Nodes))
	en.daemons = en.table.hasDaemons()
	en.counted = false
}

// freeAt returns the free resources of the node at a position.
func (en *existingNodes) freeAt(at int32) *policy.Resources {
	free := &en.free[at]
	if en.read[at] != en.batch {
		n := en.sv.b.Nodes[at]
		if *free = en.occupancy.slots[n].free; en.daemons {
			*free = free.Minus(en.occupancy.daemonsMissing(n))
		}
		en.read[at] = en.batch
	}
	return free
}

// existing returns the number of nodes with a Node object, by class.
func (en *existingNodes) existing() []int32 {
	if !en.counted {
		en.counted = true
		en.classes = resize(en.classes, len(en.table.classes))
		for _, n := range en.sv.b.Nodes {
			if s := &en.occupancy.slots[n]; s.state.exists() {
				en.classes[s.class]++
			}
		}
	}
	return en.classes
}

// leaveOut excludes the nodes in Batch.Without, or includes them again.
func (en *existingNodes) leaveOut(out bool) {
	for _, at := range en.sv.b.Without {
		en.out[at] = out
	}
}

func (ct *classTable) hasDaemons() bool {
	return slices.ContainsFunc(ct.kinds, func(k kind) bool { return k.daemon })
}

// addToNode places a pod on the first existing node that accepts it. It reports whether there was
// one.
func (en *existingNodes) addToNode(p, s int32) bool {
	st := &en.groups.relaxations[s]
	prefix := true // no node so far will ever accept such a pod
	for at := en.cursor[s]; int(at) < len(en.sv.b.Nodes); at++ {
		switch en.fitsNode(st, p, at) {
		case never:
			if prefix {
				en.cursor[s] = at + 1
			}
			continue
		case later:
			prefix = false
			continue
		}
		n, k := en.sv.b.Nodes[at], &en.table.kinds[st.template]
		en.sv.placed[p] = n
		en.free[at] = en.free[at].Minus(k.requests)
		en.taken = append(en.taken, at)
		if k.ports != nil {
			en.ports = append(en.ports, placedPod{n, st.template})
		}
		if k.volumes.any() {
			en.occupancy.attach(k, n, 1)
			en.attached = append(en.attached, placedPod{n, st.template})
		}
		if st.own {
			en.sv.asks.remember(st, en.table.classes[en.occupancy.slots[n].class].labels, n, nil)
		}
		en.rememberBare(st, k, n)
		en.recordOnNode(k, n)
		return true
	}
	return false
}

// An outcome is the result of trying a pod on a node.
type outcome uint8

const (
	taken outcome = iota
	later         // not possible now, but perhaps after other pods are placed
	never
)

// fitsNode returns whether the node at a position accepts a pod (CanAdd in existingnode.go).
func (en *existingNodes) fitsNode(st *relaxation, p, at int32) outcome {
	n := en.sv.b.Nodes[at]
	k, s, pod := &en.table.kinds[st.template], &en.occupancy.slots[n], &en.sv.b.Pods[p]
	r := &k.requests
	if en.out[at] || r.CPU > s.free.CPU || r.Memory > s.free.Memory || s.state == failing && !k.unready {
		return never // the free resources can only be less, after DaemonSet pods and pods placed here
	}
	free := en.freeAt(at)
	if r.CPU > free.CPU || r.Memory > free.Memory || r.Pods > free.Pods || r.Storage > free.Storage ||
		free.CPU < 0 || free.Memory < 0 || free.Storage < 0 || free.GPU < 0 ||
		r.GPU > 0 && (r.GPU > free.GPU || k.gpu != s.gpu) || s.state == absent || s.state == closed && !k.cordoned ||
		s.state == leaving {
		return never
	}
	switch v := st.suits(s.class); {
	case st.own && len(en.sv.asks.list) > 0:
		if !en.sv.asks.suitsWithAsks(st, s.class, n, nil) {
			return later
		}
	case v == 2 || v == 0 && !en.table.relaxationSuits(st, s.class, en.occupancy.nodes[n].host, en.occupancy.nodes[n].name):
		if st.own {
			return later // requirements of pods placed before may allow it
		}
		return never
	}
	if k.ports != nil && en.portTaken(k, n) {
		return never
	}
	if en.sv.b.Resting != nil && en.sv.b.Resting[at] && pod.Phase != policy.PodPending {
		return later
	}
	if k.volumes.any() && !en.volumesFit(k, pod, n) {
		return later
	}
	if len(st.groups)+len(k.avoids) > 0 && !en.groupsLet(st, k, n, p) {
		return later
	}
	return taken
}

// groupsLet reports whether topology allows a pod on an existing node.
func (en *existingNodes) groupsLet(st *relaxation, k *kind, n policy.NodeID, p int32) bool {
	bare := false
	for _, list := range [...][]int32{st.groups, k.avoids} {
		for _, id := range list {
			g := &en.groups.groups[id]
			if g.run != en.sv.domains.run {
				continue
			}
			d := en.occupancy.domain(g.key, n)
			bare = bare || d < 0
			if d >= 0 && !en.nodeMeets(st, g, d) {
				return false
			}
		}
	}
	return !bare || en.bareMeets(st, k, n, p)
}

// volumesFit reports whether the volumes of a pod can be attached to a node. The limit of a node is
// known once it has joined. Karpenter ignores that a claim is ReadWriteOncePod
// (tryVolumeAlternative in existingnode.go, ExceedsLimits in pkg/scheduling/volumeusage.go).
func (en *existingNodes) volumesFit(k *kind, pod *policy.Pod, n policy.NodeID) bool {
	if !en.occupancy.inVolumeZone(k, pod, n) {
		return false
	}
	return en.occupancy.slots[n].state == coming || en.occupancy.checkAttach(k, n) == OK
}

// suits returns the cached result for nodes of class c: 0 unknown, 1 suits, 2 does not suit.
func (s *relaxation) suits(c int32) int8 {
	if int(c) < len(s.byClass) {
		return s.byClass[c]
	}
	return 0
}

func (en *existingNodes) portTaken(k *kind, n policy.NodeID) bool {
	return en.occupancy.portTaken(k, n) || slices.ContainsFunc(en.ports, func(u placedPod) bool {
		return u.node == n && slices.Contains(k.ports, u.template)
	})
}

// nodeMeets reports whether a group allows a pod on an existing node of domain d.
func (en *existingNodes) nodeMeets(st *relaxation, g *group, d int32) bool {
	l, host := &en.groups.layout, g.key == keyHost
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
